"""The marker of a changelog partition: the offset from which it is complete, and the partition count of its rows.

Each partition of a changelog has one marker (`streams/faust/changelog_check.py` explains its purpose). A growth of the
topics (`growth.py`) replaces the marker. The new marker has the new partition count, and the offsets up to which events
were applied under the earlier count.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...schemas.topics import STAGES, changelog_of
from .port import Log

OWN_KEYS = "__memstream\0"
"""Prefix of internal keys. The NUL character distinguishes them from the keys of rows."""
MARKER_KEY = OWN_KEYS + "marker__"
Offset = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
TopicOffsets = dict[str, tuple[Offset, ...]]
"""Offsets of a topic's partitions, by topic."""
Range = tuple[Offset, Offset]
"""Range of offsets: the first offset is included, the second is not."""
LOST_KEPT = 32
"""Maximum number of lost ranges per topic in a marker. When a further range is added, the two oldest ranges and the
offsets between them become one range."""


class Growth(BaseModel):
    """A past growth of the topics."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    partitions: Count
    """The partition count before the growth."""
    until: TopicOffsets
    """Committed offsets of the stage's group when the rows were moved, for each topic that the stage reads. Events
    below these offsets have all of their effects."""
    sent_again: TopicOffsets = Field(default_factory=dict)
    """End offsets of the records that were sent again: the records from `until` to below these offsets were sent to the
    partitions of the new count."""


class Marker(BaseModel):
    """The marker of one changelog partition.

    `identity` distinguishes a topic from an earlier, deleted topic with the same name. The partition has all entries
    from offset `whole_from` on. The marker's own offset is `written_at` or slightly higher.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    identity: str
    whole_from: Offset
    written_at: Offset
    partitions: Count | None = None
    """The partition count by which the rows are placed. None when an earlier version wrote the marker."""
    growths: tuple[Growth, ...] = ()
    """Past growths, oldest first."""
    lost: tuple[tuple[str, Range], ...] = ()
    """Ranges of source records that the log lost before the group committed them: topic and offset range, in the
    partition of the topic with this partition's number. The ranges of a topic are in rising order."""

    def to_bytes(self) -> bytes:
        return self.model_dump_json(exclude_defaults=True).encode()

    @classmethod
    def of(cls, raw: bytes | None) -> Marker | None:
        """Decode a marker. Return None for a missing value and for a value that this version cannot read."""
        if raw is None:
            return None
        try:
            return cls.model_validate_json(raw)
        except ValidationError:
            return None

    def with_lost(self, topic: str, lost: Range) -> Marker:
        """Return the marker with one more range of lost records. The range must be after the topic's other ranges."""
        ranges = [*self._lost(topic), lost]
        if len(ranges) > LOST_KEPT:
            ranges[:2] = [(ranges[0][0], ranges[1][1])]
        others = [(name, each) for name, each in self.lost if name != topic]
        return self.model_copy(update={"lost": (*others, *((topic, each) for each in ranges))})

    def _lost(self, topic: str) -> list[Range]:
        return [each for name, each in self.lost if name == topic]

    def passed_over(self, topic: str, partition: int) -> tuple[Range, ...]:
        """Return the offset ranges of a partition that the group passed over without handling their records.

        The reason is that the log has lost the records, or that a growth has sent them again to other partitions.
        """
        again = [
            (growth.until[topic][partition], growth.sent_again[topic][partition])
            for growth in self.growths
            if partition < min(len(growth.until.get(topic, ())), len(growth.sent_again.get(topic, ())))
        ]
        return (*self._lost(topic), *again)

    def applied_before(self, topic: str, partition: int) -> int | None:
        """Return the offset below which all events of a partition had taken effect at the last growth.

        None: no growth has an offset for this partition.
        """
        for growth in reversed(self.growths):
            offsets = growth.until.get(topic, ())
            if partition < len(offsets):
                return offsets[partition]
        return None


def marker_entry(marker: Marker) -> tuple[bytes, bytes]:
    """Return key and value of the marker's record."""
    return MARKER_KEY.encode(), marker.to_bytes()


async def some_marker(log: Log, topic: str) -> Marker | None:
    """Return the marker of the shortest changelog partition that has a marker, or None.

    The whole partition is read and its last marker is used, because earlier markers stay until compaction removes them.
    Raises Transient.
    """
    places = enumerate(zip(await log.starts(topic), await log.ends(topic), strict=True))
    for size, partition, start in sorted((end - start, partition, start) for partition, (start, end) in places):
        if not size:
            continue
        found: Marker | None = None
        async with aclosing(log.read(topic, start={partition: start})) as records:
            async for record in records:
                if record.key == MARKER_KEY.encode():
                    found = Marker.of(record.value)
        if found is not None:
            return found
    return None


async def former_counts(log: Log) -> frozenset[int]:
    """Return all partition counts that the topics had before the present count. Raises Transient."""
    for stage in reversed(STAGES):  # the changelog of the last stage has the fewest rows
        changelog = changelog_of(stage)
        if changelog is not None and await log.partitions(changelog.name) is not None:
            marker = await some_marker(log, changelog.name)
            if marker is not None:
                return frozenset(growth.partitions for growth in marker.growths)
    return frozenset()
