"""Validation of turns that callers send, with the same schema as turns on Kafka. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from ..schemas.errors import Poison
from ..schemas.front_door.faults import FieldFault, InvalidFields, Path
from ..schemas.front_door.framing import refusal_of, unframe_value
from ..schemas.front_door.json_text import NotJson, repair_text
from ..schemas.front_door.turns import check_version, read_fields
from ..schemas.turns import TURN_MAX_BYTES, Owner, Turn, turn_value
from .credentials import Caller
from .misspellings import misspellings
from .problems import FieldError, forbidden, invalid, invalid_field, too_large


@dataclass(frozen=True, slots=True)
class ValidTurn:
    """Turn, and its bytes for the topic: all sent fields, including unknown fields, plus the tenant."""

    turn: Turn
    value: bytes


def valid_turns(sent: JsonValue, *, caller: Caller, limit: int, latest: datetime) -> list[ValidTurn]:
    """Validate one turn, or a list of at most `limit` turns. `latest` is the latest allowed time of a turn.

    Raises Problem (403, 413 or 422) if any turn is invalid; then no turn is accepted.
    """
    if not isinstance(sent, list):
        return _all([((), sent)], caller, latest)
    if not sent:
        raise invalid_field("body", "the list is empty; at least one turn is required")
    if len(sent) > limit:
        raise invalid_field("body", f"has {len(sent)} turns; at most {limit} are accepted in one request")
    return _all([((place,), each) for place, each in enumerate(sent)], caller, latest)


def _all(sent: Sequence[tuple[Path, JsonValue]], caller: Caller, latest: datetime) -> list[ValidTurn]:
    taken: list[ValidTurn] = []
    errors: list[FieldError] = []
    for path, each in sent:
        try:
            taken.append(_one(each, caller, latest))
        except InvalidFields as refused:
            errors += [_field_error((*path, *fault.path), fault.why) for fault in refused.faults]
    if errors:
        raise invalid(errors)
    for each_taken in taken:
        _check(each_taken, caller)
    return taken


def _field_error(path: Path, why: str) -> FieldError:
    return FieldError(field=repair_text(".".join(map(str, path)))[0] or "body", detail=why)


def _one(sent: JsonValue, caller: Caller, latest: datetime) -> ValidTurn:
    fields = _fields(sent)
    if fields.get("tenant_id") is None and caller.tenants is not None:
        if len(caller.tenants) != 1:
            raise _refused("tenant_id", "is required, because the token has several tenants")
        fields = {**fields, "tenant_id": next(iter(caller.tenants))}
    if caller.users is not None and fields.get("scope") is None:
        fields = {**fields, "scope": "user"}  # otherwise a policy could assign the facts to another owner
    try:
        value = turn_value(fields)
    except ValueError:  # 1e999 is valid JSON, but readers decode it as infinity
        raise _refused("", "contains a number that is too large") from None
    except RecursionError:
        raise _refused("", "is nested too deeply") from None
    misspelt = misspellings(fields)
    if misspelt:
        faults = [FieldFault(each.path, f"is not a field; did you mean {each.known}?") for each in misspelt]
        raise InvalidFields(faults)
    if not isinstance(fields.get("ends_session", False), bool | None):
        raise _refused("ends_session", "is not a boolean: send true or false")
    try:
        turn = read_fields(fields).turn
    except NotJson as error:
        raise _refused("", str(error)) from None
    if turn.occurred_at is not None and turn.occurred_at > latest:
        raise _refused("occurred_at", "is in the future; send the time at which it was said, or omit the field")
    if turn.time_zone is not None and turn.zone is None:
        raise _refused("time_zone", "is not a time zone; send an IANA name such as Europe/Lisbon, or omit the field")
    return ValidTurn(turn, value)


def _fields(sent: JsonValue) -> dict[str, JsonValue]:
    """Return the fields of a turn without its transport frames. Raises InvalidFields."""
    try:
        unframed = unframe_value(sent)
        check_version(unframed.type)
    except (NotJson, Poison) as error:
        raise _refused("", str(error)) from None
    if not isinstance(unframed.value, dict):
        raise _refused("", "a turn is a JSON object")
    if (refusal := refusal_of(unframed.value)) is not None:
        raise _refused("", refusal)
    return unframed.value


def _refused(field: str, why: str) -> InvalidFields:
    return InvalidFields([FieldFault((field,) if field else (), why)])


def _check(accepted: ValidTurn, caller: Caller) -> None:
    turn = accepted.turn
    if len(accepted.value) > TURN_MAX_BYTES:
        raise too_large(f"the turn has {len(accepted.value)} bytes; at most {TURN_MAX_BYTES} are allowed")
    caller.tenant(turn.tenant_id)
    caller.check_owner(Owner(scope="user", id=turn.user_id))
    if caller.users is not None and turn.scope not in (None, "user"):
        raise forbidden(f"the token {caller.name!r} is bound to users: scope must be user")
