"""Scripted answers to the blind question about evidence (agents/observer/evidence_prompt.py)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

_ITEM = re.compile(r"^\[(s\d+)\]\n((?:(?!\[s\d+\]$).*\n?)*)", re.MULTILINE)


@dataclass(frozen=True)
class BlindItem:
    """An item that the question shows."""

    id: str
    words: str
    statement: str
    about: str
    question: str | None = None
    before: str | None = None


Judge = Callable[[BlindItem], str | dict[str, JsonValue]]
"""Returns `yes`, `partly` or `no`, or the fields of an answer."""


def blind_items(text: str) -> list[BlindItem]:
    """Return the items in the last user message of a blind question."""
    found = []
    for name, lines in _ITEM.findall(text):
        fields = dict(line.split(": ", 1) for line in lines.strip().split("\n"))
        about, statement = next((k, v) for k, v in fields.items() if k.startswith("statement about "))
        found.append(
            BlindItem(
                name,
                fields["words"],
                statement,
                about.removeprefix("statement about "),
                fields.get("question"),
                fields.get("before"),
            )
        )
    return found


def answers(text: str, judge: Judge) -> dict[str, JsonValue]:
    """Return the answer of a judge to a blind question."""
    made: list[JsonValue] = []
    for item in blind_items(text):
        said = judge(item)
        fields: dict[str, JsonValue] = {"said": said} if isinstance(said, str) else said
        made.append({"id": item.id, "content": None, **fields})
    return {"answers": made}


def always_yes(item: BlindItem) -> str:
    return "yes"
