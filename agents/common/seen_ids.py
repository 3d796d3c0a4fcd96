"""Ids of events that a key has seen, packed into one string. They distinguish duplicates from new events."""

from __future__ import annotations

import base64

from pydantic import BaseModel, ConfigDict

from ...schemas import ids

SEEN_KEPT = 1_000
"""Maximum number of ids kept per key. The oldest ids are dropped."""
_HASH_BYTES = 8


class SeenIds(BaseModel):
    """The last ids, oldest first. Each id is stored as 8 bytes of its SHA-256, to keep rows small."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    packed: str = ""

    def __bool__(self) -> bool:
        return bool(self.packed)

    def _hashes(self) -> bytes:
        return base64.b64decode(self.packed)

    def __contains__(self, given: str) -> bool:
        wanted, hashes = bytes.fromhex(ids.short_hash(given)), self._hashes()
        at = hashes.find(wanted)
        while at % _HASH_BYTES and at > 0:  # a match that spans two hashes does not count
            at = hashes.find(wanted, at + 1)
        return at >= 0

    def add(self, *given: str, kept: int = SEEN_KEPT) -> SeenIds:
        hashes = self._hashes() + b"".join(bytes.fromhex(ids.short_hash(each)) for each in given)
        return SeenIds(packed=base64.b64encode(hashes[-kept * _HASH_BYTES :]).decode())

    def joined(self, later: SeenIds, *, kept: int = SEEN_KEPT) -> SeenIds:
        """Return these ids followed by later ones."""
        hashes = self._hashes() + later._hashes()
        return SeenIds(packed=base64.b64encode(hashes[-kept * _HASH_BYTES :]).decode())

    def remove(self, given: str) -> SeenIds:
        unwanted, hashes = bytes.fromhex(ids.short_hash(given)), self._hashes()
        kept = [hashes[i : i + _HASH_BYTES] for i in range(0, len(hashes), _HASH_BYTES)]
        return SeenIds(packed=base64.b64encode(b"".join(h for h in kept if h != unwanted)).decode())
