"""Commands and their results: memory.commands, memory.commands.session, memory.commands.results."""

from __future__ import annotations

import operator
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, model_validator

from . import ids
from .base import (
    CommandId,
    Content,
    Contract,
    GivenId,
    Hash,
    Instant,
    IssuedBy,
    ModelName,
    OurId,
    Reason,
    Subject,
    Unit,
)
from .episodes import SUMMARISED_MAX
from .facts import Trust
from .observations import Category, Observation, PromptName
from .turns import Owner, Sensitivity

CHANGES_MAX = 20
SUMMARIES_MAX: Final = 20
KEPT_MAX: Final = 20

Kind = Annotated[str, StringConstraints(min_length=1, max_length=64)]
RequestHash = Annotated[Hash | None, Field(exclude_if=operator.not_)]
"""For an edit with an idempotency key: the HMAC-SHA256 of the edit's arguments. The idempotency key is the key of the
HMAC. A request with a known command id and a different hash is a different request, and is refused."""


class SessionRef(Contract):
    """A session of a user."""

    user_id: GivenId
    session_id: GivenId


class Command(Contract):
    """A request to change memory. It has the key of the owner or session that it changes. Exactly one of `owner` and
    `session` is given."""

    command_id: CommandId
    kind: Kind
    tenant_id: GivenId
    owner: Owner | None = None
    session: SessionRef | None = None
    args: dict[str, JsonValue] = Field(default_factory=dict)
    issued_by: IssuedBy = ""
    issued_at: Instant
    expires_at: Instant | None = None
    request_hash: RequestHash = None

    @model_validator(mode="after")
    def _addressed(self) -> Self:
        if (self.owner is None) == (self.session is None):
            raise ValueError("exactly one of owner and session is needed")
        return self

    @property
    def key(self) -> str:
        """Key of the owner or the session."""
        if self.owner is not None:
            return self.owner.key(self.tenant_id)
        assert self.session is not None  # _addressed ensures it
        return ids.session_key(self.tenant_id, self.session.user_id, self.session.session_id)


ChangeAction = Literal["new", "reinforce", "update", "invalidate", "merge", "prune", "judge"]
Judgement = Literal["supersede", "duplicate", "coexist"]
"""Relation of a pending fact to the fact that it was compared with.

- supersede: the pending fact replaces the other fact.
- duplicate: both facts have the same meaning.
- coexist: both facts are true.
"""


class Change(Contract):
    """One proposal of a facts.apply command. The action `judge` decides about a pending fact (`target_fact_id`).
    `source_fact_ids` then has one id, the fact that the pending fact was compared with. With the judgement `coexist`,
    `source_fact_ids` may be empty."""

    action: ChangeAction
    target_fact_id: OurId | None = None
    source_fact_ids: Annotated[tuple[OurId, ...], Field(max_length=64)] = ()
    expected_version: Annotated[int, Field(ge=1)] | None = None
    subject: Subject | None = None
    content: Content | None = None
    category: Category | None = None
    confidence: Unit | None = None
    valid_from: Instant | None = None
    judgement: Judgement | None = None
    compared_hash: Hash | None = None
    """For a judgement: `content_hash` of the fact in `source_fact_ids` as it was compared. Null: any text."""
    reason: Reason = ""
    source_episode_ids: Annotated[tuple[OurId, ...], Field(max_length=64)] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.action == "new" and (self.subject is None or self.content is None or self.category is None):
            raise ValueError("new needs subject, content and category")
        if self.action in ("reinforce", "update", "invalidate", "prune", "judge") and self.target_fact_id is None:
            raise ValueError(f"{self.action} needs target_fact_id")
        if self.action == "update" and self.content is None:
            raise ValueError("update needs content")
        if self.action == "merge" and (len(self.source_fact_ids) < 2 or self.content is None):
            raise ValueError("merge needs at least two source_fact_ids and content")
        if self.action == "judge":
            self._judged()
        return self

    def _judged(self) -> None:
        if self.judgement is None:
            raise ValueError("judge needs judgement")
        if len(self.source_fact_ids) > 1 or (self.judgement != "coexist" and not self.source_fact_ids):
            raise ValueError("judge needs one source_fact_ids: the fact that the target was compared with")


class FactsApply(Contract):
    """`args` of facts.apply. The command never expires."""

    run_id: OurId
    changes: Annotated[tuple[Change, ...], Field(min_length=1, max_length=CHANGES_MAX)]
    model: ModelName | None = None
    prompt: PromptName | None = None
    """Prompt of the model that made the proposals. It is copied into the cause of the events."""


