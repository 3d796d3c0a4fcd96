"""Statements that an import reads from the file of another memory, and the result of an import."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from .base import Contract, Instant, Reason, Tags
from .edits.common import EditMetadata, GivenContent, GivenSubject
from .facts import Trust
from .observations import Category

ERRORS_KEPT: Final = 1_000
"""Maximum number of errors in a report. Further errors are counted."""
Count = Annotated[int, Field(ge=0)]


FACTS_MAX: Final = 20
"""Maximum number of statements in one command."""


class FactToImport(Contract):
    """A statement of another memory, in the third person."""

    line: Annotated[int, Field(ge=1)]
    """Number of its line in the file. The evidence and the result name it."""
    content: GivenContent
    subject: GivenSubject = "user"
    category: Category | None = None
    """None: the category of the statement's predicate; without a known predicate: knowledge."""
    said_at: Instant | None = None
    """Time of the statement. None: the moment of the export."""
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    tags: Tags = ()
    metadata: EditMetadata = Field(default_factory=dict)


class FactsImport(Contract):
    """`args` of facts.import: statements of a file of another memory. They are compared with the known facts, like
    statements of turns."""

    file: Annotated[str, StringConstraints(max_length=255)]
    exported_at: Instant
    """The moment of the export. If the user was erased later, the command has no effect."""
    trust: Trust = "tool"
    facts: Annotated[tuple[FactToImport, ...], Field(min_length=1, max_length=FACTS_MAX)]
    dedup: bool = True
    """False: a fact that the owner has gets the statement as further evidence."""


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
