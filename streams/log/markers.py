"""The marker of a changelog partition: from where on it is whole, and the partition count that it was written under.

Each partition of a changelog carries one entry of its own (`streams/faust/changelog_check.py` says what it is for). A
growth of the topics (`growth.py`) writes it anew with the new count, and notes what was done under the earlier count.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...schemas.topics import STAGES, changelog_of
from .port import Log

OWN_KEYS = "__memstream\0"
"""The prefix of keys of our own. The key of a row never has a control character."""
MARKER_KEY = OWN_KEYS + "marker__"
Offset = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
TopicOffsets = dict[str, tuple[Offset, ...]]
"""An offset for each partition of a topic, by topic."""
Range = tuple[Offset, Offset]
"""Offsets from the first up to before the second."""
LOST_KEPT = 32
"""Ranges of lost records that a marker keeps of a topic. Beyond, the oldest two become one, with all between them."""


class Growth(BaseModel):
    """A growth of the topics, as a marker notes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    partitions: Count
    """The count before."""
    until: TopicOffsets
    """What the stage's group had committed of each topic that it reads, when the rows were moved. Events below had all
    of their effects, and were judged by the count before."""
    sent_again: TopicOffsets = Field(default_factory=dict)
    """Records from `until` up to here were sent again to the partitions of the new count."""


class Marker(BaseModel):
    """The entry.

    `identity` distinguishes two topics of one name. From offset `whole_from` on the log has all entries. The marker
    itself lies at `written_at` or shortly behind it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    identity: str
    whole_from: Offset
    written_at: Offset
    partitions: Count | None = None
    """The partition count that the rows lie by. None: an earlier version wrote the marker."""
    growths: tuple[Growth, ...] = ()
    """Oldest first."""
    lost: tuple[tuple[str, Range], ...] = ()
    """Topic, and offsets of this partition whose records the log lost before the group had committed them, rising."""

    def to_bytes(self) -> bytes:
        return self.model_dump_json(exclude_defaults=True).encode()

    @classmethod
    def of(cls, raw: bytes | None) -> Marker | None:
        """Decode a marker; None where there is none that this version can read."""
        if raw is None:
            return None
        try:
            return cls.model_validate_json(raw)
        except ValidationError:
            return None

    def with_lost(self, topic: str, lost: Range) -> Marker:
        """Return the marker with one more range of lost records, behind those that it has."""
        ranges = [*self._lost(topic), lost]
        if len(ranges) > LOST_KEPT:
            ranges[:2] = [(ranges[0][0], ranges[1][1])]
        others = [(name, each) for name, each in self.lost if name != topic]
        return self.model_copy(update={"lost": (*others, *((topic, each) for each in ranges))})

    def _lost(self, topic: str) -> list[Range]:
        return [each for name, each in self.lost if name == topic]

    def passed_over(self, topic: str, partition: int) -> tuple[Range, ...]:
        """Return the ranges of a partition that the group's offset has passed over without handling their records: the
        log lost them, or a growth sent them again."""
        again = [
            (growth.until[topic][partition], growth.sent_again[topic][partition])
            for growth in self.growths
            if partition < min(len(growth.until.get(topic, ())), len(growth.sent_again.get(topic, ())))
        ]
        return (*self._lost(topic), *again)

    def applied_before(self, topic: str, partition: int) -> int | None:
        """Return the offset below which the events of a partition had all of their effects when rows were moved last.

        None: no growth says so.
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
    """Return the marker of a partition of a changelog, of the shortest that has one; None where there is none.

    It reads the partition, because an earlier marker stays until compaction removes it. Raises Transient.
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
    """Return the partition counts that the topics had before they grew. Raises Transient."""
    for stage in reversed(STAGES):  # the last one has the fewest rows
        changelog = changelog_of(stage)
        if changelog is not None and await log.partitions(changelog.name) is not None:
            marker = await some_marker(log, changelog.name)
            if marker is not None:
                return frozenset(growth.partitions for growth in marker.growths)
    return frozenset()
