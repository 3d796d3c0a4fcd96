"""Body of a note: a record for people, below the front matter. An import does not read it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...schemas import ids
from ...schemas.export import NotesFormat
from .note_text import TITLE_MAX, as_markdown, file_name, link, quoted, tags_line

FOLDERS: Final[Mapping[str, str]] = {
    "fact": "facts",
    "episode": "episodes",
    "digest": "digests",
    "procedure": "procedures",
    "block": "blocks",
    "task": "tasks",
    "group": "groups",
    "working": "working",
    "turn": "turns",
}
"""The folder of each kind that has notes."""
LISTED_MAX: Final = 100
"""Maximum number of links, and of changes, in a note."""
Record = Mapping[str, Any]


def subject_path(owner: str, subject: str) -> str:
    return f"subjects/{file_name(subject, 'subject', owner, subject)}"


def session_path(owner: str, session: str) -> str:
    return f"sessions/{file_name(session, 'session', owner, session)}"


@dataclass(frozen=True, slots=True)
class NoteNames:
    """The names of all notes, and what the database has about their records."""

    db: sqlite3.Connection
    form: NotesFormat

    def named(self, name: str, *kinds: str) -> tuple[str, str] | None:
        """Return path and title of the note of a record."""
        rows = self.db.execute("SELECT kind, path, title FROM temp.names WHERE id = ?", (name,))
        return next(((path, title) for kind, path, title in rows if not kinds or kind in kinds), None)

    def link(self, name: str | None, *kinds: str) -> str | None:
        found = None if name is None else self.named(name, *kinds)
        return None if found is None else link(self.form, *found)

    def linked(self, name: str) -> list[str]:
        """Return links to the records that were recalled together with a record, the strongest first."""
        select = (
            "SELECT CASE one WHEN ? THEN other ELSE one END FROM links WHERE one = ? OR other = ? "
            "ORDER BY weight DESC LIMIT ?"
        )
        rows = self.db.execute(select, (name, name, name, LISTED_MAX)).fetchall()
        return [each for (other,) in rows if (each := self.link(other)) is not None]

    def changes(self, fact_id: str) -> list[str]:
        select = "SELECT at, action, reason FROM changes WHERE fact_id = ? ORDER BY version, at LIMIT ?"
        rows = self.db.execute(select, (fact_id, LISTED_MAX)).fetchall()
        return [f"{_day(at)}: {action}" + (f": {as_markdown(reason)}" if reason else "") for at, action, reason in rows]

    def archived(self, episode_id: str) -> str | None:
        """Return the original words of an episode that was reduced to a gist."""
        row = self.db.execute("SELECT record FROM records WHERE id = ?", (ids.archive_id(episode_id),)).fetchone()
        return None if row is None else str(json.loads(row[0])["content"])


def note_body(names: NoteNames, kind: str, record: Record) -> str:
    """Return the body of a note, below its heading."""
    return "\n\n".join(part for part in _BODIES[kind](names, record) if part)


def _fact(names: NoteNames, record: Record) -> Iterator[str]:
    yield _rest_of(record["content"])
    yield _fields(
        ("State", record["state"]),
        ("Subject", _subject(names, record)),
        ("Valid", _valid(record)),
        ("Recorded", _time(record["recorded_at"])),
        ("Confidence", f"{record['confidence']:.2f}, {record['trust']}"),
        ("Sensitivity", record["sensitivity"]),
        ("Replaces", names.link(record.get("supersedes"), "fact")),
        ("Replaced by", names.link(record.get("superseded_by"), "fact")),
        ("Tags", tags_line(names.form, record.get("tags") or ())),
    )
    evidence = [_evidence(names, record, each) for each in record.get("evidence") or ()]
    yield from _section("Evidence", evidence, between="\n\n")
    yield from _listed("Episodes", _sources(names, record))
    yield from _listed("Recalled together", names.linked(record["fact_id"]))
    yield from _listed("History", names.changes(record["fact_id"]))


def _episode(names: NoteNames, record: Record) -> Iterator[str]:
    yield _rest_of(record["content"])
    yield _fields(
        ("Occurred", _time(record["occurred_at"])),
        ("Subject", _subject(names, record)),
        ("Session", _session(names, record)),
        ("Turn", names.link(_turn_id(record), "turn")),
        ("Importance", f"{record['importance']:.2f}"),
        ("Sensitivity", record["sensitivity"]),
        ("Reduced to a gist", _time(record.get("archived_at"))),
        ("Removed", _time(record.get("deleted_at"))),
        ("Merged into", names.link(record.get("merged_into"), "episode")),
        ("Tags", tags_line(names.form, record.get("tags") or ())),
    )
    yield from _section("Evidence", [quoted(record["evidence"])] if record.get("evidence") else [])
    words = names.archived(record["episode_id"])
    yield from _section("Original words", [] if words is None else [quoted(words)])
    yield from _listed("Recalled together", names.linked(record["episode_id"]))


def _digest(names: NoteNames, record: Record) -> Iterator[str]:
    yield quoted(record["text"])
    yield _fields(("Written", _time(record["at"])), ("Sensitivity", record["sensitivity"]))


def _procedure(names: NoteNames, record: Record) -> Iterator[str]:
    yield _fields(
        ("When", as_markdown(record["trigger"])),
        ("Version", str(record["version"])),
        ("Written", _time(record["at"])),
        ("Removed", _time(record.get("removed_at"))),
    )
    yield from _section("Steps", [f"{n}. {as_markdown(each)}" for n, each in enumerate(record["steps"], 1)])
    yield from _listed("Episodes", _sources(names, record))


def _block(names: NoteNames, record: Record) -> Iterator[str]:
    yield as_markdown(record.get("description") or "")
    yield quoted(record["value"])
    yield _fields(("Updated", _time(record["updated_at"])), ("Sensitivity", record["sensitivity"]))


def _task(names: NoteNames, record: Record) -> Iterator[str]:
    yield _rest_of(record["content"])
    yield _fields(
        ("State", record["state"]),
        ("Subject", _subject(names, record)),
        ("Due", _time(record.get("due_at"))),
        ("Condition", as_markdown(record.get("condition") or "")),
        ("Added", _time(record["created_at"])),
        ("Tags", tags_line(names.form, record.get("tags") or ())),
    )


def _group(names: NoteNames, record: Record) -> Iterator[str]:
    yield as_markdown(record.get("description") or "")
    yield from _listed(
        "Members", [as_markdown(f"{each['scope']} {each['id']}") for each in record.get("members") or ()]
    )
    shared = [names.link(each, "fact") for each in record.get("fact_ids") or ()]
    shared += [names.link(each, "procedure") for each in record.get("procedure_ids") or ()]
    yield from _listed("Shared", [each for each in shared if each])


def _working(names: NoteNames, record: Record) -> Iterator[str]:
    yield _rest_of(record["content"])
    yield _fields(
        ("Session", _session(names, record)),
        ("Updated", _time(record["updated_at"])),
        ("Importance", f"{record['importance']:.2f}"),
    )


def _turn(names: NoteNames, record: Record) -> Iterator[str]:
    yield _fields(("Session", _session(names, record)), ("Occurred", _time(record["messages"][0]["occurred_at"])))
    for each in record["messages"]:
        said_by = each["role"] if each.get("name") is None else f"{each['role']} ({each['name']})"
        yield f"**{as_markdown(said_by)}**\n\n{quoted(each['content'])}"


_BODIES: Final[Mapping[str, Callable[[NoteNames, Record], Iterator[str]]]] = {
    "fact": _fact,
    "episode": _episode,
    "digest": _digest,
    "procedure": _procedure,
    "block": _block,
    "task": _task,
    "group": _group,
    "working": _working,
    "turn": _turn,
}


# ------------------------------------------------------------------------------------------------ parts
def _rest_of(content: str) -> str:
    """Return words that the heading may have cut off."""
    return quoted(content) if len(content) > TITLE_MAX or "\n" in content else ""


def _fields(*fields: tuple[str, str | None]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in fields if value)


def _section(heading: str, parts: Sequence[str], *, between: str = "\n") -> Iterator[str]:
    if parts:
        yield f"## {heading}"
        yield between.join(parts)


def _listed(heading: str, items: Sequence[str]) -> Iterator[str]:
    yield from _section(heading, [f"- {each}" for each in items])


def _sources(names: NoteNames, record: Record) -> list[str]:
    """Return links to the episodes from which a record was found."""
    links = (names.link(each, "episode") for each in record.get("source_episode_ids") or ())
    return [each for each in links if each]


def _evidence(names: NoteNames, fact: Record, record: Record) -> str:
    owner = fact["owner"]
    user = record.get("user_id") or (owner["id"] if owner["scope"] == "user" else "")
    session = ids.session_key(fact["tenant_id"], user, record["session_id"])
    turn = names.link(ids.message_id(session, record["turn_id"], 0), "turn")
    said = f"{_time(record['occurred_at'])}, {turn or 'session ' + as_markdown(record['session_id'])}"
    return f"{said}\n\n{quoted(record['quote'])}" if record.get("quote") else said


def _owner(record: Record) -> str:
    owner = record.get("owner") or {"scope": "user", "id": record["user_id"]}
    return f"{owner['scope']} {owner['id']}"


def _subject(names: NoteNames, record: Record) -> str:
    return link(names.form, subject_path(_owner(record), record["subject"]), record["subject"])


def _session(names: NoteNames, record: Record) -> str:
    """Return a link to the session's note, or its id if the export has no turns of it."""
    of_user, session = f"user {record['user_id']}", record["session_id"]
    select = "SELECT 1 FROM temp.names WHERE owner = ? AND session = ? LIMIT 1"
    if names.db.execute(select, (of_user, session)).fetchone() is None:
        return as_markdown(session)
    return link(names.form, session_path(of_user, session), session)


def _turn_id(record: Record) -> str:
    session = ids.session_key(record["tenant_id"], record["user_id"], record["session_id"])
    return ids.message_id(session, record["turn_id"], 0)


def _valid(record: Record) -> str:
    until = _time(record.get("valid_to"))
    return f"from {_time(record['valid_from'])}" + (f" to {until}" if until else "")


def _time(text: str | None) -> str | None:
    return None if text is None else f"{text[:10]} {text[11:16]}"


def _day(text: str) -> str:
    return text[:10]
