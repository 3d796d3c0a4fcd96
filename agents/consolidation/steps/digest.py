"""The digest: an owner's facts and recent episodes as a little prose, made anew when they have changed."""

from __future__ import annotations

from dataclasses import dataclass

from ....memory.policies import DigestPolicy
from ....memory.upkeep.digest import basis_of, choose_episodes, choose_facts, is_due, truncate_to_tokens
from ....schemas import ids
from ....schemas.collections import DIGESTS
from ....schemas.digests import StoredDigest
from ....schemas.outcomes import OutPoint, PutPoints
from ....schemas.turns import SENSITIVITIES
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader, as_episode
from ..prompts.digest import TASK, DigestPrompt
from ..prompts.text_answer import SCHEMA, parse
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class DigestStep:
    """One question. The point is put whole: this stage is its only writer."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: DigestPolicy
    part: PartName = "digest"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        last = await self._last(asked)
        facts = await self.lookup.facts(asked)
        episodes = tuple(as_episode(each) for each in await self.lookup.episodes(asked))
        basis = basis_of(facts, len(episodes))
        if not is_due(last, basis, forced=asked.forced):
            return StepResult("nothing", row)
        told = await self.lookup.believed(asked, [each.observation_id for each in episodes])
        standing = [each for each in episodes if told.get(each.observation_id, True)]  # an episode follows its fact
        shown_facts, shown_episodes = choose_facts(facts, self.policy), choose_episodes(standing, self.policy)
        counts = {"facts_shown": len(shown_facts), "episodes": len(shown_episodes)}
        if not shown_facts and not shown_episodes:
            return StepResult("nothing", row)
        prompt = DigestPrompt(last.text if last else "", shown_facts, shown_episodes)
        answer = await self.asking.ask(
            asked.tenant_id, ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        )
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, row, **counts)
        usage = token_usage(answer.usage)
        text = truncate_to_tokens(answer.value, self.policy.tokens)
        if not text:  # never over one that says something
            return StepResult("nothing", row, counts, {"empty": 1}, model=answer.model, usage=usage)
        digest = StoredDigest(
            digest_id=ids.digest_id(asked.owner_key),
            tenant_id=asked.tenant_id,
            owner=asked.owner,
            owner_key=asked.owner_key,
            text=text,
            at=asked.now,
            basis=basis,
            sensitivity=max(
                (*(each.sensitivity for each in shown_facts), *(each.sensitivity for each in shown_episodes)),
                key=SENSITIVITIES.index,
            ),
            model=answer.model,
            prompt=prompt.name,
            run_id=asked.run_id,
        )
        put = PutPoints(collection=DIGESTS, points=(OutPoint(id=digest.digest_id, payload=digest.to_payload()),))
        return StepResult("done", row, counts, writes=(put,), model=answer.model, prompt=prompt.name, usage=usage)

    async def _last(self, asked: RunRequest) -> StoredDigest | None:
        wanted = ids.digest_id(asked.owner_key)
        store = self.lookup.store
        found = await self.lookup.calls.call(
            "store", lambda: store.get(DIGESTS, tenant_id=asked.tenant_id, ids=(wanted,))
        )
        return StoredDigest.from_payload(found[wanted].payload) if wanted in found else None
