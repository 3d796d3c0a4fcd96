"""Statements that the speaker ends: "I quit my job at Acme", "I don't have a dog any more".

The rules for positive statements read the statement that ends: "I work at Acme". The result is the negation of this
statement: "No longer works at Acme". The prompt need not contain the ended statement, because an earlier session may
have stored it.
"""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from .attributes import Cardinality, Category, attribute_of
from .statements import SpokenStatement, capitalised, statements
from .values import is_plausible
from .wording import third_person, without_tail

_BEGINS: Final = r"(?:i|we) (?:have )?"
_MY_JOB: Final = r"(?:my|the|our) (?:job|position|role|post) (?:at|with|in)"
_NAMED: Final = r"(?P<x>(?-i:[^\W\d_a-z]).+)"
_OVER: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), positive)
    for pattern, positive in (
        (r"(?:i|we) no longer (?P<x>.+)", "I {x}"),
        (r"(?:i|we) do not (?P<x>.+?) any ?(?:more|longer)(?:,.*)?", "I {x}"),
        (r"(?:i|we) (?:am|are) no longer (?P<x>.+)", "I am {x}"),
        (r"(?:i|we) (?:am|are) not (?P<x>.+?) any ?(?:more|longer)(?:,.*)?", "I am {x}"),
        (rf"{_BEGINS}(?:stopped|quit) (?P<x>(?:work|liv|study)ing .+)", "I am {x}"),
        (rf"{_BEGINS}(?:left|quit|resigned from) {_MY_JOB} (?P<x>.+)", "I work at {x}"),
        (rf"{_BEGINS}(?:left|quit|resigned from) (?!.+ for ){_NAMED}", "I work at {x}"),
        (rf"{_BEGINS}(?:(?:got|was|been) )?(?:fired|laid off) (?:from|by) (?:{_MY_JOB} )?(?P<x>.+)", "I work at {x}"),
        (
            rf"{_BEGINS}moved (?:away from|out of) (?P<x>[^,]+?)(?:,.*| and .*| (?:in|last|this) \w+(?: and .*)?)?",
            "I live in {x}",
        ),
        (rf"{_BEGINS}(?:sold|lost|gave away|got rid of) (?:my|our) (?P<x>.+)", "I have a {x}"),
        (
            r"(?:my|our) (?P<x>(?:[\w-]+ )?[\w-]+)(?:,? [A-Z]\w+,?)? (?:has )?(?:died|passed away|ran away)(?: .+)?",
            "I have a {x}",
        ),
    )
)
_IN_OWN_WORDS: Final[tuple[tuple[str, str, Category], ...]] = (
        (r"(?:i|we) (?:have )?(?:quit|left|lost|resigned from|walked out of) (?:my|the|that) (?:(?:[\w-]+ )?job|position|gig)\b.*",
         "Quit their job", "profession"),
        (r"(?:i|we) (?:have )?(?:handed in|gave|given) (?:my )?(?:notice|resignation)(?: (?:at|to) (?P<x>[^,]+))?.*", "Quit their job", "profession"),
        (r"(?:i|we) (?:got|was|were|have been) (?:fired|laid off|made redundant|let go|sacked)\b.*", "Lost their job", "profession"),
        (r"they (?:have )?(?:fired me|let me go|laid me off|sacked me)\b.*", "Lost their job", "profession"),
        (r"i (?:have )?resigned", "Quit their job", "profession"),
        (r"(?:i|we) (?:have )?(?:quit|resigned from) (?P<x>the (?:[\w'-]+ )?[\w'-]+)", "Quit {x}", "profession"),
        (r"(?:i|we) (?:have )?left (?P<x>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)*) for .+", "Left {x}", "attribute"),
        (r"(?:we|me and (?:him|her)) (?:have )?(?:broke|broken|split) up\b.*", "Broke up with their {partner}", "relationship"),
        (r"(?:i|we) (?:have )?(?:broke|broken|split) up with (?P<x>[^,]+)", "Broke up with {x}", "relationship"),
        (r"my (?P<x>husband|wife|boyfriend|girlfriend|partner|fianc[eé]e?) (?:has )?(?:left|dumped) me\b.*", "Broke up with their {x}", "relationship"),
        (r"i am single(?: again| now)?", "Is single", "relationship"),
        (r"(?:i|we) (?:have )?(?:sold|scrapped|gave away|got rid of) (?:my|our|the) (?P<x>[\w -]+)", "Sold their {x}", "attribute"),
        (r"(?:i|we) (?:have )?cancel(?:l)?ed (?:my|our|the) (?P<x>[\w -]+)", "Cancelled their {x}", "attribute"),
        (r"(?:my|our) (?P<x>[\w -]{2,30}) (?:was|got|has been) stolen", "Lost their {x}", "attribute"),
        (r"(?:i|we) (?:have )?(?:gave|given) up (?:on )?(?P<x>[\w -]+)(?:,.*)?", "Gave up {x}", "pattern"),
        (r"(?:i|we) (?:have )?dropped (?P<x>(?:the|my) [\w -]+)(?:,.*)?", "Gave up {x}", "pattern"),
        (r"(?:no )?more (?P<x>[\w -]+?) for me", "Gave up {x}", "pattern"),
        (r"i am (?:so |totally )?(?:over|done with|through with) (?P<x>[\w -]+)", "Is over {x}", "preference"),
        (r"(?:i|we) (?:have )?switched from (?P<x>.+? to .+)", "Switched from {x}", "attribute"),
        (r"(?:i|we) (?:have )?(?:cancel(?:l)?ed|quit|left) (?:my|our|the) (?P<x>gym|pool|choir|club|course|class|lessons|yoga class)(?: membership)?",
         "Stopped going to the {x}", "pattern"),
        (r"(?:i|we) (?:have )?stopped (?P<x>(?:going|eating|drinking|playing|using|doing|smoking|taking|seeing|learning|working)(?: [\w' -]+)?)",
         "Stopped {x}", "pattern"),
        (r"(?P<x>my (?:[\w-]+ ){0,2}[\w-]+|[\w-]+) and i (?:have |are |got )?(?:broke|broken|split|separated|divorced|no longer)\b.*",
         "Broke up with {x}", "relationship"),
        (r"(?P<x>(?-i:[A-Z])[\w-]+) (?:has )?(?:died|passed away)\b.*", "{x} died", "relationship"),
        (r"(?:(?:i|we) )?(?:had to |have )?(?:put|said goodbye to|say goodbye to|bury|buried|lost|let go of) (?:my|our) (?P<x>(?:dog|cat|puppy|kitten|rabbit|horse|pony|hamster|bird|parrot|budgie)(?: [A-Z][\w-]+)?)(?: (?:down|to sleep))?(?: .*)?", "Lost their {x}", "relationship"),
)  # fmt: skip
_OWN_WORDS: Final = tuple(
    (re.compile(pattern, re.I), content, category) for pattern, content, category in _IN_OWN_WORDS
)
"""Phrases that end something without naming the ended statement: "I got fired". A later stage of the pipeline finds the
facts that the phrase ends."""
_STOPPED: Final = re.compile(
    rf"{_BEGINS}(?:stopped|quit|given up|gave up) (?P<doing>[a-z]{{2,}})ing(?P<x> .+)?", re.IGNORECASE
)


