"""Digest step: a short text about an owner's facts and recent episodes, rewritten after changes."""

from __future__ import annotations

from dataclasses import dataclass

from ....memory.policies import DigestPolicy
from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import safe_prose
from ....memory.upkeep.digest import basis_of, choose_episodes, choose_facts, is_due, whole_sentences
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
from ..step import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class DigestStep:
    """A step with one model call. It replaces the whole stored digest, because no other stage writes it."""

    reader: OwnerReader
    caller: ModelCaller
    policy: DigestPolicy
    part: PartName = "digest"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        last = await self._last(request)
        facts = await self.reader.facts(request)
        episodes = tuple(as_episode(each) for each in await self.reader.episodes(request))
        basis = basis_of(facts, len(episodes))
        if not is_due(last, basis, forced=request.forced):
            return StepResult("nothing", row)
        believed = await self.reader.believed(request, [each.observation_id for each in episodes])
        # Leave out an episode whose facts are all closed (docs/adr/0011-an-episode-follows-its-fact.md).
        current = [each for each in episodes if believed.get(each.observation_id, True)]
        shown_facts, shown_episodes = choose_facts(facts, self.policy), choose_episodes(current, self.policy)
        counts = {"facts_shown": len(shown_facts), "episodes": len(shown_episodes)}
        if not shown_facts and not shown_episodes:
            return StepResult("nothing", row)
        prompt = DigestPrompt(last.text if last else "", shown_facts, shown_episodes)
        answer = await self.caller.ask(
            request.tenant_id, ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        )
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, row, **counts)
        usage = token_usage(answer.usage)
        text = safe_prose(whole_sentences(answer.value, self.policy.tokens))
        if not text:  # an empty text does not replace a digest
            return StepResult("nothing", row, counts, {"empty": 1}, model=answer.model, usage=usage)
        digest = StoredDigest(
            digest_id=ids.digest_id(request.owner_key),
            tenant_id=request.tenant_id,
            owner=request.owner,
            owner_key=request.owner_key,
            text=text,
            at=request.now,
            basis=basis,
            sensitivity=at_least(
                max(
                    (*(each.sensitivity for each in shown_facts), *(each.sensitivity for each in shown_episodes)),
                    key=SENSITIVITIES.index,
                ),
                self.caller.secrets.label(text),
            ),
            model=answer.model,
            prompt=prompt.name,
            run_id=request.run_id,
        )
        put = PutPoints(collection=DIGESTS, points=(OutPoint(id=digest.digest_id, payload=digest.to_payload()),))
        return StepResult("done", row, counts, writes=(put,), model=answer.model, prompt=prompt.name, usage=usage)

    async def _last(self, request: RunRequest) -> StoredDigest | None:
        digest_id = ids.digest_id(request.owner_key)
        store = self.reader.store
        found = await self.reader.calls.call(
            "store", lambda: store.get(DIGESTS, tenant_id=request.tenant_id, ids=(digest_id,))
        )
        return StoredDigest.from_payload(found[digest_id].payload) if digest_id in found else None
