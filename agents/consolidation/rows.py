"""Rows of the table progress: one row per owner, and one small row per owner and session.

Only consolidation writes this table. The owner's row collects the most recently counted turns. When it has enough
turns, they move to the session rows (turn_group.py). Session rows are written after the owner's row, to the same
partition.
"""

from __future__ import annotations

import operator
from typing import Annotated, Final, Literal

from pydantic import Field

from ...memory.upkeep.consolidation import Counters
from ...memory.upkeep.hygiene import TurnClock
from ...memory.upkeep.summaries import SummaryBacklog
from ...schemas.base import Instant
from ...schemas.episodes import SUMMARISED_MAX
from ...schemas.facts import Trust
from ...schemas.observations import TokenUsage
from ...schemas.row_keys import index_key, partition_key
from ...schemas.turn_number import TurnNumber
from ...schemas.turns import Owner, Sensitivity
from ...streams.engine.decision import Rows
from ..common.commanded_row import CommandedRow
from ..common.seen_ids import SeenIds
from ..common.stored_row import RowPart
from ..common.turn_numbers import HandledTurns, Number

FOLLOWS: Final = "follows"
"""Index of owners with a pending run, a follow-up, or facts that wait for a judgement."""
COUNTS: Final = "counts"
"""Index of owners with turns since the last run. A schedule may start a run for these owners."""
RUNS_KEPT = 20
SUMMARISED_KEPT: Final = 4 * SUMMARISED_MAX
Count = Annotated[int, Field(ge=0)]
Kind = Literal["consolidate", "judge", "prune", "hygiene", "digest", "compact"]
"""The kind of a run: the kind of its command, or `consolidate` when the counters started it."""
NOT_RETRIED: Final[frozenset[Kind]] = frozenset(("compact",))
"""Kinds of run for one session. They are not retried: when the model is unreachable, the command's result reports it,
and the caller sends the command again."""
PartName = Literal["light", "standard", "deep", "judge", "prune", "hygiene", "digest", "compact"]
"""The part of a run: a phase of `consolidate`, or the single part of every other kind."""
StepStatus = Literal["done", "nothing", "paused", "deferred", "failed"]
RunStatus = StepStatus
"""done: proposals were sent, perhaps none. nothing: there was no input. paused: the tier or the budget forbids the
call. deferred: the model is unreachable and the run is retried. failed: the answer was unusable."""


class Part(RowPart):
    """The result of one part of a run. A failed or waiting part does not undo the other parts."""

    name: PartName
    status: StepStatus
    counts: dict[str, int] = Field(default_factory=dict)
    why: str = ""
    """Reason why the part is not done."""


class RunRecord(RowPart):
    """One run, kept so that an operator can see the reasons for its proposals later."""

    run_id: str
    status: RunStatus
    at: Instant
    kind: Kind = "consolidate"
    phases: tuple[Part, ...] = ()
    episodes: Count = 0
    facts_shown: Count = 0
    changes: Count = 0
    dropped: dict[str, int] = Field(default_factory=dict)
    command_ids: tuple[str, ...] = ()
    model: str | None = None
    prompt: str | None = None
    usage: TokenUsage = TokenUsage()


class PendingRun(RowPart):
    """A due run that could not finish. `attempt` is part of the retry command's id, so each id is used once."""

    tenant_id: str
    owner: Owner
    run_id: str
    attempt: Count = 0
    status: Literal["deferred", "paused"] = "deferred"
    turns: Count = 0
    """Number of counted turns at the last attempt."""
    until: Instant | None = None
    """Time at which a paused run can succeed again, or None when it needs a worker with other settings."""


class FollowUp(RowPart):
    """A command that consolidation must still send for an owner, after a run or when the model is reachable again.

    `attempt` has the same use as in `PendingRun`.
    """

    kind: Kind
    run_id: str
    not_before: Instant
    attempt: Count = 0


class ListedFact(RowPart):
    """A pending fact that waits for a judgement."""

    fact_id: str
    since: Count
    """Time at which the fact was listed, in seconds since 1970."""


class JudgementList(RowPart):
    """Pending facts of an owner that a model will compare with known facts, in the order in which they were listed."""

    facts: Annotated[tuple[ListedFact, ...], Field(min_length=1)]
    run_id: str
    """The id of the run of the event that listed the first fact."""
    attempt: Count = 0
    """Number of `judge` commands about this list. It is part of the next command's id."""
    failures: Count = 0
    """Number of questions in a row for which no model was available."""
    until: Instant | None = None
    """Time of the next question, or None for now."""
    alone: Count = 0
    """Number of pairs to ask one at a time, because the answer about them together was unusable."""
    why: str = ""
    """Reason why the last question had no answer."""


class Summary(RowPart):
    """The summary of some turns of a session, stored until it is proposed as an episode."""

    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]
    """Turn ids in session order."""
    content: str
    began_at: Instant
    """Time of the first turn."""
    occurred_at: Instant
    """Time of the last turn."""
    sensitivity: Sensitivity
    trust: Trust
    model: str
    prompt: str

    @property
    def session(self) -> tuple[str, str]:
        return self.user_id, self.session_id


