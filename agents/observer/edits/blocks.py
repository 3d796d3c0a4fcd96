"""Edits of a session's own blocks, attached blocks and active procedures."""

from __future__ import annotations

from typing import Literal

from ....memory.blocks import BlockEdit, BlockRefused, edit_block, find_block
from ....memory.secrets.secret_filter import at_least
from ....schemas import ids
from ....schemas.base import Contract
from ....schemas.blocks import NamedRecord
from ....schemas.edits.blocks import BLOCKS_MAX, BlockAttach, BlockAttached, BlockChanged, BlockRemove, BlockRemoved
from ....schemas.edits.procedures import ProcedureActivate, ProcedureActivated
from ....schemas.turns import Owner
from .scope import SessionEditResult, SessionEditScope, refused

Held = Literal["attached", "procedures"]
"""Name of a field in the session's row."""


def edit(args: BlockEdit, scope: SessionEditScope) -> SessionEditResult:
    """Define a block of the session or change its text."""
    blocks = scope.session.blocks
    before = find_block(blocks, args.name)
    try:
        block = edit_block(before, args, limit=scope.policy.blocks.limit, now=scope.now)
    except BlockRefused as refusal:
        return refused(refusal.code, str(refusal), scope)
    label = scope.secrets.label(block.name, block.value, block.description)
    block = block.model_copy(update={"sensitivity": at_least(block.sensitivity, label)})
    after = (*blocks, block) if before is None else tuple(block if each is before else each for each in blocks)
    if len(after) > BLOCKS_MAX:
        return refused("too_many", f"a session has at most {BLOCKS_MAX} blocks: remove one", scope)
    characters, most = sum(len(each.value) for each in after), scope.policy.blocks.session_characters
    if characters > most:
        message = f"the blocks of the session would have {characters} characters together; at most {most} fit"
        return refused("too_long", f"{message}: shorten or remove one", scope)
    changed = BlockChanged(name=block.name, value=block.value, characters=len(block.value), limit=block.limit)
    return SessionEditResult(changed, scope.session.model_copy(update={"blocks": after}))


def remove(args: BlockRemove, scope: SessionEditScope) -> SessionEditResult:
    before = find_block(scope.session.blocks, args.name)
    left = tuple(each for each in scope.session.blocks if each is not before)
    session = scope.session.model_copy(update={"blocks": left})
    return SessionEditResult(BlockRemoved(name=args.name, removed=before is not None), session)


def attach(args: BlockAttach, scope: SessionEditScope) -> SessionEditResult:
    if not scope.may_hold(args.owner):
        return refused(
            "owner", "a session holds no block of another user: name its own user, an agent or a group", scope
        )
    return _hold("attached", args, BlockAttached(name=args.name, owner=args.owner, attached=True), scope)


def detach(args: BlockAttach, scope: SessionEditScope) -> SessionEditResult:
    return _let_go("attached", args, BlockAttached(name=args.name, owner=args.owner, attached=False), scope)


def activate(args: ProcedureActivate, scope: SessionEditScope) -> SessionEditResult:
    """Activate a procedure of any owner. A context shows another user's procedure only while a group shares it."""
    return _hold("procedures", args, ProcedureActivated(name=args.name, owner=args.owner, active=True), scope)


def deactivate(args: ProcedureActivate, scope: SessionEditScope) -> SessionEditResult:
    return _let_go("procedures", args, ProcedureActivated(name=args.name, owner=args.owner, active=False), scope)


def _hold(
    field: Held, args: BlockAttach | ProcedureActivate, result: Contract, scope: SessionEditScope
) -> SessionEditResult:
    others = _others(field, args.name, args.owner, scope)
    if len(others) >= BLOCKS_MAX:
        message = f"a session has at most {BLOCKS_MAX} attached blocks, and as many active procedures"
        return refused("too_many", f"{message}: detach or deactivate one first", scope)
    held = (*others, NamedRecord(name=args.name, owner=args.owner))
    return SessionEditResult(result, scope.session.model_copy(update={field: held}))


def _let_go(
    field: Held, args: BlockAttach | ProcedureActivate, result: Contract, scope: SessionEditScope
) -> SessionEditResult:
    others = _others(field, args.name, args.owner, scope)
    return SessionEditResult(result, scope.session.model_copy(update={field: others}))


def _others(field: Held, name: str, owner: Owner, scope: SessionEditScope) -> tuple[NamedRecord, ...]:
    """Return the session's records in this field without the record of this name and owner."""
    held: tuple[NamedRecord, ...] = getattr(scope.session, field)
    wanted = ids.canonical(name)
    return tuple(each for each in held if (ids.canonical(each.name), each.owner) != (wanted, owner))
