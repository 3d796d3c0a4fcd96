"""Erasures of users: records of memory.erasures, and arguments of the commands that erase (docs/design/erasure.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Hash, Instant, OurId

USER_PREFIX: Final = "user/"
"""Prefix of the keys of markers; the hash of the user follows."""
RECEIPT_PREFIX: Final = "receipt/"
"""Prefix of the keys of receipts; the id of the erasure follows."""
ROW_KEYS_MAX: Final = 1_000
"""Maximum number of row keys, or of sessions, in one command."""
RowKey = Annotated[str, StringConstraints(min_length=1, max_length=8_192)]


class ErasureMarker(Contract):
    """The record that a user is erased. While it is `open`, memory ignores every event of the user. When it is
    `closed`, memory ignores every event of the user that happened at `at` or before."""

    erasure_id: OurId
    state: Literal["open", "closed"]
    at: Instant
    """Begin of the erasure while it is open; its end when it is closed."""
    tenant_id: GivenId | None = None
    """The tenant while the erasure is open; null when it is closed."""
    user_id: GivenId | None = None
    """The user while the erasure is open; null when it is closed."""


class SessionErase(Contract):
    """`args` of sessions.erase: everything of one session of an erased user is deleted."""

    erasure_id: OurId
    row_keys: Annotated[tuple[RowKey, ...], Field(max_length=ROW_KEYS_MAX)] = ()
    """Further rows of the session in the observer's table, such as rows of indexes."""


class OwnerErase(Contract):
    """`args` of owners.erase and upkeep.erase: everything of an erased user is deleted from the memory of one owner.
    The owner is the user, or an owner whose memory the user shares."""

    erasure_id: OurId
    user_id: GivenId
    session_ids: Annotated[tuple[GivenId, ...], Field(max_length=ROW_KEYS_MAX)] = ()
    """Sessions of the user. Evidence that does not name its user belongs to the user if it is from one of them."""
    row_keys: Annotated[tuple[RowKey, ...], Field(max_length=ROW_KEYS_MAX)] = ()
    """Further rows in the stage's table, such as rows of sessions and of indexes."""


class ErasedPlace(Contract):
    """Numbers of the records of one collection, table or topic: removed by the erasure, and found by its last scan. A
    run that continues a killed run counts what it removes itself."""

    place: str
    """Name of the collection, table or topic."""
    removed: Annotated[int, Field(ge=0)] = 0
    scanned: Annotated[int, Field(ge=0)] = 0
    """Number of the tenant's records that the scan read."""
    with_ids: Annotated[int, Field(ge=0)] = 0
    """Number of these records that name the user."""
    with_texts: Annotated[int, Field(ge=0)] = 0
    """Number of these records with a canonical text that the user's memory had. A record of another user may have an
    equal text."""


class LogEnd(Contract):
    """The time by which the last byte of the user is gone from a topic."""

    topic: str
    gone_by: Instant | None
    """Null: the topic's settings give no such time; `why` names the setting."""
    why: str


class ErasureReceipt(Contract):
    """The record of a completed erasure, with the result of the scan at its end. It names the user by hash only."""

    erasure_id: OurId
    tenant_id: GivenId
    user_hash: Hash
    began_at: Instant
    ended_at: Instant
    """Events of the user that happened at this time or before are ignored for ever."""
    rounds: Annotated[int, Field(ge=1)]
    """Number of times that the commands were sent."""
    places: tuple[ErasedPlace, ...]
    texts: Annotated[int, Field(ge=0)]
    """Number of canonical texts that the user's memory had."""
    logs: tuple[LogEnd, ...]
    sha256: Hash | None = None
    """SHA-256 of the receipt as JSON without this field."""
