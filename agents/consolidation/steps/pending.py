"""Steps for pending facts. Settle calls no model (light phase). Judge calls a model (standard or deep phase)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from ..owner_reads import OwnerReader, of_owner, oldest_first
from ..prompts.judge import SCHEMA, TASK, JudgePrompt, PendingPair, parse
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult

JUDGED = "judged by the model"
"""Reason of a judgement when one of the two facts is secret. The model's own words could reveal the secret fact in the
event of the other fact."""
PAGE: Final = 200
"""Maximum number of pending facts in one read."""
PAGES: Final = 5
"""Maximum number of reads in which one run searches for pairs. A page may have no pair, because time or the user
decides its facts."""
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

    Each run handles one page.
    """

    reader: OwnerReader
    part: PartName = "light"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        changes = []
        pairs, next_from = await pending_page(self.reader, request, after=row.upkeep.settled_from)
        for pending, known in pairs:
            judgement = judge_without_model(pending, known, request.now)
            if judgement is not None:
                changes.append(judge_change(pending, known, judgement, "settled without a model"))
        row = row.model_copy(update={"upkeep": row.upkeep.model_copy(update={"settled_from": next_from})})
        if not changes:
            return StepResult("nothing", row)
        return StepResult("done", row, {"settled": len(changes)}, changes=tuple(changes))


@dataclass(frozen=True, slots=True)
class JudgeStep:
    """A step with one model call about at most 20 pairs of a pending and an active fact.

    The next run starts after these pairs, so pairs without a judgement do not block other pairs.
    """

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    part: PartName

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        waiting, next_from = await self._waiting(request, row.upkeep.judged_from)
        pairs, left = in_turn(waiting, at_most=self.policy.max_pairs)
        judged_from = left.pending.fact_id if left else next_from
        gone_on = row.model_copy(update={"upkeep": row.upkeep.model_copy(update={"judged_from": judged_from})})
        if not pairs:
            return StepResult("nothing", gone_on)
        is_secret = _sensitivity(pairs[0]) == "secret"
        prompt = JudgePrompt(pairs)
        counts = {"pairs": len(pairs)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, gone_on if answer.status == "failed" else row, **counts)
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
            gone_on,
            counts | {"judged": len(changes)},
            {reason: n for reason, n in dropped.items() if n},
            changes=tuple(changes.values()),
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )

    async def _waiting(self, request: RunRequest, after: str) -> tuple[list[PendingPair], str]:
        """Return the pairs of the next page that has pairs, and the start of the following page."""
        begun = after
        for _ in range(PAGES):
            pairs, after = await pending_page(self.reader, request, after=after)
            waiting = pairs_to_judge(pairs, request.now)
            if waiting or not (after or begun):
                return waiting, after
            begun = begun if after else ""
        return [], after


def in_turn(waiting: Sequence[PendingPair], *, at_most: int) -> tuple[list[PendingPair], PendingPair | None]:
    """Return the pairs for one model call, in the order of `waiting`, and the first pair by id that is left out.

    The call takes the first pairs by id that may be shown together.
    """
    by_id = sorted(waiting, key=lambda each: each.pending.fact_id)
    shown = {each.pending.fact_id for each in of_one_audience(by_id, _sensitivity)[:at_most]}
    left = next((each for each in by_id if each.pending.fact_id not in shown), None)
    return [each for each in waiting if each.pending.fact_id in shown], left


def _sensitivity(pair: PendingPair) -> Sensitivity:
    return max(pair.pending.sensitivity, pair.known.sensitivity, key=SENSITIVITIES.index)


def pairs_to_judge(pairs: Sequence[tuple[StoredFact, StoredFact | None]], now: datetime) -> list[PendingPair]:
    """Return the pairs that need a judgement: the pending fact is valid now, and the other fact is active.

    A pending fact that contradicts a more trusted fact is left out, because only the user decides it. A pending fact
    with less trust than the active fact comes last, because the judgement `supersede` will be refused.
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
