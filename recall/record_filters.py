"""Selections of stored records and their Qdrant filters. Pure functions.

Recall ranks records for a cue; these selections read records as stored, page by page. Tenant and owner come from the
caller's credential or options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from pydantic import JsonValue
from qdrant_client import models

from ..adapters.vectors.conditions import any_of, before, equals, since, until
from ..schemas.facts import FactState
from ..schemas.observations import Category
from ..schemas.turns import SENSITIVITIES, Owner, Sensitivity, up_to
from .filters import believed, valid_at
from .slots import SlotSelection

ALL: Literal["all"] = "all"
EVERY: Literal["every"] = "every"
"""All states, including the states in `SHOWN_BY_NAME`. Only operators use it."""
SHOWN_BY_NAME: frozenset[FactState] = frozenset(("forgotten", "quarantined"))
"""States that a list of facts contains only when the caller names the state. `trace` also shows facts in these states.
"""


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Selection of records to read. A parameter that is None or empty does not restrict it, except `state`.

    Raises ValueError for an invalid parameter.
    """

    tenant_id: str
    owner: Owner | None = None
    """The owner of facts, episodes and messages, or None for all owners of the tenant."""
    user_id: str | None = None
    """The user whose sessions are read, for messages and working entries."""
    session_id: str | None = None
    agent_id: str | None = None
    """The participating agent, for messages."""
    state: FactState | Literal["all", "every"] | None = None
    """The state of facts; None means `active`. `all` and `every` also include deleted episodes."""
    subject: str | None = None
    category: Category | None = None
    as_of: datetime | None = None
    """World time: select facts and episodes that were valid then, including facts that were replaced later."""
    known_at: datetime | None = None
    """Recording time: select facts that memory believed then, as far as the rows record it, and episodes that were
    recorded until then."""
    ceiling: Sensitivity = "internal"
    """The highest sensitivity that may be read."""
    min_confidence: float | None = None
    """The minimum confidence of facts, as of their last change."""
    tags: tuple[str, ...] = ()
    """Tags that facts and episodes must all have."""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """Metadata values that facts must have."""
    slots: SlotSelection | None = None
    """The slots of facts, or None for every fact."""
    recorded_from: datetime | None = None
    recorded_to: datetime | None = None
    """`recorded_from` and `recorded_to` limit the recording time of facts and episodes. Both bounds are included."""
    said_from: datetime | None = None
    said_before: datetime | None = None
    """`said_from` and `said_before` limit the time of turns. The second bound is excluded."""

    def __post_init__(self) -> None:
        if not self.tenant_id:
            raise ValueError("a read needs a tenant")
        if self.state is not None and self.state not in (*get_args(FactState), ALL, EVERY):
            raise ValueError(f"unknown state {self.state!r}")
        times = ("as_of", "known_at", "recorded_from", "recorded_to", "said_from", "said_before")
        for name, moment in ((name, getattr(self, name)) for name in times):
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} needs a time zone")


def facts_filter(selection: RecordSelection) -> models.Filter:
    conditions = _owned(selection) + _about(selection)
    if selection.known_at is not None and selection.state is None:
        conditions += believed(selection.known_at, valid=selection.as_of or selection.known_at)
    else:
        states = _states(selection)
        conditions.append(any_of("state", states))
        conditions += _when(selection)
    if selection.session_id is not None:
        conditions.append(equals("evidence[].session_id", selection.session_id))
    if selection.min_confidence is not None:
        least = models.Range(gte=selection.min_confidence)
        conditions.append(models.FieldCondition(key="confidence", range=least))
    conditions += [_has_value(name, value) for name, value in selection.metadata.items()]
    if selection.slots is not None:
        conditions.append(selection.slots.condition())
    return models.Filter(must=conditions)


def episodes_filter(selection: RecordSelection) -> models.Filter:
    conditions = _owned(selection) + _about(selection) + _when(selection)
    if selection.session_id is not None:
        conditions.append(equals("session_id", selection.session_id))
    if selection.state not in (ALL, EVERY):
        conditions.append(_empty("deleted_at"))
    return models.Filter(must=conditions)


def working_filter(selection: RecordSelection) -> models.Filter:
    return models.Filter(must=[*_in_session(selection), *_about(selection)])


def digests_filter(selection: RecordSelection) -> models.Filter:
    return models.Filter(must=_owned(selection))


def owned_filter(selection: RecordSelection) -> models.Filter:
    return models.Filter(must=_owned(selection))


