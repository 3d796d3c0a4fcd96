"""Which stored records a `show` command asks for, as filters of the store; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from qdrant_client import models

from ..recall.filters import equals, valid_at
from ..schemas.facts import FactState
from ..schemas.turns import Owner

ALL = "all"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for; `state` None: what is believed (`active`)."""

    owner: Owner | None = None
    user_id: str | None = None
    session_id: str | None = None
    state: str | None = None
    as_of: datetime | None = None


def of_owner(tenant_id: str, wanted: Wanted) -> list[models.Condition]:
    """Facts, episodes: of one owner, or of all."""
    return [] if wanted.owner is None else [equals("owner_key", wanted.owner.key(tenant_id))]


def in_session(wanted: Wanted) -> list[models.Condition]:
    """Turns, working entries: of one user, of one session."""
    pairs = (("user_id", wanted.user_id), ("session_id", wanted.session_id))
    return [equals(field, value) for field, value in pairs if value is not None]


def states(wanted: Wanted) -> tuple[FactState, ...] | None:
    """States of facts to show; None: any. Of the past: what is believed now or was replaced since."""
    if wanted.state == ALL:
        return None
    if wanted.state is not None:
        return (wanted.state,)  # type: ignore[return-value]
    return ("active",) if wanted.as_of is None else ("active", "superseded")


def facts_filter(tenant_id: str, wanted: Wanted) -> models.Filter:
    conditions: list[models.Condition] = of_owner(tenant_id, wanted)
    shown = states(wanted)
    if shown is not None:
        conditions.append(models.FieldCondition(key="state", match=models.MatchAny(any=list(shown))))
    if wanted.as_of is not None:
        conditions.append(valid_at(wanted.as_of))
    if wanted.session_id is not None:
        conditions.append(equals("evidence[].session_id", wanted.session_id))
    return models.Filter(must=conditions)


def episodes_filter(tenant_id: str, wanted: Wanted) -> models.Filter:
    conditions: list[models.Condition] = of_owner(tenant_id, wanted)
    if wanted.session_id is not None:
        conditions.append(equals("session_id", wanted.session_id))
    if wanted.state != ALL:
        conditions += [
            models.IsEmptyCondition(is_empty=models.PayloadField(key=field)) for field in ("deleted_at", "archived_at")
        ]
    if wanted.as_of is not None:
        conditions.append(valid_at(wanted.as_of))
    return models.Filter(must=conditions)


def session_filter(tenant_id: str, wanted: Wanted) -> models.Filter:
    conditions: list[models.Condition] = in_session(wanted)
    if wanted.owner is not None and wanted.user_id is None:
        conditions += of_owner(tenant_id, wanted)
    return models.Filter(must=conditions)


def owner_of(*, user: str | None, scope: str | None, owner_id: str | None) -> Owner | None:
    """`--user U`, or `--scope S --id X`; ValueError when they contradict each other."""
    if (scope is None) != (owner_id is None):
        raise ValueError("--scope and --id go together")
    if scope is not None and owner_id is not None:
        if user is not None and (scope, owner_id) != ("user", user):
            raise ValueError("--user and --scope/--id name two owners")
        return Owner.model_validate({"scope": scope, "id": owner_id})
    return None if user is None else Owner(scope="user", id=user)
