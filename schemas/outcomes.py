"""The outcome of an event: everything that a decision wants done, complete, so that it can be applied again.

A model does not answer twice the same, so a stage decides once, keeps the outcome in its table and applies it from
there. Every effect in it is a no-op the second time (pipeline.md, "Guarantee").
"""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Sequence
from itertools import compress
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

from .cloudevents import CloudEvent


class _AsItIs:
    """JSON that this process made, or wrote into its own table: validating each value of it again costs more than all
    the rest of an outcome."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.dict_schema()


Payload = Annotated[dict[str, JsonValue], _AsItIs]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")


class Source(_Part):
    """The event an outcome belongs to. `id` is its turn id or command id."""

    topic: str
    partition: int
    offset: int
    id: str


class OutRecord(_Part):
    """A record to send. Values are bytes: a record that comes twice is equal in every byte."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int | None = None
    """Milliseconds since 1970; None: the time of the send."""

    @classmethod
    def of(cls, topic: str, key: str, contract: BaseModel, event: CloudEvent) -> OutRecord:
        return cls(topic=topic, key=key.encode(), value=contract.model_dump_json().encode(), headers=event.headers())

    @property
    def size(self) -> int:
        """Bytes of key, value and headers, without what a log adds."""
        headers = sum(len(name.encode()) + len(content) for name, content in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


def pack_vector(vector: Sequence[float]) -> str:
    """float32, little endian, base64: 4/3 of 4 bytes a dimension."""
    return base64.b64encode(_little(array("f", vector)).tobytes()).decode()


def unpack_vector(packed: str) -> list[float]:
    """Zeros are one object: most of a hashed text's numbers are."""
    values = array("f")
    values.frombytes(base64.b64decode(packed))
    values = _little(values)
    vector = [0.0] * len(values)
    for place in compress(range(len(values)), values):
        vector[place] = values[place]
    return vector


def _little(values: array[float]) -> array[float]:
    """In the byte order of the wire, or back."""
    if sys.byteorder == "big":
        values.byteswap()
    return values


class OutPoint(_Part):
    """A record for the vector store. `dense` and `window` are packed (pack_vector); `text` is what lexical search
    indexes."""

    id: str
    payload: Payload
    dense: str | None = None
    text: str | None = None
    window: str | None = None


class OutWindow(_Part):
    """What a record that stands is found by from now on; None stays as it is."""

    id: str
    text: str | None
    window: str | None


class InsertPoints(_Part):
    """Write where absent."""

    op: Literal["insert"] = "insert"
    collection: str
    points: tuple[OutPoint, ...]


class PutPoints(_Part):
    """Write whole, whatever stands there (projections of one writer)."""

    op: Literal["put"] = "put"
    collection: str
    points: tuple[OutPoint, ...]


class SetFields(_Part):
    """Write single fields of existing points."""

    op: Literal["set"] = "set"
    collection: str
    tenant_id: str
    ids: tuple[str, ...]
    fields: Payload


class NewWindows(_Part):
    """Index existing points anew; see `OutWindow`."""

    op: Literal["window"] = "window"
    collection: str
    tenant_id: str
    points: tuple[OutWindow, ...]


class DeletePoints(_Part):
    op: Literal["delete"] = "delete"
    collection: str
    tenant_id: str
    ids: tuple[str, ...]


class SwapPoint(_Part):
    """Compare and set on `version` (None: absent). `cause` stands among the payload's `applied`."""

    op: Literal["swap"] = "swap"
    collection: str
    point: OutPoint
    expected_version: int | None
    cause: str


Write = Annotated[
    InsertPoints | PutPoints | SetFields | NewWindows | DeletePoints | SwapPoint, Field(discriminator="op")
]


class Outcome(_Part):
    """What one decision wants done. It lies inside the row that it belongs to (streams/engine/handler.py writes it).

    `before` are the keys of rows that were written before that row and have to be on the broker too; `after` are
    small rows written after it; `cleanup` rows to delete once every effect is done. `state_ids` are the facts whose
    state is published on memory.facts as it stands at the send.
    """

    source: Source
    before: tuple[str, ...] = ()
    after: dict[str, bytes] = Field(default_factory=dict)
    cleanup: tuple[str, ...] = ()
    writes: tuple[Write, ...] = ()
    records: tuple[OutRecord, ...] = ()
    tenant_id: str | None = None
    state_ids: tuple[str, ...] = ()
