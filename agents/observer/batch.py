"""Batch: turns of one session in one model call and one outcome.

`ask` calls the model. All other functions are pure functions of the answer and the session's row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from ...adapters.ports import Completion, CompletionRequest, Completions
from ...memory.facts.routing import is_kept_apart, needs_own_word, trust_of
from ...memory.language.clean_text import clean_value
from ...memory.policies import CapturePolicy, MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.secrets.turns import ProtectedTurn
from ...memory.trust.evidence import TRUST_ORDER, words_of
from ...memory.trust.forget_requests import is_forget_request
from ...memory.working_set.entries import EntryCandidate, WorkingSetUpdate, apply_turn, withdraw
from ...schemas import ids
from ...schemas.errors import Poison
from ...schemas.observations import AppliedPolicy, Observation, Observed
from ...schemas.slots import OTHER
from ...schemas.turns import SENSITIVITIES, Owner, Role, Sensitivity, Turn
from ...schemas.working_set import WorkingSet
from ...streams.engine.retry import Calls
from ...streams.log.port import Record
from ..common.model_call import model_breaker
from ..common.structured_output import ParsedItems
from ..common.turn_routing import TurnReading, occurred_at
from .answer_schema import TASK, ObservationItem, form_for
from .caps import over_cap, within_caps
from .evidence import Verdicts, judged, placed_items
from .flush import origins_after
from .item_protection import with_cut_quotes, without_secrets
from .observation_cause import (
    RefusedItem,
    applied_policy,
    cause_of,
    emotion_of,
    importance_of,
    raised,
    refused_statements,
)
from .prompt import ObservePrompt, ShownTurn, recent_messages, with_names
from .rows import EntryOrigin, SessionRow
from .speakers import USER, Spoken, spoken_in, subject_said
from .turn_source import TurnSource

UNATTRIBUTED: Final = "unattributed"
"""Reason of a refused statement that no speaker of the turn said."""


@dataclass(frozen=True, slots=True)
class BatchTurn:
    """A turn to observe: the turn of this event, or a waiting turn from row `n`."""

    turn: Turn
    owner: Owner
    record: Record
    occurred_at: datetime
    shown: ShownTurn
    reading: TurnReading
    n: int | None = None
    sensitivities: tuple[Sensitivity, ...] = ()
    """The sensitivity of each message."""

    @classmethod
    def of(
        cls,
        protected: ProtectedTurn,
        owner: Owner,
        record: Record,
        policy: CapturePolicy,
        *,
        reading: TurnReading,
        n: int | None = None,
        source: TurnSource | None = None,
    ) -> BatchTurn:
        """Return the batch turn. `record`: the masked record (agents/common/protection.py)."""
        turn = protected.turn
        at = occurred_at(turn, record)
        shown = ShownTurn.of(turn, at, policy, source)
        return cls(turn, owner, record, at, shown, reading, n, protected.sensitivities)

    def said_at(self, at: datetime) -> BatchTurn:
        """Return the turn with this time."""
        return replace(self, occurred_at=at, shown=replace(self.shown, occurred_at=self.turn.local(at)))

    @property
    def turn_id(self) -> str:
        return self.turn.turn_id

    @property
    def tokens(self) -> int:
        """The estimated number of prompt tokens of the turn."""
        return self.shown.tokens


def in_log_order(turns: Sequence[BatchTurn], said_until: datetime | None) -> list[BatchTurn]:
    """Return the turns with corrected times: a turn without its own time is never earlier than the turns before it."""
    ordered: list[BatchTurn] = []
    for turn in turns:
        if said_until is not None and turn.reading.follows_log and turn.occurred_at < said_until:
            turn = turn.said_at(said_until)
        said_until = turn.occurred_at if said_until is None else max(said_until, turn.occurred_at)
        ordered.append(turn)
    return ordered


@dataclass(frozen=True, slots=True)
class UndecodableTurn:
    """A waiting turn that can no longer be decoded, because the rules have changed since the turn was deferred."""

    turn_id: str
    record: Record
    n: int
    poison: Poison
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class ValidObservation:
    """A valid item of the answer. Items of a turn that repeat one statement are merged.

    `places`: places of the merged items in the answer. `turn`: short id of the turn. `spoken`: the speaker and time.
    """

    places: tuple[int, ...]
    turn: str
    item: ObservationItem
    role: Role
    spoken: Spoken
    replaces: tuple[str, ...] = ()
    """The short ids that the item or one of its repetitions replaces."""
    unconfirmed: bool = False

    def repeated(self, place: int, item: ObservationItem, role: Role, *, unconfirmed: bool = False) -> ValidObservation:
        """Return this observation merged with a repetition.

        The merged item has the evidence of the more trusted role; for equal roles, the longer evidence. A missing date
        is taken from the repetition. The fields `replaces`, `is_correction`, `pinned` and the slot with its value are
        taken only from the more trusted role. The first item with a slot gives the slot.
        """
        other = ValidObservation((place,), self.turn, item, role, self.spoken, _replaced(item))
        best = min((self, other), key=lambda each: (TRUST_ORDER.index(each.role), -len(each.item.evidence)))
        best_trusted = [each for each in (self, other) if each.role == best.role]
        typed = next((each.item for each in best_trusted if each.item.slot != OTHER), best.item)
        joined = self.item.model_copy(
            update={
                **typed.typed,
                "evidence": best.item.evidence,
                "is_correction": any(each.item.is_correction for each in best_trusted),
                "pinned": any(each.item.pinned for each in best_trusted),
                "valid_from": self.item.valid_from or item.valid_from,
                "valid_to": self.item.valid_to or item.valid_to,
                "sensitivity": max(self.item.sensitivity, item.sensitivity, key=SENSITIVITIES.index),
            }
        )
        replaces = tuple(name for each in best_trusted for name in each.replaces)
        doubtful = self.unconfirmed and unconfirmed
        return ValidObservation((*self.places, place), self.turn, joined, best.role, self.spoken, replaces, doubtful)


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of a batch: the new session row, one record per turn, and the names of metrics to count."""

    session: SessionRow
    observed: tuple[Observed, ...]
    counted: tuple[str, ...]


