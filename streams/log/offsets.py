"""Offsets of a topic's partitions as one position, and the token that passes it between processes.

The module uses only the standard library, so that the client can import it without the server's packages.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from .port import Position, Record

TOKEN_VERSION = "1."
TOKEN_MAX = 16 * 1024
OFFSET_DIGITS = 19
NOT_A_TOKEN = "is not a position token of this topic"


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offset of the next record of each partition. A partition beyond the end of `offsets` has the offset 0."""

    offsets: tuple[int, ...]

    def of(self, partition: int) -> int:
        """Return the offset of a partition."""
        return self.offsets[partition] if partition < len(self.offsets) else 0

    def after(self, position: Position) -> Offsets:
        """Return these offsets, moved past the record at a position."""
        return self.at_least({position.partition: position.offset + 1})

    def at_least(self, other: Offsets | dict[int, int]) -> Offsets:
        """Return for each partition the higher of both offsets."""
        given = dict(enumerate(other.offsets)) if isinstance(other, Offsets) else other
        count = max(len(self.offsets), max(given, default=-1) + 1)
        return Offsets(tuple(max(self.of(p), given.get(p, 0)) for p in range(count)))

    def behind(self, other: Offsets) -> dict[int, int]:
        """Return these offsets by partition, for the partitions in which `other` has a higher offset."""
        return {p: self.of(p) for p, end in enumerate(other.offsets) if self.of(p) < end}

    def token(self) -> str:
        """Return these offsets as an opaque text for `read`."""
        text = ",".join(map(str, self.offsets))
        return TOKEN_VERSION + base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    @classmethod
    def read(cls, token: str) -> Offsets:
        """Read a token. Raises ValueError for any other text."""
        version, rest = token[: len(TOKEN_VERSION)], token[len(TOKEN_VERSION) :]
        if version != TOKEN_VERSION or len(token) > TOKEN_MAX or not token.isascii():
            raise ValueError(NOT_A_TOKEN)
        try:
            parts = base64.urlsafe_b64decode(rest + "=" * (-len(rest) % 4)).decode("ascii").split(",")
        except (binascii.Error, ValueError) as error:
            raise ValueError(NOT_A_TOKEN) from error
        if not all(part.isdigit() and len(part) <= OFFSET_DIGITS for part in parts):
            raise ValueError(NOT_A_TOKEN)
        offsets = cls(tuple(map(int, parts)))
        if offsets.token() != token:  # base64 skips characters outside its alphabet
            raise ValueError(NOT_A_TOKEN)
        return offsets


@dataclass(frozen=True, slots=True)
class PositionedRecord:
    """A record and the offsets after it."""

    record: Record
    places: Offsets
