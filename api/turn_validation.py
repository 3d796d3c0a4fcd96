"""Validation of turns that callers send; pure. The schema is the one that producers use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue, ValidationError

from ..schemas.turns import TURN_MAX_BYTES, Owner, Turn, turn_value
from .credentials import Caller
from .misspellings import Path, misspellings
from .problems import FieldError, field_errors, forbidden, invalid, invalid_field, too_large


@dataclass(frozen=True, slots=True)
class ValidTurn:
    """A turn, and the bytes that go on the topic: everything that was sent, unknown fields included, and the tenant."""

    turn: Turn
    value: bytes


def valid_turns(sent: JsonValue, *, caller: Caller, limit: int, latest: datetime) -> list[ValidTurn]:
    """Validate one turn, or a list of at most `limit` turns. No turn may be dated after `latest`. One bad turn refuses
    all of them: Problem 403, 413 or 422."""
    if not isinstance(sent, list):
        return _all([((), sent)], caller, latest)
    if not sent:
        raise invalid_field("body", "the list is empty; at least one turn is required")
    if len(sent) > limit:
        raise invalid_field("body", f"has {len(sent)} turns; at most {limit} are accepted at once")
    return _all([((place,), each) for place, each in enumerate(sent)], caller, latest)


def _all(sent: Sequence[tuple[Path, JsonValue]], caller: Caller, latest: datetime) -> list[ValidTurn]:
    taken: list[ValidTurn] = []
    errors: list[FieldError] = []
    for path, each in sent:
        try:
            taken.append(_one(each, caller, latest))
        except ValidationError as error:
            errors += field_errors(error, before=path)
        except _Refused as refused:
            errors += [_field_error((*path, *inner), why) for inner, why in refused.fields]
    if errors:
        raise invalid(errors)
    for each_taken in taken:
        _check(each_taken, caller)
    return taken


class _Refused(Exception):
    """A turn breaks a rule that is not in the schema. `fields` has (path, why) of each field that does."""

    def __init__(self, *fields: tuple[Path, str]) -> None:
        super().__init__(*fields)
        self.fields = fields


def _field_error(path: Path, why: str) -> FieldError:
    return FieldError(field=".".join(map(str, path)) or "body", detail=why)


def _one(sent: JsonValue, caller: Caller, latest: datetime) -> ValidTurn:
    if not isinstance(sent, dict):
        raise _Refused(((), "a turn is a JSON object"))
    if "tenant_id" not in sent and caller.tenants is not None:
        if len(caller.tenants) != 1:
            raise _Refused((("tenant_id",), "is required, because the token has several tenants"))
        sent = {"tenant_id": next(iter(caller.tenants)), **sent}
    if caller.users is not None and sent.get("scope") is None:
        sent = {**sent, "scope": "user"}  # otherwise a policy could give what is learnt to another owner
    try:
        value = turn_value(sent)
    except UnicodeEncodeError:
        raise _Refused(((), "contains half a surrogate pair, which is not valid text")) from None
    except ValueError:  # 1e999 is valid JSON, but readers make infinity of it
        raise _Refused(((), "contains a number that is too large")) from None
    except RecursionError:
        raise _Refused(((), "is nested too deeply")) from None
    misspelt = misspellings(sent)
    if misspelt:
        raise _Refused(*((each.path, f"is not a field; did you mean {each.known}?") for each in misspelt))
    turn = Turn.model_validate_json(value, strict=True)
    if turn.occurred_at is not None and turn.occurred_at > latest:
        raise _Refused((("occurred_at",), "lies in the future; send the time at which it was said, or leave it out"))
    if turn.time_zone is not None and turn.zone is None:
        raise _Refused((("time_zone",), "names no time zone; send an IANA name such as Europe/Lisbon, or leave it out"))
    return ValidTurn(turn, value)


def _check(accepted: ValidTurn, caller: Caller) -> None:
    turn = accepted.turn
    if len(accepted.value) > TURN_MAX_BYTES:
        raise too_large(f"the turn has {len(accepted.value)} bytes; at most {TURN_MAX_BYTES} are allowed")
    caller.tenant(turn.tenant_id)
    caller.check_owner(Owner(scope="user", id=turn.user_id))
    if caller.users is not None and turn.scope not in (None, "user"):
        raise forbidden(f"the token {caller.name!r} is bound to users: scope must be user")