def prompt_for(session: SessionRow, pending: Sequence[BatchTurn], policy: MemoryPolicy) -> ObservePrompt:
    return ObservePrompt(
        turns=with_names([item.shown for item in pending], session.recent),
        working=session.working,
        recent=session.recent,
        policy=policy.capture,
        form=form_for(policy),
    )


def request_for(prompt: ObservePrompt, *, tenant_id: str) -> CompletionRequest[ParsedItems[ObservationItem]]:
    return CompletionRequest(
        task=TASK,
        tenant_id=tenant_id,
        messages=prompt.messages(),
        json_schema=prompt.schema,
        parse=lambda answer: prompt.form.parse(prompt.with_offsets(clean_value(answer))),
    )


async def ask(
    prompt: ObservePrompt, *, tenant_id: str, user_id: str, completions: Completions, calls: Calls, patience: float
) -> Completion[ParsedItems[ObservationItem]] | None:
    """Ask the model. Return None when the turns have no text.

    Raises Transient after `patience` seconds, and Poison when the answer is unusable after one repair.
    """
    if not prompt.policy.enabled or not any(turn.said for turn in prompt.turns):
        return None
    request = request_for(prompt, tenant_id=tenant_id)
    return await calls.call(
        model_breaker(tenant_id),
        lambda: completions.complete(request),
        give_up_after=patience,
        tentative=len(prompt.turns) > 1,  # the turns of a refused batch are asked one by one
        user=user_id,
    )


