"""Rows of the stages' tables: encoding and format version.

A reader ignores fields that a later minor version added. A row that older versions must not touch has a higher
`row_version`. An older stage would understand only a part of the row, or write the row back without the unknown part,
and lose a decision.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...schemas.base import explain
from ...schemas.errors import LaterVersion
from ...streams.engine.decision import Rows
from ...streams.engine.parking import without_mark

FIRST_VERSION = 1
"""Version of a row without a `row_version`."""
EPOCH_VERSION = 3
"""Version of three kinds of row: a row with epochs in its turn numbers, an owner's row with turn numbers, and the
`IndexMark` row of an index that lists all sessions."""
ROW_VERSION = 3
"""Latest supported version. Version 2: outcomes without vectors."""
PARSED_KEPT: Final = 256
"""Number of parsed rows in the cache. One event reads its row two to four times, and the next event of the key reads
the same row."""
PARSED_BYTES: Final = 64 * 1024
"""Size in bytes above which a row is not cached."""


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
        """Read the row of `key` from the table. Return the defaults when there is no row."""
        raw = rows.row(key, partition=partition)
        return cls() if raw is None else cls.read(raw)

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Parse a stored row; the row of a parked key is accepted too. Rows are immutable, so parsed rows are cached.

        Raises LaterVersion when this version does not understand the row.
        """
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
        f"this version cannot read a row of this stage's table ({why}). Has a later version of memstream run here? "
        "Start that version again. Nothing was changed or committed"
    )
