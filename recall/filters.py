"""Qdrant filters for the stored records that a read may see. Pure. The store adds the condition on the tenant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from qdrant_client import models

from ..adapters.vectors.conditions import after, any_of, equals, has_time, is_empty, until
from ..memory.recall.cue_fit import USER
from ..memory.recall.cue_times import CueTime
from ..schemas.recall import Tier
from ..schemas.turns import up_to
from .request import RecallRequest

SessionTurn = tuple[str, str]
"""Session id and turn id. The owner is the same for all turns of a read."""


def where(tier: Tier, request: RecallRequest, *, now: datetime) -> models.Filter | None:
    """Return the filter for a tier, or None when the request reads nothing from it."""
    if tier not in request.tiers or (request.slots is not None and tier != "semantic"):
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
    """Match active facts that have not ended.

    With `as_of`, match facts that were valid at that time, including facts that were replaced later. Invalidated facts
    do not match, because they were never true. With `known_at`, `believed` decides.
    """
    conditions = _of_owners(request, shared=request.shared_facts) + _about(request)
    conditions += request.conditions.of("semantic")
    if request.slots is not None:
        conditions.append(request.slots.condition())
    if request.pinned:
        conditions.append(has_time("pinned_at"))
    if request.known_at is not None:
        conditions += believed(request.known_at, valid=request.as_of or request.known_at)
    elif request.as_of is not None:
        conditions += [any_of("state", ("active", "superseded")), valid_at(request.as_of)]
    else:
        conditions += [equals("state", "active"), not_ended(now)]
    return models.Filter(must=conditions)


def believed(known_at: datetime, *, valid: datetime) -> list[models.Condition]:
    """Match facts that memory believed at `known_at` and that were valid at `valid`, as far as the rows record it.

    The stage sets `expired_at` when it invalidates or prunes a fact. It sets `closed_at` when it replaces a fact.
    Before `closed_at`, memory did not know that the fact ends. Rows without `closed_at` (rebuilt, or from an older
    version) count as closed at `valid_to`.
    """
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


def event_facts(request: RecallRequest) -> models.Filter:
    """Match the facts about the user that memory believes or believed: any of them may state when an event was.

    The filters of the request do not count: they select the answer, and the event is in the question.
    """
    conditions: list[models.Condition] = [
        equals("owner_key", request.owner.key(request.tenant_id)),
        equals("subject", USER),
        any_of("state", ("active", "superseded")),
        _ceiling(request),
    ]
    if request.past is not None:
        conditions.append(until("recorded_at", request.past))
    return models.Filter(must=conditions)


def _working(request: RecallRequest) -> models.Filter | None:
    """Match the session's current working set.

    Return None for a read of the past, for a read without a session, and for a read with conditions.
    """
    if request.session is None or request.past is not None or request.conditions:
        return None
    session = [equals("user_id", request.session.user_id), equals("session_id", request.session.session_id)]
    return models.Filter(must=[*session, _ceiling(request), *_about(request)])


def _episodes(request: RecallRequest) -> models.Filter:
    conditions = _of_owners(request) + _about(request) + request.conditions.of("episodic")
    conditions.append(is_empty("deleted_at"))
    if request.past is not None:
        conditions.append(valid_at(request.past))
    if request.known_at is not None:
        conditions.append(until("recorded_at", request.known_at))
    return models.Filter(must=conditions)


def _turns(request: RecallRequest) -> models.Filter | None:
    """Match messages in all sessions of the owner.

    Return None without a cue, because only a cue ranks messages. Return None for a subject or a category, because
    messages have neither.
    """
    if request.search_text is None or request.subject is not None or request.category is not None:
        return None
    conditions: list[models.Condition] = [
        equals("owner_key", request.owner.key(request.tenant_id)),
        _ceiling(request),
        *request.conditions.of("turns"),
    ]
    moments = [moment for moment in (request.as_of, request.known_at) if moment is not None]
    if moments:
        conditions.append(until("occurred_at", min(moments)))
    return models.Filter(must=conditions)


def said_by(names: Sequence[str], turns: models.Filter) -> models.Filter:
    """Match the messages that match `turns` and have one of these speaker names."""
    return models.Filter(must=[turns, any_of("name", names)])


# ------------------------------------------------------------------------------------------------ conditions
def these(identities: Sequence[str], of: models.Filter) -> models.Filter:
    """Match the records that have one of these ids and still match the filter `of`. The filter is built without
    validation, because the ids come from the store."""
    return models.Filter.model_construct(must=[of, models.HasIdCondition.model_construct(has_id=list(identities))])


def in_turns(turns: Collection[SessionTurn], path: str = "") -> list[models.Condition]:
    """Match records with their turn in `turns`; `path` leads to the fields. A turn of these sessions that has the id of
    another one matches, too, so the caller compares the pairs."""
    return [
        any_of(f"{path}session_id", sorted({session_id for session_id, _ in turns})),
        any_of(f"{path}turn_id", sorted({turn_id for _, turn_id in turns})),
    ]


def in_time(tier: Tier, of: models.Filter, time: CueTime) -> models.Filter:
    """Match the records that match `of` and that were said, or began to be true, in this time."""
    limits = models.DatetimeRange(gte=time.start, lt=time.end)
    fields = ("evidence[].occurred_at", "valid_from") if tier == "semantic" else ("occurred_at",)
    said = models.Filter(should=[models.FieldCondition(key=field, range=limits) for field in fields])
    return models.Filter(must=[of, said])


def not_ended(moment: datetime) -> models.Filter:
    """Match records without an end or with an end after `moment`. In Qdrant a null counts as empty."""
    return models.Filter(
        should=[
            is_empty("valid_to"),
            after("valid_to", moment),
        ]
    )


def valid_at(moment: datetime) -> models.Filter:
    """Match records that are valid at `moment`: valid_from <= moment < valid_to, or no valid_to."""
    return models.Filter(must=[until("valid_from", moment), not_ended(moment)])


def _of_owners(request: RecallRequest, *, shared: Sequence[str] = ()) -> list[models.Condition]:
    """Match records of the owner and the groups, and records with the ids `shared`."""
    owned = any_of("owner_key", request.owner_keys)
    if not shared:
        return [owned, _ceiling(request)]
    by_id = models.HasIdCondition.model_construct(has_id=list(shared))
    return [models.Filter.model_construct(should=[owned, by_id]), _ceiling(request)]


def _ceiling(request: RecallRequest) -> models.Condition:
    return any_of("sensitivity", up_to(request.ceiling))


def _about(request: RecallRequest) -> list[models.Condition]:
    found: list[models.Condition] = []
    if request.subject is not None:
        found.append(any_of("subject", request.subjects or (request.subject,)))
    if request.category is not None:
        found.append(equals("category", request.category))
    return found
