"""An owner keeps no more facts that wait than the policy says.

A pending fact waits for a model or for the user, a quarantined one for a person. What nobody decides about would only
grow in number. So this step proposes to reject the oldest beyond the policy's number, of each of the two. A rejected
fact is forgotten: it is not believed, as before, and the question whether to believe it is closed.
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
from .base import RunRequest, StepResult

WAITING_STATES: Final[tuple[FactState, ...]] = ("pending", "quarantined")


@dataclass(frozen=True, slots=True)
class RejectWaitingStep:
    """One run rejects at most `at_once` facts of a state; the next one goes on.

    Facts that begin in the future go last: their time decides about them, without a model.
    """

    reader: OwnerReader
    policy: HygienePolicy
    part: PartName
    judges: bool = False
    """Whether the budget tier lets a run judge pending facts. More of them are kept there."""

    @property
    def kept(self) -> int:
        """Facts of each state that an owner keeps; 0: all."""
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
        why = "" if self.judges else ", and the tier lets no run judge facts"
        reason = f"hygiene: more than {kept} facts are {state}{why}"
        return [FactReview(fact_id=each.id, reason=reason) for each in found]
