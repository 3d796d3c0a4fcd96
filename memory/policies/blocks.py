"""The policy of blocks: short named texts in an agent's prompt."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.edits.blocks import BLOCK_LIMIT, BLOCK_LIMIT_MAX
from .checks import between


@dataclass(frozen=True, slots=True)
class BlocksPolicy:
    """Limits of blocks."""

    limit: int = BLOCK_LIMIT
    """Maximum characters of a block whose definition sets no limit."""
    session_characters: int = 64_000
    """Maximum characters of all blocks of a session together."""

    def __post_init__(self) -> None:
        between("blocks.limit", self.limit, 1, BLOCK_LIMIT_MAX)
        between("blocks.session_characters", self.session_characters, 1, 256_000)
