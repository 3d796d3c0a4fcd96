"""Outcome of each statement of a turn, with the reason as a sentence. Pure.

The observer's record has the statements that it refused. What the reflector decided is in the facts with the statement
as evidence, and in the events that the statement caused. For a statement without a fact, the rules of the route are
applied again, with the policy of the turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ..memory.facts.reasons import sentence
from ..memory.facts.routing import NoFactReason, route, why_no_fact
from ..memory.policies import MemoryPolicy
from ..schemas.cloudevents import rfc3339
from ..schemas.facts import FactAction, FactUpdated, StoredFact
from ..schemas.observations import Observation, Observed
from ..schemas.turns import Sensitivity, up_to

OutcomeStatus = Literal[
    "refused", "waiting", "working", "episode", "learnt", "duplicate", "closed", "quarantined", "forgotten"
]
"""Outcome of a statement: refused by the observer or the reflector; waiting; only an entry of the working set; an
episode and no fact; a fact that is believed now; evidence of a fact that was known before; a fact that is not believed
any more; a fact that a person must approve; forgotten, or a request to forget."""

REFUSED: Final[Mapping[str, str]] = {
    "invented": "its quote is not in the turn",
    "weak_evidence": "its quote does not support it",
    "unsaid": "the user does not say it, by the answer to the blind question",
    "unattributed": "no speaker of the turn said it",
}
NO_FACT: Final[Mapping[NoFactReason, str]] = {
    "tier_off": "the tier of facts is off",
    "working_only": "only the working set is on",
    "instruction": "it is an instruction to the assistant, and such a statement is kept only when the user says it",
    "unimportant": "its importance is below capture.threshold",
    "passing": "it does not last longer than the session",
    "category": "a statement of this category does not become a fact directly; consolidation may make one",
    "own_word": "a preference or an identity needs the user's own word",
}
OVER_CAP: Final = "the turn has more statements than capture.max_per_message or capture.observation_tokens allow"
CLOSING: Final[frozenset[FactAction]] = frozenset(
    ("superseded", "invalidated", "merged", "pruned", "expired", "forgotten", "erased")
)


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """One statement of a turn. `why` is a sentence for people, without its full stop."""

    subject: str
    content: str
    status: OutcomeStatus
    why: str
    observation_id: str | None = None
    quote: str | None = None
    fact_id: str | None = None
    """The fact of the statement, or the known fact that it repeats."""
    other_fact_id: str | None = None
    """The fact that the statement waits for, or the fact that closed it."""
    closes: tuple[str, ...] = ()
    """The facts that the statement closed."""


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """The facts and events of an observed turn. `facts`: the facts by observation id. `events`: events that the
    observations of the turn caused, and events that closed the facts, in log order."""

    facts: Mapping[str, Sequence[StoredFact]]
    events: Sequence[FactUpdated] = ()

    def caused_by(self, observation_id: str) -> list[FactUpdated]:
        return [each for each in self.events if observation_id in each.cause.observation_ids]

    def closing(self, fact_id: str) -> FactUpdated | None:
        """Return the last event that closed the fact."""
        return next((e for e in reversed(self.events) if e.fact.fact_id == fact_id and e.action in CLOSING), None)


def statement_outcomes(
    observed: Observed, turn: TurnFacts, policy: MemoryPolicy, *, reflected: bool, ceiling: Sensitivity
) -> tuple[StatementOutcome, ...]:
    """Return the statements of a turn that a caller with this ceiling may see: the observations in their order, then
    the refused statements."""
    allowed = up_to(ceiling)
    found = [
        outcome
        for each in observed.observations
        if each.sensitivity in allowed
        if (outcome := _outcome(each, turn, policy, reflected=reflected, allowed=allowed)) is not None
    ]
    return (*found, *_refused(observed, allowed))


def refusal_sentence(why: str) -> str:
    """Return the reason of a refused statement as a sentence."""
    return REFUSED.get(why, f"it was refused as {why}")


def _refused(observed: Observed, allowed: Sequence[Sensitivity]) -> Iterator[StatementOutcome]:
    cause = observed.cause
    for each in () if cause.refused is None else cause.refused.listed:
        if each.sensitivity in allowed:
            yield StatementOutcome(each.subject, each.content, "refused", refusal_sentence(each.why))
    if cause.over_cap is not None and "internal" in allowed:
        for content in cause.over_cap.statements:
            yield StatementOutcome("", content, "refused", OVER_CAP)


def _outcome(
    each: Observation, turn: TurnFacts, policy: MemoryPolicy, *, reflected: bool, allowed: Sequence[Sensitivity]
) -> StatementOutcome | None:
    """Return the outcome of an observation; None when its fact has a higher sensitivity than the caller may read."""
    caused = turn.caused_by(each.observation_id)
    made = StatementOutcome(
        each.subject, each.content, "waiting", "the reflector has not decided about it yet",
        observation_id=each.observation_id, quote=each.evidence or None,
    )  # fmt: skip
    if each.retracts:
        return _retraction(made, caused, reflected=reflected)
    facts = turn.facts.get(each.observation_id, ())
    if facts:
        fact = min(facts, key=lambda row: (row.state not in ("active", "pending"), -row.version))
        if fact.sensitivity not in allowed:
            return None
        closes = (e.fact.fact_id for e in caused if e.action in CLOSING and e.fact.fact_id != fact.fact_id)
        made = replace(made, fact_id=fact.fact_id, closes=tuple(dict.fromkeys(closes)))
        return _of_fact(made, fact, turn)
    if (reason := why_no_fact(each, policy)) is not None:
        if reason == "instruction":
            return replace(made, status="refused", why=NO_FACT[reason])
        return replace(made, status="episode" if route(each, policy).episodic else "working", why=NO_FACT[reason])
    if not reflected:
        return made
    return replace(made, status="closed", why="a known fact decided against it, or its fact was removed")


def _retraction(made: StatementOutcome, caused: Sequence[FactUpdated], *, reflected: bool) -> StatementOutcome:
    """Return the outcome of a request to forget."""
    forgotten = tuple(dict.fromkeys(each.fact.fact_id for each in caused if each.action in CLOSING))
    if forgotten:
        return replace(made, status="forgotten", why="the user asked to forget it", closes=forgotten)
    if not reflected:
        return made
    return replace(made, status="forgotten", why="the user asked to forget it, and no fact says it")


def _of_fact(made: StatementOutcome, fact: StoredFact, turn: TurnFacts) -> StatementOutcome:
    match fact.state:
        case "active" if fact.evidence and fact.evidence[0].observation_id != made.observation_id:
            return replace(made, status="duplicate", why="the fact was known, and has one more piece of evidence")
        case "active":
            return replace(made, status="learnt", why="it is believed")
        case "pending":
            return _pending(made, fact)
        case "quarantined":
            return replace(
                made, status="quarantined", why="it is an instruction to the assistant, and a person must approve it"
            )
        case "forgotten":
            return replace(made, status="forgotten", why=_why_closed(fact, turn, "it was forgotten"))
        case "superseded":
            return replace(
                made,
                status="closed",
                why=_why_closed(fact, turn, "a later statement replaced it"),
                other_fact_id=fact.superseded_by,
            )
        case "invalidated":
            closing = turn.closing(fact.fact_id)
            by = None if closing is None or closing.decision is None else closing.decision.other_fact_id
            why = _why_closed(fact, turn, "it was corrected")
            return replace(made, status="closed", why=why, other_fact_id=fact.superseded_by or by)
        case "expired":
            return replace(made, status="closed", why=_why_closed(fact, turn, "its time is over"))


def _pending(made: StatementOutcome, fact: StoredFact) -> StatementOutcome:
    if fact.is_unconfirmed:
        return replace(made, why="it waits until the user says it again or a person approves it")
    if fact.waits_for is not None:
        return replace(made, why="it waits for a comparison with a known fact", other_fact_id=fact.waits_for)
    return replace(made, why=f"it waits for {rfc3339(fact.valid_from)}, when it begins to be true")


def _why_closed(fact: StoredFact, turn: TurnFacts, otherwise: str) -> str:
    closing = turn.closing(fact.fact_id)
    return otherwise if closing is None or not closing.reason else sentence(closing.reason)
