"""What a check is told, and what it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..memory.policies import MemoryPolicy
from ..schemas.topics import STAGES, StageName
from ..streams.log.port import Position
from .rows import TurnName, format_position


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding, and the records and points that show it. No content of them is told."""

    what: str
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InvariantVerdict:
    """`checked`: of how many things the check could speak."""

    invariant: str
    title: str
    checked: int
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the caller knows. `stages`: those that ran (of others nothing is asked). `acknowledged`: turns whose
    producer was told that they are in the log. `refused_by_model`: the turns that the model must have refused, no more
    and no fewer; None: those that say so are believed."""

    stages: frozenset[StageName] = frozenset(STAGES)
    policy: MemoryPolicy = field(default_factory=MemoryPolicy)
    tier: str = "free"
    free_models: frozenset[str] = frozenset(("offline",))
    acknowledged: frozenset[TurnName] = frozenset()
    refused_by_model: frozenset[TurnName] | None = None


class Findings:
    """Collects what one check finds."""

    def __init__(self) -> None:
        self.checked = 0
        self.violations: list[Violation] = []
        self.notes: list[str] = []

    def found(self, what: str, *where: Position | str) -> None:
        records = (each if isinstance(each, str) else format_position(each) for each in where)
        self.violations.append(Violation(what, tuple(dict.fromkeys(records))))

    def require(self, holds: bool, what: str, *where: Position | str) -> None:
        """One thing more was looked at."""
        self.checked += 1
        if not holds:
            self.found(what, *where)

    def note(self, what: str) -> None:
        self.notes.append(what)

    def verdict(self, invariant: str, title: str) -> InvariantVerdict:
        return InvariantVerdict(invariant, title, self.checked, tuple(self.violations), tuple(self.notes))


def format_turn(turn: TurnName) -> str:
    """A turn in a violation: session key and turn id, as they are in keys."""
    return f"turn {turn[1]} of {turn[0]}"


def positions(rows: Iterable[object]) -> list[Position]:
    """The positions of rows."""
    return [getattr(row, "position") for row in rows]  # noqa: B009
