"""Edits of blocks: short named texts in an agent's prompt.

The observer applies edits of a session's blocks and attachments; the reflector applies edits of an owner's blocks.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from ..base import Contract
from ..facts import Trust
from ..turns import Owner, Sensitivity
from .common import Name

BLOCK_LIMIT: Final = 2_000
"""Default limit of a block in characters."""
BLOCK_LIMIT_MAX: Final = 20_000
BLOCKS_MAX: Final = 64
"""Maximum number of blocks of one session or owner, and of blocks attached in one session."""

BlockText = Annotated[str, StringConstraints(max_length=BLOCK_LIMIT_MAX)]
BlockLimit = Annotated[int, Field(ge=1, le=BLOCK_LIMIT_MAX)]


class BlockDefine(Contract):
    """`args` of blocks.define. An existing block of this name keeps its text; its limit and description change."""

    name: Name
    value: BlockText = ""
    limit: BlockLimit | None = None
    """Limit in characters; None: `memory.blocks.limit`."""
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    """`user` for a person's own edit, `assistant` for a tool call of an agent."""


class BlockAppend(Contract):
    """`args` of blocks.append: the text becomes the last line."""

    name: Name
    text: Annotated[str, StringConstraints(min_length=1, max_length=BLOCK_LIMIT_MAX)]
    trust: Trust = "user"


class BlockReplace(Contract):
    """`args` of blocks.replace: `old` must occur exactly once."""

    name: Name
    old: Annotated[str, StringConstraints(min_length=1, max_length=BLOCK_LIMIT_MAX)]
    new: BlockText
    trust: Trust = "user"


class BlockRethink(Contract):
    """`args` of blocks.rethink: replace the whole text. A missing block is defined."""

    name: Name
    value: BlockText
    trust: Trust = "user"


class BlockRemove(Contract):
    """`args` of blocks.remove."""

    name: Name


class BlockAttach(Contract):
    """`args` of blocks.attach and blocks.detach: add an owner's block to the context of a session, or remove it."""

    name: Name
    owner: Owner


class BlockChanged(Contract):
    """Result of an edit of a block: its text and length after the edit. `limit` is in characters."""

    name: Name
    value: BlockText
    characters: Annotated[int, Field(ge=0)]
    limit: BlockLimit


class BlockRemoved(Contract):
    """Result of blocks.remove. `removed` is false when there was no block of this name."""

    name: Name
    removed: bool


class BlockAttached(Contract):
    """Result of blocks.attach and blocks.detach. `attached`: the block is now in the session's context."""

    name: Name
    owner: Owner
    attached: bool
