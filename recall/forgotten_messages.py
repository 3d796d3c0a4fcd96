"""Messages that only say what was forgotten, and requests to forget: they leave every recall.

One read asks for the forgotten facts with evidence in the turns of the found messages, however many facts the owner has
forgotten. Only when a found message has a quote of such a fact, a second read asks whether another fact was learnt from
the same message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from qdrant_client import models

from ..adapters.ports import Payload, StoredPoint
from ..adapters.vectors.conditions import any_of, equals
from ..memory.language.text import folded
from ..memory.trust.excerpts import split_sentences
from ..memory.trust.forget_requests import asks_to_forget
from .filters import SessionTurn, in_turns

FIELDS: Final = tuple(f"evidence[].{name}" for name in ("session_id", "turn_id", "quote", "user_id"))
Quotes = Mapping[SessionTurn, Sequence[str]]
"""Folded quotes by turn."""
_READ_MAX: Final = 2_000
"""Number of leading code points of a message that may be a request to forget."""


def forgotten_of(owner_keys: Sequence[str], turns: Collection[SessionTurn]) -> models.Filter:
    """Match the forgotten facts of these owners with evidence in these turns."""
    return models.Filter(must=[*_said_in(owner_keys, turns), equals("state", "forgotten")])


def others_of(owner_keys: Sequence[str], turns: Collection[SessionTurn]) -> models.Filter:
    """Match the facts of these owners that are not forgotten and have evidence in these turns."""
    return models.Filter(must=_said_in(owner_keys, turns), must_not=[equals("state", "forgotten")])


def _said_in(owner_keys: Sequence[str], turns: Collection[SessionTurn]) -> list[models.Condition]:
    return [any_of("owner_key", owner_keys), *in_turns(turns, "evidence[].")]


def quotes_in(facts: Sequence[StoredPoint], user_id: str | None = None) -> Quotes:
    """Return the quotes of facts by turn. With `user_id`, evidence that names another user is left out, because two
    users may use the same ids of sessions and turns."""
    quotes: defaultdict[SessionTurn, list[str]] = defaultdict(list)
    for fact in facts:
        evidence = fact.payload.get("evidence")
        for each in evidence if isinstance(evidence, list) else ():
            if not isinstance(each, dict) or (user_id and each.get("user_id") not in (None, user_id)):
                continue
            if quote := folded(str(each.get("quote") or "")):
                quotes[str(each.get("session_id")), str(each.get("turn_id"))].append(quote)
    return quotes


def is_quoted(message: Payload, content: str, quotes: Quotes) -> bool:
    """Return whether a message contains a quote of its turn."""
    if (said := quotes.get(turn_of(message))) is None:
        return False
    text = folded(content)
    return any(each in text for each in said)


def turn_of(message: Payload) -> SessionTurn:
    return str(message.get("session_id")), str(message.get("turn_id"))


def only_asks_to_forget(message: Payload, content: str) -> bool:
    """Return whether each sentence of a user's message is a request to forget."""
    if message.get("role") != "user" or len(content) > _READ_MAX:
        return False
    sentences = [folded(each) for each in split_sentences(content)]
    said = [each for each in sentences if each]
    return bool(said) and all(asks_to_forget(each) for each in said)
