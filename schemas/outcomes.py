"""The outcome of an event: every effect of a decision, complete, so that it can be applied again.

A model does not give the same answer twice. So a stage decides once, keeps the outcome in its table and applies it from
there. Applying an effect a second time changes nothing (docs/explanation/state.md).
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


class _AsItIs:
    """JSON that this process made or wrote into its own table. It is not validated: that would cost more than the rest
    of an outcome."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.dict_schema()


Payload = Annotated[dict[str, JsonValue], _AsItIs]


class _Part(BaseModel):
    model_config = ConfigDict(
        hide_input_in_errors=True, frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )


class Source(_Part):
    """The event that an outcome belongs to. `id` is its turn id or command id."""

    topic: str
    partition: int
    offset: int
    id: str


class OutRecord(_Part):
    """A record to send. Its value is bytes, so that a record that is sent twice is equal in every byte."""

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
        """Bytes of key, value and headers, without the overhead of the log."""
        headers = sum(len(name.encode()) + len(content) for name, content in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


def pack_vector(vector: Sequence[float]) -> str:
    """Pack a vector: float32, little endian, base64. That is 4/3 of 4 bytes per dimension."""
    return base64.b64encode(_little(array("f", vector)).tobytes()).decode()


def unpack_vector(packed: str) -> list[float]:
    """Unpack a vector. All zeros are one object: most numbers of a hashed text are zero."""
    values = array("f")
    values.frombytes(base64.b64decode(packed))
    values = _little(values)
    vector = [0.0] * len(values)
    for place in compress(range(len(values)), values):
        vector[place] = values[place]
    return vector


def _little(values: array[float]) -> array[float]:
    """Convert to the byte order of the wire, or back."""
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _vector(given: Sequence[float] | str) -> Sequence[float]:
    return unpack_vector(given) if isinstance(given, str) else given


PackedVector = Annotated[Sequence[float], PlainValidator(_vector), PlainSerializer(pack_vector, return_type=str)]
"""A vector as it is; only as JSON is it packed."""


class OutPoint(_Part):
    """A record for the vector store. Lexical search indexes `text`."""

    id: str
    payload: Payload
    dense: PackedVector | None = None
    text: str | None = None
    window: PackedVector | None = None
    reembed: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """`dense` is left out of a row, and made again from `text` when the outcome is applied again."""

    def without_vector(self) -> OutPoint:
        if self.dense is None or self.text is None:
            return self
        return self.model_copy(update={"dense": None, "reembed": True})


class OutWindow(_Part):
    """New search data of an existing record; None leaves a value as it is."""

    id: str
    text: str | None
    window: PackedVector | None


class InsertPoints(_Part):
    """Write points where they are absent."""

    op: Literal["insert"] = "insert"
    collection: str
    points: tuple[OutPoint, ...]


class PutPoints(_Part):
    """Write whole points and replace existing ones (projections with one writer)."""

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
    """Apply the labels of turns that exist to their messages that are stored."""

    op: Literal["label"] = "label"
    tenant_id: str
    ids: tuple[str, ...]
    """Of the labels."""


class SwapPoint(_Part):
    """Compare and set on `version` (None: absent). `cause` is among the payload's `applied`."""

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
    """Every effect of one decision. It is stored in the row that it belongs to (streams/engine/handler.py writes it).

    - `before`: keys of rows that were written before that row and must be on the broker too.
    - `after`: small rows written after it.
    - `cleanup`: rows to delete once every effect is done.
    - `state_ids`: facts whose state is published on memory.facts as it is at the time of sending.
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
        """Return the outcome as a row keeps it: without vectors that can be made again from their texts."""
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
