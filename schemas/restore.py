"""Restore of exported records, for `memstream import`: arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Self

from pydantic import Field, JsonValue, StringConstraints, TypeAdapter, ValidationError, model_validator

from . import ids
from .base import COUNTER_MAX, RECORD_DEPTH_MAX, Contract, GivenId, Instant, Reason, why_unstorable
from .export import RecordKind
from .topics import StageName
from .turns import MESSAGES_MAX, Owner
from .working_set import StoredMessage

RESTORED_MAX: Final = 50
"""Maximum number of records in one command."""
RESTORED_BY: Final[Mapping[RecordKind, StageName]] = {
    "fact": "reflector",
    "fact_change": "reflector",
    "episode": "reflector",
    "block": "reflector",
    "task": "reflector",
    "group": "reflector",
    "archive": "consolidation",
    "digest": "consolidation",
    "procedure": "consolidation",
    "links": "consolidation",
    "working": "observer",
    "holdings": "observer",
    "turn": "recorder",
}
"""The writer of each kind of record. The recorder reads no commands: turns are sent to memory.turns."""
_MOMENT: Final[TypeAdapter[datetime]] = TypeAdapter(Instant)
SourceName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]


class RecordToRestore(Contract):
    """One line of an export."""

    line: Annotated[int, Field(ge=1)]
    """Number of the line in its file. The result names it."""
    kind: RecordKind
    record: dict[str, JsonValue]


class RecordsRestore(Contract):
    """`args` of restore.owner, restore.upkeep, restore.links and restore.session: records of the target, in the order
    of their export."""

    source: SourceName
    """Name of the import. Records with the same source belong together."""
    exported_at: Instant
    """The moment of the export. If the user was erased later, the command has no effect."""
    records: Annotated[tuple[RecordToRestore, ...], Field(min_length=1, max_length=RESTORED_MAX)]
    dedup: bool = True
    """False: also restore facts and episodes whose text the owner already has under another id."""

    @staticmethod
    def moment_of(args: Mapping[str, JsonValue]) -> datetime | None:
        """Return `exported_at` of arguments that are not validated yet, or None if it is no time."""
        try:
            return _MOMENT.validate_python(args.get("exported_at"))
        except ValidationError:
            return None


class RefusedRecord(Contract):
    """A record that was not restored, and the reason with the remedy."""

    line: Annotated[int, Field(ge=1)]
    why: Reason


class RecordsRestored(Contract):
    """Result of restore.owner, restore.upkeep, restore.links, restore.session and facts.import."""

    imported: Annotated[int, Field(ge=0)]
    skipped: Annotated[int, Field(ge=0)]
    """Number of records that memory already had."""
    refused: tuple[RefusedRecord, ...] = ()


class TurnToRestore(Contract):
    """Value of a record on memory.turns with the header `memstream-restored`: a turn of an export. Each message keeps
    its id, its time, its sensitivity and its place in the session's thread."""

    tenant_id: GivenId
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    exported_at: Instant
    """The moment of the export. If the user was erased later, the turn has no effect."""
    messages: Annotated[tuple[StoredMessage, ...], Field(min_length=1, max_length=MESSAGES_MAX)]

    @model_validator(mode="after")
    def _of_one_turn(self) -> Self:
        names = (self.tenant_id, self.user_id, self.session_id, self.turn_id)
        for each in self.messages:
            if (each.tenant_id, each.user_id, each.session_id, each.turn_id) != names:
                raise ValueError("messages: a message belongs to another turn")
            if each.message_id != ids.message_id(self.session_key, self.turn_id, each.message_index):
                raise ValueError("messages: message_id is not the id of the message's place")
            if Owner.of_key(each.owner_key).key(self.tenant_id) != each.owner_key:
                raise ValueError("messages: owner_key names another tenant")
            if (why := why_unstorable(each.metadata, RECORD_DEPTH_MAX)) is not None:
                raise ValueError(f"messages: metadata {why}")
        self._check_places()
        return self

    def _check_places(self) -> None:
        """Raise ValueError for numbers that are not the places of one turn: memory reads all places between them."""
        indexes = [each.message_index for each in self.messages]
        if indexes != sorted(set(indexes)) or indexes[-1] >= MESSAGES_MAX:
            raise ValueError(f"messages: message_index does not rise, or is not below {MESSAGES_MAX}")
        places = [each.session_place for each in self.messages if each.session_place is not None]
        firsts = [each.first_place for each in self.messages if each.first_place is not None]
        if (places and max(places) - min(places) >= MESSAGES_MAX) or max((*places, *firsts, 0)) > COUNTER_MAX:
            raise ValueError("messages: session_place and first_place are not the places of one turn")

    @property
    def session_key(self) -> str:
        return ids.session_key(self.tenant_id, self.user_id, self.session_id)