class RecentTurns(RowPart):
    """Counted turns of one session that are not yet in the session's row."""

    session: str
    """The session key."""
    numbers: tuple[tuple[Count, Number], ...]
    """Epoch and number of each turn, in counting order."""
    turn_ids: SeenIds
    """Turn ids in counting order."""
    last_at: Annotated[int, Field(ge=0)]
    """Time in seconds at which the last of these turns was counted; see `HandledTurns.last_at`."""

    def has(self, number: TurnNumber) -> bool:
        return tuple(number) in self.numbers


class UpkeepRow(RowPart):
    """The state of an owner's maintenance."""

    clock: TurnClock = TurnClock()
    """Clock that counts the owner's turns in all sessions. It measures the age of episodes in turns."""
    facts_from: str = ""
    """The fact at which the janitor's next visit starts; "" means the first."""
    episodes_from: str = ""
    """The episode at which the janitor's next visit starts; "" means the first."""
    merged_from: str = ""
    """The fact at which the merge of the next maintenance run starts; "" means the first."""
    settled_from: str = ""
    """The pending fact at which the settle step of the next run starts; "" means the first."""
    visited_at: Instant | None = None
    """Time of the janitor's last visit."""
    reflected_at: Instant | None = None
    """Time at which the last maintenance run ended."""


class ProgressRow(CommandedRow):
    """The state of one owner."""

    counters: Counters = Counters()
    runs: tuple[RunRecord, ...] = ()
    """The last 20 runs, oldest first."""
    waiting: PendingRun | None = None
    errands: tuple[FollowUp, ...] = ()
    """The follow-ups in execution order, at most one per kind."""
    counted_since: Instant | None = None
    """Time of the first counted turn since the last run. Before the first run, a schedule counts from this time."""
    changed_facts: Count = 0
    """Number of fact changes reported or proposed since the last prune."""
    pruned_to: str = ""
    """The fact at which the last prune stopped, in display order; "" means the end."""
    derived: tuple[str, ...] = ()
    """Short hashes of the last 64 clusters that were searched for insights."""
    mined: str = ""
    """Short hash of the episodes that were last searched for procedures."""
    upkeep: UpkeepRow = UpkeepRow()
    unsummarised: tuple[SummaryBacklog, ...] = ()
    """Turns without a summary, by session."""
    summaries: tuple[Summary, ...] = ()
    """Summaries that are not proposed yet."""
    retold: SeenIds = SeenIds()
    """The last 256 turns shown to a model for a summary. They are not shown again: their summary episode may not be in
    the store yet, or they gave no summary."""
    recent: Annotated[tuple[RecentTurns, ...], Field(exclude_if=operator.not_)] = ()
    """The most recently counted turns, by session."""
    judging: Annotated[JudgementList | None, Field(exclude_if=operator.not_)] = None
    """Pending facts that wait for a judgement; see judgement.py."""
    judged: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    """Marks of the last 128 pairs that a model was asked about."""

    def recent_of(self, session_key: str) -> RecentTurns | None:
        return next((each for each in self.recent if each.session == session_key), None)

    def index_kinds(self) -> tuple[str, ...]:
        follows = (FOLLOWS,) if self.waiting is not None or self.errands or self.judging is not None else ()
        return (*follows, COUNTS) if self.counters.turns else follows


def progress_index(key: str, raw: bytes) -> tuple[str, ...]:
    """Return the keys of the index rows that an owner's row needs, and of the index rows that it already has."""
    if not is_owner_key(key):
        return ()
    row = ProgressRow.read(raw)
    return tuple(index_key(kind, key) for kind in {*row.index_kinds(), *row.indexed})


class CountedTurns(HandledTurns):
    """The turns of a session that are counted for an owner."""

    counted: SeenIds = SeenIds()
    """The last 1 000 turn ids, without turns counted by version 0.1. Only turns in this list are compacted."""

    def with_recent(self, recent: RecentTurns) -> CountedTurns:
        """Return the row including the turns from the owner's row."""
        row = self
        for epoch, n in recent.numbers:
            row = row.add(TurnNumber(epoch, n))
        counted = self.counted.joined(recent.turn_ids)
        return row.model_copy(update={"counted": counted, "last_at": max(self.last_at, recent.last_at)})


def session_row_key(owner_key: str, session_key: str) -> str:
    """Return the row key. It has six parts; an owner key has three."""
    return f"{owner_key}/{session_key}"


def recent_at(rows: Rows, row_key: str, *, partition: int) -> int:
    """Return the time of the session's turns in the owner's row, or 0 when it has none."""
    owner_key = partition_key(row_key) or ""
    recent = ProgressRow.load(rows, owner_key, partition=partition).recent_of(row_key.removeprefix(f"{owner_key}/"))
    return 0 if recent is None else recent.last_at


def is_owner_key(key: str) -> bool:
    return key.count("/") == 2


def turns_of(rows: Rows, owner_key: str, session_key: str) -> CountedTurns:
    """Return the session's turns that were counted for this owner."""
    row = CountedTurns.load(rows, session_row_key(owner_key, session_key))
    recent = ProgressRow.load(rows, owner_key).recent_of(session_key)
    return row if recent is None else row.with_recent(recent)
