"""Limit of an owner's waiting facts.

A pending fact waits for a model or the user, and a quarantined fact waits for a person. Facts without a decision would
accumulate. So this step proposes rejections: in each of the two states, it rejects the oldest facts above the policy's
limit. A rejected fact has no effect and waits for no decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....adapters.vectors.conditions import after, equals
from ....memory.policies import HygienePolicy
from ....schemas.collections import FACTS
from ....schemas.commands import FactReview
from ....schemas.facts import FactState
from ..owner_reads import OwnerReader
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult

WAITING_STATES: Final[tuple[FactState, ...]] = ("pending", "quarantined")


@dataclass(frozen=True, slots=True)
class RejectWaitingStep:
    """A step that rejects at most `at_once` facts per state in one run.

    Facts that become valid in the future are rejected last, because time decides them without a model.
    """

    reader: OwnerReader
    policy: HygienePolicy
    part: PartName
    judges: bool = False
    """True when a model may judge pending facts. The limit is then higher."""

    @property
    def kept(self) -> int:
        """Maximum number of facts per state and owner; 0 means no limit."""
        policy = self.policy
        if self.judges:
            return policy.waiting_facts_judged
        return policy.waiting_facts if policy.cull_unconsolidated else 0

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        rejections = [each for state in WAITING_STATES for each in await self._beyond(request, state)]
        if not rejections:
            return StepResult("nothing", row)
        return StepResult("done", row, {"culled_facts": len(rejections)}, rejections=tuple(rejections))

    async def _beyond(self, request: RunRequest, state: FactState) -> list[FactReview]:
        kept = self.kept
        found = await self.reader.oldest_beyond(
            request,
            FACTS,
            [equals("state", state)],
            kept=kept,
            last=after("valid_from", request.now),
            order_by="recorded_at",
            at_once=self.policy.at_once,
        )
        why = "" if self.judges else ", and no model judges facts"
        reason = f"hygiene: more than {kept} facts are {state}{why}"
        return [FactReview(fact_id=each.id, reason=reason) for each in found]
