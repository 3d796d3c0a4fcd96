"""The input of a check (`Expected`) and its result (`InvariantVerdict`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..memory.policies import MemoryPolicy
from ..schemas.topics import STAGES, StageName
from ..streams.log.port import Position
from .rows import TurnName, format_position


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding, with the positions of the records and points that show the problem. A finding never contains their
    content."""

    what: str
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InvariantVerdict:
    """The result of one check. `checked`: the number of items that were checked."""

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
    """The expected properties of a run.

    - `stages`: the stages that ran; the checks require nothing of other stages.
    - `acknowledged`: turns that the log acknowledged to their producer.
    - `refused_by_model`: exactly the turns that the model must have refused. None: the check accepts the dead letters
      with that reason.
    """

    stages: frozenset[StageName] = frozenset(STAGES)
    policy: MemoryPolicy = field(default_factory=MemoryPolicy)
    tier: str = "free"
    free_models: frozenset[str] = frozenset(("offline",))
    acknowledged: frozenset[TurnName] = frozenset()
    refused_by_model: frozenset[TurnName] | None = None


class Findings:
    """A collector of the findings of one check."""

    def __init__(self) -> None:
        self.checked = 0
        self.violations: list[Violation] = []
        self.notes: list[str] = []

    def found(self, what: str, *where: Position | str) -> None:
        """Add a violation."""
        records = (each if isinstance(each, str) else format_position(each) for each in where)
        self.violations.append(Violation(what, tuple(dict.fromkeys(records))))

    def require(self, holds: bool, what: str, *where: Position | str) -> None:
        """Count one checked item, and add a violation when `holds` is false."""
        self.checked += 1
        if not holds:
            self.found(what, *where)

    def note(self, what: str) -> None:
        self.notes.append(what)

    def verdict(self, invariant: str, title: str) -> InvariantVerdict:
        return InvariantVerdict(invariant, title, self.checked, tuple(self.violations), tuple(self.notes))


def format_turn(turn: TurnName) -> str:
    """Return the name of a turn for a violation: session key and turn id, as in record keys."""
    return f"turn {turn[1]} of {turn[0]}"


def positions(rows: Iterable[object]) -> list[Position]:
    """Return the positions of rows."""
    return [getattr(row, "position") for row in rows]  # noqa: B009
