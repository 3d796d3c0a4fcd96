"""Compact rows of the records and points that the checker has read. Texts become hashes, so that a long run fits in
memory and no violation contains content."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ..memory.facts.subject_names import USER
from ..schemas.budgets import StoredBudget
from ..schemas.parking import UnreadDeleted
from ..schemas.topics import DEAD_LETTER_SUFFIX, StageName
from ..schemas.turn_number import TurnNumber
from ..streams.log.port import Position
from .partition_counts import PartitionCounts

TurnName = tuple[str, str]
"""Session key and turn id."""
WHOLE_SESSION = ""
"""Turn id in the name of all turns of an erased session."""

DUPLICATES_WITHIN = 24 * 60 * 60 * 1000
"""Milliseconds after the oldest kept record of a partition. A record within this time may be a duplicate of a deleted
record, whose effect may be deleted, too."""


def format_position(position: Position) -> str:
    """Return the name of a record for a violation: `memory.turns/3@17`."""
    return f"{position.topic}/{position.partition}@{position.offset}"


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets of one partition when the reading begins.

    - `first`: the first offset that retention has kept.
    - `since`: the first offset of interest, given by the caller.
    - `end`: the offset that the next new record gets.
    """

    first: int
    since: int
    end: int

    @property
    def start(self) -> int:
        """The offset where reading begins."""
        return max(self.first, self.since)

    @property
    def is_complete(self) -> bool:
        """True when retention has deleted nothing in the scope."""
        return self.first <= self.since


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn that can be decoded. `placed`: True when the turn is on the partition of its session key (murmur2)."""

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
    """Hashes of the messages' texts."""
    kept_digest: str
    """The digest that the recorder keeps: the digest of the turn with masked spans."""
    kept_messages: tuple[int, ...]

    def stored_as(self, digest: str | None) -> tuple[int, ...] | None:
        """Return the hashes of the texts that the session log must contain. `digest`: the digest in the session log.
        None: it is the digest of another turn. An earlier version stored texts without masks, under the digest of the
        original record."""
        if digest == self.kept_digest:
            return self.kept_messages
        return self.messages if digest == self.digest else None

    @property
    def name(self) -> TurnName:
        return self.session_key, self.turn_id


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that its stage must refuse. The record itself shows the reason."""

    position: Position
    timestamp: int
    tenant_id: str | None
    stage: StageName
    reason: str
    digest: str


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A dead letter. `original` is None when its headers do not name a record."""

    position: Position
    timestamp: int
    tenant_id: str | None
    original: Position | None
    stage: str
    reason: str
    digest: str | None
    """None when a secret in the value is masked."""


@dataclass(frozen=True, slots=True)
class ObservationRow:
    """One observation and its route under the policy. `subject`: the subject that a fact of this owner gets."""

    observation_id: str
    derived: bool
    """True when the id has the value that is derived from session, turn, subject and content."""
    subject: str
    content_hash: str
    quote: int
    quoted: bool | None
    """True when the turn contains the quote; None when the turn is not available."""
    episodic: bool
    semantic: bool
    is_instruction: bool = False
    """True for an instruction to the assistant, which makes no episode."""


@dataclass(frozen=True, slots=True)
class ObservedRow:
    """An observed turn: a record on memory.observations. Of several records with the same value, only the first has a
    row."""

    position: Position
    timestamp: int
    tenant_id: str
    owner_key: str
    key: str
    session_key: str
    turn_id: str
    number: TurnNumber
    digest: str
    ce_id: str | None
    observations: tuple[ObservationRow, ...]
    model: str | None
    calls: int
    tokens: int
    put_back: bool = False
    """True when the record is a dead letter that was put back into the topic."""

    @property
    def name(self) -> TurnName:
        return self.session_key, self.turn_id


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """A reflected turn: a record on memory.episodes.recorded. Of several records with the same value, only the first
    has a row."""

    position: Position
    tenant_id: str
    owner_key: str
    key: str
    session_key: str
    turn_id: str
    number: TurnNumber
    digest: str
    episode_ids: tuple[str, ...]
    fact_ids: tuple[str, ...]

    @property
    def name(self) -> TurnName:
        return self.session_key, self.turn_id


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact as one place stores it. `fields`: hashes of the compared fields in the order of COMPARED."""

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
    """A change of a fact: a record on memory.facts.updated. Of several records with the same value, only the first has
    a row."""

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
    judged: bool
    """True when a model judged a pending fact."""
    erases: bool = False
    """True when an erasure caused the change. Such an event has no earlier version, which has the erased quotes."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """The last record of a key on memory.facts. `fact`: None for a tombstone. `highest`: the highest version in all
    records of the key."""

    position: Position
    key: str
    fact: FactView | None
    highest: int


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command of an owner or of a session."""

    position: Position
    timestamp: int
    tenant_id: str
    command_id: str
    kind: str
    key: str
    stage: StageName
    issued_by: str
    model: str | None
    """The model that made the proposals of a `facts.apply` or `episodes.record` command."""
    proposes: bool
    """True when a consolidation run issued the command, and the command contains proposals."""
    judges: bool
    """True when the proposals are a model's judgements of pending facts."""
    kept: tuple[str, ...] = ()
    """Ids of the episodes that an `episodes.keep` command makes."""
    retracts: TurnName | None = None
    """The turn that a `turn.retract` command takes back. For `session.erase`, its id is `WHOLE_SESSION`."""


