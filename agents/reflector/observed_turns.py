"""Reflection of one observed turn into episodes and fact changes. The functions write nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...memory.facts.conflict import Neighbours, carry_out, resolve
from ...memory.facts.neighbour_relations import is_confirmed
from ...memory.facts.retractions import forget_on_arrival, retract
from ...memory.facts.routing import Route, route
from ...memory.facts.similarity import NearFact
from ...memory.facts.statements import Statement, statement_from_observation, turn_metadata, turn_tags
from ...memory.facts.transitions import Transition, forget
from ...memory.policies import MemoryPolicy
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactCause
from ...schemas.observations import Observation, Observed
from .episodes import build_episode
from .fact_changes import FactChange, FactChanger
from .fact_overlay import FactLook, Vector
from .forget_requests import ForgetRequest, with_request
from .quarantine import quarantine_statement
from .reopening import reopen_closed

LONG: Final = 500
"""Characters of a statement after which other events may run. Reading or comparing a statement of 2 000 characters
takes 6 ms of processor time."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """The episodes and fact changes of an observed turn."""

    episodes: tuple[StoredEpisode, ...]
    changes: tuple[FactChange, ...]


@dataclass(frozen=True, slots=True)
class RoutedObservation:
    """An observation, its route, and its statement."""

    observation: Observation
    route: Route
    statement: Statement

    @property
    def may_change_facts(self) -> bool:
        """True when the observation makes or replaces a fact."""
        return self.is_compared or self.observation.replaces_observation_id is not None

    @property
    def is_compared(self) -> bool:
        """True when the observation is compared with known facts."""
        return self.route.semantic or self.route.quarantined or self.observation.retracts


@dataclass(frozen=True, slots=True)
class RoutedObservations:
    """The routed observations of a turn. `facts` is the fact changer of this turn, with the turn's policy."""

    observed: Observed
    facts: FactChanger
    observations: tuple[RoutedObservation, ...]

    @classmethod
    async def of(cls, observed: Observed, facts: FactChanger) -> RoutedObservations:
        return cls(observed, facts, await _route(observed, facts.policy))

    def texts(self) -> list[str]:
        """Return the distinct texts to embed."""
        return list(
            dict.fromkeys(
                each.observation.content
                for each in self.observations
                if each.route.episodic or each.route.semantic or each.route.quarantined or each.observation.retracts
            )
        )

    def looks(self, vectors: Mapping[str, Vector]) -> list[FactLook]:
        """Return the lookups of the statements. `vectors`: vectors by text."""
        if not self.facts.policy.tiers.semantic:
            return []
        return [
            self.facts.look(
                each.statement,
                vectors.get(each.statement.content) if each.is_compared else None,
                observation_id=each.observation.replaces_observation_id,
            )
            for each in self.observations
            if each.may_change_facts and not each.route.dropped
        ]


async def reflect(turn: RoutedObservations, vectors: Mapping[str, Vector]) -> Reflection:
    """Apply the observations of a turn to the facts, in order. `vectors`: vectors by text."""
    observed, facts = turn.observed, turn.facts
    changes: list[FactChange] = []
    for each in turn.observations:
        if each.route.dropped:
            facts.count("instruction_dropped")
        elif each.may_change_facts and facts.policy.tiers.semantic:
            changes += await _changes(each, vectors, observed, facts)
            await _let_others_run(each.observation)
    episodes = tuple(
        build_episode(
            each.observation,
            tenant_id=observed.tenant_id,
            owner=observed.owner,
            user_id=observed.user_id,
            session_id=observed.session_id,
            turn_id=observed.turn_id,
            occurred_at=observed.said_at(each.observation),
            now=facts.stamp.now,
            tags=turn_tags(observed),
            metadata=turn_metadata(observed),
            agent_id=observed.agent_id,
        )
        for each in turn.observations
        if each.route.episodic
    )
    return Reflection(episodes, tuple(changes))


async def _route(observed: Observed, policy: MemoryPolicy) -> tuple[RoutedObservation, ...]:
    routed: list[RoutedObservation] = []
    for observation in observed.observations:
        to = route(observation, policy)
        statement = statement_from_observation(observed, observation, policy, episode=to.episodic)
        routed.append(RoutedObservation(observation, to, statement))
        await _let_others_run(observation)
    return tuple(routed)