_BARE: Final = re.compile(
    rf"{_BEGINS}(?:quit|stopped|gave (?:it |that )?up|given (?:it |that )?up|quit it|stopped it)(?: cold turkey)?", re.I
)
_WAS_DONE: Final = re.compile(r"(?:i|we) (?:used to|always|often) (?P<verb>[a-z]+)(?P<x> .+)?", re.IGNORECASE)
_OF_WORK: Final = re.compile(r"\b(?:job|work|boss|company|office|shift|employer)\b", re.IGNORECASE)


def ended_before(clause: str, earlier: Sequence[str]) -> list[SpokenStatement]:
    """Return what a bare "I quit" ends: the last habit that the clauses before it name, or else the job that they
    mention. "I used to smoke but I quit" is about smoking."""
    if not _BARE.fullmatch(without_tail(clause)):
        return []
    for text in reversed(earlier):
        if match := _WAS_DONE.fullmatch(without_tail(text)):
            for rest in dict.fromkeys((match["x"] or "", "")):
                if never := statements(f"I do not {match['verb']}{rest}"):
                    return never
                if was := statements(f"I {match['verb']}{rest}"):
                    return [_no_longer(each) for each in was]
            return []
    if any(_OF_WORK.search(text) for text in earlier):
        return [SpokenStatement("user", "Quit their job", "profession")]
    return []


