"""The rows of the table progress: one for each owner, and a small one for each (owner, session).

Consolidation is their only writer. The owner's row has the turns that were counted last. They move to the rows of their
sessions when it has enough of them (turn_group.py). The rows of sessions are written after it, to the same partition.
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
from ...streams.engine.handler import Rows
from ..common.commanded_row import CommandedRow
from ..common.seen_ids import SeenIds
from ..common.stored_row import RowPart
from ..common.turn_numbers import HandledTurns, Number

FOLLOWS: Final = "follows"
"""The index of owners with a run or a follow-up that is still to come."""
COUNTS: Final = "counts"
"""The index of owners with turns since the last run. A schedule may start a run for them."""
RUNS_KEPT = 20
SUMMARISED_KEPT: Final = 4 * SUMMARISED_MAX
Count = Annotated[int, Field(ge=0)]
Kind = Literal["consolidate", "prune", "hygiene", "digest", "compact"]
"""The kind of a run: that of its command, or `consolidate` when the counters started it."""
NOT_RETRIED: Final[frozenset[Kind]] = frozenset(("compact",))
"""Kinds that concern one session. When the model is away the result says so, and the caller asks again."""
PartName = Literal["light", "standard", "deep", "prune", "hygiene", "digest", "compact"]
"""The part of a run: a phase of `consolidate`, or the only part of every other kind."""
StepStatus = Literal["done", "nothing", "paused", "deferred", "failed"]
RunStatus = StepStatus
"""done: proposals were sent, perhaps none. nothing: there was nothing to look at. paused: the tier or its budget
forbids the call. deferred: the model is away, the run is tried again. failed: the answer was unusable."""


class Part(RowPart):
    """The result of one part of a run. A part that fails or waits does not undo the others."""

    name: PartName
    status: StepStatus
    counts: dict[str, int] = Field(default_factory=dict)
    why: str = ""
    """Why the part is not done."""


class RunRecord(RowPart):
    """One run, kept so that an operator can see later why it proposed what it did."""

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
    """A run that is due and could not be finished. `attempt` is part of the reminder's id: each id is used once."""

    tenant_id: str
    owner: Owner
    run_id: str
    attempt: Count = 0
    status: Literal["deferred", "paused"] = "deferred"
    turns: Count = 0
    """Turns that were counted at the last try."""
    until: Instant | None = None
    """When a paused run can succeed again; None: when a worker starts with other settings."""


class FollowUp(RowPart):
    """One command that an owner still needs after a run, or again when the model is back. `attempt` as above."""

    kind: Kind
    run_id: str
    not_before: Instant
    attempt: Count = 0


class Summary(RowPart):
    """The summary of some turns of a session, kept until it is proposed as an episode."""

    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]
    """In the order of the session."""
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
    """Counted turns of one session that the session's row does not have yet."""

    session: str
    """The session's key."""
    numbers: tuple[tuple[Count, Number], ...]
    """Epoch and number of each turn, in the order in which they were counted."""
    turn_ids: SeenIds
    """In the same order."""
    last_at: Annotated[int, Field(ge=0)]
    """As in the session's row: when the last of them was counted, in seconds."""

    def has(self, number: TurnNumber) -> bool:
        return tuple(number) in self.numbers


class UpkeepRow(RowPart):
    """The state of an owner's upkeep."""

    clock: TurnClock = TurnClock()
    """The owner's turns over all sessions: it gives the age of episodes in turns."""
    facts_from: str = ""
    """The fact at which the janitor's next visit begins; "": at the first."""
    episodes_from: str = ""
    """The episode at which the janitor's next visit begins; "": at the first."""
    merged_from: str = ""
    """The fact at which the merge of the next maintenance run begins; "": at the first."""
    settled_from: str = ""
    """The pending fact at which the next run begins to settle; "": at the first."""
    judged_from: str = ""
    """The pending fact at which the next run begins to judge; "": at the first."""
    visited_at: Instant | None = None
    """The janitor's last visit."""
    reflected_at: Instant | None = None
    """The end of the last maintenance run."""


class ProgressRow(CommandedRow):
    """The state of one owner."""

    counters: Counters = Counters()
    runs: tuple[RunRecord, ...] = ()
    """The last 20, oldest first."""
    waiting: PendingRun | None = None
    errands: tuple[FollowUp, ...] = ()
    """The follow-ups: at most one of each kind, in the order in which they are done."""
    counted_since: Instant | None = None
    """When the first of the counted turns came. A schedule counts from here while there was no run."""
    changed_facts: Count = 0
    """Changes of facts that were reported or proposed since the last prune."""
    pruned_to: str = ""
    """The fact at which the last prune stopped, in the order in which facts are shown; "": at the end."""
    derived: tuple[str, ...] = ()
    """Short hashes of the last 64 clusters in which insights were searched."""
    mined: str = ""
    """Short hash of the episodes in which procedures were last searched."""
    upkeep: UpkeepRow = UpkeepRow()
    unsummarised: tuple[SummaryBacklog, ...] = ()
    """Turns that no summary includes yet, by session."""
    summaries: tuple[Summary, ...] = ()
    """Summaries that are not proposed yet."""
    retold: SeenIds = SeenIds()
    """The last 256 turns that were shown to a model for a summary. Their episode may not be in the store yet, and a
    turn that gave no summary is not shown again."""
    recent: Annotated[tuple[RecentTurns, ...], Field(exclude_if=operator.not_)] = ()
    """The turns that were counted last, by session."""

    def recent_of(self, session_key: str) -> RecentTurns | None:
        return next((each for each in self.recent if each.session == session_key), None)

    def index_kinds(self) -> tuple[str, ...]:
        follows = (FOLLOWS,) if self.waiting is not None or self.errands else ()
        return (*follows, COUNTS) if self.counters.turns else follows


def progress_index(key: str, raw: bytes) -> tuple[str, ...]:
    """Return the index rows that a row needs, also those that stand though it needs them no longer."""
    if not is_owner_key(key):
        return ()
    row = ProgressRow.read(raw)
    return tuple(index_key(kind, key) for kind in {*row.index_kinds(), *row.indexed})


class CountedTurns(HandledTurns):
    """Which turns of a session are counted for an owner."""

    counted: SeenIds = SeenIds()
    """The last 1 000 turn ids, without those that version 0.1 counted. Only turns in this list are compacted."""

    def with_recent(self, recent: RecentTurns) -> CountedTurns:
        """Return the row with the turns that the owner's row has."""
        row = self
        for epoch, n in recent.numbers:
            row = row.add(TurnNumber(epoch, n))
        counted = self.counted.joined(recent.turn_ids)
        return row.model_copy(update={"counted": counted, "last_at": max(self.last_at, recent.last_at)})


def session_row_key(owner_key: str, session_key: str) -> str:
    """An owner key has three parts, this key has six, so they cannot be equal."""
    return f"{owner_key}/{session_key}"


def recent_at(rows: Rows, row_key: str, *, partition: int) -> int:
    """Return the time of the turns that the owner's row has of a session's row; 0: it has none."""
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
