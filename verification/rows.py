"""The dump as data: what is kept of each record and point. Texts become hashes, so that a long run fits in memory and
no content leaves through a violation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..schemas.budgets import StoredBudget
from ..schemas.topics import DEAD_LETTER_SUFFIX, StageName
from ..streams.log.partitioner import partition_for
from ..streams.log.port import Position

TurnName = tuple[str, str]
"""Session key and turn id."""


DUPLICATES_WITHIN = 24 * 60 * 60 * 1000
"""Milliseconds. Near where retention has cut, a record may be a duplicate of one that is gone, its effect gone too."""


def format_position(position: Position) -> str:
    """As a violation names a record: `memory.turns/3@17`."""
    return f"{position.topic}/{position.partition}@{position.offset}"


@dataclass(frozen=True, slots=True)
class Span:
    """One partition as it was when the reading began. `first`: the first offset that is kept; `since`: the caller
    knows that nothing of his lies before; `end`: the next offset."""

    first: int
    since: int
    end: int

    @property
    def start(self) -> int:
        """From where it is read."""
        return max(self.first, self.since)

    @property
    def whole(self) -> bool:
        """Whether retention has taken nothing that was asked for."""
        return self.first <= self.since


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn that decodes. `placed`: it lies where murmur2 of its session key says."""

    position: Position
    timestamp: int
    tenant_id: str
    session_key: str
    turn_id: str
    owner_key: str
    digest: str
    placed: bool
    rekeyed: bool
    messages: tuple[int, ...]
    """Hashes of their texts."""

    @property
    def name(self) -> TurnName:
        return self.session_key, self.turn_id


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that its stage has to refuse: what it is shows why."""

    position: Position
    timestamp: int
    tenant_id: str | None
    stage: StageName
    reason: str
    digest: str


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A dead letter. `original` is None when its headers do not say where it was."""

    position: Position
    timestamp: int
    tenant_id: str | None
    original: Position | None
    stage: str
    reason: str
    digest: str


@dataclass(frozen=True, slots=True)
class ObservationRow:
    """One observation, with where the policy sends it. `subject` as a fact of this owner has it."""

    observation_id: str
    derived: bool
    """Its id follows from its session, turn, subject and content."""
    subject: str
    content_hash: str
    quote: int
    quoted: bool | None
    """Whether the quote stands in the turn; None: the turn is not there to look."""
    episodic: bool
    semantic: bool


