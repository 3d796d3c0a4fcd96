"""Reasons of changes as sentences for people. Events contain only the short form of a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .relations import Relation

SENTENCES: Final[Mapping[str, str]] = {
    Relation.DENIED.value: "the new statement says that it is over or was never true",
    Relation.VALUE.value: "the same was said with another number",
    Relation.OTHER.value: "another value was said, and only one value is true at a time",
    Relation.CORRECTED.value: "the speaker corrected it",
    Relation.REORDERED.value: "the same words came in another order, which may mean something else",
    Relation.NAME.value: "the same was said with another name",
    Relation.TOUCHED.value: "the speaker spoke of a change that may concern it",
    Relation.GUESSED.value: "the speaker spoke of a plan or a guess about it",
    Relation.DIFFERS.value: "each statement says something that the other does not say",
    Relation.UNCLEAR.value: "the rules cannot decide whether the two statements agree",
    Relation.SAME.value: "the same was said again",
    Relation.MORE.value: "the same was said with more detail",
    Relation.LESS.value: "the known fact already says more",
    Relation.BESIDE.value: "both are true, because several values are possible",
    Relation.APART.value: "no known fact is about the same thing",
    "new": "nothing similar was known",
}


def sentence(reason: str) -> str:
    """Return the sentence for a reason. A reason that a person or a model wrote stays unchanged."""
    return SENTENCES.get(reason, reason)
