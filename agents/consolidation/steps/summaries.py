"""Summary steps: the light phase summarises turns of a session, and the standard phase proposes each summary as an
episode, which the reflector adds (`episodes.record`).

Until it is proposed, a summary is stored in the owner's row. So a tier without the standard phase loses no summary.
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
from ..session_summary import (
    logged_turns,
    may_read_turns,
    summarise_turns,
    summary_proposal,
    with_summarised,
    without_secrets,
)
from ..step import RunRequest, StepResult

SESSIONS_LOOKED_AT: Final = 3
"""Number of sessions that one run tries, because a session's turns may not be in the session log yet."""


@dataclass(frozen=True, slots=True)
class SummaryStep:
    """A step with one model call about the session with the most waiting turns. Without a model the turns wait.
    `locales`: language packs for checking the summary."""

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    capture: CapturePolicy
    locales: str
    part: PartName = "light"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        is_paused = self.caller.spending.paused(TASK) is not None
        if not may_read_turns(self.capture) or len(row.summaries) == SUMMARIES_MAX or is_paused:
            return StepResult("nothing", row)
        for session in sort_by_need(row.unsummarised, at_least=self.policy.summary_turns)[:SESSIONS_LOOKED_AT]:
            turns = await logged_turns(request, session, reader=self.reader, capture=self.capture)
            if len(turns) >= self.policy.summary_turns:
                return await self._summarise(request, row, session, turns)
        return StepResult("nothing", row)

    async def _summarise(
        self, request: RunRequest, row: ProgressRow, session: SummaryBacklog, turns: Sequence[SummaryTurn]
    ) -> StepResult:
        allowed = await without_secrets(request, session, turns, reader=self.reader)
        shown = take_within_tokens(allowed, self.policy.summary_tokens)
        handled = [each.turn_id for each in turns]
        if len(shown) < len(allowed):  # turns that do not fit wait for the next call
            handled = handled[: handled.index(allowed[len(shown)].turn_id)]
        row_after = row.model_copy(update={"unsummarised": remove_turns(row.unsummarised, session, handled)})
        if not shown:
            return StepResult("nothing", row_after)
        answer = await summarise_turns(request, session, shown, caller=self.caller, packs=self.locales)
        if isinstance(answer, CallStopped):  # a failed call would fail again
            return StepResult.stopped(answer, row_after if answer.status == "failed" else row, turns=len(shown))
        row_after = row_after.model_copy(update={"retold": with_summarised(row.retold, request, session, shown)})
        if answer.summary is None:
            return StepResult("nothing", row_after, {"turns": len(shown)}, {answer.left_out: 1}, usage=answer.usage)
        row_after = row_after.model_copy(update={"summaries": (*row.summaries, answer.summary)})
        return StepResult("done", row_after, {"summarised": len(shown)}, usage=answer.usage)


@dataclass(frozen=True, slots=True)
class SummaryEpisodesStep:
    """A step that proposes summaries as episodes. `significance`: the importance of these episodes."""

    significance: float
    part: PartName = "standard"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        if not row.summaries:
            return StepResult("nothing", row)
        row_after = row.model_copy(update={"summaries": ()})
        by_origin = [
            StepResult(
                "done",
                row_after,
                {"formed": len(summaries)},
                summaries=tuple(summary_proposal(each, significance=self.significance) for each in summaries),
                model=model,
                prompt=prompt,
            )
            for (model, prompt), found in groupby(row.summaries, key=lambda each: (each.model, each.prompt))
            if (summaries := tuple(found))
        ]
        return StepResult("done", row_after, also=tuple(by_origin))
