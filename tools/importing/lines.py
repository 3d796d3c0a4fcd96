"""Lines of an export, checked and converted for the target of an import. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue, ValidationError

from ...memory.erasures import ErasedUsers
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.secrets.turns import protect_messages, protect_turn
from ...schemas.base import REASON_MAX, RECORD_DEPTH_MAX, explain, why_unstorable
from ...schemas.command_kinds import FACTS_IMPORT, RESTORE_LINKS
from ...schemas.commands import SessionRef
from ...schemas.export import EXPORT_VERSION, RECORD_OF, ExportedTurn, ExportHeader, RecordKind
from ...schemas.facts import OWN_METADATA, Trust
from ...schemas.front_door.json_text import NotJson, parse_json, repair
from ...schemas.front_door.turns import read_fields
from ...schemas.imports import FactToImport, ImportFault, ImportReport
from ...schemas.restore import RESTORED_BY, RecordToRestore, TurnToRestore
from ...schemas.turns import TURN_MAX_BYTES, Owner, Turn
from .retarget import Retarget

RECORD_BYTES: Final = 900 * 1024
"""Maximum size of a record, so that its command fits into a record of the log."""
TURN_BYTES: Final = TURN_MAX_BYTES + 64 * 1024
"""Maximum size of a restored turn: a turn, and the fields of its messages."""
AS_EXPORTED: Final = "restore the line as the export has it"
AS_READ: Final = "correct it in the file, or import the rest without it"
OF_ERASED: Final = "leave it out: an export from before an erasure does not bring the user back"
FOREIGN: Final = frozenset(("imported_turn", "imported_fact"))
"""Kinds of lines that the reader of a foreign file makes. They have the number of their line in that file."""
UNKNOWN_KIND: Final = "import it with a later version of memstream"


@dataclass(frozen=True, slots=True)
class ImportLine:
    """A line of the file of an import."""

    number: int
    text: bytes


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """An import: its file, the target of its records, and its options."""

    file: str
    """Name of the file, for errors."""
    header: ExportHeader
    target: Retarget
    source: str
    """Name of the import: a hash of the header and the target."""
    dedup: bool = True
    dry_run: bool = False
    trust: Trust = "tool"
    """Trust of statements of another memory."""

    @classmethod
    def of(
        cls,
        file: str,
        header: bytes,
        *,
        tenant_id: str | None = None,
        owner: Owner | None = None,
        dedup: bool = True,
        dry_run: bool = False,
        trust: Trust = "tool",
    ) -> ImportPlan:
        """Read the first line of an export. Raises ValueError, whose message says what to do."""
        first = header_of(header)
        target = Retarget.of(first, tenant_id=tenant_id, owner=owner)
        whose = (target.tenant_id, None if target.owner is None else target.owner.key(target.tenant_id))
        name = hashlib.sha256(json.dumps([first.model_dump(mode="json"), whose]).encode()).hexdigest()[:16]
        return cls(file, first, target, name, dedup, dry_run, trust)

    def fault(self, line: int, what: str, what_to_do: str = AS_EXPORTED) -> ImportFault:
        return ImportFault(file=self.file, line=line, what=what[:REASON_MAX], what_to_do=what_to_do)


def header_of(line: bytes) -> ExportHeader:
    """Return the header of an export. Raises ValueError."""
    try:
        fields = repair(parse_json(line)).value
    except NotJson as error:
        raise ValueError(f"the first line {error}") from None
    if not isinstance(fields, dict) or fields.get("kind") != "export":
        raise ValueError("the first line is not of the kind export: name a file that `memstream export` wrote")
    try:
        header = ExportHeader.from_payload(fields.get("record"))
    except ValidationError as error:
        raise ValueError(f"the first line: {explain(error)}") from None
    if header.version > EXPORT_VERSION:
        raise ValueError(f"the export has version {header.version}, known is {EXPORT_VERSION}: {UNKNOWN_KIND}")
    return header


def is_end(line: bytes) -> bool:
    """Return whether a line is the last line of an export."""
    if b'"end"' not in line[:200]:
        return False
    try:
        fields = parse_json(line)
    except NotJson:
        return False
    return isinstance(fields, dict) and fields.get("kind") == "end"


@dataclass(slots=True)
class Tally:
    imported: int = 0
    skipped: int = 0
    errors: list[ImportFault] = field(default_factory=list)

    def report(self) -> ImportReport:
        errors = tuple(sorted(self.errors, key=lambda each: each.line))
        return ImportReport(imported=self.imported, skipped=self.skipped, errors=errors)


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """The command kind, and the owner or session of its records."""

    kind: str
    tenant_id: str
    owner: Owner | None = None
    session: SessionRef | None = None


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A record that a command carries."""

    target: CommandTarget
    record: RecordToRestore | FactToImport


