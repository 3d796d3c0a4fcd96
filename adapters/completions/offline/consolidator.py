"""Offline consolidator: it proposes changes of facts from episodes and known facts.

It proposes to reinforce a fact that an episode repeats, to add a statement with a known attribute as a new fact, and to
update or end a fact that the user corrects or ends. It infers nothing, because stale facts are worse than missing
facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from .attributes import AttributeValue, Cardinality, attribute_of, canonical, ends_statement
from .prompt import Prompt, ShownItem

MAX_CHANGES: Final = 20
"""Maximum number of changes in one `facts.apply`."""

_CORRECTION: Final = re.compile(r"(?P<right>.+?),? (?:and )?not (?P<wrong>[^,.;]{1,60})\.?", re.IGNORECASE)
_OVER: Final = re.compile(r"(?:no longer|does not) (?P<what>.+?)(?: any ?more)?\.?", re.IGNORECASE)


def consolidate(prompt: Prompt) -> list[JsonValue]:
    """Propose at most one change for each different statement, in the order of the prompt. Episodes with the same
    subject and statement support one change together."""
    groups: dict[tuple[str, str], list[ShownItem]] = {}
    for episode in prompt.episodes:
        groups.setdefault((episode.subject, canonical(episode.content)), []).append(episode)
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
        if canonical(fact.content) == canonical(content) or (
            form is not None and _same(attribute_of(fact.content), form)
        ):
            return _proposed("reinforce", fact.content, form or attribute_of(fact.content), episodes, target=fact)
    if match := _OVER.fullmatch(content):
        for fact in facts:
            if ends_statement(match["what"], fact.content):
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
                and canonical(match["wrong"]) in canonical(fact.content)
            ):
                return _proposed("update", match["right"], right, episodes, target=fact)
        return None
    if form is None:
        return None
    if form.room is not Cardinality.MANY and any(_rivals(attribute_of(fact.content), form) for fact in facts):
        return None  # the order of the two statements is unknown
    return _proposed("new", content, form, episodes, target=None)


def _same(one: AttributeValue | None, other: AttributeValue) -> bool:
    return one is not None and (one.attribute, one.value) == (other.attribute, other.value)


def _rivals(one: AttributeValue | None, other: AttributeValue) -> bool:
    return one is not None and one.attribute == other.attribute


def _proposed(
    action: str, content: str, form: AttributeValue | None, episodes: Sequence[ShownItem], *, target: ShownItem | None
) -> dict[str, JsonValue]:
    return {
        "subject": episodes[0].subject,
        "content": content,
        "confidence": 0.5 if len(episodes) == 1 else 0.7,
        "category": form.category if form is not None else "attribute",
        "action": action,
        "target_fact_id": target.id if target is not None else None,
        "source_episode_ids": [episode.id for episode in episodes],
    }