class FactReview(Contract):
    """`args` of facts.approve and facts.reject: a person's decision about a quarantined or pending fact. The command
    never expires."""

    fact_id: OurId
    reason: Reason = ""
    """Reason of the decision. It is copied into the events."""


VerdictName = Literal["applied", "duplicate", "stale", "unknown", "refused"]
"""Result of one change.

- applied: the change was made.
- duplicate: the evidence was known; nothing changed.
- stale: the target is no longer active.
- unknown: the owner has no such fact or episode.
- refused: the rules forbid the change.
"""


class Verdict(Contract):
    action: ChangeAction
    fact_id: OurId | None = None
    verdict: VerdictName
    reason: Reason = ""


class SummaryProposal(Contract):
    """A summary of some turns of a session. It becomes an episode of category event with the tag summary."""

    user_id: GivenId
    session_id: GivenId
    turn_ids: Annotated[tuple[GivenId, ...], Field(min_length=1, max_length=SUMMARISED_MAX)]
    """Evidence: the summarised turns in their order."""
    content: Content
    importance: Unit
    began_at: Instant
    """Time of the first turn."""
    occurred_at: Instant
    """Time of the last turn."""
    sensitivity: Sensitivity = "internal"
    trust: Trust = "assistant"


class EpisodesRecord(Contract):
    """`args` of episodes.record. The command never expires."""

    run_id: OurId
    summaries: Annotated[tuple[SummaryProposal, ...], Field(min_length=1, max_length=SUMMARIES_MAX)]
    model: ModelName | None = None
    prompt: PromptName | None = None


class KeptObservation(Contract):
    """A working entry in the form of an observation, and the turn of the session that counts as its source."""

    turn_id: GivenId
    occurred_at: Instant
    """Time of the turn."""
    observation: Observation


class EpisodesKeep(Contract):
    """`args` of episodes.keep: each observation becomes an episode, regardless of its durability. The command never
    expires."""

    user_id: GivenId
    session_id: GivenId
    observations: Annotated[tuple[KeptObservation, ...], Field(min_length=1, max_length=KEPT_MAX)]

    def as_derived(self, tenant_id: str) -> tuple[Observation, ...]:
        """Return the observations with ids derived from their turns, because the sender of a command may set any id."""
        session = ids.session_key(tenant_id, self.user_id, self.session_id)
        return tuple(
            said.model_copy(update={"observation_id": ids.observation_id(session, turn_id, said.subject, said.content)})
            for said, turn_id in ((each.observation, each.turn_id) for each in self.observations)
        )


class EpisodeVerdict(Contract):
    """Result of one summary or observation: applied, duplicate (one of its turns is already summarised, or the
    observation is already an episode), or refused (it is an instruction to the assistant)."""

    episode_id: OurId
    verdict: Literal["applied", "duplicate", "refused"]


class FlushImportant(Contract):
    """`args` of flush_important: unobserved turns are observed, then important working entries become episodes."""

    threshold: Unit | None = None
    """Minimum importance of entries that become episodes; None: `session_log.flush_threshold`."""


class SessionEnd(Contract):
    """`args` of sessions.end: the session's row is removed if it is old and no work is pending."""

    last_at: Annotated[int, Field(ge=0)]
    """Time in the session's row when the command was sent, in seconds since 1970. It is used when the row itself has no
    time."""


class Compact(Contract):
    """`args` of compact: the older turns of a session become one episode."""

    user_id: GivenId
    session_id: GivenId
    keep: Annotated[int, Field(ge=0)] | None = None
    """Number of the session's newest turns to leave out; None: `session_log.keep`."""


ResultStatus = Literal["applied", "refused", "expired", "failed"]


class ResultError(Contract):
    code: Annotated[str, StringConstraints(max_length=64)]
    message: Reason


class CommandResult(Contract):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    command_id: CommandId
    status: ResultStatus
    result: dict[str, JsonValue] | None = None
    error: ResultError | None = None
    at: Instant


NO_MARKER: Final = "no_marker"
"""Error code: this worker does not know the marker of the erasure yet. The sender sends the command again."""
REPEATED: Final = "repeated"
"""Error code for a repeated command whose result is no longer stored."""
KEY_REUSED: Final = ResultError(
    code="key_reused", message="this idempotency key belongs to a request with other arguments: use a new key"
)
