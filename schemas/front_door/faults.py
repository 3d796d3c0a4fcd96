"""Faults of a turn, listed by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

Path = tuple[str | int, ...]
SHOWN_MAX: Final = 5
"""Maximum number of faults in one line."""
_TYPES: Final = frozenset({"str", "tuple[ContentPart, ...]"})
"""Type names that pydantic adds to the path of an error in a message's content. They are not fields."""


@dataclass(frozen=True, slots=True)
class FieldFault:
    """A fault of one field, without the field's content."""

    path: Path
    why: str


class InvalidFields(ValueError):
    """A turn that breaks its contract."""

    def __init__(self, faults: Sequence[FieldFault], *, within: str = "") -> None:
        self.faults = tuple(faults)
        lines = [f"{'.'.join(map(str, each.path)) or 'value'}: {each.why}" for each in self.faults[:SHOWN_MAX]]
        more = len(self.faults) - len(lines)
        super().__init__("; ".join(lines) + (f"; and {more} more" if more > 0 else "") + within)


def faults_of(error: ValidationError, *, before: Path = ()) -> list[FieldFault]:
    """List the errors of pydantic by field, without the values."""
    return [
        FieldFault(
            tuple(part for part in (*before, *item["loc"]) if part not in _TYPES),
            item["msg"].removeprefix("Value error, "),
        )
        for item in error.errors(include_input=False, include_url=False, include_context=False)
    ]
