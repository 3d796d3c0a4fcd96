"""The results of the retrieval benchmark as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.table import Table

from bench.turns import percentile
from memstream.memory.policies import FusionPolicy

from .memory import Answer
from .metrics import Quality, mean, quality

Part = Literal["held out", "all"]
ALL = "all"


@dataclass(frozen=True, slots=True)
class Row:
    """The results of one variant on one part, over all questions or the questions of one category."""

    variant: str
    part: Part
    category: str
    questions: int
    quality: Quality
    p50_ms: float
    p95_ms: float

    def plain(self) -> dict[str, Any]:
        fields = asdict(self)
        return {**fields.pop("quality"), **fields}


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one run."""

    embedder: str
    conversations: int
    turns: int
    skipped: Mapping[str, int]
    tuned: FusionPolicy | None
    """The policy chosen on the tuning part; None if a part has no questions."""
    tuned_on: Sequence[str]
    """The ids of the tuning conversations; empty if no policy was chosen."""
    held_out: Sequence[str]
    rows: Sequence[Row]

    def parts(self) -> str:
        """Return a text with the conversations for tuning and the conversations for measuring."""
        if self.tuned is None:
            return "nothing was chosen: it takes two conversations with questions, one to choose on and one to measure"
        return (
            f"tuned: chosen on {', '.join(self.tuned_on)}, and measured on none of these: {self.tuned}\n"
            f"held out: {', '.join(self.held_out)}, on which nothing was chosen"
        )

    def plain(self) -> dict[str, Any]:
        return {
            "embedder": self.embedder,
            "conversations": self.conversations,
            "turns": self.turns,
            "skipped": dict(self.skipped),
            "tuned": None if self.tuned is None else asdict(self.tuned),
            "tuned_on": list(self.tuned_on),
            "held_out": list(self.held_out),
            "rows": [row.plain() for row in self.rows],
        }


def rows(variant: str, part: Part, answers: Sequence[Answer]) -> list[Row]:
    """Return rows over all questions, then by category."""
    if not answers:
        return []
    categories = sorted({each.question.category for each in answers})
    return [
        _row(variant, part, name, [each for each in answers if name in (ALL, each.question.category)])
        for name in (ALL, *categories)
    ]


def _row(variant: str, part: Part, category: str, answers: Sequence[Answer]) -> Row:
    times = [1_000 * each.seconds for each in answers]
    found = mean([quality(each.ranked, each.question.evidence) for each in answers])
    return Row(variant, part, category, len(answers), found, percentile(times, 0.5), percentile(times, 0.95))


def table(report: Report) -> Table:
    shown = Table(
        "",
        "part",
        "questions",
        "recall@5",
        "recall@10",
        "MRR",
        "nDCG@10",
        "multi-hop @10",
        "p50 ms",
        "p95 ms",
        box=None,
    )
    multi_hop = {
        (row.variant, row.part): row.quality.recall_at_10 for row in report.rows if row.category == "multi-hop"
    }
    for row in report.rows:
        if row.category == ALL:
            hop = multi_hop.get((row.variant, row.part))
            found = row.quality
            shown.add_row(
                row.variant,
                row.part,
                str(row.questions),
                *(f"{each:.3f}" for each in (found.recall_at_5, found.recall_at_10, found.mrr, found.ndcg_at_10)),
                "" if hop is None else f"{hop:.3f}",
                f"{row.p50_ms:.1f}",
                f"{row.p95_ms:.1f}",
            )
    return shown
