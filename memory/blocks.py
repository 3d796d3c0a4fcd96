"""Edits of blocks: short named texts with a character limit; pure.

Each function takes a block and returns the block after the edit, or the same block when nothing changes. `BlockRefused`
gives the reason why an edit does not apply, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

from ..schemas import ids
from ..schemas.blocks import MemoryBlock
from ..schemas.edits.blocks import BlockAppend, BlockDefine, BlockReplace, BlockRethink
from ..schemas.facts import Trust
from ..schemas.turns import SENSITIVITIES
from .trust.rendered_text import find_unsafe_text

BlockEdit = BlockDefine | BlockAppend | BlockReplace | BlockRethink
B = TypeVar("B", bound=MemoryBlock)


class BlockRefused(ValueError):
    """An edit of a block that does not apply."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def find_block(blocks: Iterable[B], name: str) -> B | None:
    """Return the block with this name, or None. Names are compared in their canonical form."""
    wanted = ids.canonical(name)
    return next((block for block in blocks if ids.canonical(block.name) == wanted), None)


def edit_block(block: MemoryBlock | None, edit: BlockEdit, *, limit: int, now: datetime) -> MemoryBlock:
    """Return the block after an edit. `limit`: character limit of a new block whose definition sets no limit.

    Raises BlockRefused with the code `unknown`, `no_match`, `ambiguous`, `too_long`, `instruction` or `reserved`.
    """
    if isinstance(edit, BlockDefine):
        after = _defined(block, edit, limit, now)
    elif isinstance(edit, BlockRethink):
        after = _reworded(block or MemoryBlock(name=edit.name, limit=limit, updated_at=now), edit.value)
    else:
        after = _reworded(_named(block, edit.name), _text_after(_named(block, edit.name), edit))
    if len(after.value) > after.limit:
        raise BlockRefused(
            "too_long",
            f"the block {after.name!r} would have {len(after.value)} characters; its limit is {after.limit}: shorten "
            "it, or rethink the whole text",
        )
    if after == block:
        return after
    by_person = edit.trust == "user"
    _check(block, after, by_person=by_person)
    after = after.model_copy(update={"trust": _trust(block, edit, by_person=by_person)})
    return after if block is None else after.model_copy(update={"version": block.version + 1, "updated_at": now})


def _check(before: MemoryBlock | None, after: MemoryBlock, *, by_person: bool) -> None:
    """Raise BlockRefused when an edit adds text that a context must not show. Lines that the block already had are not
    checked again, because a person may write text that an agent may not write. When the old text was safe, the whole
    new text is also checked."""
    new: dict[str, object] = {"value": after.value, "description": after.description}
    if before is None:
        new["name"] = after.name
    else:
        if before.description == after.description:
            del new["description"]
        known = frozenset(before.value.splitlines())
        new["value"] = "\n".join(line for line in after.value.splitlines() if line not in known)
    found = find_unsafe_text(MemoryBlock, new, by_person=by_person)
    if found is None and find_unsafe_text(MemoryBlock, {"value": "" if before is None else before.value}) is None:
        found = find_unsafe_text(MemoryBlock, {"value": after.value}, by_person=by_person)
    if found is not None:
        raise BlockRefused(found.code, found.message)


def _trust(before: MemoryBlock | None, edit: BlockEdit, *, by_person: bool) -> Trust | None:
    """Return `user` when a person wrote every instruction in the block, else None."""
    if before is not None and before.trust == "user":
        return "user"
    if not by_person:
        return None
    if (
        before is None
        or isinstance(edit, BlockRethink)
        or find_unsafe_text(MemoryBlock, {"value": before.value}) is None
    ):
        return "user"
    return None


def _defined(block: MemoryBlock | None, edit: BlockDefine, limit: int, now: datetime) -> MemoryBlock:
    """Return a new block, or the existing block with a new limit and description. The sensitivity never decreases."""
    if block is None:
        return MemoryBlock(
            name=edit.name,
            value=edit.value,
            limit=limit if edit.limit is None else edit.limit,
            description=edit.description,
            sensitivity=edit.sensitivity,
            updated_at=now,
        )
    return block.model_copy(
        update={
            "limit": block.limit if edit.limit is None else edit.limit,
            "description": edit.description or block.description,
            "sensitivity": max(block.sensitivity, edit.sensitivity, key=SENSITIVITIES.index),
        }
    )


def _text_after(block: MemoryBlock, edit: BlockAppend | BlockReplace) -> str:
    if isinstance(edit, BlockAppend):
        return f"{block.value}\n{edit.text}" if block.value else edit.text
    found = _occurrences(block.value, edit.old)
    if found == 0:
        raise BlockRefused("no_match", f"the block {block.name!r} does not contain that text: copy it exactly")
    if found > 1:
        raise BlockRefused(
            "ambiguous", f"the block {block.name!r} contains that text {found} times: give a longer part of it"
        )
    return block.value.replace(edit.old, edit.new)


def _occurrences(text: str, part: str) -> int:
    """Count the occurrences of a part in a text, including overlapping ones."""
    return sum(text.startswith(part, place) for place in range(len(text) - len(part) + 1))


def _named(block: MemoryBlock | None, name: str) -> MemoryBlock:
    if block is None:
        raise BlockRefused("unknown", f"there is no block {name!r}: define it, or rethink it, which defines it")
    return block


def _reworded(block: MemoryBlock, value: str) -> MemoryBlock:
    return block.model_copy(update={"value": value})
