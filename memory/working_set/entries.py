"""The working set of a session: the few entries that the conversation is about now (docs/design/observer.md).

All functions are pure: they take a WorkingSet and return a new one. `WorkingSet.turn` is the number of turns that the
set has processed. Turn n (from 1) adds and accesses entries at `turn` n-1; the end of the turn sets `turn` to n.
Therefore, at the end of the turn that adds an entry, the salience of the entry is importance × decay(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from ...schemas import ids
from ...schemas.observations import LASTING, Durability, Evicted, Observation
from ...schemas.turns import SENSITIVITIES
from ...schemas.working_set import WorkingEntry, WorkingSet
from ..decay import salience
from ..policies import DecayPolicy, WorkingSetPolicy
from ..trust.evidence import TRUST_ORDER

_DURABILITY: tuple[Durability, ...] = ("transient", "session", "persistent", "permanent")


class UnknownEntryError(LookupError):
    """An entry id that is not in the set."""


class PinRefusedError(ValueError):
    """A pin that is refused because all pins are taken."""


@dataclass(frozen=True, slots=True)
class EntryCandidate:
    """An observation that a turn adds to the set."""

    observation: Observation
    replaces: str | None = None
    """Id of the entry that this candidate replaces: a working entry, or an earlier candidate of the same turn."""
    pinned: bool = False
    """True when the candidate asks for a pin. Without a free pin the entry is kept unpinned."""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EntryReplacement:
    """The replacement of the entry of `replaced_observation_id` by `observation_id`."""

    observation_id: str
    replaced_observation_id: str
    present: bool
    """False when the replaced entry was not in the set (evicted before, or never there)."""


@dataclass(frozen=True, slots=True)
class EntryRefresh:
    """The repetition of an entry by a candidate. `observation_id`: the candidate. `entry_id_before` and `entry_id`: the
    id of the entry before and after the repetition."""

    observation_id: str
    entry_id_before: str
    entry_id: str


@dataclass(frozen=True, slots=True)
class WorkingSetUpdate:
    """The set after one turn, and what happened to its entries."""

    working: WorkingSet
    evicted: tuple[Evicted, ...]
    """The evicted persistent and permanent entries, which are reported to consolidation."""
    evicted_entries: tuple[WorkingEntry, ...]
    """All evicted entries."""
    refreshed: tuple[EntryRefresh, ...]
    replaced: tuple[EntryReplacement, ...]
    pins_refused: int
    skipped: tuple[str, ...]
    """Observation ids of candidates from which no valid entry can be made."""


def items(working: WorkingSet) -> tuple[WorkingEntry, ...]:
    """Return the entries by salience, greatest first. Entries of equal salience are oldest first."""
    return _ordered(working.entries)


def find(working: WorkingSet, entry_id: str) -> WorkingEntry | None:
    """Return the entry with this id, or None."""
    return next((entry for entry in working.entries if entry.entry_id == entry_id), None)


def evict(working: WorkingSet, entry_id: str) -> WorkingSet:
    """Remove an entry, pinned or not. Raises UnknownEntryError."""
    _named(working, entry_id)
    return _with(working, (entry for entry in working.entries if entry.entry_id != entry_id))


def pin(working: WorkingSet, entry_id: str, policy: WorkingSetPolicy) -> WorkingSet:
    """Pin an entry. Raises UnknownEntryError, or PinRefusedError when no pin is free."""
    entry = _named(working, entry_id)
    if entry.pinned:
        return working
    if not _pin_free(working, policy):
        raise PinRefusedError(f"all {policy.max_pinned} pins are taken")
    return _put(working, entry_id, entry.model_copy(update={"pinned": True}))


def unpin(working: WorkingSet, entry_id: str) -> WorkingSet:
    """Unpin an entry. Raises UnknownEntryError."""
    return _put(working, entry_id, _named(working, entry_id).model_copy(update={"pinned": False}))


def refresh(working: WorkingSet, entry_id: str, policy: DecayPolicy) -> WorkingSet:
    """Set an entry's last access to the current turn. Raises UnknownEntryError."""
    entry = _named(working, entry_id).model_copy(update={"last_access_turn": working.turn})
    return _put(working, entry_id, _scored(entry, working.turn, policy))


