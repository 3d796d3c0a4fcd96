"""Other names of a subject: facts with the slot `name` or `nickname` say that two names mean one person; pure.

"Everyone calls Robert Bob" is a fact about `robert` with the slot `nickname` and the value `Bob`. While it is believed,
statements about `robert` and `bob` are compared with each other, and a read of one finds both. Each record keeps the
subject under which it was said, so forgetting the fact separates the two again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...schemas import ids

NAME_SLOTS: Final = ("name", "nickname")
NAMES_MAX: Final = 256
"""Maximum number of facts about names of an owner that are read."""
USER: Final = "user"


@dataclass(frozen=True, slots=True)
class NameFact:
    """The fields of a fact about a name. `value` is the other name."""

    subject: str
    value: str | None
    denied: bool
    trust: str


@dataclass(frozen=True, slots=True)
class SubjectNames:
    """The names of the subjects in an owner's memory."""

    groups: Mapping[str, tuple[str, ...]]
    """All names of a subject, by each of them. A subject with one name is not in it."""

    @classmethod
    def of(cls, facts: Iterable[NameFact]) -> SubjectNames:
        """Return the names that these believed facts state.

        Only the word of a user counts. A name that two subjects have leads to neither of them. The user has no other
        names here: somebody else may have the same name.
        """
        owners: dict[str, set[str]] = {}
        for each in facts:
            name = as_subject(each.value or "")
            if each.subject != USER and name not in ("", USER) and not each.denied and each.trust == "user":
                owners.setdefault(name, set()).add(as_subject(each.subject))
        groups: dict[str, frozenset[str]] = {}
        for name, subjects in owners.items():
            if len(subjects) > 1:
                continue
            linked = {name, *subjects}
            joined = frozenset(linked.union(*(groups.get(each, frozenset()) for each in linked)))
            groups |= dict.fromkeys(joined, joined)
        return cls({name: tuple(sorted(group)) for name, group in groups.items() if len(group) > 1})

    def all_of(self, subject: str) -> tuple[str, ...]:
        """Return all names of a subject, the given one first."""
        return tuple(dict.fromkeys((subject, *self.groups.get(as_subject(subject), ()))))

    def others_in(self, words: str) -> tuple[str, ...]:
        """Return the other names of the subjects that a text names."""
        text = f" {_plain(words)} "
        named = [name for name in self.groups if f" {name.replace('-', ' ')} " in text]
        found = dict.fromkeys(other for name in named for other in self.groups[name])
        return tuple(other for other in found if other not in named)


NO_NAMES: Final = SubjectNames({})


def as_subject(name: str) -> str:
    """Return a name as the observer writes subjects: `Big J` is `big-j`."""
    return "-".join(_plain(name).split())


def _plain(text: str) -> str:
    """Return the words of a text in lower case, without punctuation and possessive endings."""
    return " ".join(each for run in ids.canonical(text).split() for each in _words(run))


def _words(run: str) -> list[str]:
    bare = run.replace("’", "'").removesuffix("'s").removesuffix("'")
    return "".join(letter if letter.isalnum() else " " for letter in bare).split()
