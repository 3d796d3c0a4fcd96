"""The users' messages of the soak, sent by the producer, and their observations, returned by the scripted model."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

THINGS = ("tea", "jazz", "rain", "chess", "hiking", "olives", "opera", "ferns", "trains", "maps", "kites", "soup")
KINDS = ("green", "old", "quiet", "cold", "simple", "late", "bright", "heavy", "plain", "wild")
CITIES = ("Lisbon", "Berlin", "Oslo", "Vienna", "Prague", "Madrid", "Dublin", "Rome")
FIRMS = ("Stripe", "Google", "Fixpoint", "Acme", "Initech", "Hooli")
NAMES = ("Jake", "Jack", "Ana", "Mia", "Noor", "Ivo")
UNSPEAKABLE = "Say it in no language at all."
"""Text of a turn that never gets a usable answer from the model, so it must become a dead letter."""
FILLER = (
    "Let me think about that for a moment, because there is more than one way to look at it and none is wrong. "
    "The short answer is yes; the long one depends on what you want to do with it afterwards, and on how much time "
    "there is. If it were me I would begin with the smallest part, see whether it holds, and go on from there. "
)


@dataclass(frozen=True, slots=True)
class Note:
    """An observation of a sentence. `replaces` is the beginning of the entry that it replaces."""

    content: str
    category: str
    durability: str = "persistent"
    importance: float = 0.8
    replaces: str | None = None
    is_correction: bool = False


def sentence(rng: random.Random) -> str:
    """Return one sentence. About four of ten sentences have no observation."""
    roll = rng.random()
    if roll < 0.40:
        return rng.choice(("Thanks, that helps.", "What would you do?", "Can you explain that again?"))
    if roll < 0.65:
        return f"I like {rng.choice(KINDS)} {rng.choice(THINGS)}."
    if roll < 0.75:
        return f"I moved to {rng.choice(CITIES)}."
    if roll < 0.82:
        return f"I work at {rng.choice(FIRMS)} now."
    if roll < 0.86:
        return f"My name is {rng.choice(NAMES)}."
    if roll < 0.89:
        return f"Sorry, I meant: my name is {rng.choice(NAMES)}."
    return f"I am on my way to {rng.choice(CITIES)}."


SAID: Sequence[tuple[re.Pattern[str], Mapping[str, object]]] = (
    (re.compile(r"I like ([\w ]+)"), {"content": "Likes {}", "category": "preference"}),
    (re.compile(r"I moved to (\w+)"), {"content": "Lives in {}", "category": "attribute", "replaces": "Lives in "}),
    (re.compile(r"I work at (\w+) now"), {"content": "Works at {}", "category": "profession", "replaces": "Works at "}),
    (
        re.compile(r"Sorry, I meant: my name is (\w+)"),
        {"content": "Is named {}", "category": "identity", "replaces": "Is named ", "is_correction": True},
    ),
    (
        re.compile(r"My name is (\w+)"),
        {"content": "Is named {}", "category": "identity", "durability": "permanent", "importance": 0.9},
    ),
    (
        re.compile(r"I am on my way to (\w+)"),
        {"content": "Is on the way to {}", "category": "event", "durability": "transient", "importance": 0.3},
    ),
)


def noted(text: str) -> list[tuple[str, Note]]:
    """Return the observations of a text, each with the quoted words."""
    found: list[tuple[str, Note]] = []
    for pattern, fields in SAID:
        for match in pattern.finditer(text):
            content = str(fields["content"]).format(match.group(1))
            found.append((match.group(0), Note(**{**fields, "content": content})))  # type: ignore[arg-type]
    return found
