"""Frames around a turn: the wrappers that serializers, connectors and gateways add to a record's JSON object.

`unframe` removes known frames. For other frames it raises an error that names the frame and the producer setting to
change.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from .json_text import BOM, NotJson, parse_json, parse_text

LAYERS_MAX: Final = 4
"""Maximum number of nested frames that are removed."""
_WRAPPERS_MAX: Final = 3
"""Maximum number of objects and lists around a turn when an error message locates it."""
TURN_FIELDS: Final = frozenset({"tenant_id", "user_id", "session_id", "turn_id", "messages"})

_GLUE: Final = 18
"""Number of bytes in the header of AWS Glue: version byte (3), compression, and id of the schema version."""
_UNCOMPRESSED: Final = 0
_PLAIN: Final = "set value.serializer to KafkaJsonSchemaSerializer, or to a serializer of plain JSON"
_WIDE: Final = re.compile(rb"\0[\s{\[\"]\0|\0{3}[\s{\[\"]\0")
"""Start of JSON in UTF-16 or UTF-32, big endian. The frame of a schema registry begins with the same bytes only when
its schema id is above 150 million."""


@dataclass(frozen=True, slots=True)
class Unframed:
    """A JSON value without its frames."""

    value: JsonValue
    frames: tuple[str, ...] = ()
    """Names of the removed frames, outermost first."""
    type: str | None = None
    """The `type` of a CloudEvent in structured mode."""

    def within(self, why: str) -> str:
        """Return the reason of a refusal, with the removed frames."""
        return f"in {', in '.join(reversed(self.frames))}: {why}" if self.frames else why


def unframe(raw: bytes) -> Unframed:
    """Parse a record's value and remove its frames. Raise NotJson, whose message names the detected format."""
    frame, rest = _schema_frame(raw)
    if frame is None:
        return _within(Unframed(parse_json(raw)))
    try:
        value = parse_json(rest)
    except NotJson as error:
        raise NotJson(f"begins with {frame}, and what follows {error}. If it is Avro or Protobuf, {_PLAIN}") from None
    return _within(Unframed(value, (frame,)))


def unframe_value(value: JsonValue) -> Unframed:
    """Remove the frames of a parsed JSON value. Raise NotJson."""
    return _within(Unframed(value))


def peek(raw: bytes) -> JsonValue:
    """Return the JSON of a value that may be refused, including UTF-16 and UTF-32; None when it is not JSON."""
    try:
        return unframe(raw).value
    except NotJson:
        pass
    try:
        found: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found


def refusal_of(value: JsonValue) -> str | None:
    """Return why a value without frames cannot be a turn. None: it may be a turn."""
    if isinstance(value, str):
        base64_of_json = value.startswith(("eyJ", "ey\\"))
        return "is base64: send the JSON itself" if base64_of_json else "is a JSON text, and not an object: send a turn"
    if isinstance(value, list):
        if any(isinstance(each, dict) and "specversion" in each for each in value):
            return "is a list: a batch of CloudEvents; send one event a record"
        return "is a list; send one turn a record"
    if not isinstance(value, dict):
        return "is no JSON object; send a turn"
    if TURN_FIELDS & value.keys():
        return None
    if "op" in value and ("after" in value or "before" in value):
        return "is a change event of Debezium: set transforms=unwrap with ExtractNewRecordState on the connector"
    if "specversion" in value and not {"data", "data_base64"} & value.keys():
        return "is a CloudEvent without data: send the turn in data"
    place = _place_of_turn(value)
    return None if place is None else f"has the turn in its field {place}: send the turn itself as the value"


