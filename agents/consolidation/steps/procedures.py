"""Deep phase: how things are done, from episodes. Their only writer: points are put whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.clusters import cluster_name
from ....schemas import ids
from ....schemas.collections import PROCEDURES
from ....schemas.episodes import StoredEpisode
from ....schemas.outcomes import OutPoint, PutPoints
from ....schemas.procedures import StoredProcedure
from ....schemas.turns import SENSITIVITIES, up_to
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader, as_episode, of_owner
from ..prompts.procedures import SCHEMA, TASK, ProcedureItem, ProceduresPrompt, parse
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult

PROCEDURES_MAX: Final = 3
KNOWN_MAX: Final = 50
"""Known procedures that are named in the prompt."""
SHOWN: Final = up_to("internal")


@dataclass(frozen=True, slots=True)
class ProceduresStep:
    """The newest episodes, when there are as many as a cluster needs and other ones than last time."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: ConsolidationPolicy
    part: PartName = "deep"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        standing = [as_episode(each) for each in await self.lookup.episodes(asked)]
        shown = [each for each in standing if each.sensitivity in SHOWN][-self.policy.max_episodes :]
        if not self.policy.cluster or len(shown) < self.policy.cluster or cluster_name(shown) == row.mined:
            return StepResult("nothing", row)
        prompt = ProceduresPrompt(shown, await self._known(asked))
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.asking.ask(asked.tenant_id, question)
        looked_at = row.model_copy(update={"mined": cluster_name(shown)})
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, looked_at if answer.status == "failed" else row)
        found = [
            _procedure(item, shown, asked, model=answer.model, prompt=prompt.name)
            for _, item in answer.value.items[:PROCEDURES_MAX]
        ]
        by_id = {each.procedure_id: each for each in found}
        points = tuple(OutPoint(id=each, payload=by_id[each].to_payload()) for each in by_id)
        return StepResult(
            "done",
            looked_at,
            {"procedures": len(by_id)},
            {"invalid": answer.value.dropped} if answer.value.dropped else {},
            writes=(PutPoints(collection=PROCEDURES, points=points),) if points else (),
            usage=token_usage(answer.usage),
        )

    async def _known(self, asked: RunRequest) -> list[StoredProcedure]:
        where = models.Filter(must=[of_owner(asked)])
        store = self.lookup.store
        found = await self.lookup.calls.call(
            "store", lambda: store.select(PROCEDURES, tenant_id=asked.tenant_id, where=where, limit=KNOWN_MAX)
        )
        return [StoredProcedure.from_payload(each.payload) for each in found]


def _procedure(
    item: ProcedureItem, shown: Sequence[StoredEpisode], asked: RunRequest, *, model: str, prompt: str
) -> StoredProcedure:
    return StoredProcedure(
        procedure_id=ids.procedure_id(asked.owner_key, item.name),
        tenant_id=asked.tenant_id,
        owner=asked.owner,
        owner_key=asked.owner_key,
        name=item.name,
        trigger=item.trigger,
        steps=tuple(item.steps),
        at=asked.now,
        sensitivity=max((each.sensitivity for each in shown), key=SENSITIVITIES.index),
        model=model,
        prompt=prompt,
        run_id=asked.run_id,
    )
