"""Pending facts: those that settle by themselves (light), and those that the judge's model settles (standard, deep)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ....memory.facts.pending import judge_without_model
from ....memory.policies import ConsolidationPolicy
from ....schemas.commands import Change, Judgement
from ....schemas.facts import StoredFact
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader
from ..prompts.judge import SCHEMA, TASK, JudgePrompt, PendingPair, parse
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult

PENDING_READ = 200
"""Pending facts of an owner that one run looks at."""


async def waiting(lookup: OwnerReader, asked: RunRequest) -> list[tuple[StoredFact, StoredFact | None]]:
    """Pending facts, oldest first, each with the one that it waits for as it stands now."""
    pending = await lookup.facts(asked, "pending", limit=PENDING_READ)
    known = await lookup.facts_by_id(asked, [each.waits_for for each in pending if each.waits_for])
    return [(each, known.get(each.waits_for or "")) for each in pending]


@dataclass(frozen=True, slots=True)
class SettleStep:
    """What time or a later statement has decided meanwhile; nobody is asked."""

    lookup: OwnerReader
    part: PartName = "light"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        changes = []
        for pending, known in await waiting(self.lookup, asked):
            judgement = judge_without_model(pending, known, asked.now)
            if judgement is not None:
                changes.append(judged(pending, known, judgement, "settled without a model"))
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"settled": len(changes)}, changes=tuple(changes))


@dataclass(frozen=True, slots=True)
class JudgeStep:
    """What stands against an active fact, in one question of at most 20 pairs; the rest waits for the next run."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: ConsolidationPolicy
    part: PartName

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        pairs = to_be_judged(await waiting(self.lookup, asked), asked.now)[: self.policy.max_pairs]
        if not pairs:
            return StepResult("nothing", row)
        prompt = JudgePrompt(pairs)
        counts = {"pairs": len(pairs)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.asking.ask(asked.tenant_id, question)
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, row, **counts)
        shown, unknown = prompt.pairs, 0
        changes: dict[str, Change] = {}
        for _, item in answer.value.items:
            pair = shown.get(item.pair_id)
            if pair is None or item.pair_id in changes:
                unknown += 1
                continue
            changes[item.pair_id] = judged(pair.pending, pair.known, item.decision, item.reason)
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


def to_be_judged(waiting: Sequence[tuple[StoredFact, StoredFact | None]], now: datetime) -> list[PendingPair]:
    """Those that nothing but a judgement settles: their time has come, and what they wait for is believed."""
    return [
        PendingPair(pending, known)
        for pending, known in waiting
        if known is not None and pending.valid_from <= now and judge_without_model(pending, known, now) is None
    ]


def judged(pending: StoredFact, known: StoredFact | None, judgement: Judgement, reason: str) -> Change:
    return Change(
        action="judge",
        target_fact_id=pending.fact_id,
        expected_version=pending.version,
        source_fact_ids=(known.fact_id,) if known else (),
        judgement=judgement,
        reason=reason,
    )
