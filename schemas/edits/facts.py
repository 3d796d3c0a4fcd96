"""Edits of facts by hand. The reflector applies them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..base import Content, Contract, GivenId, Instant, OurId, Reason, Subject, Tags, Unit
from ..facts import FactState, Trust
from ..observations import Category
from ..turns import Sensitivity
from .common import EditMetadata, MergedIds

FactDecision = Literal["admit", "dedup", "supersede", "pending", "quarantined"]
"""What the conflict pipeline did with a statement.

- admit: it is an active fact of its own.
- dedup: memory knows it already.
- supersede: it is active, and closed at least one fact.
- pending: it waits for a judgement, or for its time.
- quarantined: it is an instruction to the assistant, and waits for a person's approval.
"""


class FactRemember(Contract):
    """`args` of facts.remember and facts.add: a statement in the third person.

    `facts.remember` takes it through the conflict pipeline, like a statement of a turn. `facts.add` closes nothing:
    only an equal text makes it a duplicate.
    """

    content: Content
    subject: Subject = "user"
    category: Category | None = None
    """None: what the statement's predicate tells, else knowledge."""
    confidence: Unit | None = None
    """None: as of a permanent observation of the same trust."""
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    sensitivity: Sensitivity = "internal"
    tags: Tags = ()
    metadata: EditMetadata = Field(default_factory=dict)
    trust: Trust = "user"
    """Whose word it is. A person's own edit is `user`, a tool call of an agent `assistant`."""
    session_id: GivenId | None = None
    """The session in which it was said, if any."""
    reason: Reason = ""


class FactEdit(Contract):
    """`args` of facts.update: better wording, another category, other tags or metadata of the same statement."""

    fact_id: OurId
    content: Content | None = None
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


class FactSupersede(Contract):
    """`args` of facts.supersede: another value holds from now on. The old row closes."""

    fact_id: OurId
    content: Content
    category: Category | None = None
    """None: the old row's."""
    valid_from: Instant | None = None
    tags: Tags = ()
    trust: Trust = "user"
    reason: Reason = ""


class FactMerge(Contract):
    """`args` of facts.merge. The first fact survives with the tags of all; the others close."""

    fact_ids: MergedIds
    content: Content | None = None
    """None: their texts, one after the other."""
    trust: Trust = "user"
    reason: Reason = ""


class FactForget(Contract):
    """`args` of facts.forget: the fact leaves every read. The log keeps it."""

    fact_id: OurId
    reason: Reason = ""


class FactRemembered(Contract):
    """Result of facts.remember and facts.add. `changed_fact_ids`: every fact that changed with it."""

    decision: FactDecision
    fact_id: OurId
    reason: Reason = ""
    changed_fact_ids: tuple[OurId, ...] = ()


class FactEdited(Contract):
    """Result of facts.update and facts.reinforce. `changed` false: it said so already."""

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


class FactForgotten(Contract):
    """Result of facts.forget. `forgotten` false: it was forgotten before."""

    fact_id: OurId
    forgotten: bool
