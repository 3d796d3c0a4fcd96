"""Detection of misspelled fields of a turn: unknown fields with almost the name of a known field. Pure.

A turn with a misspelled field is refused, because the value of this field would be lost. Other unknown fields belong to
the caller and are kept.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from pydantic import AliasChoices, BaseModel, JsonValue

from ..schemas.turns import ContentPart, Turn, TurnMessage

CUTOFF: Final = 0.92
"""Lowest difflib ratio of two names that count as almost equal. Two names that differ by one added letter reach this
ratio if the longer name has at least seven letters. With one changed letter, names of at most twelve letters do not
reach it: `context` is not `content`."""
SHORT_WORD: Final = 3
"""Words of at most this many letters must be equal, so `user_uid` and `turn_idx` are no misspellings of `user_id` and
`turn_id`."""
NAMES_MAX: Final = 200
"""Maximum number of unknown names that are compared per turn, so that a turn with thousands of unknown names cannot
block the server."""

Path = tuple[str | int, ...]


class Misspelling(NamedTuple):
    path: Path
    """Path of the field. The last part is its name."""
    known: str
    """The known field that the caller probably meant."""


def misspellings(turn: dict[str, JsonValue]) -> list[Misspelling]:
    """Return the misspelled fields of the turn, its messages and their content parts.

    `metadata` is not checked: its fields belong to the caller.
    """
    found: list[Misspelling] = []
    for path, model in islice(_unknown_fields(turn), NAMES_MAX):
        known = nearest_field(str(path[-1]), model)
        if known is not None:
            found.append(Misspelling(path, known))
    return found


def nearest_field(name: str, model: type[BaseModel]) -> str | None:
    """Return the field of the model that `name` misspells, or None if `name` is similar to no field."""
    name = name.casefold()
    for known in model.model_fields:
        if len(name) <= len(known) + 2 and _letters(name) == _letters(known):  # `sessionId` for `session_id`
            return known
    candidates = [known for known in model.model_fields if abs(len(known) - len(name)) <= 1]
    for known in difflib.get_close_matches(name, candidates, n=1, cutoff=CUTOFF):
        if _short_words_agree(name, known):
            return known
    return None


def _unknown_fields(turn: dict[str, JsonValue]) -> Iterator[tuple[Path, type[BaseModel]]]:
    yield from _unknown(turn, Turn, ())
    for message_path, message in _objects(turn.get("messages"), ("messages",)):
        yield from _unknown(message, TurnMessage, message_path)
        for part_path, part in _objects(message.get("content"), (*message_path, "content")):
            yield from _unknown(part, ContentPart, part_path)


def _unknown(sent: dict[str, JsonValue], model: type[BaseModel], path: Path) -> Iterator[tuple[Path, type[BaseModel]]]:
    return (((*path, name), model) for name in sent if name not in _names(model))


def _names(model: type[BaseModel]) -> frozenset[str]:
    """Return the names and aliases of the model's fields."""
    aliases = (field.validation_alias for field in model.model_fields.values())
    return frozenset(model.model_fields).union(
        *(map(str, alias.choices) for alias in aliases if isinstance(alias, AliasChoices))
    )


def _objects(value: JsonValue, path: Path) -> Iterator[tuple[Path, dict[str, JsonValue]]]:
    if isinstance(value, list):
        for place, item in enumerate(value):
            if isinstance(item, dict):
                yield (*path, place), item


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "")


def _short_words_agree(name: str, known: str) -> bool:
    words, known_words = name.split("_"), known.split("_")
    if len(words) != len(known_words):
        return True
    return all(word == other for word, other in zip(words, known_words, strict=True) if len(other) <= SHORT_WORD)
