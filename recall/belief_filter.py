"""Search for episodes and working entries that memory no longer believes.

A fact decides about a record when the fact's evidence names the record's observation, or a turn that a summary covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from qdrant_client import models

from ..adapters.ports import Payload, VectorStore
from ..adapters.vectors.conditions import any_of
from ..memory.facts.belief import DENIED, is_episode_believed, is_summary_believed
from ..memory.policies import RecallPolicy
from ..schemas.collections import FACTS
from ..schemas.facts import FactState
from ..schemas.recall import Tier
from .filters import SessionTurn, in_turns
from .payloads import SAYING, content_of, observation_of, saying_of, summarised_by
from .request import RecallRequest

UNDECIDED: tuple[FactState, ...] = ("pending",)


Key = tuple[Tier, str]


async def find_disbelieved(
    records: Mapping[Key, Payload],
    *,
    store: VectorStore,
    request: RecallRequest,
    now: datetime,
    policy: RecallPolicy,
) -> frozenset[Key]:
    """Return the keys of the episodes and entries that are not believed (rules: memory/facts/belief.py).

    With `request.settled`, a statement is also not believed while its fact is pending. Raises the store's errors.
    """
    observations = {identity: observation_of(payload) for identity, payload in records.items()}
    summaries = {identity: turns for identity, payload in records.items() if (turns := summarised_by(payload))}
    undecided = UNDECIDED if request.settled else ()
    with_evidence: list[models.Condition] = [any_of("evidence[].observation_id", sorted(set(observations.values())))]
    if summaries:
        covered = frozenset[SessionTurn]().union(*summaries.values())
        with_evidence.append(models.Filter(must=in_turns(covered, "evidence[].")))
    found = await store.select(
        FACTS,
        tenant_id=request.tenant_id,
        where=models.Filter(
            must=[
                any_of("owner_key", request.owner_keys),
                models.Filter(should=with_evidence),
                any_of("state", ("active", *DENIED, *undecided)),
            ]
        ),
        fields=SAYING,
    )
    known = request.known_at or now
    claims = [saying_of(each.payload, valid=request.past or now, known=known, not_yet=undecided) for each in found]

    def is_believed(identity: Key, payload: Payload) -> bool:
        if identity in summaries:
            return is_summary_believed(summaries[identity], claims)
        return is_episode_believed(
            content_of(payload), observations[identity], claims, more_than=policy.duplicate_overlap
        )

    return frozenset(identity for identity, payload in records.items() if not is_believed(identity, payload))
