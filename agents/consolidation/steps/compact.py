"""`compact`: a session's older turns, told in short, become one episode. The turns themselves stay in the session log.

Taken are turns that were reflected for this owner and that no summary has taken, oldest first, without the session's
newest: as many as one episode and one question hold. How many are left is told; whoever asks again gets the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from qdrant_client import models

from ....adapters.vectors.conditions import equals
from ....memory.policies import CapturePolicy, ConsolidationPolicy, SessionLogPolicy
from ....memory.upkeep.summaries import (
    StoredTurn,
    SummaryBacklog,
    SummaryTurn,
    remove_turns,
    select_older_turns,
    take_within_tokens,
)
from ....schemas import ids
from ....schemas.base import REASON_MAX, explain
from ....schemas.collections import EPISODES, TURNS
from ....schemas.commands import Command, ResultError
from ....schemas.commands import Compact as CompactArgs
from ....schemas.episodes import SUMMARISED_MAX, StoredEpisode
from ....streams.engine.handler import Rows
from ...common.model_call import CallStopped, ModelCaller
from ...common.seen_ids import SeenIds
from ..owner_reads import OwnerReader, of_owner
from ..rows import PartName, ProgressRow, turns_of
from ..session_summary import logged, may_be_read, proposed, summarise_turns, summary_as, summary_with, tellable
from .base import RunRequest, StepResult

FIRST_MESSAGES = ("turn_id", "first_place", "occurred_at")
"""What is read of message 0 of each of a session's turns, as many as there are."""


def refused_args(command: Command) -> ResultError | None:
    """Of a compact whose args are none."""
    if command.kind != "compact":
        return None
    try:
        CompactArgs.from_payload(command.args)
    except ValidationError as error:
        return ResultError(code="invalid_args", message=explain(error)[:REASON_MAX])
    return None


def counted_of(command: Command, rows: Rows) -> SeenIds:
    """Ids of the turns that were reflected for the command's owner, of the session that it names."""
    if command.kind != "compact":
        return SeenIds()
    args = CompactArgs.from_payload(command.args)
    session = ids.session_key(command.tenant_id, args.user_id, args.session_id)
    return turns_of(rows, command.key, session).counted


@dataclass(frozen=True, slots=True)
class CompactStep:
    """One question, one episode."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: ConsolidationPolicy
    session_log: SessionLogPolicy
    capture: CapturePolicy
    significance: float
    part: PartName = "compact"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        args = CompactArgs.from_payload(asked.args)
        nothing = StepResult("nothing", row, _counts())
        if not may_be_read(self.capture):
            return nothing
        keep = self.session_log.keep if args.keep is None else args.keep
        session = SummaryBacklog(user_id=args.user_id, session_id=args.session_id, turn_ids=())
        older = await self._older(asked, session, row, keep=keep)
        for start in range(0, len(older), SUMMARISED_MAX):
            part = session.model_copy(update={"turn_ids": older[start : start + SUMMARISED_MAX]})
            turns = await logged(asked, part, lookup=self.lookup, capture=self.capture)
            may_be_told = await tellable(asked, part, turns, lookup=self.lookup)
            if may_be_told:
                after = len(older) - start - len(part.turn_ids)
                return await self._compacted(asked, row, part, may_be_told, after=after)
        return nothing

    async def _older(
        self, asked: RunRequest, session: SummaryBacklog, row: ProgressRow, *, keep: int
    ) -> tuple[str, ...]:
        """The turns that may be taken, in the order of the log."""
        taken = await self._summarised(asked, session)
        taken |= {turn for each in row.summaries if each.session == session.session for turn in each.turn_ids}
        return tuple(
            turn.turn_id
            for turn in select_older_turns(await self._log(asked, session), keep=keep)
            if turn.turn_id in asked.counted
            and turn.turn_id not in taken
            and summary_as(asked, session, turn.turn_id) not in row.retold
        )

    async def _compacted(
        self, asked: RunRequest, row: ProgressRow, session: SummaryBacklog, turns: Sequence[SummaryTurn], *, after: int
    ) -> StepResult:
        """`after`: so many turns were not looked at yet."""
        shown = take_within_tokens(turns, self.policy.summary_tokens)
        left = after + len(turns) - len(shown)
        answer = await summarise_turns(asked, session, shown, asking=self.asking)
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, row, **_counts(left=left + len(shown)))
        row = row.model_copy(
            update={
                "unsummarised": remove_turns(row.unsummarised, session, {each.turn_id for each in shown}),
                "retold": summary_with(row.retold, asked, session, shown),
            }
        )
        if answer.summary is None:
            counts = _counts(turns=len(shown), left=left)
            return StepResult("done", row, counts, {"empty": 1}, usage=answer.usage)
        return StepResult(
            "done",
            row,
            _counts(turns=len(shown), episodes=1, left=left),
            summaries=(proposed(answer.summary, significance=self.significance),),
            model=answer.summary.model,
            prompt=answer.summary.prompt,
            usage=answer.usage,
        )

    async def _log(self, asked: RunRequest, session: SummaryBacklog) -> tuple[StoredTurn, ...]:
        """All turns of the session, whosever: which are its newest is no owner's matter."""
        where = models.Filter(
            must=[
                equals("user_id", session.user_id),
                equals("session_id", session.session_id),
                equals("message_index", 0),
            ]
        )
        found = await self.lookup.calls.call(
            "store",
            lambda: self.lookup.store.select(TURNS, tenant_id=asked.tenant_id, where=where, fields=FIRST_MESSAGES),
        )
        return tuple(StoredTurn.model_validate(each.payload) for each in found)

    async def _summarised(self, asked: RunRequest, session: SummaryBacklog) -> set[str]:
        """Turns that a summary in the store has; also one that was let go."""
        where = models.Filter(
            must=[
                of_owner(asked),
                equals("user_id", session.user_id),
                equals("session_id", session.session_id),
                equals("category", "event"),
            ]
        )
        found = await self.lookup.calls.call(
            "store", lambda: self.lookup.store.select(EPISODES, tenant_id=asked.tenant_id, where=where)
        )
        episodes = (StoredEpisode.from_payload(each.payload) for each in found)
        return {turn for each in episodes if each.is_summary for turn in each.turn_ids}


def _counts(*, turns: int = 0, episodes: int = 0, left: int = 0) -> dict[str, int]:
    return {"turns": turns, "episodes": episodes, "left": left}