def _place_of_turn(value: JsonValue, *, depth: int = 0) -> str | None:
    """Return the path of the field that contains a turn, as an object or as a JSON text. Only the outer levels of the
    value are searched. None: they contain no turn."""
    if depth == _WRAPPERS_MAX or not isinstance(value, dict | list):
        return None
    named = value.items() if isinstance(value, dict) else [(str(place), each) for place, each in enumerate(value[:1])]
    for name, each in named:
        if isinstance(each, str) and each.lstrip().startswith("{") and _turn_in_text(each):
            return f"{_short(name)}, as a JSON text"
        if isinstance(each, dict) and len(TURN_FIELDS & each.keys()) > 1:
            return _short(name)
        inner = _place_of_turn(each, depth=depth + 1)
        if inner is not None:
            return f"{_short(name)}.{inner}"
    return None


def _turn_in_text(text: str) -> bool:
    return sum(f'"{name}"' in text for name in TURN_FIELDS) > 1


def _short(name: str) -> str:
    return "".join(each for each in name[:40] if each.isprintable())


# ------------------------------------------------------------------------------------------------ frames of bytes
def _schema_frame(raw: bytes) -> tuple[str | None, bytes]:
    """Return the frame of a schema registry before the JSON, and the remaining bytes."""
    if raw[:1] == b"\0" and len(raw) > 5 and not _WIDE.match(raw):
        schema = int.from_bytes(raw[1:5])
        for size in (5, 9):  # Apicurio's own ids have eight bytes
            if _is_json(raw[size:]):
                return f"the frame of a schema registry (schema {schema})", raw[size:]
        raise NotJson(
            f"begins with the frame of a schema registry (byte 0, schema {schema}), and no JSON follows, so it is Avro "
            f"or Protobuf: {_PLAIN}"
        )
    if raw[:1] == b"\x03" and len(raw) > _GLUE and raw[1] in (_UNCOMPRESSED, 5):
        if raw[1] == _UNCOMPRESSED and _is_json(raw[_GLUE:]):
            return "the frame of AWS Glue Schema Registry", raw[_GLUE:]
        raise NotJson(
            "begins with the frame of AWS Glue Schema Registry, and no JSON follows: set dataFormat to JSON and "
            "compressionType to NONE, or value.serializer to a serializer of plain JSON"
        )
    return None, raw


def _is_json(raw: bytes) -> bool:
    return raw.removeprefix(BOM).lstrip()[:1] in (b"{", b"[", b'"')


# ------------------------------------------------------------------------------------------------ frames of JSON
def _within(found: Unframed) -> Unframed:
    for _ in range(LAYERS_MAX):
        inner = _next(found)
        if inner is None:
            break
        found = inner
    return found


def _next(found: Unframed) -> Unframed | None:
    value = found.value
    if isinstance(value, str):
        text = value.lstrip("\ufeff \t\r\n")
        if not text.startswith(("{", "[", '"')):
            return None
        return Unframed(_parsed(text, found), (*found.frames, "a JSON text within JSON"), found.type)
    if not isinstance(value, dict) or TURN_FIELDS & value.keys():
        return None
    if isinstance(value.get("specversion"), str) and ("data" in value or "data_base64" in value):
        kind = value.get("type")
        named = kind if isinstance(kind, str) else found.type
        return Unframed(_data_of(value, found), (*found.frames, "a CloudEvent in structured mode"), named)
    if value.keys() == {"schema", "payload"}:
        return Unframed(value["payload"], (*found.frames, "an envelope of Kafka Connect"), found.type)
    return None


def _parsed(text: str, found: Unframed) -> JsonValue:
    try:
        return parse_text(text)
    except NotJson as error:
        raise NotJson(found.within(f"is a JSON text that itself {error}")) from None


def _data_of(event: dict[str, JsonValue], found: Unframed) -> JsonValue:
    encoded = event.get("data_base64")
    if not isinstance(encoded, str):
        return event.get("data")
    try:
        return parse_json(base64.b64decode(encoded, validate=True))
    except (binascii.Error, NotJson):
        raise NotJson(found.within("is a CloudEvent whose data_base64 is no JSON: send JSON in data")) from None
