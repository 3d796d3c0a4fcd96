"""Light phase: a session's turns that no summary has taken yet are summarised. Standard phase: a summary becomes an
episode, which the reflector adds (`episodes.record`).

A summary waits in the owner's row from one phase to the other, so that a tier without a standard phase loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ....memory.policies import CapturePolicy, ConsolidationPolicy
from ....memory.upkeep.summaries import SummaryBacklog, SummaryTurn, remove_turns, sort_by_need, take_within_tokens
from ....schemas.commands import SUMMARIES_MAX
from ...common.model_call import CallStopped, ModelCaller
from ..owner_reads import OwnerReader
from ..prompts.summary import TASK
from ..rows import PartName, ProgressRow
from ..session_summary import logged, may_be_read, proposed, summarise_turns, summary_with, tellable
from .base import RunRequest, StepResult

SESSIONS_LOOKED_AT: Final = 3
"""Of an owner, in one run: turns of the first may not be in the session log yet."""


@dataclass(frozen=True, slots=True)
class SummaryStep:
    """One session, the one with most turns that wait, in one question. Nothing where no model may be asked: the turns
    wait."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: ConsolidationPolicy
    capture: CapturePolicy
    part: PartName = "light"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        is_paused = self.asking.spending.paused(TASK) is not None
        if not may_be_read(self.capture) or len(row.summaries) == SUMMARIES_MAX or is_paused:
            return StepResult("nothing", row)
        for session in sort_by_need(row.unsummarised, at_least=self.policy.summary_turns)[:SESSIONS_LOOKED_AT]:
            turns = await logged(asked, session, lookup=self.lookup, capture=self.capture)
            if len(turns) >= self.policy.summary_turns:
                return await self._summarised(asked, row, session, turns)
        return StepResult("nothing", row)

    async def _summarised(
        self, asked: RunRequest, row: ProgressRow, session: SummaryBacklog, turns: Sequence[SummaryTurn]
    ) -> StepResult:
        may_be_told = await tellable(asked, session, turns, lookup=self.lookup)
        shown = take_within_tokens(may_be_told, self.policy.summary_tokens)
        taken = [each.turn_id for each in turns]
        if len(shown) < len(may_be_told):  # what is too much for this question waits for the next one
            taken = taken[: taken.index(may_be_told[len(shown)].turn_id)]
        row_after = row.model_copy(update={"unsummarised": remove_turns(row.unsummarised, session, taken)})
        if not shown:
            return StepResult("nothing", row_after)
        answer = await summarise_turns(asked, session, shown, asking=self.asking)
        if isinstance(answer, CallStopped):  # one of no use would be of no use again
            return StepResult.stopped(answer, row_after if answer.status == "failed" else row, turns=len(shown))
        row_after = row_after.model_copy(update={"retold": summary_with(row.retold, asked, session, shown)})
        if answer.summary is None:
            return StepResult("nothing", row_after, {"turns": len(shown)}, {"empty": 1}, usage=answer.usage)
        row_after = row_after.model_copy(update={"summaries": (*row.summaries, answer.summary)})
        return StepResult("done", row_after, {"summarised": len(shown)}, usage=answer.usage)


@dataclass(frozen=True, slots=True)
class SummaryEpisodesStep:
    """What was summarised is proposed as episodes."""

    significance: float
    part: PartName = "standard"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        if not row.summaries:
            return StepResult("nothing", row)
        row_after = row.model_copy(update={"summaries": ()})
        by_origin = [
            StepResult(
                "done",
                row_after,
                {"formed": len(summaries)},
                summaries=tuple(proposed(each, significance=self.significance) for each in summaries),
                model=model,
                prompt=prompt,
            )
            for (model, prompt), found in groupby(row.summaries, key=lambda each: (each.model, each.prompt))
            if (summaries := tuple(found))
        ]
        return StepResult("done", row_after, also=tuple(by_origin))
