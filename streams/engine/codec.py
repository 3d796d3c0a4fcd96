"""Decoding of raw records into contracts. Bytes that cannot be decoded raise `Poison` and never reach a stage."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from ...schemas.base import Contract, explain, is_clean
from ...schemas.cloudevents import MAJOR_VERSION, major_version
from ...schemas.errors import Poison
from ...schemas.front_door.framing import peek
from ...schemas.front_door.json_text import NotJson, parse_json
from ...schemas.front_door.turns import ReadTurn, read_turn
from ...schemas.ids import join
from ..log.port import Record

C = TypeVar("C", bound=Contract)
RECORD_MAX_BYTES = 3 * 1024 * 1024
TENANT_PROBE_BYTES = 1024 * 1024
ID_MAX = 128


def decode(record: Record, contract: type[C], *, max_bytes: int = RECORD_MAX_BYTES) -> C:
    """Decode the value of a record as `contract`.

    Raises:
        Poison: `undecodable` (null, not JSON or not UTF-8), `oversized`, `unsupported_version` (`ce_type` names another
            major version) or `invalid` (the message names the fields, without their content).
    """
    value = _value_of(record, max_bytes)
    try:
        return contract.read(value)
    except ValidationError as error:
        kinds = {item["type"] for item in error.errors(include_input=False, include_url=False)}
        if "json_invalid" not in kinds:
            raise Poison("invalid", explain(error)) from None
        raise Poison("undecodable", _seen_in(value) or explain(error)) from None


def decode_turn_value(record: Record, *, max_bytes: int) -> ReadTurn:
    """Decode the value of a turn, in any form in which producers send it. Raises Poison as `decode` does."""
    return read_turn(_value_of(record, max_bytes), max_bytes=max_bytes)


def _value_of(record: Record, max_bytes: int) -> bytes:
    """Return a value that may be decoded. Raises Poison."""
    if record.value is None:
        raise Poison("undecodable", "the value is null")
    if len(record.value) > max_bytes:
        raise Poison("oversized", f"the value has {len(record.value)} bytes; at most {max_bytes} are allowed")
    major = major_version(record.headers)
    if major is not None and major != MAJOR_VERSION:
        raise Poison("unsupported_version", f"major version {major} is not known here; known is {MAJOR_VERSION}")
    return record.value


def _seen_in(value: bytes) -> str | None:
    """Return what a value is that is no JSON. None: JSON, but for its half characters or its depth."""
    try:
        parse_json(value)
    except NotJson as error:
        return f"the value {error}"
    return None


def lane_key(record: Record) -> str:
    """Return the lane of a record: its key. Without a key it is the session that the value names, else empty.

    The key alone decides, because everything else grows with the text, and the lanes have not chosen the record yet.
    """
    if record.key:
        return record.key.decode("latin-1")
    fields = fields_of(record.value)
    names = [fields.get(name) for name in ("tenant_id", "user_id", "session_id")]
    if not all(isinstance(name, str) and 0 < len(name) <= ID_MAX and is_clean(name) for name in names):
        return ""
    try:
        return join(*map(str, names))
    except UnicodeEncodeError:  # half of an emoji: the record is refused when it is decoded
        return ""


def is_keyed_by(record: Record, key: str) -> bool:
    """Tell whether the record is in the lane of this key. Another lane may write the rows of the key."""
    return lane_key(record) == key


def tenant_of_lane(lane: str) -> str:
    """Return whose share of the places an event takes: the first part of its lane, percent-encoded."""
    return lane.partition("/")[0]


def fields_of(value: bytes | None) -> dict[str, object]:
    """Parse a value as a JSON object without its frames; empty where it is none, or larger than a record that a stage
    takes."""
    if value is None or len(value) > TENANT_PROBE_BYTES:
        return {}
    fields = peek(value)
    return {**fields} if isinstance(fields, dict) else {}


def tenant_of(value: bytes | None) -> str | None:
    """Return the tenant of a refused record, None where it cannot be read."""
    tenant = fields_of(value).get("tenant_id")
    return tenant if isinstance(tenant, str) and 0 < len(tenant) <= ID_MAX and is_clean(tenant) else None