LineRecord = CommandRecord | TurnToRestore | Turn


@dataclass(slots=True)
class PageRecords:
    """The records of a page: by command, and turns."""

    commands: dict[CommandTarget, list[RecordToRestore | FactToImport]] = field(default_factory=dict)
    turns: list[tuple[int, TurnToRestore]] = field(default_factory=list)
    """Turns of an export, with their lines."""
    said: list[Turn] = field(default_factory=list)
    """Turns of foreign conversations, which memory has not observed."""
    tally: Tally = field(default_factory=Tally)

    def add(self, number: int, record: LineRecord) -> None:
        match record:
            case Turn():
                self.said.append(record)
            case TurnToRestore():
                self.turns.append((number, record))
            case CommandRecord():
                self.commands.setdefault(record.target, []).append(record.record)


def read_page(plan: ImportPlan, lines: Sequence[ImportLine], secrets: SecretFilter, erased: ErasedUsers) -> PageRecords:
    """Read the lines of a page. Lines that cannot be read are errors of the tally, and so are records of users who were
    erased after the export. In a dry run, the records are only counted."""
    page = PageRecords()
    for line in lines:
        _read(plan, line, page, secrets, erased)
    return page


def _read(plan: ImportPlan, line: ImportLine, page: PageRecords, secrets: SecretFilter, erased: ErasedUsers) -> None:
    tally = page.tally
    try:
        fields = parse_json(line.text)
    except NotJson as error:
        tally.errors.append(plan.fault(line.number, f"the line {error}"))
        return
    named = fields.get("kind") if isinstance(fields, dict) else None
    kind: Any = named if isinstance(named, str) else None
    if kind in ("export", "end", "cursor"):
        return
    if kind == "left_out":  # an item of a foreign file that its reader leaves out
        tally.skipped += 1
        return
    known = kind in RESTORED_BY or kind in FOREIGN
    if not isinstance(fields, dict) or not known or not isinstance(fields.get("record"), dict):
        unknown = kind is not None and not known
        what = f"the kind {kind[:64]!r} is not known" if unknown else "the line is no record"
        tally.errors.append(plan.fault(line.number, what, UNKNOWN_KIND if unknown else AS_EXPORTED))
        return
    foreign = kind in FOREIGN
    own: Any = fields.get("line") if foreign else None
    number = own if isinstance(own, int) and own > 0 else line.number
    given: Any = fields["record"]
    advice = AS_READ if foreign else AS_EXPORTED
    if (why := why_unstorable(given, RECORD_DEPTH_MAX)) is not None:
        tally.errors.append(plan.fault(number, f"{kind}: the record {why}", advice))
        return
    try:
        record = _read_record(plan, kind, number, given, secrets)
        if _is_of_erased(plan, given, record, erased):
            tally.errors.append(plan.fault(number, f"{kind}: it names a user who was erased", OF_ERASED))
            return
    except ValidationError as error:
        tally.errors.append(plan.fault(number, f"{kind}: {explain(error)}", advice))
        return
    except ValueError as error:
        tally.errors.append(plan.fault(number, f"{kind}: {error}", advice))
        return
    if plan.dry_run:
        tally.imported += 1
    else:
        page.add(number, record)


def _read_record(
    plan: ImportPlan, kind: Any, number: int, given: Mapping[str, Any], secrets: SecretFilter
) -> LineRecord:
    """Return the record of a line, for the target. Raises ValueError."""
    if kind == "imported_turn":
        return _said(plan, given, secrets)
    if kind == "imported_fact":
        return _stated(plan, number, given)
    return _checked(plan, kind, number, given, secrets)


def _is_of_erased(plan: ImportPlan, given: JsonValue, record: LineRecord, erased: ErasedUsers) -> bool:
    """Return whether a line names a user who was erased after the export, after the turn or after the statement."""
    at: datetime | None = None
    match record:
        case CommandRecord(target, FactToImport() as fact):
            at, moved = fact.said_at, {} if target.owner is None else target.owner.to_payload()
        case CommandRecord(_, RecordToRestore() as restored):
            moved = restored.record
        case Turn():
            at, moved = record.occurred_at, record.to_payload()
        case TurnToRestore():
            moved = record.to_payload()
    named = {(plan.header.tenant_id, each) for each in _users_in(given)}
    named |= {(plan.target.tenant_id, each) for each in _users_in(moved)}
    return any(erased.ignores(tenant_id, user, (plan.header.at, at)) for tenant_id, user in named)