def conclude(
    session: SessionRow,
    pending: Sequence[BatchTurn],
    prompt: ObservePrompt,
    answer: Completion[ParsedItems[ObservationItem]] | None,
    policy: MemoryPolicy,
    *,
    secrets: SecretFilter,
    by_policy: AppliedPolicy | None = None,
    verdicts: Verdicts | None = None,
) -> Batch:
    """Apply the answer turn by turn: update the working set, build the records, keep context for the next prompt.

    `verdicts`: the results of the blind question about evidence (evidence.py).
    """
    answer = without_secrets(answer, secrets)
    checked, refused, counted = _checked(prompt, answer, policy, verdicts or {})
    observed: list[Observed] = []
    names = _Names(prompt, session)
    for place, ((name, shown), item) in enumerate(zip(prompt.turn_ids.items(), pending, strict=True)):
        mine, left_out = within_caps(
            [each for each in checked if each.turn == name],
            policy.capture,
            item_of=lambda each: each.item,
            place_of=lambda each: each.spoken.place,
            is_first=partial(_changes_memory, shown),
        )
        counted += ["over_the_cap"] * len(left_out)
        candidates = [_candidate(item, shown, each, names, counted, policy.capture) for each in mine]
        counting_more = raised(candidates, [each.item.importance for each in mine])
        candidates = with_cut_quotes(candidates, secrets)
        orders = [each for each in candidates if is_kept_apart(each.observation)]
        counted += ["instruction"] * len(orders)
        retractions = [each for each in candidates if each.observation.retracts]
        working, withdrawn = _withdrawn(session.working, retractions)
        counted += ["retraction"] * len(retractions)
        unheard = [each for each in candidates if each not in orders and _needs_own_word(each.observation)]
        counted += ["own_word"] * len(unheard)
        unconfirmed = [each for each in candidates if each.observation.unconfirmed]
        kept = [each for each in candidates if each not in (*orders, *retractions, *unheard, *unconfirmed)]
        applied = apply_turn(working, kept, policy=policy.working)
        names.moved(applied)
        counted += ["pin_refused"] * applied.pins_refused + ["observation_skipped"] * len(applied.skipped)
        counted += ["evicted"] * len(applied.evicted_entries)
        counted += ["message_unread"] * len(item.turn.unread)
        counted += ["turn_repaired"] * (item.reading.repaired_characters > 0)
        counted += ["turn_cut"] * (shown.cut is not None and answer is not None)
        origins = origins_after(
            session.origins, (_origin(item, each.observation, names) for each in candidates), applied.working
        )
        session = session.model_copy(
            update={
                "turns": session.turns + 1,
                "said_until": max(session.said_until or item.occurred_at, item.occurred_at),
                "working": applied.working,
                # without a reflector no entry becomes an episode
                "origins": () if policy.tiers.working_only else origins,
                "recent": recent_messages(session.recent, shown, policy.capture),
            }
        )
        recorded = _recorded(candidates, applied, withdrawn)
        observed.append(
            Observed(
                tenant_id=item.turn.tenant_id,
                owner=item.owner,
                user_id=item.turn.user_id,
                session_id=item.turn.session_id,
                turn_id=item.turn.turn_id,
                turn_number=session.turns,
                epoch=session.epoch,
                occurred_at=item.occurred_at,
                agent_id=item.turn.agent_id,
                tags=item.turn.tags,
                metadata=item.turn.metadata,
                observations=recorded,
                evicted=applied.evicted,
                cause=cause_of(
                    prompt,
                    answer,
                    with_usage=place == 0,
                    applied=applied_policy(by_policy, recorded, counting_more),
                    cut=shown.cut,
                    over_cap=over_cap((each.item for each in left_out), floor=item.turn.sensitivity or "public"),
                    refused=refused_statements(
                        [each for each in refused if each.turn == name], floor=item.turn.sensitivity or "public"
                    ),
                    unread=item.turn.unread,
                    repaired_characters=item.reading.repaired_characters,
                ),
            )
        )
    return Batch(session=session, observed=tuple(observed), counted=tuple(counted))


