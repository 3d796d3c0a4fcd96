"""The rows of the table progress: one an owner, and a small one for each (owner, session).

Consolidation is their only writer. The session's row is written after the owner's, to the same partition.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from ...memory.upkeep.consolidation import Counters
from ...memory.upkeep.hygiene import TurnClock
from ...memory.upkeep.summaries import SummaryBacklog
from ...schemas.base import Instant
from ...schemas.episodes import SUMMARISED_MAX
from ...schemas.facts import Trust
from ...schemas.observations import TokenUsage
from ...schemas.outcomes import Outcome
from ...schemas.turns import Owner, Sensitivity
from ...streams.engine.handler import Rows
from ..common.seen_ids import SeenIds
from ..common.stored_row import RowPart, StoredRow

RUNS_KEPT = 20
RETOLD_KEPT: Final = 4 * SUMMARISED_MAX
Count = Annotated[int, Field(ge=0)]
Kind = Literal["consolidate", "prune", "hygiene", "digest", "compact"]
"""Of a run: the command's, or `consolidate` where the guard asked for it."""
NOT_RETRIED: Final[frozenset[Kind]] = frozenset(("compact",))
"""What was asked for of one session: where its model is away, whoever asked is told, and asks again."""
PartName = Literal["light", "standard", "deep", "prune", "hygiene", "digest", "compact"]
"""Of a part of a run: the phases of `consolidate`, the one part of every other kind."""
StepStatus = Literal["done", "nothing", "paused", "deferred", "failed"]
RunStatus = StepStatus
"""done: proposals were sent (perhaps none). nothing: there was nothing to look at. paused: the tier or its budget
forbids the call. deferred: the model is away; it is tried again. failed: its answer could not be used."""


class Part(RowPart):
    """What a phase came to. A part that failed or waits leaves what the others did as it is."""

    name: PartName
    status: StepStatus
    counts: dict[str, int] = Field(default_factory=dict)
    why: str = ""
    """Where it is not done: what stood in its way."""


class RunRecord(RowPart):
    """One run, for whoever asks later why nothing, or this, was proposed."""

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
    """A run that is due and could not be made. `attempt` names the next reminder: no two have one id."""

    tenant_id: str
    owner: Owner
    run_id: str
    attempt: Count = 0
    status: Literal["deferred", "paused"] = "deferred"
    turns: Count = 0
    """Counted when it was last tried."""
    until: Instant | None = None
    """Of one that is paused: when asking again can help; None: when a worker starts with other settings."""


class FollowUp(RowPart):
    """What is still to be done for an owner after a run, or again when the model is back: one command, not before its
    time. `attempt` as above."""

    kind: Kind
    run_id: str
    not_before: Instant
    attempt: Count = 0


class Summary(RowPart):
    """Of some turns of a session, until it is proposed as an episode."""

    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]
    """In the order in which they were told."""
    content: str
    began_at: Instant
    occurred_at: Instant
    """Of the first turn and of the last."""
    sensitivity: Sensitivity
    trust: Trust
    model: str
    prompt: str

    @property
    def session(self) -> tuple[str, str]:
        return self.user_id, self.session_id


class UpkeepRow(RowPart):
    """What keeping an owner's memory in order has to know."""

    clock: TurnClock = TurnClock()
    """The owner's turns over all sessions: how old episodes are in turns."""
    facts_from: str = ""
    """The fact at which the janitor's next look begins; "": at the first."""
    visited_at: Instant | None = None
    """The janitor's last visit."""
    reflected_at: Instant | None = None
    """The end of the last maintenance run."""


class ProgressRow(StoredRow):
    """All that consolidation knows of an owner."""

    counters: Counters = Counters()
    runs: tuple[RunRecord, ...] = ()
    """The last 20, oldest first."""
    waiting: PendingRun | None = None
    errands: tuple[FollowUp, ...] = ()
    """One a kind, in the order in which they are done."""
    counted_since: Instant | None = None
    """When the first of the counted turns came: what a schedule without a run reckons from."""
    changed_facts: Count = 0
    """Changes of facts that were heard of or proposed since the last prune."""
    pruned_to: str = ""
    """Where the last prune stopped, in the order in which facts are shown to it; "": at the end."""
    derived: tuple[str, ...] = ()
    """Short hashes of the clusters that insights were looked for in, the last 64."""
    mined: str = ""
    """Short hash of the episodes that procedures were last looked for in."""
    upkeep: UpkeepRow = UpkeepRow()
    unsummarised: tuple[SummaryBacklog, ...] = ()
    """Turns that no summary has taken yet, by session."""
    summaries: tuple[Summary, ...] = ()
    """What is summarised and not yet proposed."""
    retold: SeenIds = SeenIds()
    """The last 256 turns that a model has answered about with a summary, or with nothing: the episode may be on its
    way to the store still, and what was worth nothing is not asked about again."""
    commands: SeenIds = SeenIds()
    """The last 1 000 command ids."""
    last: Outcome | None = None


class CountedTurns(StoredRow):
    """How far a session's turns are counted."""

    turn_number: Count = 0
    counted: SeenIds = SeenIds()
    """The last 1 000 turn ids, without those that 0.1 counted: what was not reflected is not compacted."""


def session_row_key(owner_key: str, session_key: str) -> str:
    """An owner key has three parts, this has six: the two kinds never meet."""
    return f"{owner_key}/{session_key}"


def is_owner_key(key: str) -> bool:
    return key.count("/") == 2


def owner_row(rows: Rows, owner_key: str) -> ProgressRow:
    raw = rows.row(owner_key)
    return ProgressRow() if raw is None else ProgressRow.read(raw)


def turns_of(rows: Rows, owner_key: str, session_key: str) -> CountedTurns:
    """The session's turns that were counted for this owner."""
    raw = rows.row(session_row_key(owner_key, session_key))
    return CountedTurns() if raw is None else CountedTurns.read(raw)
