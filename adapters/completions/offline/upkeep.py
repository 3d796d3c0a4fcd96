"""Offline rules for upkeep: pruning, digests and summaries.

The rules compare words only. They recognise two values of an attribute that allows one value, a text whose words are
all in another text, and equal texts. In all other cases, the facts are kept. A digest repeats facts and adds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from .attributes import Cardinality, attribute_of, canonical
from .prompt import Prompt, ShownItem

PER_SENTENCE: Final = 4
"""Maximum number of statements in one sentence of a digest."""
_WORD: Final = re.compile(r"\w+")


# ------------------------------------------------------------------------------------------------ prune
def prune(prompt: Prompt) -> list[JsonValue]:
    """Choose facts to remove. Facts are shown by subject, oldest first."""
    removals: list[JsonValue] = []
    gone: set[str] = set()
    for place, fact in enumerate(prompt.facts):
        others = [each for each in prompt.facts if each.subject == fact.subject and each.id not in gone | {fact.id}]
        newer = [each for each in prompt.facts[place + 1 :] if each in others]
        reason = _why_it_goes(fact, others, newer)
        if reason is not None:
            gone.add(fact.id)
            removals.append({"fact_id": fact.id, "reason": reason})
    return removals


def _why_it_goes(fact: ShownItem, others: Sequence[ShownItem], newer: Sequence[ShownItem]) -> str | None:
    form = attribute_of(fact.content)
    if form is not None and form.room is Cardinality.ONE:
        for each in newer:
            other = attribute_of(each.content)
            if other is not None and other.attribute == form.attribute and other.value != form.value:
                return "contradicted by a newer fact"
    if any(_words(fact.content) <= _words(each.content) for each in others):
        return "redundant: another fact says all of it"
    return None


# ------------------------------------------------------------------------------------------------ digest, summary
def digest(prompt: Prompt) -> str:
    """Write the digest: the facts by subject, then the episodes that repeat no fact."""
    said = {canonical(fact.content) for fact in prompt.facts}
    happened = [each for each in prompt.episodes if canonical(each.content) not in said]
    return " ".join((*_sentences("About {who}", prompt.facts), *_sentences("Recently, of {who}", happened)))


def summary(observations: Iterable[tuple[str, str]]) -> str:
    """Write a summary of (subject, statement) pairs in their order; empty when there are no pairs."""
    known = [ShownItem(id="", subject=subject, content=content) for subject, content in observations]
    return " ".join(_sentences("About {who}", known))


def _sentences(opening: str, statements: Iterable[ShownItem]) -> Iterator[str]:
    by_subject: dict[str, list[str]] = {}
    for each in statements:
        contents_so_far = by_subject.setdefault(each.subject, [])
        if (content := each.content.strip(" .!")) and content not in contents_so_far:
            contents_so_far.append(content)
    for subject, contents in by_subject.items():
        who = "the user" if subject == "user" else subject
        for start in range(0, len(contents), PER_SENTENCE):
            clause = "; ".join(each[:1].lower() + each[1:] for each in contents[start : start + PER_SENTENCE])
            yield f"{opening.format(who=who)}: {clause}."


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
