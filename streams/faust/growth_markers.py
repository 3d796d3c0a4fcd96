"""Markers of changelogs in a growth of the topics (`growth.py`).

A marker has the partition count, and the offsets up to which events were applied before the growth.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, MutableSequence, Sequence

from ...schemas.topics import StageName, group_of, read_by
from ..log.growth_plan import CompactedPartition
from ..log.markers import Growth, Marker, TopicOffsets, marker_entry
from ..log.port import Log


def was_added(partition: int, image: Sequence[CompactedPartition], partitions: int) -> bool:
    """Return whether a partition without a marker was added to a changelog, by a growth to `partitions` or manually.

    If the result is False, the partition had a marker, which is lost.
    """
    counts = {part.marker.partitions for part in image if part.marker is not None}
    earlier = counts - {partitions, None}
    if earlier:
        return all(partition >= count for count in earlier if count is not None)
    marked = [n for n, part in enumerate(image) if part.marker is not None]
    return bool(marked) and partition > max(marked)


class GrowthMarkers:
    """Writer of the markers in a growth to `partitions`."""

    def __init__(self, log: Log, *, partitions: int, tell: Callable[[str], None]) -> None:
        self._log = log
        self._partitions = partitions
        self._tell = tell

    async def write(self, topic: str, stage: StageName, image: MutableSequence[CompactedPartition]) -> None:
        """Replace the markers that do not have the new count yet, on the changelog and in `image` (its content).

        A new marker has the offsets up to which events were applied under the earlier count. A changelog without any
        marker was never used, and gets no marker.
        """
        markers = [part.marker for part in image]
        known = [marker for marker in markers if marker is not None]
        done = [marker is not None and marker.partitions == self._partitions for marker in markers]
        if not known or (all(done) and len(done) == self._partitions):
            return
        growths = await self._growths(stage, known)
        places = list(zip(await self._log.starts(topic), await self._log.ends(topic), strict=True))
        # The partitions are in rising order, so that after a crash only the highest partitions have no marker. These
        # count as added; their markers do not count as lost (`was_added`).
        for partition, (start, end) in enumerate(places):
            if partition < len(done) and done[partition]:
                continue
            marker = markers[partition] if partition < len(markers) else None
            new = Marker(
                identity=uuid.uuid4().hex if marker is None else marker.identity,
                whole_from=start if marker is None else marker.whole_from,
                written_at=end,
                partitions=self._partitions,
                growths=growths,
                lost=() if marker is None else marker.lost,
            )
            await self._write(topic, image, partition, new)
        self._tell(f"{topic}: markers now have {self._partitions} partitions")

    async def note_sent_again(
        self, topic: str, stage: StageName, image: MutableSequence[CompactedPartition], again: TopicOffsets
    ) -> None:
        """Add to the markers the offsets up to which records of the stage's topics were sent again."""
        mine = {each.name: again[each.name] for each in read_by(stage) if each.name in again}
        ends = await self._log.ends(topic)
        for partition, part in enumerate(list(image)):
            marker = part.marker
            if marker is None or not marker.growths or not mine:
                continue
            last = marker.growths[-1]
            last = last.model_copy(update={"sent_again": last.sent_again | mine})
            growths = (*marker.growths[:-1], last)
            changed = marker.model_copy(update={"growths": growths, "written_at": ends[partition]})
            await self._write(topic, image, partition, changed)

    async def _write(
        self, topic: str, image: MutableSequence[CompactedPartition], partition: int, marker: Marker
    ) -> None:
        key, value = marker_entry(marker)
        await self._log.append(topic, key=key, value=value, partition=partition)
        while len(image) <= partition:
            image.append(CompactedPartition())
        image[partition].marker = marker

    async def _growths(self, stage: StageName, known: Sequence[Marker]) -> tuple[Growth, ...]:
        """Return the past growths for the new markers, taken from a marker with the new count if there is one."""
        for marker in known:
            if marker.partitions == self._partitions:
                return marker.growths
        counts = [marker.partitions for marker in known if marker.partitions is not None]
        before = counts[0] if counts else len(known)
        if before == self._partitions:
            return known[0].growths  # no growth: the markers are of an earlier version and have no count
        group = group_of(stage)
        until = {
            topic.name: tuple(offset or 0 for offset in (await self._log.committed(group, topic.name)))
            for topic in read_by(stage)
        }
        return (*known[0].growths, Growth(partitions=before, until=until))
