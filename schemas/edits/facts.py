"""Edits of facts by hand. The reflector applies them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..base import Contract, GivenId, Instant, OurId, Reason, Tags, Unit
from ..facts import FactState, Trust
from ..observations import Category
from ..turns import Sensitivity
from .common import EditMetadata, GivenContent, GivenSubject, MergedIds

PINNED_FACTS_MAX = 10
"""Maximum number of pinned facts of an owner. Every context has all of them, so each one takes room from the others."""
FactDecision = Literal["admit", "dedup", "supersede", "pending", "quarantined"]
"""Decision of the conflict pipeline about a statement.

- admit: the statement is a new active fact.
- dedup: memory already has the statement.
- supersede: the statement is a new active fact, and at least one other fact is closed.
- pending: the statement waits for a judgement, or for the start of its validity.
- quarantined: the statement is an instruction to the assistant, and waits for a person's approval.
"""


class FactRemember(Contract):
    """`args` of facts.remember and facts.add: a statement in the third person.

    `facts.remember` compares the statement with the known facts, like a statement of a turn. `facts.add` closes no
    other fact, and only an equal text makes the statement a duplicate.
    """

    content: GivenContent
    subject: GivenSubject = "user"
    category: Category | None = None
    """None: the category of the statement's predicate; without a known predicate: knowledge."""
    confidence: Unit | None = None
    """None: the confidence of a permanent observation with the same trust."""
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    sensitivity: Sensitivity = "internal"
    tags: Tags = ()
    metadata: EditMetadata = Field(default_factory=dict)
    trust: Trust = "user"
    """Origin of the statement: `user` for a person's own edit, `assistant` for a tool call of an agent."""
    session_id: GivenId | None = None
    """The session of the statement, if any."""
    reason: Reason = ""


class FactEdit(Contract):
    """`args` of facts.update: better wording, another category, other tags or metadata of the same statement."""

    fact_id: OurId
    content: GivenContent | None = None
    category: Category | None = None
    tags: Tags | None = None
    metadata: EditMetadata | None = None
    expected_version: Annotated[int, Field(ge=1)] | None = None
    trust: Trust = "user"
    reason: Reason = ""

    @model_validator(mode="after")
    def _changes_something(self) -> FactEdit:
        if self.content is None and self.category is None and self.tags is None and self.metadata is None:
            raise ValueError("content, category, tags or metadata is needed")
        return self


class FactReinforce(Contract):
    """`args` of facts.reinforce: the fact was confirmed."""

    fact_id: OurId
    trust: Trust = "user"
    reason: Reason = ""


class FactPin(Contract):
    """`args` of facts.pin and facts.unpin: each context of its owner has a pinned fact."""

    fact_id: OurId
    reason: Reason = ""


class FactSupersede(Contract):
    """`args` of facts.supersede: another value is true from now on. The old row is closed."""

    fact_id: OurId
    content: GivenContent
    category: Category | None = None
    """None: the category of the old row."""
    valid_from: Instant | None = None
    tags: Tags = ()
    trust: Trust = "user"
    reason: Reason = ""


class FactMerge(Contract):
    """`args` of facts.merge. The first fact survives with the tags of all facts; the other facts are closed."""

    fact_ids: MergedIds
    content: GivenContent | None = None
    """Merged text; None: the texts are concatenated."""
    trust: Trust = "user"
    reason: Reason = ""


ForgetCause = Literal["wrong", "over"]
"""Why a fact is forgotten. `wrong`: it was never true. `over`: it was true."""
ClosedReason = Literal[
    "not_asked", "merged", "not_believed", "replaced", "contradicted", "unclear", "duplicate", "too_many"
]
"""Reason for which a fact stays closed.

- not_asked: the request does not ask to restore.
- merged: the fact was merged into the forgotten fact, which says the same.
- not_believed: the fact was pending when it closed.
- replaced: `other_fact_id` replaced the forgotten fact, so it replaces this fact, too.
- contradicted: the active fact `other_fact_id` contradicts it.
- unclear: memory learnt `other_fact_id` since, and only a model can decide whether both hold.
- duplicate: the active fact `other_fact_id` says the same.
- too_many: more than 32 facts were closed. The same request restores the next ones.
"""


class FactForget(Contract):
    """`args` of facts.forget: the fact is left out of every read. Its earlier events stay in the log."""

    fact_id: OurId
    because: ForgetCause | None = None
    """`wrong`: the fact was never true. `over`: it was true. None: the caller does not say."""
    restore: bool | None = None
    """True: believe the facts again that this fact had closed. None: only if `because` is `wrong`."""
    reason: Reason = ""

    @property
    def restores(self) -> bool:
        return self.because == "wrong" if self.restore is None else self.restore


class FactRemembered(Contract):
    """Result of facts.remember and facts.add. `changed_fact_ids` has every fact that this edit changed."""

    decision: FactDecision
    fact_id: OurId
    reason: Reason = ""
    changed_fact_ids: tuple[OurId, ...] = ()


class FactEdited(Contract):
    """Result of facts.update, facts.reinforce, facts.pin and facts.unpin. `changed` is false when the edit changed
    nothing."""

    fact_id: OurId
    state: FactState
    version: Annotated[int, Field(ge=1)]
    changed: bool


class FactSuperseded(Contract):
    """Result of facts.supersede."""

    old_fact_id: OurId
    fact_id: OurId
    changed_fact_ids: tuple[OurId, ...] = ()


class FactsMerged(Contract):
    """Result of facts.merge."""

    fact_id: OurId
    merged_fact_ids: tuple[OurId, ...]


class StillClosed(Contract):
    """A fact that the forgotten fact had closed, and that stays closed."""

    fact_id: OurId
    why: ClosedReason
    other_fact_id: OurId | None = None


class FactForgotten(Contract):
    """Result of facts.forget. `forgotten` is false when the fact was already forgotten.

    The facts that it had closed are either in `restored_fact_ids` or in `still_closed`. A forgotten fact can be
    forgotten again, to restore them later.
    """

    fact_id: OurId
    forgotten: bool
    restored_fact_ids: tuple[OurId, ...] = ()
    still_closed: tuple[StillClosed, ...] = ()
