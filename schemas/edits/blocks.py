"""Edits of blocks: short named texts that stand in an agent's prompt.

A block belongs to a session (the observer applies its edits) or to an owner (the reflector does). What is attached in a
session is the observer's.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from ..base import Contract
from ..facts import Trust
from ..turns import Owner, Sensitivity
from .common import Name

BLOCK_LIMIT: Final = 2_000
"""Characters of a block, unless its definition says otherwise."""
BLOCK_LIMIT_MAX: Final = 20_000
BLOCKS_MAX: Final = 64
"""Blocks of one session or owner, and blocks attached in one session."""

BlockText = Annotated[str, StringConstraints(max_length=BLOCK_LIMIT_MAX)]
BlockLimit = Annotated[int, Field(ge=1, le=BLOCK_LIMIT_MAX)]


class BlockDefine(Contract):
    """`args` of blocks.define. A block of this name that exists keeps its text; its limit and description change."""

    name: Name
    value: BlockText = ""
    limit: BlockLimit | None = None
    """Characters; None: `memory.blocks.limit`."""
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    """A person's own edit is `user`, a tool call of an agent `assistant`."""


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
    """`args` of blocks.rethink: the whole text is new. A block that does not exist is defined."""

    name: Name
    value: BlockText
    trust: Trust = "user"


class BlockRemove(Contract):
    """`args` of blocks.remove."""

    name: Name


class BlockAttach(Contract):
    """`args` of blocks.attach and blocks.detach, on a session: an owner's block stands in its context, or no longer."""

    name: Name
    owner: Owner


class BlockChanged(Contract):
    """Result of an edit of a block: the text and its length after the edit. `limit` is in characters."""

    name: Name
    value: BlockText
    characters: Annotated[int, Field(ge=0)]
    limit: BlockLimit


class BlockRemoved(Contract):
    """Result of blocks.remove. `removed` false: there was none of this name."""

    name: Name
    removed: bool


class BlockAttached(Contract):
    """Result of blocks.attach and blocks.detach: whether the block stands in the session's context now."""

    name: Name
    owner: Owner
    attached: bool
