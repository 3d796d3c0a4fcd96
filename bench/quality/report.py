"""The results of the quality benchmark as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from .dialogues import Half
from .scoring import Counts, Score, total


@dataclass(frozen=True, slots=True)
class Row:
    """The results of one model on one half."""

    model: str
    half: Half
    scores: tuple[Score, ...]

    @property
    def counts(self) -> Counts:
        return total(self.scores)

    @property
    def wrong(self) -> list[str]:
        return [line for score in self.scores for line in score.wrong]

    def plain(self) -> dict[str, Any]:
        counts = self.counts
        return {
            "model": self.model,
            "half": self.half,
            "dialogues": len(self.scores),
            "precision": counts.precision,
            "recall": counts.recall,
            "stale_rate": counts.stale_rate,
            "duplicate_rate": counts.duplicate_rate,
            "evidence_rate": counts.evidence_rate,
            "counts": asdict(counts),
        }


def as_json(facts: Mapping[str, Any], rows: Sequence[Row], *, seconds: float, wrong: bool) -> dict[str, Any]:
    """Return the rows in a form for JSON. `wrong` adds a line for each error."""
    listed = [row.plain() | ({"wrong": row.wrong} if wrong else {}) for row in rows]
    return {"machine": dict(facts), "seconds": round(seconds), "rows": listed}


def as_table(rows: Sequence[Row]) -> Table:
    table = Table("model", "half", box=None)
    for name in ("facts", "precision", "recall", "stale", "doubled", "evidence", "forbidden"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.model, row.half, *_shown(row.counts))
    return table


def as_markdown(rows: Sequence[Row]) -> str:
    lines = [
        "| model | half | facts | precision | recall | stale | doubled | evidence | forbidden |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {row.model} | {row.half} | {' | '.join(_shown(row.counts))} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _shown(counts: Counts) -> list[str]:
    return [
        str(counts.facts),
        f"{counts.precision:.2f}",
        f"{counts.recall:.2f}",
        f"{counts.stale_rate:.2f} ({counts.stale} of {counts.ended})",
        f"{counts.duplicate_rate:.2f} ({counts.doubled})",
        f"{counts.evidence_rate:.2f}",
        str(counts.forbidden),
    ]
