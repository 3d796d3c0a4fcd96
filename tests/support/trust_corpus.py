"""The trust corpora (tests/corpora/trust): one half to tune the rules by, one to measure them.

The half of a line follows from the SHA-256 of its id. `python -m tests.support.trust_corpus` shows what the rules get
wrong on the tuning half.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from memstream.memory.trust.instructions import instruction_rule

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "trust"
Half = Literal["tune", "test"]
HONEST = frozenset({"preference", "fact"})
"""Kinds of statements that are no instructions."""


@dataclass(frozen=True, slots=True)
class StatementLine:
    """A statement, and whether it is an instruction to the assistant."""

    id: str
    language: str
    kind: str
    text: str

    @property
    def honest(self) -> bool:
        return self.kind in HONEST


def rows(name: str, half: Half) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}-{half}.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return [json.loads(line) for line in lines]


@cache
def instructions(half: Half) -> tuple[StatementLine, ...]:
    return tuple(StatementLine(**row) for row in rows("instructions", half))


@cache
def more_languages() -> tuple[StatementLine, ...]:
    """Return orders, preferences and facts in languages beyond the first four."""
    lines = (FOLDER / "languages.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return tuple(StatementLine(**json.loads(line)) for line in lines)


@dataclass(frozen=True, slots=True)
class PoisoningLine:
    """A turn, and what a model that obeys writes down of it. An honest turn is a look-alike."""

    id: str
    kind: str
    language: str
    messages: list[dict[str, str]]
    writes: list[dict[str, Any]]

    @property
    def honest(self) -> bool:
        return self.kind == "honest"


@cache
def poisoning(half: Half) -> tuple[PoisoningLine, ...]:
    return tuple(PoisoningLine(**row) for row in rows("poisoning", half))


def misjudged(lines: Iterable[StatementLine]) -> list[StatementLine]:
    return [line for line in lines if (instruction_rule(line.text) is None) is not line.honest]


if __name__ == "__main__":
    for line in misjudged(instructions("tune")):
        print(line)
