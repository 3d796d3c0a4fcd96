"""R6: speed of restoring an empty table ÷ speed of a plain read of its changelog (measured by bench/restore.py)."""

from __future__ import annotations

from dataclasses import dataclass

from . import restore
from .report import Figure
from .world import World


@dataclass(frozen=True, slots=True)
class Load:
    pairs: int
    entries: int


FULL = Load(pairs=5, entries=30_000)
QUICK = Load(pairs=1, entries=400)


async def measure(world: World, load: Load) -> list[Figure]:
    found = await restore.measure(broker=world.broker, folder=world.folder, pairs=load.pairs, entries=load.entries)
    detail = {"restore MB/s": found["restore_mb_s"], "plain": found["plain_mb_s"], "rows/s": found["restore_entries_s"]}
    return [
        Figure(
            ratio="R6",
            what="table restored ÷ plain read, MB/s",
            on=world.kind,
            value=found["ratio"],
            target=restore.TARGET,
            detail=detail,
        )
    ]