def advance(working: WorkingSet, policy: DecayPolicy) -> WorkingSet:
    """Advance to the next turn: recompute every salience and sort the entries by salience."""
    turn = working.turn + 1
    return WorkingSet(turn=turn, entries=_ordered(_scored(entry, turn, policy) for entry in working.entries))


def add(
    working: WorkingSet, candidate: EntryCandidate, policy: WorkingSetPolicy
) -> tuple[WorkingSet, tuple[WorkingEntry, ...], EntryRefresh | None]:
    """Add a candidate, or refresh the entry with the same statement. Return the set, the evicted entries and the
    refresh.

    Raises pydantic.ValidationError when no valid entry can be made from the candidate.
    """
    twin = _find_same_statement(working, candidate.observation)
    if twin is not None:
        entry = _renewed(twin, candidate, working.turn, policy.decay)
        entry = entry.model_copy(
            update={"pinned": twin.pinned or (candidate.pinned and _pin_free(working, policy))},
        )
        refreshed = EntryRefresh(candidate.observation.observation_id, twin.entry_id, entry.entry_id)
        return _put(working, twin.entry_id, entry), (), refreshed
    entry = _entry(candidate, working.turn, pinned=candidate.pinned and _pin_free(working, policy))
    evicted: list[WorkingEntry] = []
    while len(working.entries) >= policy.capacity:
        least = _least(working)
        evicted.append(least)
        working = evict(working, least.entry_id)
    return _with(working, (*working.entries, entry)), tuple(evicted), None


def apply_turn(
    working: WorkingSet, candidates: Sequence[EntryCandidate], *, policy: WorkingSetPolicy
) -> WorkingSetUpdate:
    """Apply one turn: remove replaced entries, add the candidates, then advance to the next turn. A turn without
    candidates advances, too."""
    working, replaced, dropped = _replace(working, candidates)
    evicted: list[WorkingEntry] = []
    refreshed: list[EntryRefresh] = []
    skipped: list[str] = []
    pins_refused = 0
    for candidate in candidates:
        if candidate.observation.observation_id in dropped:
            continue
        try:
            working, gone, again = add(working, candidate, policy)
        except ValidationError:
            skipped.append(candidate.observation.observation_id)
            continue
        evicted += gone
        if again is not None:
            refreshed.append(again)
        held = find(working, again.entry_id if again else candidate.observation.entry_id)
        pins_refused += candidate.pinned and held is not None and not held.pinned
    return WorkingSetUpdate(
        working=advance(working, policy.decay),
        evicted=tuple(
            Evicted(entry_id=entry.entry_id, observation_id=entry.observation_id, durability=entry.durability)
            for entry in evicted
            if entry.durability in LASTING
        ),
        evicted_entries=tuple(evicted),
        refreshed=tuple(refreshed),
        replaced=replaced,
        pins_refused=pins_refused,
        skipped=tuple(skipped),
    )


def withdraw(working: WorkingSet, candidate: EntryCandidate) -> tuple[WorkingSet, WorkingEntry | None]:
    """Remove the entries that the user asked to forget: the entry that the candidate replaces, and an entry with the
    candidate's statement. Return the set, and the first removed entry or None."""
    named = None if candidate.replaces is None else find(working, candidate.replaces)
    gone = [entry for entry in (named, _find_same_statement(working, candidate.observation)) if entry is not None]
    ids_gone = {entry.entry_id for entry in gone}
    left = (entry for entry in working.entries if entry.entry_id not in ids_gone)
    return _with(working, left), next(iter(gone), None)


def _replace(
    working: WorkingSet, candidates: Sequence[EntryCandidate]
) -> tuple[WorkingSet, tuple[EntryReplacement, ...], frozenset[str]]:
    """Remove replaced entries. Return the set, the replacements, and the observation ids of candidates that a later
    candidate of this turn replaces. These candidates are not added to the set, so they evict nothing."""
    earlier: dict[str, Observation] = {}
    dropped: set[str] = set()
    replaced: list[EntryReplacement] = []
    for candidate in candidates:
        new, target = candidate.observation, candidate.replaces
        if target is not None and target != new.entry_id:
            present = find(working, target)
            if present is not None:
                if not _same_statement(present, new):
                    working = evict(working, target)
                    replaced.append(EntryReplacement(new.observation_id, present.observation_id, True))
            elif target in earlier:
                old = earlier[target]
                if not _same_statement(old, new):
                    dropped.add(old.observation_id)
                    twin = _find_same_statement(working, old)
                    kept = old.observation_id
                    if twin is not None:
                        kept = kept if _prevails(old, twin) else twin.observation_id
                        working = evict(working, twin.entry_id)
                    replaced.append(EntryReplacement(new.observation_id, kept, True))
            else:
                replaced.append(EntryReplacement(new.observation_id, target, False))
        earlier[new.entry_id] = new
    return working, tuple(replaced), frozenset(dropped)


