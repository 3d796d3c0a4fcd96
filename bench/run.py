"""All measurements of this machine in one run: `python -m bench.run`.

It prints one table and writes bench/out/bench.json. `--docs` also writes table and plot into docs/notes/performance.md.
Nothing here is a timed test: a missed target is a line in the table.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from memstream.cli.output import logs
from tests.support.polling import TimedOut

from . import (
    all_stages,
    calls,
    cpu,
    edits,
    fairness,
    freshness,
    kill_throughput,
    latency,
    mem0,
    restore_ratio,
    stage_floors,
    throughput,
)
from .model import Model
from .report import Figure, as_json, as_markdown, as_table, machine
from .world import NotMeasured, World, embedded_world, kafka_world

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "bench" / "out"
PAGE = ROOT / "docs" / "notes" / "performance.md"
PICTURE = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
USUAL = ("R1", "R2", "R3", "R6", "R7", "R8", "R9", "R10", "all stages")
RATIOS = (*USUAL, "R3′", "R11")
"""R3′ and R11 are measured only on request: R3′ needs a Qdrant server, R11 takes both cores."""
WORLDS = {"kafka": kafka_world, "embedded": embedded_world}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of a run. `quick` uses numbers so small that the results are meaningless; it tests the programs."""

    ratios: Sequence[str]
    worlds: Sequence[str]
    quick: bool
    mem0: bool = False


@dataclass(slots=True)
class Found:
    """The results of a run. `missing`: the reason of each figure that could not be measured, by ratio and world."""

    figures: list[Figure] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


async def measure(wanted: Wanted, *, tell: Callable[[str], None]) -> Found:
    found = Found()
    with tempfile.TemporaryDirectory(prefix="memstream-bench-", ignore_cleanup_errors=True) as folder:
        model = Model()
        try:
            for kind in wanted.worlds:
                for number, (ratio, case) in enumerate(parts(wanted.ratios)):
                    place = Path(folder) / f"{kind}-{number}"  # Kafka refuses a folder with the prime of R3′
                    place.mkdir()
                    async with WORLDS[kind](place, model) as world:  # a new world, without data of earlier runs
                        await in_this_world(ratio, case, world, wanted, found, tell=tell)
        finally:
            await model.close()
    return found


def parts(ratios: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each ratio with the name of a case, "" for a ratio that has none. Each has a world of its own."""
    for ratio in ratios:
        yield from ((ratio, case) for case in (fairness.CASES if ratio == "R11" else ("",)))


async def in_this_world(
    ratio: str, case: str, world: World, wanted: Wanted, found: Found, *, tell: Callable[[str], None]
) -> None:
    began, name = time.monotonic(), " ".join(filter(None, [ratio, case, "on", world.kind]))
    try:
        figures = await one(ratio, case, world, quick=wanted.quick, so_far=found.figures)
        if ratio == "R7" and wanted.mem0:
            figures += await mem0.measure(world, mem0.QUICK if wanted.quick else mem0.FULL)
        found.figures += [replace(each, on=world.where) for each in figures]
    except (NotMeasured, TimedOut, TimeoutError) as error:
        found.missing[name] = str(error)
        tell(f"{name}: not measured: {error}")
    else:
        tell(f"{name}: {time.monotonic() - began:.0f} s")


async def one(ratio: str, case: str, world: World, *, quick: bool, so_far: Sequence[Figure]) -> list[Figure]:
    match ratio:
        case "R1":
            return await throughput.measure(world, throughput.QUICK if quick else throughput.FULL)
        case "R2":
            return await latency.measure(world, latency.QUICK if quick else latency.FULL)
        case "R3":
            return await cpu.measure(world, cpu.QUICK if quick else cpu.FULL, plain_us=cpu.plain_of(so_far))
        case "R3′":
            return await stage_floors.measure(world, stage_floors.QUICK if quick else stage_floors.FULL)
        case "R6":
            return await restore_ratio.measure(world, restore_ratio.QUICK if quick else restore_ratio.FULL)
        case "R7":
            return await calls.measure(world, calls.QUICK if quick else calls.FULL)
        case "R8":
            return await kill_throughput.measure(world, kill_throughput.QUICK if quick else kill_throughput.FULL)
        case "R9":
            return await freshness.measure(world, freshness.QUICK if quick else freshness.FULL)
        case "R10":
            return await edits.measure(world, edits.QUICK if quick else edits.FULL)
        case "R11":
            return await fairness.measure(world, fairness.QUICK if quick else fairness.FULL, case)
        case "all stages":
            return await all_stages.measure(world, all_stages.QUICK if quick else all_stages.FULL)
    raise AssertionError(f"{ratio} is not measured here")


@click.command()
@click.option("--quick", is_flag=True, help="Tiny numbers: shows that everything works and measures nothing.")
@click.option(
    "--only",
    "ratios",
    multiple=True,
    type=click.Choice(RATIOS),
    help="Only these ratios. Default: all but R3′ and R11.",
)
@click.option("--on", "worlds", multiple=True, type=click.Choice(tuple(WORLDS)), help="Default: both.")
@click.option(
    "--mem0", "with_mem0", is_flag=True, help="Also measure R7 against mem0: installs it aside, takes minutes."
)
@click.option("--docs", is_flag=True, help="Write table and plot into docs/notes/performance.md.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=OUT, help="Folder for the JSON.")
def main(quick: bool, ratios: tuple[str, ...], worlds: tuple[str, ...], with_mem0: bool, docs: bool, out: Path) -> None:
    """Measure the pipeline on this machine."""
    logs.configure(level=logging.ERROR)
    console = Console()
    facts, began = machine(), time.monotonic()
    wanted = Wanted(ratios=ratios or USUAL, worlds=worlds or tuple(WORLDS), quick=quick, mem0=with_mem0)
    found = asyncio.run(measure(wanted, tell=console.log))
    out.mkdir(parents=True, exist_ok=True)
    report = as_json(facts, found.figures, missing=found.missing, seconds=time.monotonic() - began)
    (out / "bench.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    console.print(as_table(found.figures))
    if docs:
        written(facts, found.figures)
    if found.missing:
        raise click.ClickException(f"not measured: {', '.join(found.missing)}")


def written(facts: Mapping[str, Any], figures: Sequence[Figure]) -> None:
    """Write the figures between the marks of the page, and the plot next to the page."""
    from .plot import drawn  # imported here: only the plot needs matplotlib

    page = in_page(PAGE.read_text(encoding="utf-8"), as_markdown(facts, figures))
    PAGE.write_text(page, encoding="utf-8")
    drawn(figures, PICTURE)


def in_page(page: str, measured: str) -> str:
    """Return the page with these figures between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{measured}\n{END}{after}"


if __name__ == "__main__":
    main()
