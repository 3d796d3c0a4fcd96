"""Changes that one event makes to the facts of one owner. The event is an observed turn or a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ...memory.facts.conflict import lookup_predicates, lookup_slots
from ...memory.facts.similarity import NearFact
from ...memory.facts.statements import Statement
from ...memory.facts.transitions import Stamp, Transition
from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter, at_least
from ...schemas.errors import Poison
from ...schemas.facts import FactCause, StoredFact
from .fact_overlay import FactLook, FactOverlay, Vector
from .forget_requests import ForgetRequest


@dataclass(frozen=True, slots=True)
class FactChange:
    """A transition of a fact, and its cause."""

    transition: Transition
    cause: FactCause

    @property
    def fact(self) -> StoredFact:
        return self.transition.fact


@dataclass(frozen=True, slots=True)
class FactChanger:
    """Changes of facts by one event. Each change sees earlier changes through the overlay; the store is not changed.

    `embed` returns the vectors of texts, by text. `count(name)` increments a metric.
    """

    overlay: FactOverlay
    embed: Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]
    stamp: Stamp
    policy: MemoryPolicy
    count: Callable[[str], None]
    secrets: SecretFilter

    async def embed_accepted(self, texts: Iterable[str]) -> Mapping[str, Vector]:
        """Return the vectors of the texts, without the texts that the embedder refuses."""
        once = list(dict.fromkeys(texts))
        try:
            return await self.embed(once)
        except Poison:
            vectors: dict[str, Vector] = {}
            for each in once:
                with suppress(Poison):
                    vectors |= await self.embed([each])
            return vectors

    def taken_back(self, statement: Statement) -> ForgetRequest | None:
        """Return the newest request of the owner to forget this statement, made at the time of the statement or
        later."""
        requests = reversed(self.overlay.requests)
        return next((each for each in requests if each.counts_for(statement, self.stamp, self.policy)), None)

    async def near(self, statement: Statement, vector: Vector | None) -> tuple[NearFact, ...]:
        """Return the facts that the conflict pipeline compares with the statement."""
        predicates, slots = lookup_predicates(statement, self.policy), lookup_slots(statement, self.policy)
        limit = self.policy.conflict.neighbours
        return await self.overlay.neighbours(statement, vector, predicates, slots, limit=limit)

    def look(self, statement: Statement, vector: Vector | None, *, observation_id: str | None) -> FactLook:
        """Return the lookup for a statement: the rows that `near`, `equal` and `of_observation` will read."""
        if vector is None:
            return FactLook(statement, observation_id)
        predicates, slots = lookup_predicates(statement, self.policy), lookup_slots(statement, self.policy)
        return FactLook(statement, observation_id, vector, predicates, slots, self.policy.conflict.neighbours)

    def change(
        self, transitions: Sequence[Transition], cause: FactCause, vectors: Mapping[str, Vector]
    ) -> tuple[FactChange, ...]:
        """Apply transitions to the overlay. `vectors` has the vectors of new texts.

        A fact becomes secret when its new text contains data that the privacy policy labels.
        """
        transitions = [self._labelled(each) for each in transitions]
        for each in transitions:
            dense = vectors.get(each.fact.content) if _has_new_text(each) else None
            self.overlay.change(each, dense, cause=self.stamp.cause)
        return tuple(FactChange(each, cause) for each in transitions)

    def _labelled(self, transition: Transition) -> Transition:
        fact = transition.fact
        sensitivity = at_least(fact.sensitivity, self.secrets.label(fact.content, fact.subject))
        if not _has_new_text(transition) or sensitivity == fact.sensitivity:
            return transition
        return replace(transition, fact=fact.model_copy(update={"sensitivity": sensitivity}))


def changed_ids(changes: Sequence[FactChange]) -> tuple[str, ...]:
    """Return the distinct ids of the changed facts, in the order of the changes."""
    return tuple(dict.fromkeys(each.fact.fact_id for each in changes))


def _has_new_text(transition: Transition) -> bool:
    return transition.before is None or transition.before.content != transition.fact.content
