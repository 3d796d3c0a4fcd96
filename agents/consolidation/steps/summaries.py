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
from ....memory.upkeep.summaries import Told, Unsummarised, by_need, that_fit, without
from ....schemas.commands import SUMMARIES_MAX
from ...common.model_call import Asking, Stopped
from ..owner_reads import Lookup
from ..prompts.summary import TASK
from ..rows import OwnerRow, PartName
from ..session_summary import logged, may_be_read, proposed, retell, retold_with, tellable
from .base import Asked, Did

SESSIONS_LOOKED_AT: Final = 3
"""Of an owner, in one run: turns of the first may not be in the session log yet."""


@dataclass(frozen=True, slots=True)
class Summarise:
    """One session, the one with most turns that wait, in one question. Nothing where no model may be asked: the turns
    wait."""

    lookup: Lookup
    asking: Asking
    policy: ConsolidationPolicy
    capture: CapturePolicy
    part: PartName = "light"

    async def take(self, asked: Asked, row: OwnerRow) -> Did:
        is_paused = self.asking.spending.paused(TASK) is not None
        if not may_be_read(self.capture) or len(row.summaries) == SUMMARIES_MAX or is_paused:
            return Did("nothing", row)
        for session in by_need(row.unsummarised, at_least=self.policy.summary_turns)[:SESSIONS_LOOKED_AT]:
            turns = await logged(asked, session, lookup=self.lookup, capture=self.capture)
            if len(turns) >= self.policy.summary_turns:
                return await self._summarised(asked, row, session, turns)
        return Did("nothing", row)

    async def _summarised(self, asked: Asked, row: OwnerRow, session: Unsummarised, turns: Sequence[Told]) -> Did:
        may_be_told = await tellable(asked, session, turns, lookup=self.lookup)
        shown = that_fit(may_be_told, self.policy.summary_tokens)
        taken = [each.turn_id for each in turns]
        if len(shown) < len(may_be_told):  # what is too much for this question waits for the next one
            taken = taken[: taken.index(may_be_told[len(shown)].turn_id)]
        row_after = row.model_copy(update={"unsummarised": without(row.unsummarised, session, taken)})
        if not shown:
            return Did("nothing", row_after)
        answer = await retell(asked, session, shown, asking=self.asking)
        if isinstance(answer, Stopped):  # one of no use would be of no use again
            return Did.stopped(answer, row_after if answer.status == "failed" else row, turns=len(shown))
        row_after = row_after.model_copy(update={"retold": retold_with(row.retold, asked, session, shown)})
        if answer.summary is None:
            return Did("nothing", row_after, {"turns": len(shown)}, {"empty": 1}, usage=answer.usage)
        row_after = row_after.model_copy(update={"summaries": (*row.summaries, answer.summary)})
        return Did("done", row_after, {"summarised": len(shown)}, usage=answer.usage)


@dataclass(frozen=True, slots=True)
class EpisodesFromSummaries:
    """What was summarised is proposed as episodes."""

    significance: float
    part: PartName = "standard"

    async def take(self, asked: Asked, row: OwnerRow) -> Did:
        if not row.summaries:
            return Did("nothing", row)
        row_after = row.model_copy(update={"summaries": ()})
        by_origin = [
            Did(
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
        return Did("done", row_after, also=tuple(by_origin))
