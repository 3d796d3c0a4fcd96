"""Conflict corpora in other languages than English, in the form of `conflict_corpus`.

`conflict_german` has pairs for the German pack. A pair is in `test.jsonl` when the first byte of the SHA-256 of its id
is odd: rules are tuned on `tune.jsonl` alone. `conflict_unread` has pairs in languages without a pack.

`python -m tests.support.locale_corpora [dense]` shows what the pipeline gets wrong on the German tuning half, and only
the totals of the test half.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path
from typing import Literal

from tests.support.conflict_corpus import (
    Embedding,
    Pair,
    Report,
    by_pipeline,
    pairs_of,
    score,
    similarities,
)
from tests.support.small_model import MINILM

CORPORA = Path(__file__).resolve().parent.parent / "corpora"
Part = Literal["conflict_german/tune", "conflict_german/test", "conflict_unread/all"]


def half_of(pair_id: str) -> str:
    return "test" if hashlib.sha256(pair_id.encode()).digest()[0] % 2 else "tune"


def locale_pairs(part: Part) -> tuple[Pair, ...]:
    return pairs_of(CORPORA / f"{part}.jsonl")


async def locale_report(part: Part, *, locale: str, embedding: Embedding = "hashing") -> Report:
    chosen = locale_pairs(part)
    similar = await similarities(chosen, "hashing" if embedding == "hashing" else f"fastembed:{MINILM}")
    return score(by_pipeline(similar, embedding=embedding, locale=locale), chosen, embedding=embedding)


def lost(report: Report) -> tuple[Pair, ...]:
    """Return the pairs in which a statement was lost: two made one, or one closed that still holds."""
    return tuple(pair for pair, _ in (*report.false_merges, *report.false_supersedes))


if __name__ == "__main__":
    chosen_embedding: Embedding = "dense" if "dense" in sys.argv[1:] else "hashing"
    tuned = asyncio.run(locale_report("conflict_german/tune", locale="de", embedding=chosen_embedding))
    print(*tuned.lines(), sep="\n")
    print("test:", asyncio.run(locale_report("conflict_german/test", locale="de", embedding=chosen_embedding)))
