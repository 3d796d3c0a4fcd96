"""What all steps of a run have in common: what they are asked for, and what they say they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from ....memory.recall.links import Links
from ....schemas.commands import Change, SummaryProposal
from ....schemas.errors import Poison
from ....schemas.observations import TokenUsage
from ....schemas.outcomes import Write
from ....schemas.turns import Owner
from ...common.model_call import CallStopped
from ...common.seen_ids import SeenIds
from ..rows import PartName, ProgressRow, StepStatus


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run for one owner. `run_id` is derived from its cause: the same one when the event comes again."""

    tenant_id: str
    owner: Owner
    run_id: str
    now: datetime
    args: Mapping[str, JsonValue] = field(default_factory=dict)
    """Of the command; empty for a run that no command asked for."""
    issued_at: datetime | None = None
    """Of the command."""
    links: Links = field(default_factory=Links)
    """Of the owner: what was recalled together."""
    counted: SeenIds = field(default_factory=SeenIds)
    """Ids of the turns that were reflected, of the session that the command is about."""

    @property
    def owner_key(self) -> str:
        return self.owner.key(self.tenant_id)

    @property
    def forced(self) -> bool:
        """Whether to do it although nothing calls for it."""
        return self.args.get("force") is True


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step came to. Nothing of it is done yet: `changes` become facts.apply commands, `summaries`
    episodes.record ones, `writes` effects of the outcome, `row` the owner's row, all of one event. `model` and `prompt`
    made them."""

    status: StepStatus
    row: ProgressRow
    counts: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    to: Owner | None = None
    """Whose facts they are changes of; None: the owner's whose run it is."""
    summaries: tuple[SummaryProposal, ...] = ()
    writes: tuple[Write, ...] = ()
    model: str | None = None
    prompt: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    why: str = ""
    poison: Poison | None = None
    retry_after: float | None = None
    also: tuple[StepResult, ...] = ()
    """Of steps that this one took itself; their rows are in `row`."""

    @classmethod
    def stopped(cls, by: CallStopped, row: ProgressRow, **counts: int) -> StepResult:
        return cls(by.status, row, counts, why=by.why, poison=by.poison, retry_after=by.retry_after)


class Step(Protocol):
    """One thing that a run does, with at most `calls` questions to a model. Reads only; every effect is in
    `StepResult`."""

    @property
    def part(self) -> PartName:
        """The entry of the run's record that it belongs to."""
        ...

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        """Raises Fatal, and Transient where the store is away."""
        ...
