"""Procedures step of the deep phase: a model reads episodes and describes procedures. Only this stage writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ....memory.language.locales import locales
from ....memory.policies import ConsolidationPolicy
from ....memory.secrets.secret_filter import SecretFilter, at_least
from ....memory.trust.rendered_text import find_unsafe_text
from ....memory.upkeep.clusters import cluster_name
from ....memory.upkeep.one_audience import READABLE
from ....memory.upkeep.source_words import supports_procedure
from ....schemas import ids
from ....schemas.collections import PROCEDURES
from ....schemas.episodes import StoredEpisode
from ....schemas.outcomes import OutPoint, PutPoints
from ....schemas.procedures import SOURCES_MAX, Procedure, StoredProcedure, earlier_versions
from ....schemas.turns import SENSITIVITIES
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader, as_episode, of_owner
from ..prompts.procedures import SCHEMA, TASK, ProcedureItem, ProceduresPrompt, parse
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult

FOUND_MAX: Final = 3
"""Maximum number of procedures that a run takes from an answer."""
KNOWN_MAX: Final = 50
"""Maximum number of known procedures in the prompt."""


@dataclass(frozen=True, slots=True)
class ProceduresStep:
    """A step with one model call about the newest episodes.

    It makes no call when these episodes are too few for a cluster, or are the same as in the last call. It drops a
    procedure that names no shown episode, and a procedure whose words the named episodes lack. `locales`: language
    packs for the comparison of words.
    """

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    locales: str
    part: PartName = "deep"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        episodes = [as_episode(each) for each in await self.reader.episodes(request)]
        shown = [each for each in episodes if each.sensitivity in READABLE][-self.policy.max_episodes :]
        if not self.policy.cluster or len(shown) < self.policy.cluster or cluster_name(shown) == row.mined:
            return StepResult("nothing", row)
        prompt = ProceduresPrompt(shown, await self._known(request))
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        looked_at = row.model_copy(update={"mined": cluster_name(shown)})
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, looked_at if answer.status == "failed" else row)
        items = [item for _, item in answer.value.items]
        sourced = [(item, sources) for item in items if (sources := _sources(item, prompt.episodes))]
        supported = [(item, sources) for item, sources in sourced if self._is_supported(item, sources)]
        found = [
            _procedure(item, sources, shown, request, self.caller.secrets, model=answer.model, prompt=prompt.name)
            for item, sources in supported[:FOUND_MAX]
        ]
        safe = [each for each in found if find_unsafe_text(Procedure, each.to_payload()) is None]
        by_id = await self._next_versions({each.procedure_id: each for each in safe}, request)
        points = tuple(OutPoint(id=each, payload=by_id[each].to_payload()) for each in by_id)
        return StepResult(
            "done",
            looked_at,
            {"procedures": len(by_id)},
            _left_out(
                invalid=answer.value.dropped,
                no_source=len(items) - len(sourced),
                weak_evidence=len(sourced) - len(supported),
                instruction=len(found) - len(safe),
            ),
            writes=(PutPoints(collection=PROCEDURES, points=points),) if points else (),
            usage=token_usage(answer.usage),
        )

    def _is_supported(self, item: ProcedureItem, sources: Sequence[StoredEpisode]) -> bool:
        texts = [each.content for each in sources]
        return supports_procedure(texts, [item.name, item.trigger], item.steps, locales(self.locales))

    async def _next_versions(
        self, found: Mapping[str, StoredProcedure], request: RunRequest
    ) -> dict[str, StoredProcedure]:
        """Return the new and changed procedures, each with the next version number of its name.

        Manually defined or removed procedures do not change.
        """
        if not found:
            return {}
        store = self.reader.store
        stored = await self.reader.calls.call(
            "store", lambda: store.get(PROCEDURES, tenant_id=request.tenant_id, ids=tuple(found))
        )
        known = {each: StoredProcedure.from_payload(point.payload) for each, point in stored.items()}
        new: dict[str, StoredProcedure] = {}
        for procedure_id, procedure in found.items():
            before = known.get(procedure_id)
            if before is None:
                new[procedure_id] = procedure
            elif before.command_id is None and (before.trigger, before.steps) != (procedure.trigger, procedure.steps):
                new[procedure_id] = procedure.model_copy(
                    update={"version": before.version + 1, "earlier": earlier_versions(before)}
                )
        return new

    async def _known(self, request: RunRequest) -> list[StoredProcedure]:
        where = models.Filter(must=[of_owner(request)])
        store = self.reader.store
        found = await self.reader.calls.call(
            "store", lambda: store.select(PROCEDURES, tenant_id=request.tenant_id, where=where, limit=KNOWN_MAX)
        )
        return [StoredProcedure.from_payload(each.payload) for each in found]


def _sources(item: ProcedureItem, episodes: Mapping[str, StoredEpisode]) -> list[StoredEpisode]:
    """Return the shown episodes that an item names."""
    return [episodes[each] for each in dict.fromkeys(item.episode_ids) if each in episodes]


def _left_out(**counts: int) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _procedure(
    item: ProcedureItem,
    sources: Sequence[StoredEpisode],
    shown: Sequence[StoredEpisode],
    request: RunRequest,
    secrets: SecretFilter,
    *,
    model: str,
    prompt: str,
) -> StoredProcedure:
    return StoredProcedure(
        procedure_id=ids.procedure_id(request.owner_key, item.name),
        tenant_id=request.tenant_id,
        owner=request.owner,
        owner_key=request.owner_key,
        name=item.name,
        trigger=item.trigger,
        steps=tuple(item.steps),
        at=request.now,
        sensitivity=at_least(
            max((each.sensitivity for each in shown), key=SENSITIVITIES.index),
            secrets.label(item.name, item.trigger, *item.steps),
        ),
        model=model,
        prompt=prompt,
        run_id=request.run_id,
        source_episode_ids=tuple(each.episode_id for each in sources[:SOURCES_MAX]),
    )
