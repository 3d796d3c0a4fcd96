"""A plot of a soak: the lag of each stage with the faults, and the memory of each worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "soak"  # the same data make the same file

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

from bench.soak.faults import Struck  # noqa: E402
from bench.soak.run import Found  # noqa: E402
from memstream.schemas.topics import STAGES  # noqa: E402

COLOURS = dict(zip(STAGES, ("#4c78a8", "#f58518", "#54a24b", "#b279a2"), strict=True))
MARKS = {
    "kill -9": "x",
    "SIGTERM": "v",
    "SIGSTOP": "s",
    "worker added": "+",
    "broker restarted": "o",
    "broker killed": "*",
    "store away": "D",
    "model away": "P",
}
THIN = 5
"""Only every n-th memory sample is drawn, so that the file stays small."""


def drawn(found: Found, file: Path) -> None:
    """Draw an SVG of two panels over the minutes of the soak."""
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(10, 7), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    _lag(above, found)
    _faults(above, found.struck)
    above.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=6, fontsize="small", frameon=False)
    _memory(below, found)
    below.legend(loc="lower right", ncols=4, fontsize="small", frameon=False)
    below.set_xlabel("minutes")
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _lag(axes: Axes, found: Found) -> None:
    for stage in STAGES:
        minutes = [each.at / 60 for each in found.samples.behind]
        lag = [each.by_stage.get(stage, float("nan")) + 1 for each in found.samples.behind]
        axes.plot(minutes, lag, color=COLOURS[stage], linewidth=0.9, label=stage)
    axes.set_yscale("log")
    axes.set_ylabel("records behind, + 1")
    axes.grid(visible=True, alpha=0.3)


def _faults(axes: Axes, struck: Sequence[Struck]) -> None:
    _, top = axes.get_ylim()
    by_kind: dict[str, list[Struck]] = defaultdict(list)
    for each in struck:
        by_kind[each.kind].append(each)
    kinds = [kind for kind in MARKS if kind in by_kind]
    axes.set_ylim(0.8, top * 10 ** (0.16 * (len(kinds) + 1)))
    for row, kind in enumerate(kinds, start=1):
        height = top * 10 ** (0.16 * row)
        for each in by_kind[kind]:
            ended = each.ended if each.ended is not None else each.began
            axes.plot([each.began / 60, ended / 60], [height, height], color="#888888", linewidth=1.5)
        minutes = [each.began / 60 for each in by_kind[kind]]
        axes.plot(minutes, [height] * len(minutes), MARKS[kind], color="#333333", markersize=4, label=kind)


def _memory(axes: Axes, found: Found) -> None:
    labelled: set[str] = set()
    used = sorted(found.samples.used, key=lambda each: (each.name, each.pid, each.at))
    for (name, _), samples in groupby(used, key=lambda each: (each.name, each.pid)):
        stage = next((stage for stage in STAGES if name.startswith(stage)), None)
        if stage is None and name != "all":
            continue
        line = list(samples)[::THIN]
        label = (stage or "all stages") if (stage or name) not in labelled else None
        labelled.add(stage or name)
        colour = COLOURS[stage] if stage is not None else "#333333"
        axes.plot([e.at / 60 for e in line], [e.rss for e in line], color=colour, linewidth=0.9, label=label)
    axes.set_ylabel("memory of each worker, MB")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
