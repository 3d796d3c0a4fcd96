"""The command `python -m bench.embedder_change FILE --to NAME`: a change of the embedder (docs/notes/retrieval.md).

It records conversations (as `bench.retrieval`) and a number of facts with one embedder, moves them to the other, and
asks the questions before, during and after. `direct` is a memory that was recorded with the new embedder.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from memstream.adapters.embedders.factory import create_embedder
from memstream.adapters.ports import Embedder, EmbedderIdentity, Point
from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.cli.wiring.ports import NoUsage
from memstream.cli.wiring.reembedding import Reembedding
from memstream.memory.policies import RecallPolicy
from memstream.schemas import ids
from memstream.schemas.collections import FACTS

from .retrieval import locomo
from .retrieval.conversations import Conversation
from .retrieval.memory import TENANT, ask, remember
from .retrieval.metrics import mean, quality

BATCH = 256
PATIENCE = 60.0
"""Time limit of a read in seconds: reads share the processor with the filling."""


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--from", "old", default="hashing", show_default=True)
@click.option("--to", "new", required=True)
@click.option("--facts", default=1_000, show_default=True, help="Number of facts, made from the lines of FILE.")
def main(file: Path, old: str, new: str, facts: int) -> None:
    """Measure a change of the embedder: seconds, disk, and recall@10 before, during and after."""
    conversations = locomo.read(file).conversations
    click.echo(json.dumps(asyncio.run(_measured(conversations, _embedder(old), _embedder(new), facts)), indent=1))


def _embedder(name: str) -> Embedder:
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    return create_embedder(name, api_key=key, base_url=url, timeout=60.0, sink=NoUsage())


async def _measured(
    conversations: Sequence[Conversation], old: Embedder, new: Embedder, facts: int
) -> dict[str, object]:
    async def recall_at_10(store: PeriodStore, embedder: Embedder) -> float:
        policy = RecallPolicy(patience=PATIENCE)
        answers = await ask(conversations, store=store, embedder=embedder, policy=policy)
        return round(mean([quality(each.ranked, each.question.evidence) for each in answers]).recall_at_10, 3)

    with tempfile.TemporaryDirectory(prefix="memstream-embedder-") as folder:
        engine = EdgeEngine(folder=Path(folder) / "moved")
        store = _store(engine, old.identity)
        await store.ensure()
        await remember(conversations, store=store, embedder=old)
        for page in _pages(conversations, facts):
            vectors = await old.embed(page, tenant_id=TENANT)
            await store.put(FACTS, [_fact(text, vector) for text, vector in zip(page, vectors, strict=True)])
        before, disk = await recall_at_10(store, old), _mebibytes(Path(folder))
        await new.embed(["load the model"], tenant_id=TENANT)
        change = store.embedder_change()
        began = time.monotonic()
        state = await change.begin(new.identity)
        moving = Reembedding(change=change, store=store, embedder=new, batch=BATCH)
        filling = asyncio.create_task(moving.fill(state, lambda collection, done, every: None))
        during = await recall_at_10(store, old)
        asked, finished = time.monotonic() - began, filling.done()
        report = await filling
        filled = time.monotonic()
        await change.switch()
        switched = time.monotonic()
        both = _mebibytes(Path(folder))
        after = await recall_at_10(_store(engine, new.identity), new)
        await change.drop_old()
        dropped = _mebibytes(Path(folder))
        await store.close()
        direct = _store(EdgeEngine(folder=Path(folder) / "direct"), new.identity)
        await remember(conversations, store=direct, embedder=new)
        result = await recall_at_10(direct, new)
        await direct.close()
    return {
        "records": report.read,
        "fill_seconds": round(filled - began, 1),
        "seconds_of_reads_in_it": round(asked, 1),
        "filling_ended_before_the_reads": finished,
        "switch_ms": round(1000 * (switched - filled), 1),
        "recall_at_10": {"before": before, "during": during, "after": after, "direct": result},
        "mebibytes": {"before": disk, "both": both, "after": dropped},
    }


def _store(engine: EdgeEngine, identity: EmbedderIdentity) -> PeriodStore:
    return PeriodStore(engine=engine, embedder=identity)


def _pages(conversations: Sequence[Conversation], count: int) -> Iterator[list[str]]:
    lines = itertools.cycle(line.text for each in conversations for session in each.sessions for line in session.lines)
    texts = (f"{text} ({number})" for number, text in zip(range(count), lines, strict=False))
    while page := list(itertools.islice(texts, BATCH)):
        yield page


def _fact(text: str, vector: Sequence[float]) -> Point:
    return Point(ids.fact_id(TENANT, text), {"tenant_id": TENANT, "content": text}, dense=vector, text=text)


def _mebibytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) >> 20


if __name__ == "__main__":
    main()
