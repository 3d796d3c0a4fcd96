"""The consolidation stage with pending facts, and the questions of its judge."""

from __future__ import annotations

import re
from typing import Any

from pydantic import JsonValue

from memstream.schemas.commands import Command
from memstream.schemas.facts import WAITS_FOR, StoredFact
from memstream.streams.engine.crash_points import Step
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import Bench
from tests.support.record_builders import stored_fact


def new_ones(shown: str) -> list[str]:
    """Return the pending facts of a question."""
    return re.findall(r"^new: (.+)", shown, re.MULTILINE)


def decided(shown: str, decision: str) -> JsonValue:
    """Return the answer that decides every pair of a question in the same way."""
    pairs: list[JsonValue] = [
        {"pair_id": pair, "decision": decision, "reason": "so"} for pair in re.findall(r"\[(p\d+)\]", shown)
    ]
    return {"judgements": pairs}


class JudgeWorld(Consolidating):
    """A model that leaves every pair open, unless a test changes `answers["judge"]`."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.model.answers["judge"] = lambda shown: {"judgements": []}
        self._sweeps = 0
        self._handed = 0

    async def wait(self, count: int, of: str = "Likes tea of sort", **changes: Any) -> list[StoredFact]:
        """Store pending facts that only a judge may settle. Return them in the order of their ids."""
        (known,) = await self.store(stored_fact("Likes tea", turn="known"))
        changes = {"state": "pending", "metadata": {WAITS_FOR: known.fact_id}} | changes
        made = (stored_fact(f"{of} {n}", turn=f"{of} {n}", changes=changes) for n in range(count))
        return sorted(await self.store(*made), key=lambda each: each.fact_id)

    async def sweep(self) -> None:
        """Run what settles without a model and lists the rest. No fact is asked about yet."""
        self._sweeps += 1
        await self.bench.run(self.command(command_id=f"sweep {self._sweeps}"))

    async def reminded(self) -> list[Command]:
        """Let the reminders send what is due. Return the commands `judge` that were not handed out before."""
        await self.remind()
        sent = self.reminders("judge")[self._handed :]
        self._handed += len(sent)
        return sent

    async def questions(self, *, killed: Step | None = None) -> list[list[str]]:
        """Handle the due commands `judge` until none is due. Return the pending facts of each question.

        `killed`: the step after which the worker dies, at each command.
        """
        asked = len(self.model.asked)
        while sent := await self.reminded():
            for each in sent:
                record = self.command("judge", each.command_id)
                await (self.bench.run(record) if killed is None else self.bench.killed(record, killed))
        return [found for shown in self.model.asked[asked:] if (found := new_ones(shown))]