def member_filter(selection: RecordSelection) -> models.Filter:
    """Match all groups, or the groups that have the owner as a member."""
    owner = selection.owner
    return models.Filter(must=[] if owner is None else [equals("member_keys", owner.key(selection.tenant_id))])


def procedures_filter(selection: RecordSelection) -> models.Filter:
    removed = [] if selection.state in (ALL, EVERY) else [_empty("removed_at")]
    return models.Filter(must=[*_owned(selection), *removed])


def procedures_of_filter(selection: RecordSelection, owner_keys: Sequence[str], shared: Sequence[str]) -> models.Filter:
    """Match procedures of these owners, and procedures with the ids `shared`."""
    owned: list[models.Condition] = [any_of("owner_key", owner_keys)]
    by_id = [models.HasIdCondition(has_id=list(shared))] if shared else []
    return models.Filter(must=[procedures_filter(selection), models.Filter(should=[*owned, *by_id])])


def tasks_due_filter(selection: RecordSelection) -> models.Filter:
    return models.Filter(must=[owned_filter(selection), equals("state", "due")])


def tasks_waiting_filter(selection: RecordSelection) -> models.Filter:
    """Match open tasks with a condition."""
    return models.Filter(must=[owned_filter(selection), equals("state", "open")], must_not=[_empty("condition")])


def messages_filter(selection: RecordSelection) -> models.Filter:
    agent = [] if selection.agent_id is None else [equals("agent_id", selection.agent_id)]
    return models.Filter(must=[*_in_session(selection), *agent])


def first_messages_filter(selection: RecordSelection) -> models.Filter:
    """Match the first message of each turn in the time of the selection. Further messages may have other times."""
    said: list[models.Condition] = [equals("message_index", 0)]
    if selection.said_from is not None:
        said.append(since("occurred_at", selection.said_from))
    if selection.said_before is not None:
        said.append(before("occurred_at", selection.said_before))
    return models.Filter(must=[messages_filter(selection), *said])


# ------------------------------------------------------------------------------------------------ conditions
def _states(selection: RecordSelection) -> tuple[FactState, ...]:
    """Return the states to match. `all` excludes the states in `SHOWN_BY_NAME`. A read with `as_of` but without a state
    matches facts that are active now or were replaced later."""
    if selection.state == EVERY:
        return get_args(FactState)
    if selection.state == ALL:
        return tuple(state for state in get_args(FactState) if state not in SHOWN_BY_NAME)
    if selection.state is not None:
        return (selection.state,)
    return ("active",) if selection.as_of is None else ("active", "superseded")


def _when(selection: RecordSelection) -> list[models.Condition]:
    """Return the time conditions. With `known_at` alone, that time is also the world time."""
    recorded = [] if selection.known_at is None else [until("recorded_at", selection.known_at)]
    at = selection.as_of or selection.known_at
    return [*recorded, *([] if at is None else [valid_at(at)])]


def _owned(selection: RecordSelection) -> list[models.Condition]:
    owned = [] if selection.owner is None else [equals("owner_key", selection.owner.key(selection.tenant_id))]
    return [*owned, *_shown(selection)]


def _in_session(selection: RecordSelection) -> list[models.Condition]:
    pairs = (("user_id", selection.user_id), ("session_id", selection.session_id))
    return [*_owned(selection), *(equals(field, value) for field, value in pairs if value is not None)]


def _about(selection: RecordSelection) -> list[models.Condition]:
    named = (("subject", selection.subject), ("category", selection.category))
    pairs = (*named, *(("tags", tag) for tag in selection.tags))
    found: list[models.Condition] = [equals(name, value) for name, value in pairs if value is not None]
    if selection.recorded_from is not None:
        found.append(since("recorded_at", selection.recorded_from))
    if selection.recorded_to is not None:
        found.append(until("recorded_at", selection.recorded_to))
    return found


def _has_value(name: str, value: JsonValue) -> models.Condition:
    """Match metadata. Only strings, integers and booleans can be compared."""
    if not isinstance(value, str | int) or not name.isidentifier():
        raise ValueError(f"metadata {name!r} cannot be compared: give a plain name, and a text or a whole number")
    return models.FieldCondition(key=f"metadata.{name}", match=models.MatchValue(value=value))


def _shown(selection: RecordSelection) -> list[models.Condition]:
    """Return the condition on sensitivity, or none for a caller who may read all levels."""
    levels = up_to(selection.ceiling)
    return [] if levels == SENSITIVITIES else [any_of("sensitivity", levels)]


def _empty(field: str) -> models.IsEmptyCondition:
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))
