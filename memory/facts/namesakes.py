"""People and animals with one name: two subjects when their relations to the user differ; pure.

"My colleague Alex" and "my brother Alex" are two people. The relation of the first one that memory heard of keeps the
plain subject, `alex`; the other is `alex-sibling`. Relations come from statements about the user with the slot of a
relation: `sibling`, value `Alex`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ...schemas.facts import StoredFact
from ...schemas.observations import Observation
from .subject_names import USER, as_subject

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {slot: slot for slot in ("child", "parent", "sibling", "spouse", "relative", "pet")}
    | dict.fromkeys(("friend", "colleague", "manager"), "acquaintance")
)
"""The slots of relations. Somebody may be a friend and also a colleague and the manager; other kinds exclude
each other."""
RELATION_SLOTS: Final = tuple(KINDS)
_KIND_OF_THING: Final = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class KnownRelation:
    """A statement that somebody with this name has a relation to the user. `quotes`: where it was said."""

    slot: str
    value: str
    quotes: tuple[str, ...]

    def names(self, subject: str) -> bool:
        name = as_subject(_KIND_OF_THING.sub("", self.value))
        return subject in (name, name.partition("-")[0])

    @property
    def kind(self) -> str:
        return KINDS[self.slot]


@dataclass(slots=True)
class Namesakes:
    """The relations of an owner's memory, in the order in which memory heard of them."""

    known: list[KnownRelation] = field(default_factory=list)

    def know(self, facts: Iterable[StoredFact]) -> None:
        """Add the relations of stored facts."""
        ordered = sorted(facts, key=lambda each: (each.recorded_at, each.fact_id))
        self.known += [
            KnownRelation(each.slot, each.value, tuple(piece.quote for piece in each.evidence))
            for each in ordered
            if each.subject == USER and each.slot in KINDS and each.value is not None and not each.denied
        ]

    def named(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """Return the observations of a turn, each with the subject that its relation gives it, and remember the
        relations that the turn states."""
        said = [
            KnownRelation(each.slot, each.value, (each.evidence,))
            for each in observations
            if each.subject == USER and each.slot in KINDS and each.value is not None and not each.denied
        ]
        self.known += said
        return tuple(
            each if each.subject == USER else each.model_copy(update={"subject": self._subject(each, said)})
            for each in observations
        )

    def _subject(self, observation: Observation, said: Sequence[KnownRelation]) -> str:
        subject = observation.subject
        known = [each for each in self.known if each.names(subject)]
        first = {each.kind: each.slot for each in reversed(known)}
        if len(first) < 2:
            return subject
        kind = _kind(observation.evidence, subject, known, [each for each in said if each.names(subject)])
        return subject if kind in (None, known[0].kind) else f"{subject}-{first[kind]}"


def _kind(quote: str, subject: str, known: Sequence[KnownRelation], said: Sequence[KnownRelation]) -> str | None:
    """Return the kind of relation that a quote means: by the word before the name, which a quote of one kind has, or
    else by the only kind that the turn states."""
    word = _before(subject, quote)
    by_word = {each.kind for each in known for other in each.quotes if word and _before(subject, other) == word}
    kinds = by_word if len(by_word) == 1 else {each.kind for each in said}
    return next(iter(kinds)) if len(kinds) == 1 else None


def _before(subject: str, quote: str) -> str:
    """Return the word before the name in a quote, in lower case; empty when there is none."""
    name = subject.partition("-")[0]
    found = re.search(rf"(\w+)\W+{re.escape(name)}\b", quote.lower())
    return "" if found is None else found[1]
