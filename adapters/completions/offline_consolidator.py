"""The offline consolidator: episodes and known facts in, proposed changes of facts out.

It sees that two texts say the same, that a stable statement is not yet a fact, and that a text corrects a fact in so
many words. It infers nothing: stale facts are worse than missing ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from .offline_attributes import AttributeValue, Cardinality, attribute_of
from .offline_prompt import Prompt, ShownItem

MAX_CHANGES: Final = 20
"""As many as one `facts.apply` takes."""

_CORRECTION: Final = re.compile(r"(?P<right>.+?),? (?:and )?not (?P<wrong>[^,.;]{1,60})\.?", re.IGNORECASE)
_OVER: Final = re.compile(r"(?:no longer|does not) (?P<what>.+?)(?: any ?more)?\.?", re.IGNORECASE)


def consolidate(prompt: Prompt) -> list[JsonValue]:
    """Changes by subject, episodes in the order shown; each names the episodes that it comes from."""
    groups: dict[tuple[str, str], list[ShownItem]] = {}
    for episode in prompt.episodes:
        groups.setdefault((episode.subject, _canonical(episode.content)), []).append(episode)
    changes: list[JsonValue] = []
    touched: set[str] = set()
    for (subject, _), episodes in groups.items():
        facts = [fact for fact in prompt.facts if fact.subject == subject and fact.id not in touched]
        change = _change(episodes, facts)
        if change is not None:
            changes.append(change)
            touched.add(str(change["target_fact_id"]))
    return changes[:MAX_CHANGES]


def _change(episodes: Sequence[ShownItem], facts: Sequence[ShownItem]) -> dict[str, JsonValue] | None:
    content = episodes[0].content
    form = attribute_of(content)
    for fact in facts:
        if _canonical(fact.content) == _canonical(content) or (
            form is not None and _same(attribute_of(fact.content), form)
        ):
            return _proposed("reinforce", fact.content, form or attribute_of(fact.content), episodes, target=fact)
    if match := _OVER.fullmatch(content):
        for fact in facts:
            if _ends(match["what"], fact.content):
                return _proposed("invalidate", fact.content, attribute_of(fact.content), episodes, target=fact)
        return None
    if match := _CORRECTION.fullmatch(content):
        right = attribute_of(match["right"])
        for fact in facts:
            old = attribute_of(fact.content)
            if (
                right
                and old
                and old.attribute == right.attribute
                and _canonical(match["wrong"]) in _canonical(fact.content)
            ):
                return _proposed("update", match["right"], right, episodes, target=fact)
        return None
    if form is None:
        return None
    if form.room is not Cardinality.MANY and any(_rivals(attribute_of(fact.content), form) for fact in facts):
        return None  # which of the two is newer cannot be seen here
    return _proposed("new", content, form, episodes, target=None)


def _same(one: AttributeValue | None, other: AttributeValue) -> bool:
    return one is not None and (one.attribute, one.value) == (other.attribute, other.value)


def _rivals(one: AttributeValue | None, other: AttributeValue) -> bool:
    return one is not None and one.attribute == other.attribute


def _ends(what: str, content: str) -> bool:
    """ "works at Google" and "work at Google" both end "Works at Google"."""
    one, other = _canonical(what).split(), _canonical(content).split()
    return len(one) == len(other) and one[1:] == other[1:] and one[0].rstrip("s") == other[0].rstrip("s")


def _proposed(
    action: str, content: str, form: AttributeValue | None, episodes: Sequence[ShownItem], *, target: ShownItem | None
) -> dict[str, JsonValue]:
    return {
        "subject": episodes[0].subject,
        "content": content,
        "confidence": 0.5 if len(episodes) == 1 else 0.7,  # memory-model.md, section 6
        "category": form.category if form is not None else "attribute",
        "action": action,
        "target_fact_id": target.id if target is not None else None,
        "source_episode_ids": [episode.id for episode in episodes],
    }


def _canonical(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!")