def _same_statement(old: WorkingEntry | Observation, new: Observation) -> bool:
    return old.subject == new.subject and ids.canonical(old.content) == ids.canonical(new.content)


def _find_same_statement(working: WorkingSet, observation: Observation) -> WorkingEntry | None:
    said = ids.canonical(observation.content)
    return next(
        (
            entry
            for entry in working.entries
            if entry.subject == observation.subject and ids.canonical(entry.content) == said
        ),
        None,
    )


def _prevails(new: Observation, old: WorkingEntry) -> bool:
    """Return whether an entry takes the id, durability and importance of an observation that repeats it. The more
    durable of the two prevails. With equal durability, the more important prevails. With equal importance, the entry
    prevails. If one of the two became a fact, that one prevails by these rules."""
    return (_DURABILITY.index(new.durability), new.importance) > (_DURABILITY.index(old.durability), old.importance)


def _renewed(entry: WorkingEntry, candidate: EntryCandidate, turn: int, policy: DecayPolicy) -> WorkingEntry:
    new = candidate.observation
    update: dict[str, object] = {
        "last_access_turn": turn,
        "sensitivity": max(entry.sensitivity, new.sensitivity, key=SENSITIVITIES.index),
        "source_role": min(entry.source_role, new.source_role, key=TRUST_ORDER.index),
    }
    if _prevails(new, entry):
        update |= {
            "entry_id": new.entry_id,
            "observation_id": new.observation_id,
            "durability": new.durability,
            "importance": new.importance,
            "category": new.category,
        }
    return _scored(entry.model_copy(update=update), turn, policy)


def _entry(candidate: EntryCandidate, turn: int, *, pinned: bool) -> WorkingEntry:
    new = candidate.observation
    return WorkingEntry(
        entry_id=new.entry_id,
        content=new.content,
        subject=new.subject,
        category=new.category,
        durability=new.durability,
        importance=new.importance,
        pinned=pinned,
        salience=new.importance,
        created_turn=turn,
        last_access_turn=turn,
        observation_id=new.observation_id,
        sensitivity=new.sensitivity,
        source_role=new.source_role,
        metadata=dict(candidate.metadata),
    )


def _scored(entry: WorkingEntry, turn: int, policy: DecayPolicy) -> WorkingEntry:
    return entry.model_copy(update={"salience": salience(entry.importance, turn - entry.last_access_turn, policy)})


def _least(working: WorkingSet) -> WorkingEntry:
    """Return the entry to evict: the unpinned entry with the least salience; of several, the oldest. A pinned entry is
    evicted only when the policy's capacity was reduced and all entries are pinned."""
    return min(working.entries, key=lambda entry: (entry.pinned, entry.salience, entry.created_turn))


def _pin_free(working: WorkingSet, policy: WorkingSetPolicy) -> bool:
    return sum(entry.pinned for entry in working.entries) < policy.max_pinned


def _named(working: WorkingSet, entry_id: str) -> WorkingEntry:
    entry = find(working, entry_id)
    if entry is None:
        raise UnknownEntryError(entry_id)
    return entry


def _put(working: WorkingSet, entry_id: str, entry: WorkingEntry) -> WorkingSet:
    return _with(working, (entry if old.entry_id == entry_id else old for old in working.entries))


def _with(working: WorkingSet, entries: Iterable[WorkingEntry]) -> WorkingSet:
    return WorkingSet(turn=working.turn, entries=_ordered(entries))


def _ordered(entries: Iterable[WorkingEntry]) -> tuple[WorkingEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: (-entry.salience, entry.created_turn)))
