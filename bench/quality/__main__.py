"""The command `python -m bench.quality` (docs/notes/quality.md)."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

import click
from rich.console import Console

from bench.report import machine
from memstream.cli.output import logs
from tests.support.model_server import Script

from .dialogues import Dialogue, Half, dialogues
from .models import noisy, oracle
from .report import Row, as_json, as_markdown, as_table
from .scoring import score
from .stages import Deployment, remembered

MODELS: Final = ("oracle", "noisy", "offline")
SEED: Final = 1
QUICK: Final = 2
"""Number of dialogues per half in a quick run."""


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(MODELS), help="Default: all.")
@click.option("--half", "halves", multiple=True, type=click.Choice(get_args(Half)), help="Default: both.")
@click.option("--embedder", default="hashing", show_default=True, help="As MEMSTREAM_EMBEDDER; local embedders only.")
@click.option("--seed", default=SEED, show_default=True, help="Seed of the noisy model's faults.")
@click.option("--quick", is_flag=True, help=f"The first {QUICK} dialogues of each half only: measures nothing.")
@click.option(
    "--wrong", is_flag=True, help="Also print a line for each error. When you write rules, look at `--half tune` only."
)
@click.option("--json", "plain", is_flag=True, help="Print JSON instead of the table.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write quality.json and quality.md here.")
def main(
    models: Sequence[str],
    halves: Sequence[Half],
    embedder: str,
    seed: int,
    quick: bool,
    wrong: bool,
    plain: bool,
    out: Path | None,
) -> None:
    """Measure correctness, completeness and currency of the memory of scripted dialogues."""
    logs.configure(stream=sys.stderr, level=logging.ERROR)
    began, facts = time.monotonic(), machine()
    rows: list[Row] = []
    for name in models or MODELS:
        for half in halves or get_args(Half):
            talks = dialogues(half)[: QUICK if quick else None]
            click.echo(f"{name}: {len(talks)} dialogues ({half})", err=True)
            rows.append(asyncio.run(measured(name, half, talks, embedder=embedder, seed=seed)))
    told = as_json(facts, rows, seconds=time.monotonic() - began, wrong=wrong)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "quality.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        (out / "quality.md").write_text(as_markdown(rows), encoding="utf-8")
    if plain:
        click.echo(json.dumps(told, indent=1))
        return
    console = Console(width=140)
    console.print(as_table(rows))
    for row in rows if wrong else []:
        for line in row.wrong:
            console.print(f"{row.model}: {line}", markup=False, highlight=False)


async def measured(model: str, half: Half, talks: Sequence[Dialogue], *, embedder: str, seed: int) -> Row:
    scripts: Mapping[str, Script | None] = {
        "oracle": oracle(talks),
        "noisy": noisy(talks, seed=seed),
        "offline": None,
    }
    facts = await remembered(talks, Deployment(script=scripts[model], embedder=embedder))
    return Row(model, half, tuple(score(talk, facts[talk.id]) for talk in talks))


if __name__ == "__main__":
    main()
