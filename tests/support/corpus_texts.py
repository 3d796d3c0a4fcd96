"""Every message, statement and quote of the corpora, to compare two ways to read a text, and changed copies of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

CORPORA: Final = Path(__file__).resolve().parents[1] / "corpora"
_MARKED: Final = re.compile(r"<<\w+\|(.*?)>>", re.DOTALL)
"""A secret in the corpora of secrets."""
_SIGNS: Final = (
    "abcdeiousk ABZ01289 .,:;!?'\"`-_=<>[]{}()/@#$%&*|\\\n\t\r\x0b\x85\u2028\u200b\u00ad\u0301"
    "\u0130\u0131\u017f\u212a\ufb01ßäéñ“”’„«日本слК١٢"
)
"""Signs that patterns and readers treat in a special way, among others."""


@cache
def corpus_texts() -> Sequence[str]:
    """Return the texts, each once, in a fixed order."""
    paths = sorted([*CORPORA.rglob("*.jsonl"), *CORPORA.rglob("*.json")])
    found = (text for path in paths for document in _documents(path) for text in _strings(document))
    return tuple(dict.fromkeys(_MARKED.sub(r"\1", text) for text in found))


@cache
def all_texts(seed: int) -> Sequence[str]:
    """Return the texts and 3 000 changed ones. A test calls it when it runs: each process collects each module."""
    return (*corpus_texts(), *changed_texts(3_000, seed))


def changed_texts(count: int, seed: int, of: Sequence[str] = ()) -> Iterator[str]:
    """Yield texts (of the corpora) with a few signs put in, left out or replaced, in other cases, or two in one."""
    rng, texts = random.Random(seed), of or corpus_texts()
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(text) + 1)
            sign, other = rng.choice(_SIGNS), rng.choice(texts)
            text = rng.choice(
                (
                    text[:place] + sign + text[place:],
                    text[:place] + text[place + 1 :],
                    text[:place] + sign + text[place + 1 :],
                    text[:place] + other[:20] + text[place:],
                    text + rng.choice((" ", "\n", ". ", ": ", ", and ")) + other,
                    text.upper(),
                    text.lower(),
                    text[place:],
                )
            )
        yield text


def _documents(path: Path) -> Iterator[object]:
    if path.suffix == ".json":
        yield json.loads(path.read_text(encoding="utf-8"))
    else:
        yield from (json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line)


def _strings(document: object, name: str = "") -> Iterator[str]:
    if isinstance(document, str) and name in ("content", "text", "quote", "evidence"):
        yield document
    elif isinstance(document, list):
        for each in document:
            yield from _strings(each, name)
    elif isinstance(document, dict):
        for key, each in document.items():
            yield from _strings(each, key)
