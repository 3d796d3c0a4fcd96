"""Consolidation and the reflector on one store: the commands of the one are given to the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memstream.schemas.commands import Command
from memstream.schemas.topics import COMMANDS

from .consolidation_world import Consolidating
from .embedded_stage import Bench, open_bench
from .reflector_world import reflector


@dataclass
class Both:
    it: Consolidating
    reflecting: Bench
    handed: int = 0

    async def apply(self) -> None:
        """Give the reflector the commands that it has not had."""
        for value in self.it.bench.values(COMMANDS.name)[self.handed :]:
            self.handed += 1
            await self.reflecting.run(self.reflecting.record(COMMANDS.name, Command.read(value).key, value))

    async def states(self) -> dict[str, str]:
        return {content: fact.state for content, fact in (await self.it.bench.facts()).items()}

    async def of_state(self, state: str) -> list[str]:
        return sorted(content for content, found in (await self.states()).items() if found == state)


async def open_both(folder: Path) -> Both:
    bench = await open_bench(folder, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    reflecting = Bench(store=bench.store, folder=folder / "deaths", stage_name="reflector")
    reflecting.stage = reflector(reflecting)
    return Both(Consolidating(bench), reflecting)
