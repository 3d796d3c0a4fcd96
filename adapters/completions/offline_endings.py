"""What a speaker says is over: "I quit my job at Acme", "I don't have a dog any more".

The positive statement is found by the same rules that read it when it was true, and is then told as no longer so. It
needs nothing that is shown: what ended may have been told in a session long ago.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from .offline_forms import form_of
from .offline_rules import Statement, statements

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
        (rf"{_BEGINS}moved (?:away from|out of) (?P<x>.+)", "I live in {x}"),
    )
)


def endings(clause: str, *, beside: Sequence[Statement] = ()) -> list[Statement]:
    """Of a clause without hedge, what it says is no longer so; empty for all that no rule knows. What a statement
    `beside` it gives a new value is left to that statement: "I left Acme and joined Globex"."""
    for pattern, positive in _OVER:
        if match := pattern.fullmatch(clause):
            was = statements(positive.format(x=match["x"]))
            return [_no_longer(each) for each in was if not any(_same_attribute(each, said) for said in beside)]
    return []


def _same_attribute(one: Statement, other: Statement) -> bool:
    mine, theirs = form_of(one.content), form_of(other.content)
    if one.subject != other.subject or mine is None or theirs is None:
        return False
    return mine.attribute == theirs.attribute


def _no_longer(statement: Statement) -> Statement:
    """Works at Acme → No longer works at Acme; Is vegetarian → Is no longer vegetarian."""
    first, _, rest = statement.content.partition(" ")
    told = f"Is no longer {rest}" if first == "Is" else f"No longer {first.lower()} {rest}"
    return replace(statement, content=told, permanent=False)
