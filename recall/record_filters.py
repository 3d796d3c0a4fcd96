"""Selections of stored records, and their Qdrant filters; pure.

Recall ranks records for a cue; here records are read as they are stored, page by page. Tenant and owner come from the
caller's credential or options.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from qdrant_client import models

from ..adapters.vectors.conditions import any_of, equals, until
from ..schemas.facts import FactState
from ..schemas.observations import Category
from ..schemas.turns import SENSITIVITIES, Owner, Sensitivity, up_to
from .filters import believed, valid_at

ALL: Literal["all"] = "all"


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Which records to read. A parameter that is left out does not narrow the selection. ValueError: a parameter is out
    of bounds."""

    tenant_id: str
    owner: Owner | None = None
    """The owner of facts, episodes and messages. None: all owners of the tenant."""
    user_id: str | None = None
    """The user whose sessions are read, for messages and working entries."""
    session_id: str | None = None
    state: FactState | Literal["all"] | None = None
    """The state of facts. None: `active`. `all` also shows deleted episodes."""
    subject: str | None = None
    category: Category | None = None
    as_of: datetime | None = None
    """World time: facts and episodes that were valid then, also facts that were replaced later."""
    known_at: datetime | None = None
    """Recording time: facts that were believed then, as far as rows show it, and episodes that were recorded by
    then."""
    ceiling: Sensitivity = "internal"
    """The highest sensitivity that may be read."""

    def __post_init__(self) -> None:
        if not self.tenant_id:
            raise ValueError("a read needs a tenant")
        if self.state is not None and self.state not in (*get_args(FactState), ALL):
            raise ValueError(f"unknown state {self.state!r}")
        for name, moment in (("as_of", self.as_of), ("known_at", self.known_at)):
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} needs a time zone")


def facts_filter(wanted: RecordSelection) -> models.Filter:
    conditions = _owned(wanted) + _said_of(wanted)
    if wanted.known_at is not None and wanted.state is None:
        conditions += believed(wanted.known_at, valid=wanted.as_of or wanted.known_at)
    else:
        states = _states(wanted)
        conditions += [] if states is None else [any_of("state", states)]
        conditions += _when(wanted)
    if wanted.session_id is not None:
        conditions.append(equals("evidence[].session_id", wanted.session_id))
    return models.Filter(must=conditions)


def episodes_filter(wanted: RecordSelection) -> models.Filter:
    conditions = _owned(wanted) + _said_of(wanted) + _when(wanted)
    if wanted.session_id is not None:
        conditions.append(equals("session_id", wanted.session_id))
    if wanted.state != ALL:
        conditions.append(_empty("deleted_at"))
    return models.Filter(must=conditions)


def working_filter(wanted: RecordSelection) -> models.Filter:
    return models.Filter(must=[*_in_session(wanted), *_said_of(wanted)])


def digests_filter(wanted: RecordSelection) -> models.Filter:
    return models.Filter(must=_owned(wanted))


def messages_filter(wanted: RecordSelection) -> models.Filter:
    return models.Filter(must=_in_session(wanted))


# ------------------------------------------------------------------------------------------------ conditions
def _states(wanted: RecordSelection) -> tuple[FactState, ...] | None:
    """Return the states to match; None: any. For a time in the past, match facts that are active now or were replaced
    since."""
    if wanted.state == ALL:
        return None
    if wanted.state is not None:
        return (wanted.state,)
    return ("active",) if wanted.as_of is None else ("active", "superseded")


def _when(wanted: RecordSelection) -> list[models.Condition]:
    """Return the conditions on times. A read with `known_at` alone also takes that time as world time."""
    recorded = [] if wanted.known_at is None else [until("recorded_at", wanted.known_at)]
    at = wanted.as_of or wanted.known_at
    return [*recorded, *([] if at is None else [valid_at(at)])]


def _owned(wanted: RecordSelection) -> list[models.Condition]:
    owned = [] if wanted.owner is None else [equals("owner_key", wanted.owner.key(wanted.tenant_id))]
    return [*owned, *_shown(wanted)]


def _in_session(wanted: RecordSelection) -> list[models.Condition]:
    pairs = (("user_id", wanted.user_id), ("session_id", wanted.session_id))
    return [*_owned(wanted), *(equals(field, value) for field, value in pairs if value is not None)]


def _said_of(wanted: RecordSelection) -> list[models.Condition]:
    pairs = (("subject", wanted.subject), ("category", wanted.category))
    return [equals(field, value) for field, value in pairs if value is not None]


def _shown(wanted: RecordSelection) -> list[models.Condition]:
    """Return the condition on sensitivity. A caller who may read everything needs none."""
    levels = up_to(wanted.ceiling)
    return [] if levels == SENSITIVITIES else [any_of("sensitivity", levels)]


def _empty(field: str) -> models.IsEmptyCondition:
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))
