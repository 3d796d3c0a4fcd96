"""The partition count of a topic when a stage handled a record: the present count, or the count before a growth of the
topic. A growth is an increase of the partition count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..schemas.topics import STAGES, changelog_of
from ..streams.log.markers import Growth, some_marker
from ..streams.log.partitioner import partition_for
from ..streams.log.port import Log, Position


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Partition counts by topic. `now`: the present count. `growths`: the growths of a topic, oldest first, from the
    marker of the stage that reads the topic."""

    now: Mapping[str, int] = field(default_factory=dict)
    growths: Mapping[str, Sequence[Growth]] = field(default_factory=dict)

    def of(self, position: Position) -> int:
        """Return the partition count of the topic when a stage handled the record at this position."""
        later = self.growths.get(position.topic, ())[self._growths_before(position) :]
        return later[0].partitions if later else self.now[position.topic]

    def place(self, position: Position) -> tuple[int, int]:
        """Return the sort key for the records of one key, by time. Offsets alone do not sort them, because a growth may
        move the key to another partition."""
        return self._growths_before(position), position.offset

    def was_sent_again(self, position: Position) -> bool:
        """Return whether a growth of the topic sent this record again to another partition. No stage handled the record
        at this position."""
        return any(
            _offset(growth.until, position) <= position.offset < _offset(growth.sent_again, position)
            for growth in self.growths.get(position.topic, ())
        )

    def partitions_of(self, topic: str, key: str, *, now: int) -> set[int]:
        """Return the partitions that contain records of a key, now or before a growth. `now`: the present count of the
        topic."""
        counts = {growth.partitions for growth in self.growths.get(topic, ())} | {now}
        return {partition_for(key.encode(), count) for count in counts}

    def _growths_before(self, position: Position) -> int:
        growths = self.growths.get(position.topic, ())
        return sum(_offset(growth.until, position) <= position.offset for growth in growths)


def _offset(offsets: Mapping[str, Sequence[int]], position: Position) -> int:
    known = offsets.get(position.topic, ())
    return known[position.partition] if position.partition < len(known) else 0


async def read_growths(log: Log) -> dict[str, Sequence[Growth]]:
    """Return the growths of the topics that the stages read, by topic. Raises Transient."""
    found: dict[str, Sequence[Growth]] = {}
    for stage in STAGES:
        changelog = changelog_of(stage)
        if changelog is None or await log.partitions(changelog.name) is None:
            continue
        marker = await some_marker(log, changelog.name)
        for topic in {topic for growth in (marker.growths if marker else ()) for topic in growth.until}:
            found.setdefault(topic, [each for each in marker.growths if topic in each.until] if marker else ())
    return found
