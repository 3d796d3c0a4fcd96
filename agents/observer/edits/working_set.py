"""Edits of a session's working set (docs/reference/edits.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text
from ....memory.working_set import entries
from ....memory.working_set.entries import EntryCandidate, PinRefusedError, UnknownEntryError
from ....schemas import ids
from ....schemas.base import QUOTE_MAX
from ....schemas.edits.working import WorkingAdd, WorkingAdvance, WorkingChanged, WorkingEntryRef
from ....schemas.observations import Observation
from ....schemas.working_set import WorkingEntry, WorkingSet
from ..flush import origins_after
from .scope import SessionEditResult, SessionEditScope, refused


def add(args: WorkingAdd, scope: SessionEditScope) -> SessionEditResult:
    """Add an entry and remove the entry `replaces`. An equal existing entry is refreshed instead."""
    if (unsafe := find_unsafe_text(WorkingEntry, args.to_payload())) is not None:
        return refused(unsafe.code, f"{unsafe.message}: use a block for that", scope)
    working = scope.session.working
    replaced: tuple[str, ...] = ()
    if args.replaces is not None:
        if entries.find(working, args.replaces) is None:
            return _unknown(args.replaces, scope)
        working, replaced = entries.evict(working, args.replaces), (args.replaces,)
    added, evicted, refresh = entries.add(working, _candidate(args, scope), scope.policy.working)
    entry_id = _entry_id(scope) if refresh is None else refresh.entry_id
    return _done(added, scope, entry_id, (*replaced, *(entry.entry_id for entry in evicted)))


def evict(args: WorkingEntryRef, scope: SessionEditScope) -> SessionEditResult:
    return _on_entry(args, scope, entries.evict)


def pin(args: WorkingEntryRef, scope: SessionEditScope) -> SessionEditResult:
    return _on_entry(args, scope, lambda working, entry_id: entries.pin(working, entry_id, scope.policy.working))


def unpin(args: WorkingEntryRef, scope: SessionEditScope) -> SessionEditResult:
    return _on_entry(args, scope, entries.unpin)


def refresh(args: WorkingEntryRef, scope: SessionEditScope) -> SessionEditResult:
    decay = scope.policy.working.decay
    return _on_entry(args, scope, lambda working, entry_id: entries.refresh(working, entry_id, decay))


def advance(args: WorkingAdvance, scope: SessionEditScope) -> SessionEditResult:
    working = scope.session.working
    for _ in range(args.turns):
        working = entries.advance(working, scope.policy.working.decay)
    return _done(working, scope)


def _on_entry(
    args: WorkingEntryRef, scope: SessionEditScope, edit: Callable[[WorkingSet, str], WorkingSet]
) -> SessionEditResult:
    try:
        working = edit(scope.session.working, args.entry_id)
    except UnknownEntryError:
        return _unknown(args.entry_id, scope)
    except PinRefusedError as error:
        return refused("pins", f"{error}: unpin another entry first", scope)
    return _done(working, scope, args.entry_id)


def _done(
    working: WorkingSet, scope: SessionEditScope, entry_id: str | None = None, evicted: Iterable[str] = ()
) -> SessionEditResult:
    entry: WorkingEntry | None = None if entry_id is None else entries.find(working, entry_id)
    session = scope.session.model_copy(
        update={"working": working, "origins": origins_after(scope.session.origins, (), working)}
    )
    return SessionEditResult(WorkingChanged(turn=working.turn, entry=entry, evicted=tuple(evicted)), session)


def _candidate(args: WorkingAdd, scope: SessionEditScope) -> EntryCandidate:
    stated = _entry_id(scope)
    observation = Observation(
        observation_id=stated,
        entry_id=stated,
        subject=args.subject,
        content=args.content,
        category=args.category,
        durability="session",
        importance=args.importance,
        evidence=args.content[:QUOTE_MAX],
        source_role="user",
        sensitivity=at_least(args.sensitivity, scope.secrets.label(args.content, args.subject)),
    )
    return EntryCandidate(observation, pinned=args.pinned, metadata=args.metadata)


def _entry_id(scope: SessionEditScope) -> str:
    return ids.edit_observation_id(scope.command.key, scope.command.command_id)


def _unknown(entry_id: str, scope: SessionEditScope) -> SessionEditResult:
    return refused("unknown", f"the working set has no entry {entry_id}: read the session's working set", scope)