@dataclass(frozen=True, slots=True)
class ObservedRow:
    """A value on memory.observations, the first time it came."""

    position: Position
    timestamp: int
    tenant_id: str
    owner_key: str
    key: str
    session_key: str
    turn_id: str
    turn_number: int
    digest: str
    ce_id: str | None
    observations: tuple[ObservationRow, ...]
    model: str | None
    calls: int
    tokens: int

    @property
    def name(self) -> TurnName:
        return self.session_key, self.turn_id


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """A value on memory.episodes.recorded, the first time it came."""

    position: Position
    tenant_id: str
    owner_key: str
    key: str
    session_key: str
    turn_id: str
    turn_number: int
    digest: str
    episode_ids: tuple[str, ...]
    fact_ids: tuple[str, ...]

    @property
    def name(self) -> TurnName:
        return self.session_key, self.turn_id


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact as one of its places has it. `fields` are hashes of the compared fields, by their order in COMPARED."""

    fact_id: str
    version: int
    tenant_id: str
    owner_key: str
    subject: str
    content_hash: str
    state: str
    supersedes: str | None
    superseded_by: str | None
    fields: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EventRow:
    """A value on memory.facts.updated, the first time it came."""

    position: Position
    event_id: str
    ce_id: str | None
    digest: str
    action: str
    tenant_id: str
    owner_key: str
    key: str
    fact: FactView
    before: FactView | None
    turn_ids: tuple[str, ...]
    observation_ids: tuple[str, ...]
    command_id: str | None
    run_id: str | None
    model: str | None


@dataclass(frozen=True, slots=True)
class StateRow:
    """The last record of a key on memory.facts. `fact` is None for a tombstone; `highest`: the highest version that
    any of its records had."""

    position: Position
    key: str
    fact: FactView | None
    highest: int


@dataclass(frozen=True, slots=True)
class CommandRow:
    position: Position
    timestamp: int
    tenant_id: str
    command_id: str
    kind: str
    key: str
    record_key: str
    stage: StageName
    issued_by: str
    model: str | None
    """Of facts.apply: what made the proposals."""
    proposes: bool
    """A facts.apply of a consolidation run."""
    kept: tuple[str, ...] = ()
    """Of episodes.keep: ids of the episodes that it makes."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    position: Position
    command_id: str
    subject: str
    """The key of the stream that its command touches: ids of commands are others' to choose."""
    digest: str


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A piece of evidence of a fact, wherever the fact was seen with it."""

    tenant_id: str
    owner_key: str
    fact_id: str
    session_id: str
    turn_id: str
    observation_id: str
    quote: int


@dataclass(frozen=True, slots=True)
class PointRow:
    """A point of `episodes`, `archive`, `working` or `turns` in the store."""

    collection: str
    id: str
    tenant_id: str
    owner_key: str
    session_key: str
    observation_id: str = ""
    content_hash: str = ""
    turn_id: str = ""
    index: int = -1
    """Of a message in its turn."""
    text: int = 0
    turn_sha256: str | None = None
    summarised: tuple[str, ...] = ()
    """Of an episode that is a summary: its turns."""

    def __str__(self) -> str:
        return f"{self.collection}/{self.id}"


Caused = TurnRow | Refusal | ObservedRow | CommandRow
"""Records from which something follows."""


@dataclass(slots=True)
class History:
    """Everything that was read. Built by history.py, then only looked at."""

    tenant: str | None = None
    spans: dict[str, tuple[Span, ...]] = field(default_factory=dict)
    committed: dict[tuple[StageName, str], tuple[int | None, ...]] = field(default_factory=dict)
    """Before anything was read: what lies below had all of its effects."""
    moved: tuple[str, ...] = ()
    """Topics that grew, and commits that went on, while they were read."""
    turns: list[TurnRow] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    letters: list[DeadLetterRow] = field(default_factory=list)
    first_kept: dict[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition the timestamp of the first record, milliseconds."""
    originals: dict[Position, str] = field(default_factory=dict)
    """Digests of the records that have dead letters."""
    original_turns: dict[Position, TurnName] = field(default_factory=dict)
    observed: dict[TurnName, list[ObservedRow]] = field(default_factory=dict)
    """One row for each different value."""
    recorded: dict[tuple[str, TurnName], list[RecordedRow]] = field(default_factory=dict)
    """By owner key and turn."""
    events: dict[str, list[EventRow]] = field(default_factory=dict)
    """By event id, one row for each different value."""
    states: dict[str, StateRow] = field(default_factory=dict)
    """By key."""
    commands: list[CommandRow] = field(default_factory=list)
    results: dict[tuple[str, str], list[ResultRow]] = field(default_factory=dict)
    """By subject and command id, one row for each different value."""
    waiting: set[Position] = field(default_factory=set)
    """Turns with a waiting row; looked up only for turns without any other effect."""
    evidence: dict[EvidenceRow, str] = field(default_factory=dict)
    """And where it was first seen."""
    spoken: set[tuple[str, str, str, str]] = field(default_factory=set)
    """(owner key, session id, turn id, subject) of facts with evidence of that turn."""
    stored_facts: dict[str, FactView] = field(default_factory=dict)
    points: dict[str, list[PointRow]] = field(default_factory=dict)
    """By collection."""
    budgets: list[StoredBudget] = field(default_factory=list)
    """Accounts of tenants, lines and days."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Records and points of ours that nobody can read, and why."""

    # ------------------------------------------------------------------------------------------------ asking
    def processed(self, stage: StageName, position: Position) -> bool:
        """Whether the stage had acknowledged this record before the reading began."""
        committed = self.committed.get((stage, position.topic), ())
        at = committed[position.partition] if position.partition < len(committed) else None
        return at is not None and position.offset < at

    def whole(self, topic: str, key: str) -> bool:
        """Whether all that was ever sent under this key is still there."""
        spans = self.spans.get(topic, ())
        return bool(spans) and spans[partition_for(key.encode(), len(spans))].whole

    def all_whole(self, topic: str) -> bool:
        return all(span.whole for span in self.spans.get(topic, ()))

    def lettered(self, stage: StageName) -> Mapping[Position, Sequence[DeadLetterRow]]:
        """The dead letters that a stage wrote, by the record that was refused."""
        found: dict[Position, list[DeadLetterRow]] = {}
        for letter in self.letters:
            if letter.stage == stage and letter.original is not None:
                found.setdefault(letter.original, []).append(letter)
        return found

    def kept_since(self, topic: str, timestamp: int, *, key: str | None = None) -> bool:
        """Whether all that was sent after this time, under this key (None: under any), is still there. What
        follows from a record comes after it."""
        spans = self.spans.get(topic, ())
        partitions = range(len(spans)) if key is None else (partition_for(key.encode(), len(spans)),) if spans else ()
        return all(
            spans[each].whole or timestamp > self.first_kept.get((topic, each), timestamp) for each in partitions
        )

    def letter_kept(self, row: Caused) -> bool:
        """Whether a dead letter of this record would still be there."""
        return self.kept_since(row.position.topic + DEAD_LETTER_SUFFIX, row.timestamp)

    def effect_kept(self, rows: Iterable[Caused], topic: str, *, key: str | None) -> bool:
        """Whether what followed from the first of these records (they are one thing, sent several times) would still
        be on this topic, or a dead letter in its stead."""
        first = min(rows, key=lambda row: row.timestamp)
        place = first.position
        span = self.spans[place.topic][place.partition]
        known_since = self.first_kept.get((place.topic, place.partition), first.timestamp)
        is_first = span.whole or first.timestamp > known_since + DUPLICATES_WITHIN
        return is_first and self.letter_kept(first) and self.kept_since(topic, first.timestamp, key=key)

    def cut(self) -> dict[str, dict[int, int]]:
        """From which offset on the checker can speak, where retention has taken something: topic → partition."""
        found = {
            topic: {partition: span.first for partition, span in enumerate(spans) if not span.whole}
            for topic, spans in self.spans.items()
        }
        return {topic: partitions for topic, partitions in found.items() if partitions}
