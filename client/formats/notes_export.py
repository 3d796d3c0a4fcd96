"""Writer of an export as a folder of Markdown notes: one note for each memory, and index notes.

The notes are made from the database of the format `sqlite`, which has the links between records. So the memory that the
writer needs does not grow with the export, and a killed export continues.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from ...schemas.export import NotesFormat
from .note_bodies import FOLDERS, NoteNames, note_body, session_path, subject_path
from .note_text import as_markdown, file_name, front_matter, link, title_of

DATA: Final = "data"
"""The folder with the kinds that have no notes: one NDJSON file for each kind."""
MARK: Final = "export-is-not-complete"
"""A file in the folder while it is written."""
SHOWN_EACH: Final = 100
_TITLES: Final = {
    "fact": "content", "episode": "content", "digest": "text", "procedure": "name", "block": "name", "task": "content",
    "group": "group_id", "working": "content", "turn": "content",
}  # fmt: skip
_IN_FRONT: Final = (
    "subject", "state", "category", "sensitivity", "valid_from", "valid_to", "occurred_at", "due_at", "archived_at",
    "deleted_at", "removed_at", "session_id",
)  # fmt: skip
"""Fields of a record that its note shows in the front matter, besides the whole record."""
_NAMES: Final = """
DROP TABLE IF EXISTS temp.names;
CREATE TEMP TABLE names (
  id TEXT, kind TEXT, path TEXT, title TEXT, owner TEXT, subject TEXT, state TEXT, session TEXT, at TEXT
);
CREATE INDEX temp.names_by_id ON names (id);
CREATE INDEX temp.names_by_subject ON names (owner, subject);
CREATE INDEX temp.names_by_session ON names (owner, session, at);
"""
_SUBJECTS: Final = "SELECT DISTINCT owner, subject FROM temp.names WHERE subject IS NOT NULL ORDER BY owner, subject"
_SESSIONS: Final = "SELECT DISTINCT owner, session FROM temp.names WHERE session IS NOT NULL ORDER BY owner, session"
_OF_SUBJECT: Final = """
SELECT CASE kind WHEN 'fact' THEN state || ' facts' ELSE kind || 's' END, path, title FROM temp.names
WHERE owner = ? AND subject = ? ORDER BY kind != 'fact', kind, state != 'active', state, at, path
"""
_OF_SESSION: Final = """
SELECT substr(at, 1, 10), path, title FROM temp.names WHERE owner = ? AND session = ? ORDER BY at, path
"""
_INDEXES: Final = (("subjects", _SUBJECTS, subject_path), ("sessions", _SESSIONS, session_path))
Show = Callable[[int, int], None]
"""Function that shows the progress: the number of written notes, and of all notes."""


class NotAnExport(Exception):
    """A folder that no earlier run has written."""


def write_notes(db: sqlite3.Connection, folder: Path, form: NotesFormat, show: Show) -> None:
    """Write all notes of an export into a new folder. A folder that a killed run has left is replaced. Raises
    NotAnExport if something else has its name."""
    mark = folder / MARK
    if os.path.lexists(folder):
        if folder.is_symlink() or not mark.is_file():
            raise NotAnExport(f"{folder} is in the way; move it away")
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    mark.touch(0o600)
    writer = _Writer(db, folder, form, show)
    writer.write_data()
    writer.name_notes()
    writer.write_records()
    writer.write_indexes()
    mark.unlink()


@dataclass(frozen=True, slots=True)
class _Writer:
    db: sqlite3.Connection
    folder: Path
    form: NotesFormat
    show: Show

    def write_data(self) -> None:
        (self.folder / DATA).mkdir(mode=0o700)
        for (kind,) in self.db.execute("SELECT DISTINCT kind FROM records").fetchall():
            if kind in FOLDERS:
                continue
            rows = self.db.execute("SELECT record FROM records WHERE kind = ? ORDER BY position", (kind,))
            with self._file(f"{DATA}/{kind}.ndjson") as file:
                for (record,) in rows:
                    file.write(f'{{"kind":{json.dumps(kind)},"record":{record}}}\n'.encode())

    def name_notes(self) -> None:
        """Find the name of each note, so that notes can link to each other."""
        for statement in _NAMES.split(";\n"):
            self.db.execute(statement)
        for kind, name, record in self._records():
            said = record["messages"][0] if kind == "turn" else record
            title = title_of(said[_TITLES[kind]])
            dated = f"{said['occurred_at'][:16].replace('T', ' ')} {title}" if kind == "turn" else title
            owner = record.get("owner") or {"scope": "user", "id": record.get("user_id", "")}
            session = record["session_id"] if kind == "turn" else None
            subject = record.get("subject") if kind in ("fact", "episode", "task") else None
            row = (
                name, kind, f"{FOLDERS[kind]}/{file_name(dated, kind, name)}", title, f"{owner['scope']} {owner['id']}",
                subject, record.get("state"), session, said.get("occurred_at") or said.get("valid_from"),
            )  # fmt: skip
            self.db.execute("INSERT INTO temp.names VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def write_records(self) -> None:
        [(total,)] = self.db.execute("SELECT count(*) FROM temp.names").fetchall()
        names = NoteNames(self.db, self.form)
        for folder in FOLDERS.values():
            (self.folder / folder).mkdir(mode=0o700)
        for number, (kind, name, record) in enumerate(self._records(), 1):
            path, title = names.named(name, kind) or ("", "")
            fields = {"kind": kind, "title": title, **{each: record.get(each) for each in _IN_FRONT}}
            if self.form == "obsidian":
                fields["aliases"] = [title]
            text = f"{front_matter(fields, record)}\n\n# {as_markdown(title)}\n\n{note_body(names, kind, record)}\n"
            with self._file(f"{path}.md") as file:
                file.write(text.encode())
            if number % SHOWN_EACH == 0 or number == total:
                self.show(number, total)

    def write_indexes(self) -> None:
        """Write a note for each subject and each session, and `index.md`."""
        for (folder, select, path_of), notes in zip(_INDEXES, (_OF_SUBJECT, _OF_SESSION), strict=True):
            (self.folder / folder).mkdir(mode=0o700)
            for owner, name in self.db.execute(select):
                with self._file(f"{path_of(owner, name)}.md") as file:
                    file.write(f"# {as_markdown(f'{name} ({owner})')}\n".encode())
                    self._list(file, self.db.execute(notes, (owner, name)))
        with self._file("index.md") as file:
            file.write(self._opening().encode())
            for heading, select, path_of in _INDEXES:
                names = self.db.execute(select)
                rows = ((heading, path_of(owner, name), f"{name} ({owner})") for owner, name in names)
                self._list(file, rows, at_top=True)

    def _list(self, file: BinaryIO, rows: Iterable[tuple[str, str, str]], *, at_top: bool = False) -> None:
        """Write links to notes, under the headings that come with them."""
        last: str | None = None
        for heading, path, title in rows:
            if heading != last:
                file.write(f"\n## {as_markdown(heading).capitalize()}\n\n".encode())
                last = heading
            file.write(f"- {link(self.form, path, title, at_top=at_top)}\n".encode())

    def _opening(self) -> str:
        export, end = (
            json.loads(self.db.execute("SELECT record FROM records WHERE kind = ?", (kind,)).fetchone()[0])
            for kind in ("export", "end")
        )
        owner = export.get("owner")
        whose = f"{owner['scope']} {owner['id']}, {export['tenant_id']}" if owner else export["tenant_id"]
        counts = [f"- {as_markdown(kind)}: {count}" for kind, count in end["counts"].items() if count]
        counts += [f"- {as_markdown(kind)}, left out: {count}" for kind, count in end["left_out"].items() if count]
        return "\n".join(
            (
                f"# Memory of {as_markdown(whose)}",
                "",
                f"As of {export['at']}.",
                "",
                *counts,
                "",
                "The front matter of each note has the whole record. `memstream import` reads the front matter and the "
                f"folder `{DATA}`, and nothing else.",
                "",
            )
        )

    def _records(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        marks = ", ".join("?" * len(FOLDERS))
        select = f"SELECT kind, id, record FROM records WHERE kind IN ({marks}) ORDER BY position"
        for kind, name, record in self.db.execute(select, tuple(FOLDERS)):
            yield kind, name, json.loads(record)

    @contextmanager
    def _file(self, path: str) -> Iterator[BinaryIO]:
        """Create a file with its owner's rights alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self.folder / path, flags, 0o600), "wb") as file:
            yield file
