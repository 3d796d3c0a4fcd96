"""What a caller sends → turns as they will lie on the topic; pure. The schema is the producers' own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from ..schemas.turns import TURN_MAX_BYTES, Owner, Turn, turn_value
from .credentials import Caller
from .problems import FieldError, field_errors, forbidden, invalid, too_large, wrong

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ValidTurn:
    """A turn, and the bytes that go on the topic: what was sent, unknown fields too, and its tenant."""

    turn: Turn
    value: bytes


def valid_turns(sent: JsonValue, *, caller: Caller, limit: int) -> list[ValidTurn]:
    """One turn, or a list of at most `limit`: all of them, or a Problem (403, 413, 422) and none."""
    if not isinstance(sent, list):
        return _all([((), sent)], caller)
    if not sent:
        raise wrong("body", "the list is empty: at least one turn is needed")
    if len(sent) > limit:
        raise wrong("body", f"has {len(sent)} turns; at most {limit} are taken at once")
    return _all([((place,), each) for place, each in enumerate(sent)], caller)


def _all(sent: Sequence[tuple[Path, JsonValue]], caller: Caller) -> list[ValidTurn]:
    taken: list[ValidTurn] = []
    errors: list[FieldError] = []
    for path, each in sent:
        try:
            taken.append(_one(each, caller))
        except ValidationError as error:
            errors += field_errors(error, before=path)
        except _Refused as refused:
            errors.append(FieldError(field=".".join(map(str, (*path, *refused.path))) or "body", detail=refused.why))
    if errors:
        raise invalid(errors)
    for each_taken in taken:
        _check(each_taken, caller)
    return taken


class _Refused(Exception):
    """A rule that the schema does not have."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


def _one(sent: JsonValue, caller: Caller) -> ValidTurn:
    if not isinstance(sent, dict):
        raise _Refused((), "a turn is a JSON object")
    if "tenant_id" not in sent and caller.tenants is not None:
        if len(caller.tenants) != 1:
            raise _Refused(("tenant_id",), "is needed: the token has several tenants")
        sent = {"tenant_id": next(iter(caller.tenants)), **sent}
    if caller.users is not None and sent.get("scope") is None:
        sent = {**sent, "scope": "user"}  # else a policy could make what is learnt somebody else's
    try:
        value = turn_value(sent)
    except UnicodeEncodeError:
        raise _Refused((), "contains half a surrogate pair, which is no text") from None
    except ValueError:  # 1e999 is JSON by its grammar, and infinite to who reads it
        raise _Refused((), "contains a number that is too large to be one") from None
    except RecursionError:
        raise _Refused((), "is nested too deeply") from None
    return ValidTurn(Turn.model_validate_json(value, strict=True), value)


def _check(accepted: ValidTurn, caller: Caller) -> None:
    turn = accepted.turn
    if len(accepted.value) > TURN_MAX_BYTES:
        raise too_large(f"the turn has {len(accepted.value)} bytes; at most {TURN_MAX_BYTES} are allowed")
    caller.tenant(turn.tenant_id)
    caller.check_owner(Owner(scope="user", id=turn.user_id))
    if caller.users is not None and turn.scope not in (None, "user"):
        raise forbidden(f"the token {caller.name!r} is of users: what is learnt must be the user's")
