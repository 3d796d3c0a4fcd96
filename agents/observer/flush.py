"""`flush_important`: turns important working entries of any durability into episodes. Pure functions.

Only the reflector writes episodes, so the observer sends `episodes.keep` commands to the reflector. The commands have
derived ids and are part of the outcome that answers the flush. The session's row keeps the origin of every working
entry, because an episode needs fields that an entry lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...schemas import ids
from ...schemas.commands import KEPT_MAX, Command, EpisodesKeep, KeptObservation
from ...schemas.observations import Observation
from ...schemas.turns import Owner
from ...schemas.working_set import WorkingEntry, WorkingSet
from .rows import EntryOrigin, SessionRow


@dataclass(frozen=True, slots=True)
class FlushResult:
    """The commands for the reflector, and the counts of entries."""

    commands: tuple[Command, ...]
    entries: int
    """Number of entries in the commands."""
    left: int
    """Number of important entries without an origin, from an earlier version or a working-only deployment."""


def origins_after(
    before: Iterable[EntryOrigin], new: Iterable[EntryOrigin], working: WorkingSet
) -> tuple[EntryOrigin, ...]:
    """Return the origins of the entries that are in the working set after a turn.

    A refreshed entry keeps one of its observations (memory/working_set/entries.py) and that observation's origin.
    """
    standing = {entry.observation_id for entry in working.entries}
    known = {each.observation_id: each for each in (*before, *new)}
    return tuple(origin for observation_id, origin in known.items() if observation_id in standing)


def flushed(session: SessionRow, flush: Command, *, threshold: float, issued_by: str, now: datetime) -> FlushResult:
    """Return the commands that turn important entries into episodes, grouped by owner, because a session may have
    several owners."""
    assert flush.session is not None  # route refuses a command without a session
    user = Owner(scope="user", id=flush.session.user_id)
    origins = {origin.observation_id: origin for origin in session.origins}
    important = [entry for entry in session.working.entries if entry.importance >= threshold]
    by_owner: dict[str, tuple[Owner, list[KeptObservation]]] = {}
    for entry in important:
        origin = origins.get(entry.observation_id)
        if origin is not None:
            owner = origin.owner or user
            _, kept = by_owner.setdefault(owner.key(flush.tenant_id), (owner, []))
            kept.append(_kept(entry, origin))
    parts = [(owner, part) for owner, kept in by_owner.values() for part in _in_commands(kept)]
    commands = tuple(
        Command(
            command_id=ids.kept_command_id(flush.key, flush.command_id, n),
            kind="episodes.keep",
            tenant_id=flush.tenant_id,
            owner=owner,
            args=EpisodesKeep(
                user_id=flush.session.user_id, session_id=flush.session.session_id, observations=tuple(part)
            ).to_payload(),
            issued_by=issued_by,
            issued_at=now,
        )
        for n, (owner, part) in enumerate(parts)
    )
    sent = sum(len(kept) for _, kept in by_owner.values())
    return FlushResult(commands, entries=sent, left=len(important) - sent)


def _in_commands(kept: Sequence[KeptObservation]) -> Iterable[Sequence[KeptObservation]]:
    return (kept[at : at + KEPT_MAX] for at in range(0, len(kept), KEPT_MAX))


def _kept(entry: WorkingEntry, origin: EntryOrigin) -> KeptObservation:
    """Return the original observation with the entry's current wording, which a later turn may have changed."""
    observation = Observation(
        observation_id=entry.observation_id,
        entry_id=entry.entry_id,
        subject=entry.subject,
        content=entry.content,
        importance=entry.importance,
        durability=entry.durability,
        category=entry.category,
        valid_from=origin.valid_from,
        valid_to=origin.valid_to,
        sensitivity=entry.sensitivity,
        emotion=origin.emotion,
        source_role=origin.source_role,
        evidence=origin.evidence,
    )
    return KeptObservation(turn_id=origin.turn_id, occurred_at=origin.occurred_at, observation=observation)
