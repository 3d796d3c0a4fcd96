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
DECIDED: Final[Mapping[str, str]] = {
    "replaces": "the observer's model named the fact that the statement replaces",
    "exact": "a known fact has the same text",
    "zones": "the similarity to the nearest known facts",
    "markers": "words such as “no longer”, “used to” or “might”",
    "slots": "the slots and values of both statements",
    "predicates": "the verbs and objects of both statements",
    "admit": "no known fact contradicts the statement",
    "detail": "one statement says more than the other",
    "judge": "a model compared the two facts",
    "proposal": "consolidation proposed the change",
    "edit": "a person or a program changed the fact",
    "review": "a person decided about the fact",
    "quarantine": "the statement is an instruction to the assistant",
    "retraction": "the user asked to forget it, or its turn was taken back",
    "restored": "the fact that had replaced it was wrong",
    "erase": "the user was erased",
}
"""Explanations of the stages that decide about a fact (`Decision.stage`)."""


def sentence(reason: str) -> str:
    """Return the sentence for a reason. A reason that a person or a model wrote stays unchanged."""
    return SENTENCES.get(reason, reason)


def decided(stage: str) -> str:
    """Return the explanation of a deciding stage, or "" for a stage of a later version."""
    return DECIDED.get(stage, "")
