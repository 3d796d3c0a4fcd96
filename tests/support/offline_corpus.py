"""The corpus of the offline model, and the score of an answer.

A line of tests/data/offline.jsonl has a user's message, the expected observations and, for changes and corrections, the
working entries that the prompt shows. It was written before the rules; odd lines tune them, even lines measure. `python
-m tests.support.offline_corpus` shows which tuning lines fail.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from memstream.adapters.completions.offline import OfflineCompletions
from tests.support.completion_requests import Json, Ledger, observe

CORPUS = Path(__file__).resolve().parent.parent / "data" / "offline.jsonl"
Learnt = tuple[str, str, str, str | None, bool]
"""subject, content, category, content of the replaced entry, is_correction"""


@dataclass(frozen=True)
class Line:
    number: int
    text: str
    expect: frozenset[Learnt]
    known: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Score:
    right: int
    given: int
    expected: int

    @property
    def precision(self) -> float:
        return self.right / self.given if self.given else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.3f} ({self.right} of {self.given} given), "
            f"recall {self.recall:.3f} ({self.right} of {self.expected} expected)"
        )


def lines() -> list[Line]:
    read: list[Line] = []
    for number, raw in enumerate(CORPUS.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(raw)
        expect = frozenset(_learnt(item, item.get("replaces")) for item in row["expect"])
        read.append(Line(number, row["text"], expect, tuple((s, c) for s, c in row.get("known", []))))
    return read


async def answered(line: Line) -> frozenset[Learnt]:
    request = observe(f"user: {line.text}", known=line.known)
    shown = {f"w{place}": content for place, content in enumerate(_in_shown_order(line.known), 1)}
    answer = await OfflineCompletions(sink=Ledger()).complete(request)
    return frozenset(_learnt(item, shown.get(str(item["replaces"]))) for item in answer.value)


async def score(chosen: Sequence[Line]) -> tuple[Score, list[str]]:
    """Return the score, and a line of text for each difference."""
    right = given = expected = 0
    differences: list[str] = []
    for line in chosen:
        got = await answered(line)
        right, given, expected = right + len(got & line.expect), given + len(got), expected + len(line.expect)
        differences += [f"{line.number} {line.text!r} missed {item}" for item in sorted(line.expect - got, key=str)]
        differences += [f"{line.number} {line.text!r} WRONG {item}" for item in sorted(got - line.expect, key=str)]
    return Score(right, given, expected), differences


def tuning() -> list[Line]:
    return [line for line in lines() if line.number % 2 == 1]


def measuring() -> list[Line]:
    return [line for line in lines() if line.number % 2 == 0]


def _learnt(item: Json | dict[str, JsonValue], replaces: str | None) -> Learnt:
    content = " ".join(str(item["content"]).casefold().split())
    return str(item["subject"]), content, str(item["category"]), replaces, item.get("is_correction", False) is True


def _in_shown_order(known: Sequence[tuple[str, str]]) -> list[str]:
    return [content for _, content in known]


if __name__ == "__main__":
    result, problems = asyncio.run(score(tuning()))
    print(*problems, result, sep="\n")