async def _let_others_run(observation: Observation) -> None:
    """Let steps of other events run after a long statement."""
    if len(observation.content) > LONG:
        await asyncio.sleep(0)


async def _changes(
    each: RoutedObservation, vectors: Mapping[str, Vector], observed: Observed, facts: FactChanger
) -> tuple[FactChange, ...]:
    """Return the fact changes of an observation, applied to the overlay."""
    cause, vector = _cause(observed, each.observation), vectors.get(each.statement.content)
    if each.observation.retracts:
        _keep_request(each, observed, facts)
        transitions = await _retracted(each, vector, facts)
        return await _forgotten(transitions, cause, facts, wrong=each.observation.is_correction)
    if each.route.quarantined:
        return facts.change(await quarantine_statement(each.statement, facts), cause, vectors)
    transitions = await _transitions(each, vector, facts)
    request = facts.taken_back(each.statement) if each.route.semantic else None
    if request is None:
        return facts.change(transitions, cause, vectors)
    facts.count("forgotten_on_arrival")
    *before, gone = forget_on_arrival(each.statement, transitions, facts.stamp)
    made = facts.change(before, cause, vectors)
    return (*made, *await _forgotten((gone,), cause, facts, wrong=request.wrong))


def _keep_request(each: RoutedObservation, observed: Observed, facts: FactChanger) -> None:
    """Keep a request to forget for statements that arrive later."""
    request = ForgetRequest.of(
        each.observation,
        each.statement,
        user_id=observed.user_id,
        session_id=observed.session_id,
        turn_id=observed.turn_id,
        now=facts.stamp.now,
    )
    facts.overlay.requests = with_request(facts.overlay.requests, request, now=facts.stamp.now)


async def _forgotten(
    transitions: Sequence[Transition], cause: FactCause, facts: FactChanger, *, wrong: bool
) -> tuple[FactChange, ...]:
    """Apply the transitions of a request to forget. With `wrong`, the rows that the forgotten rows had closed are
    believed again."""
    changes: list[FactChange] = []
    for each in transitions:
        if not wrong or each.action != "forgotten" or each.before is None:
            changes += facts.change([each], cause, {})
            continue
        reopened = await reopen_closed(each.before, facts, cause)
        gone = forget(
            each.before, facts.stamp, reason=each.reason, decision=each.decision, restored=reopened.restored_ids
        )
        changes += (*facts.change([gone], cause, {}), *reopened.changes)
    return tuple(changes)


async def _transitions(each: RoutedObservation, vector: Vector | None, facts: FactChanger) -> tuple[Transition, ...]:
    """Return the fact transitions that the conflict pipeline decides for an observation."""
    statement, makes_fact, overlay = each.statement, each.route.semantic, facts.overlay
    replaced = None
    if (replaces := each.observation.replaces_observation_id) is not None:
        replaced = await overlay.of_observation(replaces)
        if replaced is None:
            facts.count("replaces_without_fact")
    equal = await overlay.equal(statement) if makes_fact else None
    near: tuple[NearFact, ...] = ()
    if makes_fact and (equal is None or is_confirmed(equal, statement)):
        near = await facts.near(statement, vector)
    resolution = resolve(
        statement,
        Neighbours(replaced=replaced, equal=equal, near=near),
        facts.policy,
        now=facts.stamp.now,
        makes_fact=makes_fact,
    )
    return carry_out(resolution, statement, facts.stamp, facts.policy)


async def _retracted(each: RoutedObservation, vector: Vector | None, facts: FactChanger) -> tuple[Transition, ...]:
    """Return the transitions that forget facts at the user's request.

    The entry that the observation names may have no fact. So the fact with the equal text and near facts that say the
    same are forgotten too.
    """
    statement, named = each.statement, each.observation.replaces_observation_id
    neighbours = Neighbours(
        replaced=None if named is None else await facts.overlay.of_observation(named),
        equal=await facts.overlay.equal(statement),
        near=await facts.near(statement, vector),
        closed=await facts.overlay.closed(statement.subject, statement.content_hash),
    )
    transitions = retract(statement, neighbours, facts.stamp, facts.policy)
    facts.count("retraction" if transitions else "retraction_without_fact")
    return transitions


def _cause(observed: Observed, observation: Observation) -> FactCause:
    return FactCause(
        turn_ids=(observed.turn_id,),
        observation_ids=(observation.observation_id,),
        model=observed.cause.model,
        prompt=observed.cause.prompt,
    )
