"""A conversation, the observations that a scripted model makes of it, and the memory that must result."""

from __future__ import annotations

from typing import Any

from tests.support.model_server import Ask, observing
from tests.support.pipeline import Json, turn

PERSISTENT: Json = {"durability": "persistent", "importance": 0.8}
JOB = PERSISTENT | {"category": "profession"}
NAME: Json = {"durability": "permanent", "importance": 0.9, "category": "identity"}
KNOWN: dict[str, list[Json]] = {
    "I work at Google": [{"content": "Works at Google", **JOB}],
    "I joined Stripe": [{"content": "Works at Stripe", "replaces": "Works at Google", **JOB}],
    "my name is Jake": [{"content": "Name is Jake", **NAME}],
    "Sorry, it is Jack": [{"content": "Name is Jack", "replaces": "Name is Jake", "is_correction": True, **NAME}],
    "I like green tea": [{"content": "Likes green tea", "category": "preference", **PERSISTENT}],
    "Jennifer lives in Oslo": [
        {"content": "Lives in Oslo", "subject": "jennifer", "category": "attribute", **PERSISTENT}
    ],
    "heading to lunch": [
        {"content": "Is heading to lunch", "category": "event", "durability": "transient", "importance": 0.2}
    ],
}
CONVERSATION = [
    "I work at Google as an engineer.",
    "By the way, my name is Jake.",
    "Sorry, it is Jack, not Jake.",
    "I joined Stripe last week!",
    "I like green tea.",
    "I am heading to lunch, brb.",
    "My friend Jennifer lives in Oslo.",
    "I like green tea, as I said.",
]
ACTIONS = [
    ("new", "Works at Google"),
    ("new", "Name is Jake"),
    ("invalidated", "Name is Jake"),
    ("new", "Name is Jack"),
    ("superseded", "Works at Google"),
    ("new", "Works at Stripe"),
    ("new", "Likes green tea"),
    ("new", "Lives in Oslo"),
    ("reinforced", "Likes green tea"),
]
STATES = {
    "Works at Google": "superseded",
    "Works at Stripe": "active",
    "Name is Jake": "invalidated",
    "Name is Jack": "active",
    "Likes green tea": "active",
    "Lives in Oslo": "active",
}
CONSOLIDATED = "Drinks tea and writes software"
AGAIN = ", said again"


def different_each_time(ask: Ask) -> Json:
    """Answer a repeated question with other words and numbers, and recognise its own earlier words."""
    if ask.task == "consolidation":
        return consolidated(ask)
    plain = {key: [dict(item, replaces=None) for item in items] for key, items in KNOWN.items()}
    answer: Any = observing(plain)(ask)
    targets = {item["content"]: item.get("replaces") for items in KNOWN.values() for item in items}
    earlier: dict[str, str] = {}  # of this very answer: several turns may be observed together
    for place, item in enumerate(answer.get("observations", []), 1):
        target = targets[item["content"]]
        if target is not None:
            shown = ask.prompt.id_of(target) or ask.prompt.id_of(target + AGAIN)
            item["replaces"] = earlier.get(target) or shown
        earlier[item["content"]] = f"o{place}"
        if ask.seen_before:
            item["content"] += AGAIN
            item["importance"] = 0.75
    answer_: Json = answer
    return answer_


def consolidated(ask: Ask) -> Json:
    """Propose one fact from all shown episodes, in other words each time."""
    content = CONSOLIDATED + (AGAIN if ask.seen_before else "")
    fact = {
        "subject": "user", "content": content, "confidence": 0.6, "category": "pattern", "action": "new",
        "target_fact_id": None, "source_episode_ids": list(ask.prompt.episodes),
    }  # fmt: skip
    return {"facts": [fact]}


def expected_actions(told: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return ACTIONS for a process that was killed during a model call.

    The answer was lost with the process and the turn is asked again. Its second answer has more words and counts as the
    same statement with more detail.
    """
    teas = {content for _, content in told if content.startswith("Likes green tea")}
    return [*ACTIONS[:-1], ("updated" if len(teas) == 2 else "reinforced", "Likes green tea")]


def conversation(**fields: str) -> list[Json]:
    return [turn(text, n, **fields) for n, text in enumerate(CONVERSATION, start=1)]


def states(facts: dict[str, Json]) -> dict[str, str]:
    return {fact["content"]: fact["state"] for fact in facts.values()}
