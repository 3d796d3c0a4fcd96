"""Conversion of one turn from a producer to the contract `Turn`, for Kafka, HTTP, the client and the commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from pydantic import JsonValue, ValidationError

from ..cloudevents import MAJOR_VERSION, major_of_type
from ..errors import Poison
from ..times import read_time
from ..turns import MESSAGES_MAX, NO_CONTENT, TURN_MAX_BYTES, UNREAD_CONTENT, Role, Turn, TurnMessage
from .faults import FieldFault, InvalidFields, faults_of
from .framing import Unframed, refusal_of, unframe
from .json_text import NotJson, repair
from .messages import is_refused, read_messages

IDS: Final = frozenset({"tenant_id", "user_id", "session_id", "turn_id", "agent_id", "org_id", "group_id"})
"""Id fields. Their texts are not repaired, because a repair could make two different ids equal. A turn with an id that
needs a repair is refused."""
_OPTIONAL: Final = frozenset(name for name, field in Turn.model_fields.items() if not field.is_required())
_STAND_IN: Final = (TurnMessage(role="user", content=""),)


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A turn of the contract, and the number of repairs in its texts."""

    turn: Turn
    repaired_characters: int = 0
    """Number of incomplete characters that were replaced, and of NUL and byte order marks that were removed."""


def read_turn(value: bytes, *, max_bytes: int = TURN_MAX_BYTES) -> ReadTurn:
    """Read the value of a record. Raise Poison: `oversized`, `undecodable`, `unsupported_version` or `invalid`. The
    message names the problem and the remedy, without the content."""
    if len(value) > max_bytes:
        raise Poison("oversized", f"the turn has {len(value)} bytes; at most {max_bytes} are allowed")
    try:
        unframed = unframe(value)
        check_version(unframed.type)
        return read_unframed(unframed)
    except NotJson as error:
        raise Poison("undecodable", f"the value {error}") from None
    except InvalidFields as error:
        raise Poison("invalid", str(error)) from None


def check_version(event_type: str | None) -> None:
    """Check the version in the type of a CloudEvent. Types of other systems are ignored. Raise Poison for an unknown
    version."""
    major = None if event_type is None else major_of_type(event_type)
    if major is not None and major != MAJOR_VERSION:
        raise Poison("unsupported_version", f"major version {major} is not known here; known is {MAJOR_VERSION}")


def read_unframed(unframed: Unframed) -> ReadTurn:
    """Read a turn whose frames were removed. Raise InvalidFields, and NotJson for a value that is nested too deeply."""
    within = f" (read from {', in '.join(reversed(unframed.frames))})" if unframed.frames else ""
    value = unframed.value
    refusal = refusal_of(value)
    if refusal is not None or not isinstance(value, dict):
        raise InvalidFields([FieldFault((), refusal or "is no JSON object; send a turn")], within=within)
    try:
        return read_fields(value)
    except InvalidFields as error:
        raise InvalidFields(error.faults, within=within) from None


def read_fields(sent: dict[str, JsonValue]) -> ReadTurn:
    """Read the fields of a turn. Raise InvalidFields, and NotJson for a value that is nested too deeply."""
    repaired = repair(sent, keep=IDS)
    assert isinstance(repaired.value, dict)  # a repaired object is an object
    given: dict[str, object] = {
        name: each for name, each in repaired.value.items() if each is not None or name not in _OPTIONAL
    }
    messages, faults = _messages(repaired.value)
    if messages is not None:
        given["messages"] = messages
    if "occurred_at" in given:
        try:
            given["occurred_at"] = read_time(repaired.value["occurred_at"])
        except ValueError as error:
            faults.append(FieldFault(("occurred_at",), str(error)))
            del given["occurred_at"]
    try:
        turn = Turn.model_validate(given)
    except ValidationError as error:
        raise InvalidFields([*faults, *faults_of(error)]) from None
    if faults:
        raise InvalidFields(faults)
    return ReadTurn(turn, repaired.characters)


def _messages(fields: dict[str, JsonValue]) -> tuple[tuple[TurnMessage, ...] | None, list[FieldFault]]:
    """Return the messages, and their faults. In case of a fault, a placeholder replaces the messages, so that the other
    fields are checked too. None: there is no such field."""
    if "messages" not in fields:
        return None, []
    sent = fields["messages"]
    if sent is None:
        return (), []
    if isinstance(sent, dict):
        sent = [sent]
    if not isinstance(sent, list):
        return _STAND_IN, [FieldFault(("messages",), "is no list: send a list of messages")]
    if len(sent) > MESSAGES_MAX:
        why = f"has {len(sent)} messages: send at most {MESSAGES_MAX} messages a turn, and the rest as further turns"
        return _STAND_IN, [FieldFault(("messages",), why)]
    messages, faults = read_messages(sent)
    if messages and not fields.get("ends_session") and all(map(is_refused, messages)):
        return _STAND_IN, [*faults, *(_refusal(place, each) for place, each in enumerate(messages))]
    return (_STAND_IN if faults else messages), list(faults)


def _refusal(place: int, message: TurnMessage) -> FieldFault:
    """Return the fault of a message, for a turn without any readable message."""
    if message.unread == NO_CONTENT:
        return FieldFault(("messages", place, "content"), "is missing: send a text or a list of parts")
    if message.unread == UNREAD_CONTENT:
        return FieldFault(("messages", place, "content"), "is neither a text nor a list of parts")
    return FieldFault(("messages", place, "role"), f"{message.unread} is not known: send {', '.join(get_args(Role))}")
