"""The command `python -m bench.retrieval FILE` (docs/notes/retrieval.md)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import structlog
from rich.console import Console

from memstream.adapters.embedders.factory import create_embedder
from memstream.adapters.ports import Embedder, Reranker
from memstream.adapters.rerankers.late_interaction import LateInteraction
from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.cli.wiring.ports import NoUsage, batching
from memstream.memory.policies import FusionPolicy, RecallPolicy

from . import beam, locomo
from .conversations import Conversation, Corpus, NotReadable
from .memory import Answer, ask, lists, remember
from .metrics import mean, quality
from .report import Report, Row, rows, table
from .variants import DEFAULT, LATE, TUNED, VARIANTS, split, tuned

READERS: dict[str, Callable[[Path], Corpus]] = {"beam": beam.read, "locomo": locomo.read}
PATIENCE = 60.0
"""Time limit of a read in seconds; the first read loads the model."""
MODEL_TIMEOUT = 60.0


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=click.Choice(sorted(READERS)), default="locomo", show_default=True)
@click.option(
    "--embedder",
    default=lambda: os.environ.get("MEMSTREAM_EMBEDDER", "hashing"),
    help="As MEMSTREAM_EMBEDDER: hashing, fastembed:<name or folder>, openai:<model>.",
)
@click.option("--late", help="Also ask with the reranker `late`: the name or folder of its sentence encoder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def main(file: Path, form: str, embedder: str, late: str | None, as_json: bool) -> None:
    """Measure the retrieval of turns: recall, MRR and nDCG against the evidence of questions."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        corpus = READERS[form](file)
        name = create_embedder(
            embedder,
            api_key=os.environ.get("OPENAI_API_KEY"),
            base_url=os.environ.get("OPENAI_BASE_URL"),
            timeout=MODEL_TIMEOUT,
            sink=NoUsage(),
        )
        reranker = LateInteraction(late) if late else None
    except (NotReadable, ValueError) as error:
        raise click.UsageError(str(error)) from error
    if not any(each.questions for each in corpus.conversations):
        raise click.UsageError(f"{file} has no question whose evidence is a line of it")
    report = asyncio.run(
        measured(corpus, batching(name, embedder), reranker, tell=lambda told: click.echo(told, err=True))
    )
    if as_json:
        click.echo(json.dumps(report.plain(), indent=1))
        return
    console = Console(width=140)
    console.print(f"{report.conversations} conversations, {report.turns} turns, embedder {report.embedder}")
    if report.skipped:
        console.print("left out: " + ", ".join(f"{count} {what}" for what, count in sorted(report.skipped.items())))
    console.print(table(report))
    console.print(report.parts(), markup=False, soft_wrap=True)


async def measured(
    corpus: Corpus,
    embedder: Embedder,
    reranker: Reranker | None = None,
    *,
    tell: Callable[[str], None] = lambda told: None,
) -> Report:
    with tempfile.TemporaryDirectory(prefix="memstream-retrieval-") as folder:
        store = PeriodStore(engine=EdgeEngine(folder=Path(folder)), embedder=embedder.identity)
        try:
            return await _measured(corpus, store, embedder, reranker, tell)
        finally:
            if reranker is not None:
                await reranker.close()
            await store.close()
            await embedder.close()


async def _measured(
    corpus: Corpus,
    store: PeriodStore,
    embedder: Embedder,
    reranker: Reranker | None,
    tell: Callable[[str], None],
) -> Report:
    conversations = corpus.conversations
    turns = sum(each.lines for each in conversations)
    tell(f"recording {turns} turns of {len(conversations)} conversations")
    await remember(conversations, store=store, embedder=embedder)
    parts = split(conversations)

    async def answered(asked: Sequence[Conversation], name: str) -> list[Answer]:
        policy = RecallPolicy(fusion=policies[name], patience=PATIENCE)
        by = reranker if name == LATE else None
        return await ask(asked, store=store, embedder=embedder, policy=policy, reranker=by)

    policies = dict(VARIANTS)
    if reranker is not None:
        policies[LATE] = DEFAULT
    chosen: FusionPolicy | None = None
    if all(any(each.questions for each in part) for part in (parts.tuning, parts.held_out)):
        tell("choosing parameters on every other conversation")
        policy = RecallPolicy(patience=PATIENCE)
        seen = await lists(parts.tuning, store=store, embedder=embedder, policy=policy)

        def score(fusion: FusionPolicy) -> float:
            return mean([quality(each.ranked(fusion), each.question.evidence) for each in seen]).recall_at_10

        chosen = policies[TUNED] = tuned(score)
    found: list[Row] = []
    for name in policies:
        tell(f"asking: {name}")
        held_out = await answered(parts.held_out, name)
        found += rows(name, "held out", held_out)
        if name != TUNED:  # the tuned variant has no result on the part on which it was chosen
            found += rows(name, "all", [*await answered(parts.tuning, name), *held_out])
    return Report(
        embedder=embedder.identity.name,
        conversations=len(conversations),
        turns=turns,
        skipped=corpus.skipped,
        tuned=chosen,
        tuned_on=[each.id for each in parts.tuning] if chosen else [],
        held_out=[each.id for each in parts.held_out],
        rows=found,
    )


if __name__ == "__main__":
    main()
