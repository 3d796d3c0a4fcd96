"""Steps for pending facts. Settle calls no model; it runs in the light phase of each run. Judge is the only step of the
command `judge`; it asks a model about the listed facts (judgement.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from qdrant_client import models

from ....adapters.vectors.conditions import equals
from ....memory.facts.pending import judge_without_model, more_trusted_rivals
from ....memory.facts.trust_order import outranks
from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.one_audience import of_one_audience
from ....schemas.collections import FACTS
from ....schemas.commands import Change, Judgement
from ....schemas.facts import StoredFact
from ....schemas.turns import SENSITIVITIES, Sensitivity
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..judgement import mark_of, with_asked, with_each_alone, with_listed, with_only, with_stopped
from ..owner_reads import OwnerReader, of_owner, oldest_first
from ..prompts.judge import SCHEMA, TASK, JudgePrompt, PendingPair, parse
from ..rows import JudgementList, PartName, ProgressRow
from ..step import RunRequest, StepResult

JUDGED = "judged by the model"
"""Reason of a judgement when one of the two facts is secret. The model's own words could reveal the secret fact in the
event of the other fact."""
PAGE: Final = 200
"""Maximum number of pending facts in one read."""
Pairs = list[tuple[StoredFact, StoredFact | None]]


async def pending_page(reader: OwnerReader, request: RunRequest, *, after: str) -> tuple[Pairs, str]:
    """Read a page of pending facts in id order, starting at the fact `after` ("" means the first).

    When no fact is left, the read starts again at the first fact. Return the facts oldest first, each with the fact
    that it waits for, as this fact is now stored. Also return the start of the next page.
    """
    where = models.Filter(must=[of_owner(request), equals("state", "pending")])
    found, next_from = await reader.page(request, FACTS, where, after=after, size=PAGE)
    if after and not found:
        found, next_from = await reader.page(request, FACTS, where, after="", size=PAGE)
    pending = oldest_first(found)
    known = await reader.facts_by_id(request, [each.waits_for for each in pending if each.waits_for])
    return [(each, known.get(each.waits_for or "")) for each in pending], next_from


@dataclass(frozen=True, slots=True)
class SettleStep:
    """A step that settles pending facts that time or a later statement has decided. It calls no model.

    Pending facts that need a model, and that no model was asked about, join the list of judgements while it has room.
    Each run handles one page.
    """

    reader: OwnerReader
    judges: bool = True
    """True when a model may judge pending facts."""
    part: PartName = "light"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        pairs, next_from = await pending_page(self.reader, request, after=row.upkeep.settled_from)
        row = row.model_copy(update={"upkeep": row.upkeep.model_copy(update={"settled_from": next_from})})
        if self.judges:
            unasked = (each.pending.fact_id for each in pairs_to_judge(pairs, request.now, asked=row.judged))
            row, _ = with_listed(row, unasked, run_id=request.run_id, now=request.now)
        changes = settled_changes(pairs, request.now)
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"settled": len(changes)}, changes=changes)


@dataclass(frozen=True, slots=True)
class JudgeStep:
    """A step with one model call about at most 20 pairs of a listed fact and the fact that it waits for.

    Listed facts that need no model leave the list: those that are settled meanwhile or are settled here without a
    model, those that only the user decides, those that have not begun, and those that a model was asked about.
    """

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    pause: float
    """Seconds until an unavailable model is asked again."""
    part: PartName = "judge"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        if row.judging is None:
            return StepResult("nothing", row)
        listed = await self._listed(request, row.judging)
        changes = settled_changes(listed, request.now)
        settled = (StepResult("done", row, {"settled": len(changes)}, changes=changes),) if changes else ()
        waiting = pairs_to_judge(listed, request.now, asked=row.judged)
        row = with_only(row, {each.pending.fact_id for each in waiting})
        if row.judging is None:
            return StepResult("nothing", row, also=settled)
        at_most = 1 if row.judging.alone else self.policy.max_pairs
        shown = of_one_audience(waiting, _sensitivity)[:at_most]
        return replace(await self._ask(request, row, shown), also=settled)

    async def _listed(self, request: RunRequest, judging: JudgementList) -> Pairs:
        """Read the listed facts in the order of the list, each with the fact that it waits for."""
        found = await self.reader.facts_by_id(request, [each.fact_id for each in judging.facts])
        pending = [found[each.fact_id] for each in judging.facts if each.fact_id in found]
        pending = [each for each in pending if each.state == "pending"]
        known = await self.reader.facts_by_id(request, [each.waits_for for each in pending if each.waits_for])
        return [(each, known.get(each.waits_for or "")) for each in pending]

    async def _ask(self, request: RunRequest, row: ProgressRow, shown: Sequence[PendingPair]) -> StepResult:
        prompt = JudgePrompt(shown)
        counts = {"pairs": len(shown)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        if not isinstance(answer, CallStopped) and answer.by_rules:
            answer = CallStopped("deferred", "only the rules answered: the model is not available")
        asked = with_asked(row, [(each.pending, each.known) for each in shown])
        if isinstance(answer, CallStopped):
            if answer.status != "failed":
                row = with_stopped(row, answer, pause=self.pause, now=request.now)
            elif len(shown) > 1:
                row, answer = with_each_alone(row, len(shown), why=answer.why), replace(answer, poison=None)
            else:
                row = asked
            return StepResult.stopped(answer, row, **counts)
        is_secret = _sensitivity(shown[0]) == "secret"
        pairs, unknown = prompt.pairs, 0
        changes: dict[str, Change] = {}
        for _, item in answer.value.items:
            pair = pairs.get(item.pair_id)
            if pair is None or item.pair_id in changes:
                unknown += 1
                continue
            reason = JUDGED if is_secret else item.reason
            changes[item.pair_id] = judge_change(pair.pending, pair.known, item.decision, reason)
        dropped = {
            "unknown_pair": unknown,
            "invalid": answer.value.dropped,
            "unanswered": len(pairs) - len(changes),
        }
        return StepResult(
            "done",
            asked,
            counts | {"judged": len(changes)},
            {reason: n for reason, n in dropped.items() if n},
            changes=tuple(changes.values()),
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )


def _sensitivity(pair: PendingPair) -> Sensitivity:
    return max(pair.pending.sensitivity, pair.known.sensitivity, key=SENSITIVITIES.index)


def settled_changes(pairs: Pairs, now: datetime) -> tuple[Change, ...]:
    """Return the changes of the pairs that need no model."""
    judged = ((pending, known, judge_without_model(pending, known, now)) for pending, known in pairs)
    return tuple(
        judge_change(pending, known, judgement, "settled without a model")
        for pending, known, judgement in judged
        if judgement is not None
    )


def pairs_to_judge(pairs: Pairs, now: datetime, *, asked: Collection[str] = ()) -> list[PendingPair]:
    """Return the pairs that need a judgement by a model, except the pairs whose marks are in `asked`.

    A pending fact that has not begun or is not confirmed needs none. A pending fact that contradicts a more trusted
    fact is left out, because only the user decides it. A pending fact with less trust than the other fact comes last,
    because the judgement `supersede` will be refused.
    """
    found = [
        PendingPair(pending, known)
        for pending, known in pairs
        if known is not None
        and not pending.is_unconfirmed
        and pending.valid_from <= now
        and judge_without_model(pending, known, now) is None
        and not more_trusted_rivals(pending, known, "coexist", ())
        and mark_of(pending, known) not in asked
    ]
    return sorted(found, key=lambda each: outranks(each.known, each.pending))


def judge_change(pending: StoredFact, known: StoredFact | None, judgement: Judgement, reason: str) -> Change:
    return Change(
        action="judge",
        target_fact_id=pending.fact_id,
        expected_version=pending.version,
        source_fact_ids=(known.fact_id,) if known else (),
        judgement=judgement,
        compared_hash=known.content_hash if known else None,
        reason=reason,
    )
