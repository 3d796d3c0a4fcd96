"""Export over HTTP to a file or a folder of any format. It gets its name when it is complete."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO, Final, get_args

from ..schemas.export import FileFormat, NotesFormat
from .formats.final_name import check_free, give_final_name
from .formats.notes_export import write_notes
from .formats.sqlite_export import SqliteExport

BATCH_LINES: Final = 100


async def export_to_file(lines: AsyncGenerator[bytes], path: Path, form: FileFormat) -> None:
    """Write the lines of an export. Raises FileExistsError, and the errors of `lines`; then there is no file."""
    check_free(path)
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent) as folder:
        part = Path(folder) / "part"
        if form in ("ndjson", "json"):
            await _write_text(lines, part, form)
        else:
            await _write_database(lines, part)
        if form in get_args(NotesFormat):
            notes = part.with_name("notes")
            await asyncio.to_thread(_write_notes, part, notes, "obsidian" if form == "obsidian" else "markdown")
            part = notes
        give_final_name(part, path)


async def _write_text(lines: AsyncGenerator[bytes], part: Path, form: FileFormat) -> None:
    with _new_file(part) as file:
        before = b"[\n"
        async with aclosing(lines):
            async for line in lines:
                file.write(line if form == "ndjson" else before + line.rstrip(b"\n"))
                before = b",\n"
        file.write(b"" if form == "ndjson" else b"\n]\n")


def _new_file(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def _write_database(lines: AsyncGenerator[bytes], part: Path) -> None:
    """Write lines in batches, in a thread: a batch takes some milliseconds."""
    batch: list[bytes] = []
    with SqliteExport.opened(part, selection="") as file:
        async with aclosing(lines):
            async for line in lines:
                if len(batch) >= BATCH_LINES:
                    await asyncio.to_thread(file.write, b"".join(batch), "")
                    batch = []
                batch.append(line)
        *rest, end = batch
        await asyncio.to_thread(file.write, b"".join(rest), "")
        await asyncio.to_thread(file.end, end)
        file.finish()


def _write_notes(part: Path, folder: Path, form: NotesFormat) -> None:
    with SqliteExport.complete(part) as db:
        write_notes(db, folder, form, lambda done, total: None)
