"""Rows of the stages' tables: how they are encoded, and which version of the format they have.

A reader ignores fields that a later minor version adds. A row that an older version must not touch has a higher
`row_version`: a stage that acted on half of a row, or wrote it back without the part it does not understand, would
lose a decision.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...schemas.base import explain
from ...schemas.errors import LaterVersion
from ...streams.engine.handler import Rows
from ...streams.engine.parking import without_mark

FIRST_VERSION = 1
"""The version of a row that names none."""
EPOCH_VERSION = 3
"""The version of a row whose turn numbers have an epoch, of an owner's row that has turn numbers, and of the mark of an
index that has all sessions."""
ROW_VERSION = 3
"""The latest version that is understood: 2 are outcomes whose vectors are made again."""
PARSED_KEPT: Final = 256
"""Rows that are remembered as parsed: an event reads its row two to four times, and the next one of its key again."""
PARSED_BYTES: Final = 64 * 1024
"""A larger row is parsed each time."""


class RowPart(BaseModel):
    """Base of a value inside a row."""

    model_config = ConfigDict(
        hide_input_in_errors=True, frozen=True, extra="ignore", ser_json_bytes="base64", val_json_bytes="base64"
    )


class StoredRow(RowPart):
    """Base of every row."""

    row_version: Annotated[int, Field(ge=1)] = FIRST_VERSION

    @classmethod
    def load(cls, rows: Rows, key: str, *, partition: int | None = None) -> Self:
        """Read the row of `key` from the table. A key that has no row gets the defaults."""
        raw = rows.row(key, partition=partition)
        return cls() if raw is None else cls.read(raw)

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Parse a stored row, that of a parked key too. Raises LaterVersion for one that this version does not
        understand. A row that was read lately is not parsed again: it cannot be changed."""
        row: Self = _parsed(cls, raw) if len(raw) <= PARSED_BYTES else cls._parse(raw)
        return row

    @classmethod
    def _parse(cls, raw: bytes) -> Self:
        try:
            row = cls.model_validate_json(without_mark(raw))
        except ValidationError as error:
            raise _later(explain(error)) from None
        if row.row_version > ROW_VERSION:
            raise _later(f"it has version {row.row_version}, known is {ROW_VERSION}")
        return row

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()


@lru_cache(PARSED_KEPT)
def _parsed(kind: type[StoredRow], raw: bytes) -> Any:
    return kind._parse(raw)


def _later(why: str) -> LaterVersion:
    return LaterVersion(
        f"a row of this stage's table is not understood ({why}): has a later version of memstream run here? Start "
        "that one again. Nothing was changed, nothing committed"
    )
