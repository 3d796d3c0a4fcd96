"""Selection of an export, and the cursor from which an interrupted export continues."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from ...schemas.cloudevents import rfc3339
from ...schemas.export import RECORD_KINDS, RecordKind
from ...schemas.turns import Owner, Sensitivity, up_to
from ...streams.log.offsets import Offsets

CURSOR_MAX: Final = 32 * 1024
"""Maximum length of a cursor. It contains one offset for each partition of memory.facts.updated."""
PLACE_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Selection of an export, and the caller's permissions."""

    tenant_id: str
    owner: Owner | None = None
    """None: all owners of the tenant."""
    ceiling: Sensitivity = "internal"
    """The highest sensitivity to export."""
    embeddings: bool = False
    conversations: bool = True
    removed: bool = False
    """True: the caller may see removed episodes and procedures, and archived texts that no other read shows."""

    @property
    def owner_key(self) -> str | None:
        return None if self.owner is None else self.owner.key(self.tenant_id)

    def may_show(self, *levels: Sensitivity) -> bool:
        return all(each in up_to(self.ceiling) for each in levels)

    def digest(self) -> str:
        """Return a hash of the selection. A cursor belongs to one selection."""
        parts = (self.tenant_id, self.owner_key, self.ceiling, self.embeddings, self.conversations, self.removed)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class ExportCursor:
    """The progress of an export: its moment, the next page, and the counts so far."""

    at: datetime
    ends: Offsets
    """Offsets of memory.facts.updated at the moment of the export."""
    kind: RecordKind | None = RECORD_KINDS[0]
    """Kind of the next page. None: every page was read."""
    place: str | None = None
    """Start of the next page within its kind. None: the first page."""
    counts: Mapping[RecordKind, int] = field(default_factory=dict)
    left_out: Mapping[RecordKind, int] = field(default_factory=dict)

    def after(self, kind: RecordKind, place: str | None, *, written: int, left_out: int) -> ExportCursor:
        """Return the cursor after a page. `place` is the start of the kind's next page, or None after its last."""
        following = RECORD_KINDS[RECORD_KINDS.index(kind) + 1 :]
        return ExportCursor(
            self.at,
            self.ends,
            kind if place is not None else next(iter(following), None),
            place,
            {**self.counts, kind: self.counts.get(kind, 0) + written},
            {**self.left_out, kind: self.left_out.get(kind, 0) + left_out},
        )

    def after_also(self, kind: RecordKind, *, left_out: int) -> ExportCursor:
        """Return the cursor with further records that were left out."""
        more = {**self.left_out, kind: self.left_out.get(kind, 0) + left_out}
        return replace(self, left_out=more) if left_out else self

    def token(self, request: ExportRequest) -> str:
        """Encode the cursor as opaque text: base64url of JSON."""
        parts = [
            request.digest(),
            rfc3339(self.at),
            list(self.ends.offsets),
            self.kind,
            self.place,
            dict(self.counts),
            dict(self.left_out),
        ]
        return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).rstrip(b"=").decode()

    @classmethod
    def read(cls, token: str, request: ExportRequest) -> ExportCursor:
        """Decode a cursor. Raises ValueError when it does not belong to this request."""
        wrong = ValueError("this cursor does not belong to an export with these parameters; start without a cursor")
        if len(token) > CURSOR_MAX or not token.isascii():
            raise wrong
        try:
            parts = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            digest, at, ends, kind, place, counts, left_out = parts
            moment = datetime.fromisoformat(at)
        except (binascii.Error, ValueError, TypeError, RecursionError) as error:
            raise wrong from error
        good = (
            digest == request.digest()
            and moment.tzinfo is not None
            and isinstance(ends, list)
            and all(map(_is_count, ends))
            and (kind is None or kind in RECORD_KINDS)
            and (place is None or (isinstance(place, str) and len(place) <= PLACE_MAX))
            and _are_counts(counts)
            and _are_counts(left_out)
        )
        if not good:
            raise wrong
        return cls(moment, Offsets(tuple(ends)), kind, place, counts, left_out)


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(name in RECORD_KINDS and _is_count(count) for name, count in value.items())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
