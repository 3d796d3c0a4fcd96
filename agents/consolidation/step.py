"""Types shared by all steps of a run: the request, the result, and the step protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from ...memory.recall.links import Links
from ...schemas.commands import Change, FactReview, SummaryProposal
from ...schemas.errors import Poison
from ...schemas.observations import TokenUsage
from ...schemas.outcomes import Write
from ...schemas.turns import Owner
from ..common.model_call import CallStopped
from ..common.seen_ids import SeenIds
from .rows import PartName, ProgressRow, StepStatus


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run for one owner.

    `run_id` is derived from the event that causes the run, so a redelivered event gives the same id.
    """

    tenant_id: str
    owner: Owner
    run_id: str
    now: datetime
    args: Mapping[str, JsonValue] = field(default_factory=dict)
    """Arguments of the command; empty when the counters started the run."""
    issued_at: datetime | None = None
    """Time at which the command was issued."""
    links: Links = field(default_factory=Links)
    """The owner's links between records that were recalled together."""
    counted: SeenIds = field(default_factory=SeenIds)
    """Ids of the reflected turns of the session that the command names."""

    @property
    def owner_key(self) -> str:
        return self.owner.key(self.tenant_id)

    @property
    def forced(self) -> bool:
        """True when the step must run even if the policy does not require it."""
        return self.args.get("force") is True


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step. Its effects are not applied yet.

    `changes` become facts.apply commands. `rejections` become facts.reject commands. `summaries` become episodes.record
    commands. `writes` become writes of the outcome. `row` becomes the owner's row. `model` and `prompt` name the model
    and the prompt of the proposals.
    """

    status: StepStatus
    row: ProgressRow
    counts: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    to: Owner | None = None
    """The owner of the changed facts, or None for the owner of the run."""
    rejections: tuple[FactReview, ...] = ()
    summaries: tuple[SummaryProposal, ...] = ()
    writes: tuple[Write, ...] = ()
    model: str | None = None
    prompt: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    why: str = ""
    poison: Poison | None = None
    retry_after: float | None = None
    also: tuple[StepResult, ...] = ()
    """Results of further steps that this step executed. `row` includes their changes."""

    @classmethod
    def stopped(cls, by: CallStopped, row: ProgressRow, **counts: int) -> StepResult:
        """Return the result of a step whose model call gave no answer."""
        return cls(by.status, row, counts, why=by.why, poison=by.poison, retry_after=by.retry_after)


class Step(Protocol):
    """One step of a run. It only reads; all its effects are in the `StepResult`."""

    @property
    def part(self) -> PartName:
        """The part of the run's record that the step belongs to."""
        ...

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        """Execute the step. Raises Fatal, and Transient when the store is unreachable."""
        ...
