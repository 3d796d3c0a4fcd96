"""Compact step: summarise the older turns of a session into one episode. The turns stay in the session log.

The step takes turns that were reflected for this owner and that have no summary, oldest first. It leaves out the
session's newest turns, and takes as many turns as one model call and one episode can hold. The result reports the
number of remaining turns. The next `compact` command takes these turns.
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
from ....streams.engine.decision import Rows
from ...common.model_call import CallStopped, ModelCaller
from ...common.seen_ids import SeenIds
from ..owner_reads import OwnerReader, of_owner
from ..rows import PartName, ProgressRow, turns_of
from ..session_summary import (
    logged_turns,
    may_read_turns,
    summarise_turns,
    summarised_id,
    summary_proposal,
    with_summarised,
    without_secrets,
)
from ..step import RunRequest, StepResult

FIRST_MESSAGES = ("turn_id", "first_place", "occurred_at")
"""The fields that are read from the first message of every turn of a session."""


def refused_args(command: Command) -> ResultError | None:
    """Return the reason to refuse the arguments of a `compact`, or None when they are valid."""
    if command.kind != "compact":
        return None
    try:
        CompactArgs.from_payload(command.args)
    except ValidationError as error:
        return ResultError(code="invalid_args", message=explain(error)[:REASON_MAX])
    return None


def counted_turns(command: Command, rows: Rows) -> SeenIds:
    """Return the ids of the turns of the command's session that were reflected for the command's owner."""
    if command.kind != "compact":
        return SeenIds()
    args = CompactArgs.from_payload(command.args)
    session = ids.session_key(command.tenant_id, args.user_id, args.session_id)
    return turns_of(rows, command.key, session).counted


@dataclass(frozen=True, slots=True)
class CompactStep:
    """A step with one model call and one proposed episode. `significance`: the minimum importance of an episode.
    `locales`: language packs for checking the summary."""

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    session_log: SessionLogPolicy
    capture: CapturePolicy
    locales: str
    significance: float
    part: PartName = "compact"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        args = CompactArgs.from_payload(request.args)
        nothing = StepResult("nothing", row, _counts())
        if not may_read_turns(self.capture):
            return nothing
        keep = self.session_log.keep if args.keep is None else args.keep
        session = SummaryBacklog(user_id=args.user_id, session_id=args.session_id, turn_ids=())
        older = await self._older_turns(request, session, row, keep=keep)
        for start in range(0, len(older), SUMMARISED_MAX):
            part = session.model_copy(update={"turn_ids": older[start : start + SUMMARISED_MAX]})
            turns = await logged_turns(request, part, reader=self.reader, capture=self.capture)
            allowed = await without_secrets(request, part, turns, reader=self.reader)
            if allowed:
                after = len(older) - start - len(part.turn_ids)
                return await self._summarise(request, row, part, allowed, after=after)
        return nothing

    async def _older_turns(
        self, request: RunRequest, session: SummaryBacklog, row: ProgressRow, *, keep: int
    ) -> tuple[str, ...]:
        """Return the turns that may be summarised, in log order."""
        summarised = await self._summarised_turns(request, session)
        summarised |= {turn for each in row.summaries if each.session == session.session for turn in each.turn_ids}
        return tuple(
            turn.turn_id
            for turn in select_older_turns(await self._session_turns(request, session), keep=keep)
            if turn.turn_id in request.counted
            and turn.turn_id not in summarised
            and summarised_id(request, session, turn.turn_id) not in row.retold
        )

    async def _summarise(
        self,
        request: RunRequest,
        row: ProgressRow,
        session: SummaryBacklog,
        turns: Sequence[SummaryTurn],
        *,
        after: int,
    ) -> StepResult:
        """Summarise these turns. `after`: number of later turns that may still be summarised."""
        shown = take_within_tokens(turns, self.policy.summary_tokens)
        left = after + len(turns) - len(shown)
        answer = await summarise_turns(request, session, shown, caller=self.caller, packs=self.locales)
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, row, **_counts(left=left + len(shown)))
        row = row.model_copy(
            update={
                "unsummarised": remove_turns(row.unsummarised, session, {each.turn_id for each in shown}),
                "retold": with_summarised(row.retold, request, session, shown),
            }
        )
        if answer.summary is None:
            counts = _counts(turns=len(shown), left=left)
            return StepResult("done", row, counts, {answer.left_out: 1}, usage=answer.usage)
        return StepResult(
            "done",
            row,
            _counts(turns=len(shown), episodes=1, left=left),
            summaries=(summary_proposal(answer.summary, significance=self.significance),),
            model=answer.summary.model,
            prompt=answer.summary.prompt,
            usage=answer.usage,
        )

    async def _session_turns(self, request: RunRequest, session: SummaryBacklog) -> tuple[StoredTurn, ...]:
        """Read the session's turns of all owners, because the newest turns are counted per session, not per owner."""
        where = models.Filter(
            must=[
                equals("user_id", session.user_id),
                equals("session_id", session.session_id),
                equals("message_index", 0),
            ]
        )
        found = await self.reader.calls.call(
            "store",
            lambda: self.reader.store.select(TURNS, tenant_id=request.tenant_id, where=where, fields=FIRST_MESSAGES),
        )
        return tuple(StoredTurn.model_validate(each.payload) for each in found)

    async def _summarised_turns(self, request: RunRequest, session: SummaryBacklog) -> set[str]:
        """Return the turns that are part of a stored summary, including deleted summaries."""
        where = models.Filter(
            must=[
                of_owner(request),
                equals("user_id", session.user_id),
                equals("session_id", session.session_id),
                equals("category", "event"),
            ]
        )
        found = await self.reader.calls.call(
            "store", lambda: self.reader.store.select(EPISODES, tenant_id=request.tenant_id, where=where)
        )
        episodes = (StoredEpisode.from_payload(each.payload) for each in found)
        return {turn for each in episodes if each.is_summary for turn in each.turn_ids}


def _counts(*, turns: int = 0, episodes: int = 0, left: int = 0) -> dict[str, int]:
    return {"turns": turns, "episodes": episodes, "left": left}