class Beside:
    """Attributes of the statements of one text. Each clause of the text is compared with these attributes."""

    def __init__(self) -> None:
        self._attributes: set[tuple[str, str]] = set()
        self.has_profession = False
        """True when a statement is about the user's work."""

    def add(self, statements: Iterable[SpokenStatement]) -> None:
        for each in statements:
            self.has_profession |= each.category == "profession" and each.subject == "user"
            if (form := attribute_of(each.content)) is not None:
                self._attributes.add((each.subject, form.attribute))

    def gives_new_value(self, over: SpokenStatement) -> bool:
        """Return whether an added statement has a new value for the attribute that `over` ends. False for an attribute
        that allows several values."""
        mine = attribute_of(_positive(over.content))
        if mine is None or mine.room is Cardinality.MANY:
            return False
        return (over.subject, mine.attribute) in self._attributes


def endings(clause: str, *, beside: Beside) -> list[SpokenStatement]:
    """Return the negations of the statements that a clause ends; empty when no rule fits. An ending is left out when a
    statement in `beside` gives the new value, because the new value replaces the old value: "I left Acme and joined
    Globex"."""
    return [each for each in _over(clause) or _in_own_words(clause, beside) if not beside.gives_new_value(each)]


def _in_own_words(clause: str, beside: Beside) -> list[SpokenStatement]:
    short = without_tail(clause)
    for pattern, content, category in _OWN_WORDS:
        if match := pattern.fullmatch(short) or pattern.fullmatch(clause):
            if category == "profession" and beside.has_profession:
                return []  # the new value implies the end of the old one
            words = {name: third_person(value) for name, value in match.groupdict().items() if value is not None}
            if "x" in words and not is_plausible(words["x"]):
                return []
            return [SpokenStatement("user", content.format(**{"partner": "partner", **words}), category)]
    return []


def _over(clause: str) -> list[SpokenStatement]:
    for pattern, positive in _OVER:
        if match := pattern.fullmatch(clause):
            return [_no_longer(was) for was in statements(positive.format(x=match["x"]))]
    return _stopped(clause)


def _stopped(clause: str) -> list[SpokenStatement]:
    """Read a stopped habit: I stopped playing tennis → No longer plays tennis; I gave up drinking beer → Does not drink
    beer."""
    match = _STOPPED.fullmatch(clause)
    if match is None:
        return []
    stem, rest = match["doing"], match["x"] or ""
    for verb in (stem, f"{stem}e", stem[:-1]):  # playing, driving, running
        if was := statements(f"I {verb}{rest}"):
            return [_no_longer(each) for each in was]
        if never := statements(f"I do not {verb}{rest}"):
            return never
    return []


def _no_longer(statement: SpokenStatement) -> SpokenStatement:
    """Negate a statement: Works at Acme → No longer works at Acme; Is vegetarian → Is no longer vegetarian."""
    first, _, rest = statement.content.partition(" ")
    ended = f"Is no longer {rest}" if first == "Is" else f"No longer {first.lower()} {rest}"
    return replace(statement, content=ended, permanent=False)


def _positive(ended: str) -> str:
    return capitalised(ended.removeprefix("No longer ").replace("Is no longer ", "Is ", 1))
