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
        Poison: `undecodable` (null, not JSON or not UTF-8), `oversized`, `unsupported_version` (`ce_type` has another
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
    """Decode the value of a turn in any of the forms that producers send. Raises Poison as `decode` does."""
    return read_turn(_value_of(record, max_bytes), max_bytes=max_bytes)


def _value_of(record: Record, max_bytes: int) -> bytes:
    """Return the record's value after checks of presence, size and version. Raises Poison."""
    if record.value is None:
        raise Poison("undecodable", "the value is null")
    if len(record.value) > max_bytes:
        raise Poison("oversized", f"the value has {len(record.value)} bytes; at most {max_bytes} are allowed")
    major = major_version(record.headers)
    if major is not None and major != MAJOR_VERSION:
        raise Poison("unsupported_version", f"major version {major} is not known here; known is {MAJOR_VERSION}")
    return record.value


def _seen_in(value: bytes) -> str | None:
    """Return a description of a value that is not JSON.

    None: the value is JSON, and only unpaired surrogates or its depth are wrong.
    """
    try:
        parse_json(value)
    except NotJson as error:
        return f"the value {error}"
    return None


def lane_key(record: Record) -> str:
    """Return the lane of a record: its key; without a key, the session key from the value, else "".

    A record with a key is not parsed here, because parsing a long value takes time and the record is only queued now.
    """
    if record.key:
        return record.key.decode("latin-1")
    fields = fields_of(record.value)
    names = [fields.get(name) for name in ("tenant_id", "user_id", "session_id")]
    if not all(isinstance(name, str) and 0 < len(name) <= ID_MAX and is_clean(name) for name in names):
        return ""
    try:
        return join(*map(str, names))
    except UnicodeEncodeError:  # an unpaired surrogate: the record is refused when it is decoded
        return ""


def is_keyed_by(record: Record, key: str) -> bool:
    """Return whether the record's lane is the lane of this key. If not, another lane may write the key's rows."""
    return lane_key(record) == key


def tenant_of_lane(lane: str) -> str:
    """Return the tenant of a lane (percent-encoded), which is the first part of the lane."""
    return lane.partition("/")[0]


def fields_of(value: bytes | None) -> dict[str, object]:
    """Return the fields of a value that is a JSON object; a frame around the object is removed (framing.py).

    The result is empty for any other value, and for a value above `TENANT_PROBE_BYTES`.
    """
    if value is None or len(value) > TENANT_PROBE_BYTES:
        return {}
    fields = peek(value)
    return {**fields} if isinstance(fields, dict) else {}


def tenant_of(value: bytes | None) -> str | None:
    """Return the tenant of a refused record, or None if it cannot be read."""
    tenant = fields_of(value).get("tenant_id")
    return tenant if isinstance(tenant, str) and 0 < len(tenant) <= ID_MAX and is_clean(tenant) else None
