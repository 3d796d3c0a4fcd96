"""A plot of a run: the distance of every figure from its target, on the broker and in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "bench"  # the same data make the same file

from matplotlib import pyplot  # noqa: E402

from .report import Figure  # noqa: E402

LOOKS = {"kafka": ("#4c78a8", "o"), "embedded": ("#f58518", "s")}
LEAST, MOST = 1 / 8, 32.0
"""The ends of the axis; values outside are drawn at its ends."""


def drawn(figures: Sequence[Figure], file: Path) -> None:
    """Draw an SVG. 1 is exactly the target; values to the right are better, values to the left worse."""
    aimed = [figure for figure in figures if figure.target is not None]
    rows = list(dict.fromkeys(_row(figure) for figure in aimed))
    height = 1.4 + 0.26 * len(rows)
    drawing, axes = pyplot.subplots(figsize=(10, height), layout="constrained")
    for kind, (colour, marker) in LOOKS.items():
        mine = [figure for figure in aimed if figure.on.startswith(kind)]
        axes.plot(
            [min(MOST, max(LEAST, margin(figure))) for figure in mine],
            [rows.index(_row(figure)) for figure in mine],
            marker,
            color=colour,
            label=kind,
            markersize=6,
        )
    axes.axvline(1.0, color="#444444", linewidth=1)
    axes.axvspan(LEAST, 1.0, color="#e45756", alpha=0.08)
    axes.set_xscale("log", base=2)
    axes.set_xlim(LEAST, MOST * 1.1)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("how far the target is kept (1 = exactly; to the left: missed)")
    axes.grid(visible=True, axis="x", alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
    drawing.savefig(file, metadata={"Date": None})
    pyplot.close(drawing)


def margin(figure: Figure) -> float:
    """Return measured ÷ target, or the inverse if a lower value is better."""
    assert figure.target is not None
    if figure.better == "higher":
        return figure.value / figure.target
    return figure.target / figure.value if figure.value else MOST


def _row(figure: Figure) -> str:
    return f"{figure.ratio}  {figure.what}"
