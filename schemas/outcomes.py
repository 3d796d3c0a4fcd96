"""The outcome of an event: every effect of a decision, complete, so that it can be applied again.

A model does not give the same answer twice. Therefore a stage decides once, stores the outcome in its table and applies
it from there. Applying an effect a second time changes nothing (docs/explanation/state.md).
"""

from __future__ import annotations

import base64
import operator
import sys
from array import array
from collections.abc import Sequence
from itertools import compress
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue, PlainSerializer, PlainValidator
from pydantic_core import CoreSchema, core_schema

from .cloudevents import CloudEvent


class _UnvalidatedJson:
    """JSON that this process created, or that the stage wrote into its own table. It is not validated, because its
    validation would take longer than the rest of an outcome."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.dict_schema()


Payload = Annotated[dict[str, JsonValue], _UnvalidatedJson]


class _Part(BaseModel):
    model_config = ConfigDict(
        hide_input_in_errors=True, frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )


class Source(_Part):
    """The event of an outcome. `id` is its turn id or command id."""

    topic: str
    partition: int
    offset: int
    id: str


class OutRecord(_Part):
    """A record to send. Its value is stored as bytes, so that a repeated record is identical."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int | None = None
    """Milliseconds since 1970; None: the time of sending."""

    @classmethod
    def of(cls, topic: str, key: str, contract: BaseModel, event: CloudEvent) -> OutRecord:
        return cls(topic=topic, key=key.encode(), value=contract.model_dump_json().encode(), headers=event.headers())

    @property
    def size(self) -> int:
        """Number of bytes of key, value and headers, without the overhead of the log."""
        headers = sum(len(name.encode()) + len(content) for name, content in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


def pack_vector(vector: Sequence[float]) -> str:
    """Pack a vector: float32, little endian, base64 (5.3 bytes per dimension)."""
    return base64.b64encode(_little(array("f", vector)).tobytes()).decode()


def unpack_vector(packed: str) -> list[float]:
    """Unpack a vector. All zeros share one float object, because most numbers of a hashed text are zero."""
    values = array("f")
    values.frombytes(base64.b64decode(packed))
    values = _little(values)
    vector = [0.0] * len(values)
    for place in compress(range(len(values)), values):
        vector[place] = values[place]
    return vector


def _little(values: array[float]) -> array[float]:
    """Convert between the byte order of this machine and little endian."""
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _vector(given: Sequence[float] | str) -> Sequence[float]:
    return unpack_vector(given) if isinstance(given, str) else given


PackedVector = Annotated[Sequence[float], PlainValidator(_vector), PlainSerializer(pack_vector, return_type=str)]
"""A vector. In Python, it is a sequence of floats; in JSON, it is packed."""


class OutPoint(_Part):
    """A record for the vector store. Lexical search indexes `text`, and `nearby` with less weight."""

    id: str
    payload: Payload
    dense: PackedVector | None = None
    text: str | None = None
    nearby: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """The ends of neighbouring messages."""
    window: PackedVector | None = None
    reembed: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True when `dense` is left out of the row. When the outcome is applied again, `dense` is computed from `text`."""

    def without_vector(self) -> OutPoint:
        if self.dense is None or self.text is None:
            return self
        return self.model_copy(update={"dense": None, "reembed": True})


class OutWindow(_Part):
    """New search data of an existing record. None leaves a value unchanged."""

    id: str
    text: str | None
    nearby: Annotated[str, Field(exclude_if=operator.not_)] = ""
    window: PackedVector | None


class InsertPoints(_Part):
    """Insert points that are absent."""

    op: Literal["insert"] = "insert"
    collection: str
    points: tuple[OutPoint, ...]


class PutPoints(_Part):
    """Insert or replace whole points. Used where only one writer changes a point."""

    op: Literal["put"] = "put"
    collection: str
    points: tuple[OutPoint, ...]


class SetFields(_Part):
    """Set single fields of existing points."""

    op: Literal["set"] = "set"
    collection: str
    tenant_id: str
    ids: tuple[str, ...]
    fields: Payload


class NewWindows(_Part):
    """Index existing points again; see `OutWindow`."""

    op: Literal["window"] = "window"
    collection: str
    tenant_id: str
    points: tuple[OutWindow, ...]


class DeletePoints(_Part):
    op: Literal["delete"] = "delete"
    collection: str
    tenant_id: str
    ids: tuple[str, ...]


class ApplyLabels(_Part):
    """Apply existing labels of turns to the stored messages of these turns."""

    op: Literal["label"] = "label"
    tenant_id: str
    ids: tuple[str, ...]
    """Ids of the labels."""


class SwapPoint(_Part):
    """Compare and set on `version` (None: absent). The payload's `applied` contains `cause`."""

    op: Literal["swap"] = "swap"
    collection: str
    point: OutPoint
    expected_version: int | None
    cause: str


Write = Annotated[
    InsertPoints | PutPoints | SetFields | NewWindows | DeletePoints | ApplyLabels | SwapPoint,
    Field(discriminator="op"),
]


class Outcome(_Part):
    """Every effect of one decision. It is stored in the row of its key (streams/engine/handler.py writes it).

    - `before`: keys of rows that are written before the outcome's own row. The broker must have them, too.
    - `after`: small rows that are written after the outcome's own row.
    - `cleanup`: rows to delete after all effects are applied.
    - `state_ids`: facts whose state at the time of sending is published on memory.facts.
    """

    source: Source
    before: tuple[str, ...] = ()
    after: dict[str, bytes] = Field(default_factory=dict)
    cleanup: tuple[str, ...] = ()
    writes: tuple[Write, ...] = ()
    records: tuple[OutRecord, ...] = ()
    tenant_id: str | None = None
    state_ids: tuple[str, ...] = ()

    def without_vectors(self) -> Outcome:
        """Return the outcome in the form for a row: without vectors that can be computed from their texts."""
        writes = tuple(_without_vectors(write) for write in self.writes)
        changed = any(after is not before for after, before in zip(writes, self.writes, strict=True))
        return self.model_copy(update={"writes": writes}) if changed else self


def _without_vectors(write: Write) -> Write:
    if isinstance(write, SwapPoint):
        point = write.point.without_vector()
        return write if point is write.point else write.model_copy(update={"point": point})
    if isinstance(write, InsertPoints | PutPoints):
        points = tuple(point.without_vector() for point in write.points)
        changed = any(after is not before for after, before in zip(points, write.points, strict=True))
        return write.model_copy(update={"points": points}) if changed else write
    return write
