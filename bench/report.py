"""The result of a run: figures with their targets, as a table, as JSON and as Markdown (docs/notes/performance.md)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

from rich.table import Table

from memstream import __version__

LIBRARIES = ("aiokafka", "faust-streaming", "openai", "pydantic", "qdrant-client", "qdrant-edge-py", "rocksdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number. Without a `target` it is only shown for comparison."""

    ratio: str
    """R1 … R10 or "all stages" (docs/notes/performance.md)."""
    what: str
    on: str
    """The world: kafka with the kind of the store, or embedded; for reads, only the kind of the store."""
    value: float
    unit: str = ""
    target: float | None = None
    better: Literal["higher", "lower"] = "higher"
    detail: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.better == "higher" else self.value <= self.target

    @property
    def mark(self) -> str:
        return {None: "", True: "holds", False: "MISSED"}[self.holds]

    @property
    def shown(self) -> str:
        return f"{self.value:.3g}{self.unit and ' '}{self.unit}"

    @property
    def shown_target(self) -> str:
        if self.target is None:
            return ""
        return f"{'≥' if self.better == 'higher' else '≤'} {self.target:g}{self.unit and ' '}{self.unit}"

    @property
    def shown_detail(self) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in self.detail.items())


def machine() -> dict[str, Any]:
    """Return a description of the machine of the figures."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "memstream": __version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_at_start": round(os.getloadavg()[0], 2),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def as_json(
    facts: Mapping[str, Any], figures: Sequence[Figure], *, missing: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    rows = [asdict(figure) | {"holds": figure.holds} for figure in figures]
    return {"machine": dict(facts), "seconds": round(seconds), "figures": rows, "not_measured": dict(missing)}


def as_table(figures: Sequence[Figure]) -> Table:
    table = Table("", "ratio", "on", "measured", "target", "", "of which", box=None)
    for figure in figures:
        table.add_row(
            figure.ratio,
            figure.what,
            figure.on,
            figure.shown,
            figure.shown_target,
            figure.mark,
            figure.shown_detail,
        )
    return table


def as_markdown(facts: Mapping[str, Any], figures: Sequence[Figure]) -> str:
    lines = [
        f"Taken {facts['at']} on {facts['cpus']} shared cores, Python {facts['python']}, load at the start "
        f"{facts['load_at_start']}.",
        "",
        "| | ratio | on | measured | target | | of which |",
        "|---|---|---|---|---|---|---|",
    ]
    for figure in figures:
        lines.append(
            f"| {figure.ratio} | {figure.what} | {figure.on} | {figure.shown} | {figure.shown_target} | {figure.mark} "
            f"| {figure.shown_detail} |"
        )
    return "\n".join(lines) + "\n"
