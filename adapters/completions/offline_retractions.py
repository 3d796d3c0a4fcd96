"""Statements that the speaker ends: "I quit my job at Acme", "I don't have a dog any more".

The rules that read the positive statement find it here as well, and it is then stated as no longer true. The prompt
does not have to show it, because it may have been said in an earlier session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from .offline_attributes import Cardinality, attribute_of
from .offline_rules import SpokenStatement, capitalised, statements

_BEGINS: Final = r"(?:i|we) (?:have )?"
_MY_JOB: Final = r"(?:my|the|our) (?:job|position|role|post) (?:at|with|in)"
_NAMED: Final = r"(?P<x>(?-i:[^\W\d_a-z]).+)"
_OVER: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), positive)
    for pattern, positive in (
        (r"(?:i|we) no longer (?P<x>.+)", "I {x}"),
        (r"(?:i|we) do not (?P<x>.+?) any ?(?:more|longer)(?:,.*)?", "I {x}"),
        (r"(?:i|we) (?:am|are) no longer (?P<x>.+)", "I am {x}"),
        (r"(?:i|we) (?:am|are) not (?P<x>.+?) any ?(?:more|longer)(?:,.*)?", "I am {x}"),
        (rf"{_BEGINS}(?:stopped|quit) (?P<x>(?:work|liv|study)ing .+)", "I am {x}"),
        (rf"{_BEGINS}(?:left|quit|resigned from) {_MY_JOB} (?P<x>.+)", "I work at {x}"),
        (rf"{_BEGINS}(?:left|quit|resigned from) {_NAMED}", "I work at {x}"),
        (rf"{_BEGINS}(?:(?:got|was|been) )?(?:fired|laid off) (?:from|by) (?:{_MY_JOB} )?(?P<x>.+)", "I work at {x}"),
        (rf"{_BEGINS}(?:given|gave) up (?P<x>(?:the )?[\w-]+)", "I play {x}"),
        (rf"{_BEGINS}moved (?:away from|out of) (?P<x>.+)", "I live in {x}"),
        (rf"{_BEGINS}(?:sold|lost|gave away|got rid of) (?:my|our) (?P<x>.+)", "I have a {x}"),
        (
            r"(?:my|our) (?P<x>(?:[\w-]+ )?[\w-]+)(?:,? [A-Z]\w+,?)? (?:has )?(?:died|passed away|ran away)(?: .+)?",
            "I have a {x}",
        ),
    )
)
_STOPPED: Final = re.compile(
    rf"{_BEGINS}(?:stopped|quit|given up|gave up) (?P<doing>[a-z]{{2,}})ing(?P<x> .+)?", re.IGNORECASE
)


def endings(clause: str, *, beside: Sequence[SpokenStatement] = ()) -> list[SpokenStatement]:
    """Return what a clause without hedges says is no longer true; empty when no rule fits. If a statement in `beside`
    gives the new value, that statement replaces the old one instead: "I left Acme and joined Globex"."""
    return [each for each in _over(clause) if not any(_same_attribute(each, said) for said in beside)]


def _over(clause: str) -> list[SpokenStatement]:
    for pattern, positive in _OVER:
        if match := pattern.fullmatch(clause):
            return [_no_longer(was) for was in statements(positive.format(x=match["x"]))]
    return _stopped(clause)


def _stopped(clause: str) -> list[SpokenStatement]:
    """Read a stopped habit: I stopped playing tennis → No longer plays tennis; I gave up drinking beer → Does not drink
    beer."""
    match = _STOPPED.fullmatch(clause)
    if match is None:
        return []
    stem, rest = match["doing"], match["x"] or ""
    for verb in (stem, f"{stem}e", stem[:-1]):  # playing, driving, running
        if was := statements(f"I {verb}{rest}"):
            return [_no_longer(each) for each in was]
        if never := statements(f"I do not {verb}{rest}"):
            return never
    return []


def _same_attribute(over: SpokenStatement, other: SpokenStatement) -> bool:
    mine, theirs = attribute_of(_positive(over.content)), attribute_of(other.content)
    if over.subject != other.subject or mine is None or theirs is None:
        return False
    return mine.attribute == theirs.attribute and mine.room is not Cardinality.MANY


def _no_longer(statement: SpokenStatement) -> SpokenStatement:
    """Negate a statement: Works at Acme → No longer works at Acme; Is vegetarian → Is no longer vegetarian."""
    first, _, rest = statement.content.partition(" ")
    ended = f"Is no longer {rest}" if first == "Is" else f"No longer {first.lower()} {rest}"
    return replace(statement, content=ended, permanent=False)


def _positive(ended: str) -> str:
    return capitalised(ended.removeprefix("No longer ").replace("Is no longer ", "Is ", 1))
