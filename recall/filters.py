"""Which stored records a read may see, as filters of the store; pure. The tenant is the store's own condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from qdrant_client import models

from ..adapters.vectors.conditions import after, any_of, equals, is_empty, until
from ..schemas.recall import Tier
from ..schemas.turns import up_to
from .request import RecallRequest


def where(tier: Tier, request: RecallRequest, *, now: datetime) -> models.Filter | None:
    """What of this tier the request may see; None: nothing of it is asked for."""
    if tier not in request.tiers:
        return None
    match tier:
        case "semantic":
            return _facts(request, now)
        case "working":
            return _working(request)
        case "episodic":
            return _episodes(request)
        case "turns":
            return _turns(request)


def _facts(request: RecallRequest, now: datetime) -> models.Filter:
    """Believed now and not over; of the past: valid then, also when it was replaced since. Invalidated rows were never
    true."""
    conditions = _of_owners(request) + _said_of(request)
    if request.known_at is not None:
        conditions += believed(request.known_at, valid=request.as_of or request.known_at)
    elif request.as_of is not None:
        conditions += [any_of("state", ("active", "superseded")), valid_at(request.as_of)]
    else:
        conditions += [equals("state", "active"), not_ended(now)]
    return models.Filter(must=conditions)


def believed(known_at: datetime, *, valid: datetime) -> list[models.Condition]:
    """What was believed at `known_at` of the world at `valid`, as far as rows tell. Who invalidates or prunes a row
    leaves when in `expired_at`, who replaces one in `closed_at`: before that its end was not known. Of a row without
    it (rebuilt, or of an older version) the end in the world stands for that."""
    then = models.Filter(must=[is_empty("closed_at"), after("valid_to", min(valid, known_at))])
    ended = models.Filter(must=[until("closed_at", known_at), after("valid_to", valid)])
    unknown = models.Filter(should=[after("closed_at", known_at), ended, then])
    replaced = models.Filter(must=[equals("state", "superseded"), unknown])
    standing = models.Filter(must=[equals("state", "active"), not_ended(valid)])
    given_up = any_of("state", ("invalidated", "expired"))
    denied_later = models.Filter(must=[given_up, after("expired_at", known_at), not_ended(valid)])
    return [
        until("recorded_at", known_at),
        until("valid_from", valid),
        models.Filter(should=[standing, replaced, denied_later]),
    ]


def _working(request: RecallRequest) -> models.Filter | None:
    """What a session attends to now: of the past nothing is known, and without a session there is none."""
    if request.session is None or request.past is not None:
        return None
    session = [equals("user_id", request.session.user_id), equals("session_id", request.session.session_id)]
    return models.Filter(must=[*session, _ceiling(request), *_said_of(request)])


def _episodes(request: RecallRequest) -> models.Filter:
    conditions = _of_owners(request) + _said_of(request)
    conditions.append(is_empty("deleted_at"))
    if request.past is not None:
        conditions.append(valid_at(request.past))
    if request.known_at is not None:
        conditions.append(until("recorded_at", request.known_at))
    return models.Filter(must=conditions)


def _turns(request: RecallRequest) -> models.Filter | None:
    """Over all sessions of the owner. A message has neither subject nor category, and nothing counts in it but how well
    it fits."""
    if request.asked is None or request.subject is not None or request.category is not None:
        return None
    conditions: list[models.Condition] = [
        equals("owner_key", request.owner.key(request.tenant_id)),
        _ceiling(request),
    ]
    heard = [moment for moment in (request.as_of, request.known_at) if moment is not None]
    if heard:
        conditions.append(until("occurred_at", min(heard)))
    return models.Filter(must=conditions)


def said_by(names: Sequence[str], turns: models.Filter) -> models.Filter:
    """Of these messages those that were said under one of these names."""
    return models.Filter(must=[turns, any_of("name", names)])


# ------------------------------------------------------------------------------------------------ conditions
def these(identities: Sequence[str], of: models.Filter) -> models.Filter:
    """Of these records those that may be seen still. Built without validation: the ids are the store's own."""
    return models.Filter.model_construct(must=[of, models.HasIdCondition.model_construct(has_id=list(identities))])


def not_ended(moment: datetime) -> models.Filter:
    """Without an end, or one that lies ahead (Qdrant: a null is empty)."""
    return models.Filter(
        should=[
            is_empty("valid_to"),
            after("valid_to", moment),
        ]
    )


def valid_at(moment: datetime) -> models.Filter:
    """Half-open: valid_from <= moment < valid_to, where there is one."""
    return models.Filter(must=[until("valid_from", moment), not_ended(moment)])


def _of_owners(request: RecallRequest) -> list[models.Condition]:
    return [any_of("owner_key", request.owner_keys), _ceiling(request)]


def _ceiling(request: RecallRequest) -> models.Condition:
    return any_of("sensitivity", up_to(request.ceiling))


def _said_of(request: RecallRequest) -> list[models.Condition]:
    named = (("subject", request.subject), ("category", request.category))
    return [equals(field, value) for field, value in named if value is not None]
