"""Result of an import: numbers of records, and the lines that were not imported."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from .base import Contract, Reason

ERRORS_KEPT: Final = 1_000
"""Maximum number of errors in a report. Further errors are counted."""
Count = Annotated[int, Field(ge=0)]


class ImportFault(Contract):
    """A line that was not imported."""

    file: Annotated[str, StringConstraints(max_length=4_096)]
    line: Annotated[int, Field(ge=0)]
    """Number of the line, from 1. 0: the whole file."""
    what: Reason
    what_to_do: Reason


class ImportReport(Contract):
    """Result of an import."""

    imported: Count = 0
    skipped: Count = 0
    """Records that memory already had."""
    errors: tuple[ImportFault, ...] = ()
    """At most `ERRORS_KEPT` errors."""
    more_errors: Count = 0
    """Number of further errors."""

    def plus(self, other: ImportReport) -> ImportReport:
        errors = tuple(sorted((*self.errors, *other.errors), key=lambda each: each.line))
        return ImportReport(
            imported=self.imported + other.imported,
            skipped=self.skipped + other.skipped,
            errors=errors[:ERRORS_KEPT],
            more_errors=self.more_errors + other.more_errors + max(0, len(errors) - ERRORS_KEPT),
        )
