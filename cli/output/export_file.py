"""Output of an export in each format, page by page. A killed export is continued. An existing file stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...client.formats.notes_export import NotAnExport, write_notes
from ...client.formats.sqlite_export import NotThisExport, SqliteExport
from ...recall.export.encoding import closing, further, opening
from ...schemas.export import ExportFormat, ExportLine, FileFormat, NotesFormat
from ..errors import usage
from . import export_progress
from .part_file import PartFile, check_target, forget_finished, give_name, part_path


class ExportFile(Protocol):
    """An output that is being written."""

    @property
    def part(self) -> Path:
        """The file that exists until the output is complete."""
        ...

    @property
    def cursor(self) -> str | None:
        """The cursor after what an earlier run has written. None: nothing is written."""
        ...

    @property
    def is_kept(self) -> bool:
        """True when a later run can continue the part."""
        ...

    def begin(self, header: ExportLine, cursor: str) -> None: ...

    def write(self, lines: Sequence[ExportLine], cursor: str) -> None: ...

    def finish(self, end: ExportLine) -> None: ...


def opened(target: Path, form: FileFormat, *, selection: str) -> AbstractContextManager[ExportFile]:
    """Open the output. Raises CommandFailed (exit 2) if it exists, or if its part belongs to something else."""
    if form == "ndjson" or form == "json":
        return _text(target, form, selection)
    return _database(target, form, selection)


@dataclass(frozen=True, slots=True)
class _Text:
    """A file of NDJSON or JSON."""

    file: PartFile
    form: ExportFormat

    @property
    def part(self) -> Path:
        return self.file.part

    @property
    def cursor(self) -> str | None:
        return self.file.cursor

    @property
    def is_kept(self) -> bool:
        return self.file.is_kept

    def begin(self, header: ExportLine, cursor: str) -> None:
        self.file.write(opening(self.form, header), cursor)

    def write(self, lines: Sequence[ExportLine], cursor: str) -> None:
        self.file.write(further(self.form, lines), cursor)

    def finish(self, end: ExportLine) -> None:
        self.file.finish(closing(self.form, end))


@contextmanager
def _text(target: Path, form: ExportFormat, selection: str) -> Iterator[ExportFile]:
    with PartFile.opened(target, selection=selection) as file:
        yield _Text(file, form)


@dataclass(slots=True)
class _Database:
    """A SQLite database, or a folder of notes that is made from it."""

    target: Path
    form: FileFormat
    database: SqliteExport
    finished: bool = field(default=False)

    @property
    def part(self) -> Path:
        return self.database.path

    @property
    def cursor(self) -> str | None:
        return self.database.cursor

    @property
    def is_kept(self) -> bool:
        return self.database.durable and not self.finished

    def begin(self, header: ExportLine, cursor: str) -> None:
        self.database.write(opening("ndjson", header), cursor)

    def write(self, lines: Sequence[ExportLine], cursor: str) -> None:
        self.database.write(further("ndjson", lines), cursor)

    def finish(self, end: ExportLine) -> None:
        self.database.end(closing("ndjson", end))
        if self.form == "markdown" or self.form == "obsidian":
            self._finish_notes(self.form)
        else:
            self.database.finish()
            give_name(self.part, self.target)
        self.finished = True

    def _finish_notes(self, form: NotesFormat) -> None:
        folder = self.target.with_name(f"{self.target.name}.part.notes")
        with export_progress.notes_shown() as show:
            write_notes(self.database.connection, folder, form, show)
            os.sync()  # one call for all notes: a sync of each of 100 000 files takes minutes
        self.database.close()
        check_target(self.target)
        self.part.unlink()  # first: a complete folder without its name is written again, never mixed with another one
        give_name(folder, self.target)


@contextmanager
def _database(target: Path, form: FileFormat, selection: str) -> Iterator[ExportFile]:
    check_target(target)
    forget_finished(part_path(target))
    try:
        with SqliteExport.opened(part_path(target), selection=selection) as database:
            file = _Database(target, form, database)
            try:
                yield file
            finally:
                database.close()
                if not file.finished and not file.is_kept:
                    database.path.unlink(missing_ok=True)
    except (NotThisExport, NotAnExport) as error:
        raise usage(str(error)) from None
