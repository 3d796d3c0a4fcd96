"""What all rows of the stages' tables have in common: their bytes, and the version that they are written in.

Fields that a later minor version adds are read over. What an older version must not touch has another `row_version`:
to act on half of a row, or to write it back without what was not understood, would lose what a stage has decided.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...schemas.base import explain
from ...schemas.errors import LaterVersion

ROW_VERSION = 1
"""Rows that name none are of it."""


class RowPart(BaseModel):
    """Base of what lies inside a row."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_bytes="base64", val_json_bytes="base64")


class StoredRow(RowPart):
    """Base of every row."""

    row_version: Annotated[int, Field(ge=1)] = ROW_VERSION

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Raises LaterVersion for a row that this version does not understand."""
        try:
            row = cls.model_validate_json(raw)
        except ValidationError as error:
            raise _later(explain(error)) from None
        if row.row_version > ROW_VERSION:
            raise _later(f"it has version {row.row_version}, known is {ROW_VERSION}")
        return row

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()


def _later(why: str) -> LaterVersion:
    return LaterVersion(
        f"a row of this stage's table is not understood ({why}): has a later version of memstream run here? Start "
        "that one again. Nothing was changed, nothing committed"
    )
