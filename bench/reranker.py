"""Cost of the reranker `late`: `python -m bench.reranker FILE --late <name or folder>`.

FILE is a file of bench.retrieval (the LoCoMo format): its lines are the candidates, its questions are the cues, each
asked once. The reranker is measured with new candidate texts, and with texts in its cache.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from memstream.adapters.ports import RerankCandidate
from memstream.adapters.rerankers.late_interaction import LateInteraction

from .retrieval import locomo
from .turns import percentile

CANDIDATES = (30, 100)
NEW_READS, HELD_READS = 8, 200
SEED = 17


@dataclass(frozen=True, slots=True)
class Cost:
    """The times of one read in seconds."""

    wall: float
    processor: float


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--late", required=True, help="As memory.recall.late_encoder: the name or folder of a sentence encoder.")
def main(file: Path, late: str) -> None:
    """Measure reads with the reranker `late`."""
    conversations = locomo.read(file).conversations
    lines = list({line.text for each in conversations for session in each.sessions for line in session.lines})
    cues = [question.text for each in conversations for question in each.questions]
    table = Table("candidates", "texts", "reads", "p50 ms", "p95 ms", "processor p50 ms", "processor p95 ms", box=None)
    for candidates in CANDIDATES:
        for name, costs in asyncio.run(measured(sorted(lines), cues, late, candidates)).items():
            each = [[1_000 * cost.wall for cost in costs], [1_000 * cost.processor for cost in costs]]
            shown = (f"{percentile(times, share):.1f}" for times in each for share in (0.5, 0.95))
            table.add_row(str(candidates), name, str(len(costs)), *shown)
    Console(width=120).print(table)


async def measured(lines: Sequence[str], cues: Sequence[str], late: str, candidates: int) -> dict[str, list[Cost]]:
    chance = random.Random(SEED)

    async def read(reranker: LateInteraction, cue: str) -> Cost:
        shown = [RerankCandidate("turns", text) for text in chance.sample(lines, min(candidates, len(lines)))]
        wall, processor = time.perf_counter(), time.process_time()
        await reranker.rerank(cue, shown, tenant_id="bench")
        return Cost(time.perf_counter() - wall, time.process_time() - processor)

    new = []
    for cue in cues[:NEW_READS]:
        reranker = LateInteraction(late)
        await reranker.rerank("loads the model", [RerankCandidate("turns", "and reads no line")], tenant_id="bench")
        new.append(await read(reranker, cue))
        await reranker.close()
    reranker = LateInteraction(late)
    await reranker.rerank("reads all lines", [RerankCandidate("turns", text) for text in lines], tenant_id="bench")
    held = [await read(reranker, cue) for cue in cues[NEW_READS:][:HELD_READS]]
    await reranker.close()
    return {"new": new, "held": held}


if __name__ == "__main__":
    main()