def _checked(
    prompt: ObservePrompt,
    answer: Completion[ParsedItems[ObservationItem]] | None,
    policy: MemoryPolicy,
    verdicts: Verdicts,
) -> tuple[list[ValidObservation], list[RefusedItem], list[str]]:
    """Return the valid items, the refused items, and the names of metrics to count.

    A valid item belongs to a shown turn and has a quote from it. Its subject is resolved with its speaker.
    """
    if answer is None:
        return [], [], []
    refused: list[RefusedItem] = []
    counted = ["item_dropped"] * answer.value.dropped
    usable: dict[tuple[str, str, str], ValidObservation] = {}
    for placed in placed_items(prompt, answer, counted):
        place, name, turn = placed.place, placed.turn, prompt.turn_ids[placed.turn]
        found = judged(prompt, placed, policy, verdicts.get(place))
        item, role = found.item, found.role
        if found.reason is not None:
            counted.append(found.reason)
        if role is None:
            refused.append(RefusedItem(name, item, found.reason or UNATTRIBUTED))
            continue
        spoken = spoken_in(item.evidence, role, turn.own_messages, turn.own_texts)
        if not item.evidence and len({each.speaker for each in spoken}) > 1:
            spoken = ()  # without a quote the speaker is unknown
        statements = {
            (name, subject_said(item.subject, each.speaker), ids.content_hash(item.content)): each
            for each in reversed(spoken or (Spoken(USER),))
        }
        # two speakers may make the same statement
        statement = next((each for each in reversed(statements) if each not in usable), next(reversed(statements)))
        item = item.model_copy(update={"subject": statement[1]})
        if statement in usable:
            usable[statement] = usable[statement].repeated(place, item, role, unconfirmed=found.unconfirmed)
            counted.append("repeated_observation")
        else:
            usable[statement] = ValidObservation(
                (place,), name, item, role, statements[statement], _replaced(item), found.unconfirmed
            )
    return _ordered(list(usable.values())), refused, counted


def _changes_memory(shown: ShownTurn, each: ValidObservation) -> bool:
    """Return whether an observation replaces, corrects, retracts or is pinned. A cap drops such observations last."""
    item = each.item
    changes = bool(each.replaces) or item.is_correction or item.pinned
    return changes or is_forget_request(item.evidence, shown.own_texts)


def _ordered(usable: Sequence[ValidObservation]) -> list[ValidObservation]:
    """Return observations in the order of their first places, but each after the observations it replaces.

    A merged observation may replace an observation that is between its first place and its last place.
    """
    named = {f"o{place}": each for each in usable for place in each.places}
    ordered: dict[tuple[int, ...], ValidObservation] = {}
    open_: set[tuple[int, ...]] = set()

    def put(each: ValidObservation) -> None:
        if each.places in open_:
            return
        open_.add(each.places)
        for name in each.replaces:
            if (target := named.get(name)) is not None and target.places[0] < each.places[-1]:
                put(target)
        ordered[each.places] = each

    for each in usable:
        put(each)
    return list(ordered.values())


def _replaced(item: ObservationItem) -> tuple[str, ...]:
    return () if item.replaces is None else (item.replaces,)


def source_role(turn: ShownTurn, quote: str) -> Role | None:
    """Return the most trusted role whose own words contain the quote, or None when the quote was not shown."""
    return words_of(quote, turn.texts, turn.own_texts)


class _Names:
    """Entry ids by the short ids that `replaces` may use.

    These short ids name shown working entries and applied observations of this answer. The entry ids are kept current,
    because a refresh may change the id of an entry.
    """

    def __init__(self, prompt: ObservePrompt, session: SessionRow) -> None:
        self._named = {name: entry.entry_id for name, entry in prompt.entries.items()}
        said_by = {origin.observation_id: origin.source_role for origin in session.origins}
        self._roles: dict[str, Role] = {
            name: said_by.get(entry.observation_id, "user") for name, entry in prompt.entries.items()
        }
        self._subjects = {name: entry.subject for name, entry in prompt.entries.items()}
        self.people = prompt.people.union(each.speaker for each in session.origins if each.speaker is not None)
        """The subjects of the known speakers of this session."""

    def entry_id(self, name: str) -> str | None:
        return self._named.get(name)

    def may_replace(self, name: str, role: Role, subject: str) -> bool:
        """Return whether a statement of this role about this subject may replace the named statement.

        Lower trust never replaces higher trust. A statement about one speaker never replaces a statement about another
        speaker.
        """
        trusted = TRUST_ORDER.index(role) <= TRUST_ORDER.index(self._roles.get(name, role))
        other = self._subjects.get(name, subject)
        return trusted and (other == subject or not {other, subject} <= self.people)

    def given(self, place: int, entry_id: str, role: Role, subject: str) -> None:
        self._named[f"o{place}"] = entry_id
        self._roles[f"o{place}"] = role
        self._subjects[f"o{place}"] = subject

    def moved(self, applied: WorkingSetUpdate) -> None:
        for each in applied.refreshed:
            for name, entry_id in self._named.items():
                if entry_id in (each.entry_id_before, each.observation_id):
                    self._named[name] = each.entry_id


