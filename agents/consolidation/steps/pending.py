"""Pending facts: the step Settle needs no model (phase light), the step Judge asks one (standard or deep)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ....memory.facts.pending import judge_without_model, more_trusted_rivals
from ....memory.facts.trust_order import outranks
from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.one_audience import of_one_audience
from ....schemas.commands import Change, Judgement
from ....schemas.facts import StoredFact
from ....schemas.turns import SENSITIVITIES, Sensitivity
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader
from ..prompts.judge import SCHEMA, TASK, JudgePrompt, PendingPair, parse
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult

JUDGED = "judged by the model"
"""The reason where one of the two facts is secret: the other one's event would repeat the model's words about both."""
PENDING_READ = 200
"""Pending facts of an owner that one run reads."""


async def pending_facts(reader: OwnerReader, request: RunRequest) -> list[tuple[StoredFact, StoredFact | None]]:
    """Read pending facts, oldest first, each with the fact that it waits for as that is now."""
    pending = await reader.facts(request, "pending", limit=PENDING_READ)
    known = await reader.facts_by_id(request, [each.waits_for for each in pending if each.waits_for])
    return [(each, known.get(each.waits_for or "")) for each in pending]


@dataclass(frozen=True, slots=True)
class SettleStep:
    """Settles pending facts that time or a later statement has decided. No model is asked."""

    reader: OwnerReader
    part: PartName = "light"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        changes = []
        for pending, known in await pending_facts(self.reader, request):
            judgement = judge_without_model(pending, known, request.now)
            if judgement is not None:
                changes.append(judge_change(pending, known, judgement, "settled without a model"))
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"settled": len(changes)}, changes=tuple(changes))


@dataclass(frozen=True, slots=True)
class JudgeStep:
    """Asks one question about at most 20 pairs of a pending and an active fact. The rest waits for the next run."""

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    part: PartName

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        waiting = pairs_to_judge(await pending_facts(self.reader, request), request.now)
        if not waiting:
            return StepResult("nothing", row)
        pairs = of_one_audience(waiting, _sensitivity)[: self.policy.max_pairs]
        is_secret = _sensitivity(pairs[0]) == "secret"
        prompt = JudgePrompt(pairs)
        counts = {"pairs": len(pairs)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, row, **counts)
        shown, unknown = prompt.pairs, 0
        changes: dict[str, Change] = {}
        for _, item in answer.value.items:
            pair = shown.get(item.pair_id)
            if pair is None or item.pair_id in changes:
                unknown += 1
                continue
            reason = JUDGED if is_secret else item.reason
            changes[item.pair_id] = judge_change(pair.pending, pair.known, item.decision, reason)
        dropped = {"unknown_pair": unknown, "invalid": answer.value.dropped}
        return StepResult(
            "done",
            row,
            counts | {"judged": len(changes)},
            {reason: n for reason, n in dropped.items() if n},
            changes=tuple(changes.values()),
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )


def _sensitivity(pair: PendingPair) -> Sensitivity:
    return max(pair.pending.sensitivity, pair.known.sensitivity, key=SENSITIVITIES.index)


def pairs_to_judge(pairs: Sequence[tuple[StoredFact, StoredFact | None]], now: datetime) -> list[PendingPair]:
    """Return the pairs that need a judgement: the pending fact is valid by now, and the fact it waits for is active.

    No model judges a pending fact that contradicts a more trusted one: it waits for the user's word. One that is
    only less trusted comes last, because `supersede` will be refused.
    """
    found = [
        PendingPair(pending, known)
        for pending, known in pairs
        if known is not None
        and pending.valid_from <= now
        and judge_without_model(pending, known, now) is None
        and not more_trusted_rivals(pending, known, "coexist", ())
    ]
    return sorted(found, key=lambda each: outranks(each.known, each.pending))


def judge_change(pending: StoredFact, known: StoredFact | None, judgement: Judgement, reason: str) -> Change:
    return Change(
        action="judge",
        target_fact_id=pending.fact_id,
        expected_version=pending.version,
        source_fact_ids=(known.fact_id,) if known else (),
        judgement=judgement,
        reason=reason,
    )