@dataclass(frozen=True, slots=True)
class RetractedTurns:
    """The turns that were taken back, alone or with their session."""

    named: frozenset[TurnName]

    def __contains__(self, turn: TurnName) -> bool:
        return turn in self.named or (turn[0], WHOLE_SESSION) in self.named


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The result of a command."""

    position: Position
    command_id: str
    subject: str
    """The key of the command's record. Clients choose command ids, so a command id alone is not unique."""
    digest: str
    of_repetition: bool = False
    """True when the result refuses a repeated command: the id was used for another request, or the first result is no
    longer stored."""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A piece of evidence of a fact. The fact was read from a topic or from the store."""

    tenant_id: str
    owner_key: str
    fact_id: str
    session_id: str
    turn_id: str
    observation_id: str
    quote: int
    command_id: str | None = None
    """The command of an edit by hand; None for evidence from an observation."""


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
    """The index of a message in its turn."""
    text: int = 0
    turn_sha256: str | None = None
    summarised: tuple[str, ...] = ()
    """The turn ids of a summary."""
    command_id: str | None = None
    """The command of an episode that was added by hand."""

    def __str__(self) -> str:
        return f"{self.collection}/{self.id}"


Caused = TurnRow | Refusal | ObservedRow | CommandRow
"""Records that have an effect."""


def evidence_subject(subject: str) -> str:
    """Return the subject by which evidence is looked up. Another subject than the user may have several names, and a
    namesake gets another subject than its observation, so all of them count as one."""
    return subject if subject == USER else ""


@dataclass(slots=True)
class History:
    """All rows of one reading. history.py fills it; the checks only read it."""

    tenant: str | None = None
    spans: dict[str, tuple[Span, ...]] = field(default_factory=dict)
    committed: dict[tuple[StageName, str], tuple[int | None, ...]] = field(default_factory=dict)
    """Committed offsets, read before everything else. All effects of the records below these offsets exist."""
    counts: PartitionCounts = field(default_factory=PartitionCounts)
    unread_deleted: tuple[UnreadDeleted, ...] = ()
    """Records of the last 30 days that retention deleted before a stage had read them."""
    restored: set[str] = field(default_factory=set)
    """Keys of owners and sessions with imported records. The log lacks the causes of these records, and the ids of
    records that moved to another owner follow from no cause."""
    moved: tuple[str, ...] = ()
    """Topics that grew and commits that advanced during the reading."""
    turns: list[TurnRow] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    dead_letters: list[DeadLetterRow] = field(default_factory=list)
    first_kept: dict[tuple[str, int], int] = field(default_factory=dict)
    """Timestamp of the first kept record by topic and partition, in milliseconds."""
    originals: dict[Position, str] = field(default_factory=dict)
    """Digests of the records that have dead letters."""
    original_turns: dict[Position, TurnName] = field(default_factory=dict)
    observed: dict[TurnName, list[ObservedRow]] = field(default_factory=dict)
    """Rows by turn, one row per distinct value."""
    recorded: dict[tuple[str, TurnName], list[RecordedRow]] = field(default_factory=dict)
    """Rows by owner key and turn, one row per distinct value."""
    events: dict[str, list[EventRow]] = field(default_factory=dict)
    """Rows by event id, one row per distinct value."""
    states: dict[str, StateRow] = field(default_factory=dict)
    """The last state of each fact, by record key."""
    commands: list[CommandRow] = field(default_factory=list)
    results: dict[tuple[str, str], list[ResultRow]] = field(default_factory=dict)
    """Rows by subject and command id, one row per distinct value."""
    waiting: set[Position] = field(default_factory=set)
    """Positions of turns with a waiting row in the observer's table. Only turns without any other effect are looked
    up."""
    evidence: dict[EvidenceRow, str] = field(default_factory=dict)
    """Each piece of evidence, with the place where it was first read."""
    evidence_keys: set[tuple[str, str, str, str]] = field(default_factory=set)
    """(owner key, session id, turn id, subject) of facts with evidence of that turn."""
    stored_facts: dict[str, FactView] = field(default_factory=dict)
    points: dict[str, list[PointRow]] = field(default_factory=dict)
    """Points by collection."""
    over_since: datetime | None = None
    """Messages whose period ended by this time may be dropped. None: messages are kept for ever."""
    budgets: list[StoredBudget] = field(default_factory=list)
    """Budget accounts, one for each tenant, budget line and day."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Records and points of memstream that cannot be read, with the reason."""

    # ------------------------------------------------------------------------------------------------ queries
    def retracted_turns(self) -> RetractedTurns:
        """Return the turns that were taken back. They may have no effect."""
        return RetractedTurns(frozenset(each.retracts for each in self.commands if each.retracts is not None))

    def processed(self, stage: StageName, position: Position) -> bool:
        """Return whether the stage had acknowledged this record before the reading began."""
        committed = self.committed.get((stage, position.topic), ())
        at = committed[position.partition] if position.partition < len(committed) else None
        return at is not None and position.offset < at

    def is_complete(self, topic: str, key: str) -> bool:
        """Return whether every record that was ever sent under this key is still in the topic."""
        spans = self.spans.get(topic, ())
        return (
            key not in self.restored
            and bool(spans)
            and all(spans[each].is_complete for each in self._partitions_of(topic, key))
        )

    def _partitions_of(self, topic: str, key: str) -> Collection[int]:
        now = len(self.spans.get(topic, ()))
        return self.counts.partitions_of(topic, key, now=now) if now else ()

    def all_complete(self, topic: str) -> bool:
        return all(span.is_complete for span in self.spans.get(topic, ()))

    def dead_lettered(self, stage: StageName) -> Mapping[Position, Sequence[DeadLetterRow]]:
        """Return the dead letters of a stage by the position of the refused record."""
        found: dict[Position, list[DeadLetterRow]] = {}
        for letter in self.dead_letters:
            if letter.stage == stage and letter.original is not None:
                found.setdefault(letter.original, []).append(letter)
        return found

    def keeps_since(self, topic: str, timestamp: int, *, key: str | None = None) -> bool:
        """Return whether every record sent after this time under this key (None: under any key) is still in the topic.
        An effect has a later timestamp than its cause."""
        spans = self.spans.get(topic, ())
        partitions = range(len(spans)) if key is None else self._partitions_of(topic, key)
        return all(
            spans[each].is_complete or timestamp > self.first_kept.get((topic, each), timestamp) for each in partitions
        )

    def keeps_dead_letter(self, row: Caused) -> bool:
        """Return whether a dead letter of this record would still be in its topic."""
        return self.keeps_since(row.position.topic + DEAD_LETTER_SUFFIX, row.timestamp)

    def keeps_effect(self, rows: Iterable[Caused], topic: str, *, key: str | None) -> bool:
        """Return whether the effect or the dead letter of these records would still be in its topic. The records are
        copies of one item that was sent several times. Only the first copy has an effect."""
        first = min(rows, key=lambda row: row.timestamp)
        place = first.position
        span = self.spans[place.topic][place.partition]
        known_since = self.first_kept.get((place.topic, place.partition), first.timestamp)
        is_first = span.is_complete or first.timestamp > known_since + DUPLICATES_WITHIN
        return is_first and self.keeps_dead_letter(first) and self.keeps_since(topic, first.timestamp, key=key)

    def cut(self) -> dict[str, dict[int, int]]:
        """Return the first kept offset by topic and partition, for partitions from which retention has deleted
        records."""
        found = {
            topic: {partition: span.first for partition, span in enumerate(spans) if not span.is_complete}
            for topic, spans in self.spans.items()
        }
        return {topic: partitions for topic, partitions in found.items() if partitions}