def _candidate(
    pending: BatchTurn,
    shown: ShownTurn,
    usable: ValidObservation,
    names: _Names,
    counted: list[str],
    policy: CapturePolicy,
) -> EntryCandidate:
    turn, item = pending.turn, usable.item
    observation_id = ids.observation_id(turn.session_key, turn.turn_id, item.subject, item.content)
    floor = turn.sensitivity or "public"
    observation = Observation(
        observation_id=observation_id,
        entry_id=observation_id,
        subject=item.subject,
        content=item.content,
        **item.typed,
        importance=importance_of(item, policy),
        durability=item.durability,
        category=item.category,
        is_correction=item.is_correction,
        retracts=usable.role == "user" and is_forget_request(item.evidence, shown.own_texts),
        due_at=item.due_at if item.category == "task" else None,
        valid_from=item.valid_from,
        valid_to=item.valid_to,
        sensitivity=max(item.sensitivity, floor, key=SENSITIVITIES.index),
        emotion=emotion_of(item) if policy.emotion else None,
        source_role=usable.role,
        evidence=item.evidence,
        unconfirmed=usable.unconfirmed,
        occurred_at=None if usable.spoken.at == pending.occurred_at else usable.spoken.at,
    )
    allowed = [each for each in usable.replaces if names.may_replace(each, usable.role, item.subject)]
    counted += ["replaces_refused"] * (len(usable.replaces) - len(allowed))
    named = [names.entry_id(each) for each in allowed]
    counted += ["unknown_id"] * named.count(None)
    replaces = next((each for each in named if each not in (None, observation_id)), None)
    for place in usable.places:
        names.given(place, observation_id, usable.role, item.subject)
    return EntryCandidate(observation=observation, replaces=replaces, pinned=item.pinned and usable.role == "user")


def _needs_own_word(observation: Observation) -> bool:
    return needs_own_word(trust_of(observation.source_role), observation.category)


def _origin(pending: BatchTurn, observation: Observation, names: _Names) -> EntryOrigin:
    subject = observation.subject
    return EntryOrigin.of(
        observation,
        turn_id=pending.turn_id,
        occurred_at=observation.occurred_at or pending.occurred_at,
        owner=pending.owner,
        user_id=pending.turn.user_id,
        speaker=subject if subject != USER and subject in names.people else None,
    )


def _withdrawn(working: WorkingSet, retractions: Sequence[EntryCandidate]) -> tuple[WorkingSet, dict[str, str]]:
    """Remove entries that the user asked to forget.

    Return the working set, and the removed observation of each retraction.
    """
    behind: dict[str, str] = {}
    for each in retractions:
        working, gone = withdraw(working, each)
        observation_id = gone.observation_id if gone is not None else each.replaces
        if observation_id is not None:
            behind[each.observation.observation_id] = observation_id
    return working, behind


def _recorded(
    candidates: Sequence[EntryCandidate], applied: WorkingSetUpdate, withdrawn: Mapping[str, str]
) -> tuple[Observation, ...]:
    """Return the turn's observations, each with the id of the observation it replaced or retracted."""
    replaced = {item.observation_id: item.replaced_observation_id for item in applied.replaced} | dict(withdrawn)
    return tuple(
        candidate.observation.model_copy(
            update={"replaces_observation_id": replaced.get(candidate.observation.observation_id)}
        )
        for candidate in candidates
        if candidate.observation.observation_id not in applied.skipped
    )