def _stated(plan: ImportPlan, number: int, given: Mapping[str, Any]) -> CommandRecord:
    """Return a statement for the target. Raises ValueError."""
    owner = plan.target.owner
    if owner is None:
        if not isinstance(given.get("user_id"), str):
            raise ValueError("it names no user: give the user of the import")
        owner = Owner(scope="user", id=given["user_id"])
    fields = {name: each for name, each in given.items() if each is not None}
    fact = FactToImport.from_payload({**fields, "line": number})
    if reserved := sorted(OWN_METADATA & fact.metadata.keys()):
        raise ValueError(f"metadata: the name {reserved[0]} is reserved: rename it")
    return CommandRecord(CommandTarget(FACTS_IMPORT, plan.target.tenant_id, owner=owner), fact)


def _said(plan: ImportPlan, given: Mapping[str, Any], secrets: SecretFilter) -> Turn:
    """Return a turn of a foreign conversation, for the target. Raises ValueError."""
    owner = plan.target.owner
    if owner is not None and owner.scope != "user":
        raise ValueError(f"a conversation belongs to a user, and the target is a {owner.scope}")
    user_id = given.get("user_id") if owner is None else owner.id
    turn = read_fields({**given, "tenant_id": plan.target.tenant_id, "user_id": user_id}).turn
    if turn.occurred_at is None:
        latest = max((each.created_at for each in turn.messages if each.created_at is not None), default=plan.header.at)
        turn = turn.model_copy(update={"occurred_at": latest})
    turn = protect_turn(turn, secrets).turn
    if (size := len(turn.to_bytes())) > TURN_MAX_BYTES:
        raise ValueError(f"the turn has {size} bytes; at most {TURN_MAX_BYTES} are taken")
    return turn


def _checked(
    plan: ImportPlan, kind: RecordKind, number: int, given: Any, secrets: SecretFilter
) -> CommandRecord | TurnToRestore:
    """Return the record for the target, without its vector. Raises ValueError."""
    record = RECORD_OF[kind].from_payload(given)
    payload = plan.target.record(kind, record.model_dump(mode="json"))
    payload.pop("embedding", None)
    if isinstance(record, ExportedTurn):
        messages: Any = payload["messages"]
        first = messages[0] if messages else {}
        turn = TurnToRestore.from_payload(
            {name: first.get(name) for name in ("tenant_id", "user_id", "session_id", "turn_id")}
            | {"exported_at": plan.header.at, "messages": messages}
        )
        turn = turn.model_copy(update={"messages": protect_messages(turn.messages, secrets)})
        if turn.tenant_id != plan.target.tenant_id:
            raise ValueError("the record belongs to another tenant than the export")
        if (size := len(turn.to_bytes())) > TURN_BYTES:
            raise ValueError(f"the turn has {size} bytes; at most {TURN_BYTES} are restored")
        return turn
    if (size := len(json.dumps(payload))) > RECORD_BYTES:
        raise ValueError(f"the record has {size} bytes; at most {RECORD_BYTES} are restored")
    return CommandRecord(_target(kind, payload), RecordToRestore(line=number, kind=kind, record=payload))


def _users_in(value: JsonValue) -> Iterator[str]:
    """Yield the ids of all users that a record names: fields `user_id`, owners, and keys of owners. Raises ValueError
    for a malformed key."""
    if isinstance(value, list):
        for each in value:
            yield from _users_in(each)
    elif isinstance(value, dict):
        if value.get("scope") == "user" and isinstance(value.get("id"), str):
            yield str(value["id"])
        for name, each in value.items():
            if name == "user_id" and isinstance(each, str):
                yield each
            elif name == "owner_key" and isinstance(each, str):
                owner = Owner.of_key(each)
                if owner.scope == "user":
                    yield owner.id
            else:
                yield from _users_in(each)


def _target(kind: RecordKind, record: Mapping[str, Any]) -> CommandTarget:
    """Return the command for a record."""
    tenant_id = str(record["tenant_id"])
    if RESTORED_BY[kind] == "observer":
        session = SessionRef(user_id=record["user_id"], session_id=record["session_id"])
        return CommandTarget("restore.session", tenant_id, session=session)
    if kind == "links":
        return CommandTarget(RESTORE_LINKS, tenant_id, owner=Owner.of_key(record["owner_key"]))
    if kind == "group":
        return CommandTarget("restore.owner", tenant_id, owner=Owner(scope="group", id=record["group_id"]))
    name = "restore.owner" if RESTORED_BY[kind] == "reflector" else "restore.upkeep"
    return CommandTarget(name, tenant_id, owner=Owner.model_validate(record["owner"]))
