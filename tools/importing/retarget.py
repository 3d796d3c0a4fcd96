"""The records of an export for another tenant or another owner. Pure.

Every id is mapped, because the memory of the target may be in the store of the source, and an id names one record of a
store. The new id follows from the target and the old id, so a repeated import finds its own records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pydantic import JsonValue

from ...schemas import ids
from ...schemas.export import ExportHeader, RecordKind
from ...schemas.facts import WAITS_FOR
from ...schemas.turns import Owner

_RECORD_IDS: Final = frozenset(
    (
        *("fact_id", "episode_id", "observation_id", "task_id", "entry_id", "supersedes", "superseded_by"),
        *("merged_into", "other_fact_id", WAITS_FOR, "one", "other"),
        *("observation_ids", "source_episode_ids", "fact_ids"),
    )
)
"""Fields with the id of a record, or with a list of such ids, that is not derived from names."""


@dataclass(frozen=True, slots=True)
class Retarget:
    """The source of an export and the target of its import. `owner`: None for all owners of the tenant."""

    source_tenant: str
    source_owner: Owner | None
    tenant_id: str
    owner: Owner | None

    @classmethod
    def of(cls, header: ExportHeader, *, tenant_id: str | None, owner: Owner | None) -> Retarget:
        """Return the target. Raises ValueError for an owner that the export cannot be moved to."""
        if owner is not None and header.owner is None:
            raise ValueError("the export has all owners of a tenant: leave out the user, or export one user")
        if owner is not None and header.owner is not None and owner.scope != header.owner.scope:
            raise ValueError(f"the export is of a {header.owner.scope}: name a {header.owner.scope}")
        return cls(header.tenant_id, header.owner, tenant_id or header.tenant_id, owner or header.owner)

    @property
    def moves(self) -> bool:
        return (self.source_tenant, self.source_owner) != (self.tenant_id, self.owner)

    def record(self, kind: RecordKind, record: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the record for the target. Raises ValueError for a record of another tenant or owner."""
        self._check(kind, record)
        if not self.moves:
            return dict(record)
        moved = _Mover(self).value("", dict(record))
        assert isinstance(moved, dict)  # a moved object is an object
        _derive(kind, moved)
        return moved

    def _check(self, kind: RecordKind, record: Mapping[str, JsonValue]) -> None:
        if kind != "turn" and record.get("tenant_id") != self.source_tenant:
            raise ValueError("the record belongs to another tenant than the export")

    # -------------------------------------------------------------------------------------------- names
    def moved_owner(self, owner: Owner) -> Owner:
        return self.owner if owner == self.source_owner and self.owner is not None else owner

    def moved_user(self, user_id: str) -> str:
        return self.moved_owner(Owner(scope="user", id=user_id)).id

    def moved_key(self, owner_key: str) -> str:
        return self.moved_owner(Owner.of_key(owner_key)).key(self.tenant_id)

    def moved_id(self, record_id: str) -> str:
        target = "" if self.owner is None else self.owner.key(self.tenant_id)
        return ids.moved_id(target or ids.encode(self.tenant_id), record_id)


@dataclass(frozen=True, slots=True)
class _Mover:
    """A walk through a record that replaces names and ids by the names of their fields."""

    target: Retarget

    def value(self, name: str, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            if value.keys() == {"scope", "id"}:
                return self.target.moved_owner(Owner.model_validate(value)).to_payload()
            if name == "metadata":  # memory adds WAITS_FOR; all other names are the producer's
                return {field: self.value(field, each) if field == WAITS_FOR else each for field, each in value.items()}
            return {field: self.value(field, each) for field, each in value.items()}
        if isinstance(value, list):
            return [self.value(name, each) for each in value]
        return self._text(name, value) if isinstance(value, str) else value

    def _text(self, name: str, text: str) -> str:
        if name == "tenant_id":
            return self.target.tenant_id
        if name == "user_id":
            return self.target.moved_user(text)
        if name == "owner_key":
            return self.target.moved_key(text)
        return self.target.moved_id(text) if name in _RECORD_IDS else text


def _derive(kind: RecordKind, moved: dict[str, Any]) -> None:
    """Set the ids that are derived from names."""
    owner_key = Owner.model_validate(moved["owner"]).key(moved["tenant_id"]) if "owner" in moved else ""
    if kind == "fact_change":
        moved["event_id"] = ids.event_id(moved["fact"]["fact_id"], moved["fact"]["version"])
    elif kind == "archive":
        moved["archive_id"] = ids.archive_id(moved["episode_id"])
    elif kind == "digest":
        moved["digest_id"] = ids.digest_id(owner_key)
    elif kind == "procedure":
        moved["procedure_id"] = ids.procedure_id(owner_key, moved["name"])
    elif kind == "block":
        moved["block_id"] = ids.block_id(owner_key, moved["name"])
    elif kind == "group":
        moved["procedure_ids"] = []
    elif kind == "links":
        moved["links"] = [_in_order(each) for each in moved["links"]]
    elif kind == "turn":
        for each in moved["messages"]:
            session = ids.session_key(each["tenant_id"], each["user_id"], each["session_id"])
            each["message_id"] = ids.message_id(session, each["turn_id"], each["message_index"])


def _in_order(link: dict[str, Any]) -> dict[str, Any]:
    one, other = sorted((link["one"], link["other"]), key=lambda each: UUID(each).bytes)
    return {**link, "one": one, "other": other}
