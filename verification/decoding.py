"""Decoding of records and points into rows, one at a time; pure. A record that its stage must refuse becomes a
`Refusal`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from ..adapters.ports import StoredPoint
from ..agents.common.turn_routing import decode_turn, is_misplaced, turn_hash, was_rekeyed
from ..memory.facts.erasures import ERASURE
from ..memory.facts.routing import route
from ..memory.facts.statements import resolve_subject
from ..memory.language.text import folded, quote_in_folded
from ..memory.policies import MemoryPolicy
from ..memory.secrets.quotes import MASKED_SPAN
from ..memory.secrets.secret_filter import SecretFilter
from ..memory.secrets.turns import protect_turn
from ..memory.tenant_policies import TurnPolicies
from ..schemas import ids
from ..schemas.archive import ArchivedText
from ..schemas.base import Contract
from ..schemas.cloudevents import MASKED_HEADER
from ..schemas.collections import ARCHIVE, EPISODES, TURNS, WORKING
from ..schemas.command_kinds import kinds_of
from ..schemas.commands import (
    KEY_REUSED,
    REPEATED,
    Command,
    CommandResult,
    EpisodesKeep,
    EpisodesRecord,
    FactsApply,
)
from ..schemas.episodes import EpisodesRecorded, StoredEpisode
from ..schemas.errors import Poison
from ..schemas.facts import Evidence, Fact, FactUpdated
from ..schemas.observations import Observation, Observed
from ..schemas.topics import COMMANDS_SESSION, StageName
from ..schemas.turns import Turn
from ..schemas.working_set import StoredMessage, StoredWorkingEntry
from ..streams.engine.codec import decode, tenant_of
from ..streams.engine.redrive import redriven_letter
from ..streams.log.port import Position, Record
from .rows import (
    WHOLE_SESSION,
    CommandRow,
    DeadLetterRow,
    EventRow,
    EvidenceRow,
    FactView,
    ObservationRow,
    ObservedRow,
    PointRow,
    RecordedRow,
    Refusal,
    ResultRow,
    TurnName,
    TurnRow,
    evidence_subject,
)

C = TypeVar("C", bound=Contract)
MOVING = frozenset(("strength", "retrieval_count", "last_accessed_at"))
"""Fields that are only in Qdrant and change without a new version or event. Comparisons leave them out."""
COMPARED = tuple(name for name in Fact.model_fields if name not in MOVING)
ORIGINAL_HEADER_PREFIX = "kafka_dlt-original-"


class UnreadableRecord(Exception):
    """A record or point of memstream that cannot be read. The message gives the reason."""


def digest_of(value: bytes | None) -> str:
    return hashlib.sha256(value or b"").hexdigest() if value is not None else "null"


def key_of(record: Record) -> str:
    return (record.key or b"").decode("utf-8", "replace")


def read(record: Record, contract: type[C]) -> C:
    """Decode a record that a stage of memstream wrote. Raises UnreadableRecord."""
    try:
        return decode(record, contract)
    except Poison as poison:
        raise UnreadableRecord(f"{poison.reason}: {poison}") from None


def _header(record: Record, name: str) -> str | None:
    return next((value.decode("utf-8", "replace") for key, value in record.headers if key == name), None)


# ------------------------------------------------------------------------------------------------ inputs of stages
@dataclass(frozen=True, slots=True)
class DecodedTurn:
    row: TurnRow
    turn: Turn
    """The turn with masked spans, as the stages keep it."""

    def quoted(self, quotes: Iterable[str]) -> list[bool]:
        """Return for each quote whether one of the messages contains it. A masked span in a quote matches any words."""
        texts = [folded(message.text) for message in self.turn.messages]
        return [any(_occurs_in(quote, text) for text in texts) for quote in quotes]


def _occurs_in(quote: str, text: str) -> bool:
    parts = [part for part in MASKED_SPAN.split(quote) if part.strip()]
    return all(quote_in_folded(part, text) for part in parts) if parts else bool(quote.strip())


def turn(record: Record, *, partitions: int, policy: MemoryPolicy, now: datetime) -> DecodedTurn | Refusal:
    """Decode a turn. `now`: the time of a turn whose record has no timestamp."""
    try:
        routed = decode_turn(record, policy.routing, now=now)
    except Poison as poison:
        return refusal(record, "observer", poison.reason)
    found, owner = routed.turn, routed.owner
    protected = protect_turn(found, SecretFilter(policy.privacy))
    misplaced, rekeyed = is_misplaced(record, found.session_key, partitions=partitions), was_rekeyed(record)
    if misplaced and rekeyed:
        return refusal(record, "observer", "invalid")
    row = TurnRow(
        position=record.position,
        timestamp=record.timestamp,
        tenant_id=found.tenant_id,
        session_key=found.session_key,
        turn_id=found.turn_id,
        owner_key=owner.key(found.tenant_id),
        digest=digest_of(record.value),
        placed=not misplaced,
        rekeyed=rekeyed,
        messages=tuple(hash(message.text) for message in found.messages),
        kept_digest=turn_hash(protected, record),
        kept_messages=tuple(hash(message.text) for message in protected.turn.messages),
    )
    return DecodedTurn(row, protected.turn)


def refusal(record: Record, stage: StageName, reason: str) -> Refusal:
    return Refusal(record.position, record.timestamp, tenant_of(record.value), stage, reason, digest_of(record.value))


def command(record: Record, *, partitions: int) -> CommandRow | Refusal:
    of_session = record.position.topic == COMMANDS_SESSION.name
    refuser: StageName = "observer" if of_session else "reflector"
    try:
        found = decode(record, Command)
    except Poison as poison:
        return refusal(record, refuser, poison.reason)
    addressed = found.session if of_session else found.owner
    if addressed is None or is_misplaced(record, found.key, partitions=partitions):
        return refusal(record, refuser, "invalid")
    consolidates = not of_session and found.kind in kinds_of("consolidation")
    run_model, proposes, judges = _proposed(found)
    return CommandRow(
        position=record.position,
        timestamp=record.timestamp,
        tenant_id=found.tenant_id,
        command_id=found.command_id,
        kind=found.kind,
        key=found.key,
        stage="consolidation" if consolidates else refuser,
        issued_by=found.issued_by,
        model=run_model,
        proposes=proposes,
        judges=judges,
        kept=_kept(found),
        retracts=_retracted(found),
    )


def _proposed(found: Command) -> tuple[str | None, bool, bool]:
    """Return the model that made the proposals of a `facts.apply` or `episodes.record` command, whether consolidation
    issued the command, and whether the proposals are judgements."""
    proposed: type[FactsApply] | type[EpisodesRecord]
    match found.kind:
        case "facts.apply":
            proposed = FactsApply
        case "episodes.record":
            proposed = EpisodesRecord
        case _:
            return None, False, False
    try:
        args = proposed.from_payload(found.args)
    except ValidationError:
        return None, False, False
    return args.model, found.issued_by == "/memstream/consolidation", _is_judgement(args.prompt)


def _is_judgement(prompt: str | None) -> bool:
    return prompt is not None and prompt.startswith("judge/")


def _kept(found: Command) -> tuple[str, ...]:
    """Return the ids of the episodes that an `episodes.keep` command makes."""
    if found.kind != "episodes.keep":
        return ()
    try:
        observations = EpisodesKeep.from_payload(found.args).as_derived(found.tenant_id)
    except ValidationError:
        return ()
    return tuple(ids.episode_id(each.observation_id) for each in observations)


def _retracted(found: Command) -> TurnName | None:
    """Return the turn that a `turn.retract` command takes back, or the session of a `session.erase` command."""
    if found.kind == "session.erase":
        return found.key, WHOLE_SESSION
    turn_id = found.args.get("turn_id") if found.kind == "turn.retract" else None
    return (found.key, turn_id) if isinstance(turn_id, str) else None


def observed(
    record: Record, *, partitions: int, policy: MemoryPolicy, of_turns: TurnPolicies
) -> tuple[ObservedRow, Observed] | Refusal:
    try:
        found = decode(record, Observed)
    except Poison as poison:
        return refusal(record, "reflector", poison.reason)
    owner_key = found.owner.key(found.tenant_id)
    if is_misplaced(record, owner_key, partitions=partitions):
        return refusal(record, "reflector", "invalid")
    session_key = ids.session_key(found.tenant_id, found.user_id, found.session_id)
    usage = found.cause.usage
    ruling = of_turns.of(found) or policy
    row = ObservedRow(
        position=record.position,
        timestamp=record.timestamp,
        tenant_id=found.tenant_id,
        owner_key=owner_key,
        key=key_of(record),
        session_key=session_key,
        turn_id=found.turn_id,
        number=found.number,
        digest=digest_of(record.value),
        ce_id=_header(record, "ce_id"),
        observations=tuple(_observation(found, each, session_key, ruling) for each in found.observations),
        model=found.cause.model,
        calls=usage.calls if usage else 0,
        tokens=usage.input_tokens + usage.output_tokens if usage else 0,
        put_back=redriven_letter(record) is not None,
    )
    return row, found


def _observation(of: Observed, each: Observation, session_key: str, policy: MemoryPolicy) -> ObservationRow:
    way = route(each, policy)
    return ObservationRow(
        observation_id=each.observation_id,
        derived=each.observation_id == ids.observation_id(session_key, of.turn_id, each.subject, each.content),
        subject=resolve_subject(each.subject, of.owner, of.user_id),
        content_hash=ids.content_hash(each.content),
        quote=hash(each.evidence),
        quoted=None,
        episodic=way.episodic,
        semantic=way.semantic,
        is_instruction=way.is_instruction,
    )


def recorded(record: Record, *, partitions: int) -> RecordedRow | Refusal:
    try:
        found = decode(record, EpisodesRecorded)
    except Poison as poison:
        return refusal(record, "consolidation", poison.reason)
    owner_key = found.owner.key(found.tenant_id)
    if is_misplaced(record, owner_key, partitions=partitions):
        return refusal(record, "consolidation", "invalid")
    return RecordedRow(
        position=record.position,
        tenant_id=found.tenant_id,
        owner_key=owner_key,
        key=key_of(record),
        session_key=ids.session_key(found.tenant_id, found.user_id, found.session_id),
        turn_id=found.turn_id,
        number=found.number,
        digest=digest_of(record.value),
        episode_ids=tuple(each.episode_id for each in found.episodes),
        fact_ids=found.fact_ids,
    )


# ------------------------------------------------------------------------------------------------ outputs of stages
def _digest_of_letter(record: Record) -> str | None:
    """Return the digest of the refused value; None when a secret in it is masked."""
    if _header(record, MASKED_HEADER) is not None:
        return None
    return _header(record, "memstream-value-sha256") or digest_of(record.value)


def dead_letter(record: Record) -> DeadLetterRow:
    """Decode a dead letter. This never fails: a check reports a dead letter that does not name its record."""
    topic, partition, offset = (
        _header(record, ORIGINAL_HEADER_PREFIX + name) for name in ("topic", "partition", "offset")
    )
    numbers = [int(text) for text in (partition, offset) if text is not None and text.isdecimal() and len(text) < 20]
    return DeadLetterRow(
        position=record.position,
        timestamp=record.timestamp,
        tenant_id=_header(record, "memstream-tenant") or tenant_of(record.value),
        original=Position(topic, *numbers) if topic is not None and len(numbers) == 2 else None,
        stage=_header(record, "memstream-stage") or "",
        reason=_header(record, "memstream-reason") or "",
        digest=_digest_of_letter(record),
    )


def result(record: Record) -> ResultRow:
    found = read(record, CommandResult)
    return ResultRow(
        record.position,
        found.command_id,
        _header(record, "ce_subject") or "",
        digest_of(record.value),
        of_repetition=found.error is not None and found.error.code in (KEY_REUSED.code, REPEATED),
    )


def event(record: Record) -> tuple[EventRow, Fact]:
    found = read(record, FactUpdated)
    row = EventRow(
        position=record.position,
        event_id=found.event_id,
        ce_id=_header(record, "ce_id"),
        digest=digest_of(record.value),
        action=found.action,
        tenant_id=found.tenant_id,
        owner_key=found.owner.key(found.tenant_id),
        key=key_of(record),
        fact=fact_view(found.fact),
        before=fact_view(found.before) if found.before is not None else None,
        turn_ids=found.cause.turn_ids,
        observation_ids=found.cause.observation_ids,
        command_id=found.cause.command_id,
        run_id=found.cause.run_id,
        model=found.cause.model,
        judged=_is_judgement(found.cause.prompt),
        erases=found.decision is not None and found.decision.stage == ERASURE,
    )
    return row, found.fact


def state(record: Record) -> Fact | None:
    return None if record.value is None else read(record, Fact)


def fact_view(fact: Fact) -> FactView:
    payload = fact.to_payload()
    return FactView(
        fact_id=fact.fact_id,
        version=fact.version,
        tenant_id=fact.tenant_id,
        owner_key=fact.owner.key(fact.tenant_id),
        subject=fact.subject,
        content_hash=fact.content_hash,
        state=fact.state,
        supersedes=fact.supersedes,
        superseded_by=fact.superseded_by,
        fields=tuple(_hash(payload[name]) for name in COMPARED),
    )


def _hash(value: JsonValue) -> int:
    return hash(json.dumps(value, sort_keys=True))


def evidence(fact: Fact) -> Iterator[tuple[EvidenceRow, tuple[str, str, str, str]]]:
    """Yield each piece of evidence of a fact for `History.evidence`, with the entry for `History.evidence_keys`."""
    owner_key = fact.owner.key(fact.tenant_id)
    for each in fact.evidence:
        said = (owner_key, each.session_id, each.turn_id, evidence_subject(fact.subject))
        yield _evidence(fact, owner_key, each), said


def _evidence(fact: Fact, owner_key: str, each: Evidence) -> EvidenceRow:
    return EvidenceRow(
        tenant_id=fact.tenant_id,
        owner_key=owner_key,
        fact_id=fact.fact_id,
        session_id=each.session_id,
        turn_id=each.turn_id,
        observation_id=each.observation_id,
        quote=hash(each.quote),
        command_id=each.command_id,
    )


# ------------------------------------------------------------------------------------------------ the store
def point(collection: str, found: StoredPoint) -> PointRow:
    """Decode an episode, an archived text, a working entry or a message. Raises UnreadableRecord."""
    try:
        return _POINTS[collection](found)
    except ValidationError as error:
        raise UnreadableRecord(f"{error.error_count()} fields are wrong") from None


def _episode(found: StoredPoint) -> PointRow:
    """Decode an episode. The content hash of an episode with a gist is the hash of the archived text, so
    tenant_isolation.py compares it with the archive."""
    row = StoredEpisode.from_payload(found.payload)
    whole = row.archived_at is not None or row.content_hash == ids.content_hash(row.content)
    return PointRow(
        EPISODES,
        found.id,
        row.tenant_id,
        row.owner_key,
        ids.session_key(row.tenant_id, row.user_id, row.session_id),
        observation_id=row.observation_id,
        content_hash=("" if row.edited_at is not None else row.content_hash) if whole else "wrong",
        summarised=row.turn_ids if row.is_summary else (),
        turn_id=row.turn_id,
        command_id=row.command_id,
    )


def _archived(found: StoredPoint) -> PointRow:
    row = ArchivedText.from_payload(found.payload)
    return PointRow(
        ARCHIVE,
        found.id,
        row.tenant_id,
        row.owner_key,
        ids.session_key(row.tenant_id, row.user_id, row.session_id),
        observation_id=row.observation_id,
        content_hash=ids.content_hash(row.content) if row.sha256 == ids.text_hash(row.content) else "wrong",
        turn_id=row.turn_id,
    )


def _entry(found: StoredPoint) -> PointRow:
    row = StoredWorkingEntry.from_payload(found.payload)
    session_key = ids.session_key(row.tenant_id, row.user_id, row.session_id)
    return PointRow(WORKING, found.id, row.tenant_id, row.owner_key, session_key, observation_id=row.observation_id)


def _message(found: StoredPoint) -> PointRow:
    row = StoredMessage.from_payload(found.payload)
    return PointRow(
        TURNS,
        found.id,
        row.tenant_id,
        row.owner_key,
        ids.session_key(row.tenant_id, row.user_id, row.session_id),
        turn_id=row.turn_id,
        index=row.message_index,
        text=hash(row.content),
        turn_sha256=row.turn_sha256,
    )


_POINTS: Mapping[str, Callable[[StoredPoint], PointRow]] = {
    EPISODES: _episode,
    ARCHIVE: _archived,
    WORKING: _entry,
    TURNS: _message,
}
COLLECTIONS: tuple[str, ...] = tuple(_POINTS)
"""Collections whose points each come from one turn or one command. Digests, procedures and links do not, so the checker
does not read their collections."""
