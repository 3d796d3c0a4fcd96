"""Exports of each format, written from lines and read back, without a deployment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memstream.client.formats.notes_export import write_notes
from memstream.client.formats.sqlite_export import SqliteExport
from memstream.client.import_file import FileLine, opened_source
from memstream.client.import_formats import format_of
from memstream.schemas.export import FileFormat, NotesFormat
from memstream.schemas.imports import ImportFault

FORMATS: Sequence[FileFormat] = ("sqlite", "markdown", "obsidian")


def written(path: Path, form: FileFormat, lines: Sequence[str]) -> Path:
    """Write lines of an export as a database or a folder."""
    database = path if form == "sqlite" else path.with_name(f"{path.name}.part")
    with SqliteExport.opened(database, selection="all") as file:
        file.write(("\n".join(lines[:-1]) + "\n").encode(), "1")
        file.end(lines[-1].encode())
        if form != "sqlite":
            notes: NotesFormat = "obsidian" if form == "obsidian" else "markdown"
            write_notes(file.connection, path, notes, lambda done, total: None)
        file.finish()
    return path


def read_export(path: Path, *, end: int = 0, number: int = 0) -> list[FileLine | ImportFault]:
    with opened_source(path, name=path.name) as source:
        return list(format_of(source).read(source, end, number))


def records_of(lines: Sequence[str | FileLine | ImportFault]) -> list[tuple[str, Any]]:
    """Return kind and record of each line. A fault fails."""
    parsed = [json.loads(each if isinstance(each, str) else each.text) for each in lines if not_fault(each)]
    return [(each["kind"], each["record"]) for each in parsed]


def not_fault(line: str | FileLine | ImportFault) -> bool:
    assert not isinstance(line, ImportFault), line
    return True
