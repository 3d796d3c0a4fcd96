"""One observed turn → episodes and facts. Nothing is written here: a complete decision comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...memory.facts.conflict import Neighbours, carry_out, lookup_predicates, resolve
from ...memory.facts.routing import Route, route
from ...memory.facts.similarity import NearFact
from ...memory.facts.statements import Statement, statement_from_observation
from ...memory.facts.transitions import Stamp, Transition
from ...memory.policies import MemoryPolicy
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactCause
from ...schemas.observations import Observation, Observed
from .episodes import episode_of
from .fact_overlay import FactOverlay, Vector


@dataclass(frozen=True, slots=True)
class FactChange:
    """A transition with what caused it."""

    transition: Transition
    cause: FactCause


@dataclass(frozen=True, slots=True)
class ReflectionResult:
    episodes: tuple[StoredEpisode, ...]
    changes: tuple[FactChange, ...]


@dataclass(frozen=True, slots=True)
class RoutedObservation:
    observation: Observation
    route: Route
    statement: Statement

    @property
    def asks(self) -> bool:
        """Whether the conflict pipeline has anything to do: a fact to make, or one to close."""
        return self.route.semantic or self.observation.replaces_observation_id is not None


def routed(observed: Observed, policy: MemoryPolicy) -> tuple[RoutedObservation, ...]:
    found = ((observation, route(observation, policy)) for observation in observed.observations)
    return tuple(
        RoutedObservation(
            observation, way, statement_from_observation(observed, observation, policy, episode=way.episodic)
        )
        for observation, way in found
    )


def texts_of(observations: Sequence[RoutedObservation]) -> list[str]:
    """What has to be embedded, each text once."""
    wanted = (each.observation.content for each in observations if each.route.episodic or each.route.semantic)
    return list(dict.fromkeys(wanted))


async def reflect(
    observed: Observed,
    observations: Sequence[RoutedObservation],
    *,
    vectors: Mapping[str, Vector],
    view: FactOverlay,
    stamp: Stamp,
    policy: MemoryPolicy,
    count: Callable[[str], None],
) -> ReflectionResult:
    """Observations in their order, each seeing what the earlier ones did."""
    changes: list[FactChange] = []
    for each in observations:
        if each.asks and policy.tiers.semantic:
            transitions = await _change_facts(each, vectors=vectors, view=view, stamp=stamp, policy=policy, count=count)
            cause = _cause(observed, each.observation)
            changes += (FactChange(transition, cause) for transition in transitions)
        if each.route.prospective:
            count("task_without_store")
    episodes = tuple(
        episode_of(
            each.observation,
            tenant_id=observed.tenant_id,
            owner=observed.owner,
            user_id=observed.user_id,
            session_id=observed.session_id,
            turn_id=observed.turn_id,
            occurred_at=observed.occurred_at,
            now=stamp.now,
        )
        for each in observations
        if each.route.episodic
    )
    return ReflectionResult(episodes, tuple(changes))


async def _change_facts(
    each: RoutedObservation,
    *,
    vectors: Mapping[str, Vector],
    view: FactOverlay,
    stamp: Stamp,
    policy: MemoryPolicy,
    count: Callable[[str], None],
) -> tuple[Transition, ...]:
    statement, makes_fact = each.statement, each.route.semantic
    replaced = None
    if (named := each.observation.replaces_observation_id) is not None:
        replaced = await view.of_entry(named)
        if replaced is None:
            count("replaces_without_fact")
    equal = await view.equal(statement.subject, statement.content_hash) if makes_fact else None
    vector = vectors.get(statement.content)
    near: tuple[NearFact, ...] = ()
    if equal is None and makes_fact:
        near = await view.neighbours(
            statement.subject,
            vector,
            lookup_predicates(statement, policy.conflict),
            limit=policy.conflict.neighbours,
        )
    resolution = resolve(
        statement,
        Neighbours(replaced=replaced, equal=equal, near=near),
        policy.conflict,
        now=stamp.now,
        makes_fact=makes_fact,
    )
    transitions = carry_out(resolution, statement, stamp, policy)
    for transition in transitions:
        worded = transition.fact.content == statement.content
        view.take(transition, vector if worded and _is_new_text(transition) else None)
    return transitions


def _is_new_text(transition: Transition) -> bool:
    return transition.before is None or transition.before.content != transition.fact.content


def _cause(observed: Observed, observation: Observation) -> FactCause:
    return FactCause(
        turn_ids=(observed.turn_id,),
        observation_ids=(observation.observation_id,),
        model=observed.cause.model,
        prompt=observed.cause.prompt,
    )
