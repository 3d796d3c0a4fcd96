"""Statements of the speaker about other people and animals: "my sister Anna is a nurse" is a statement about anna.

A `Talk` records the mentioned people, so that "her name is Truffle" and "she hates fish" resolve to the right person or
animal.
"""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from .endings import Beside, endings
from .statements import SpokenStatement, capitalised, statements
from .values import is_name, is_pets
from .voice import Setting
from .wording import without_tail
from .words import CHILDREN, KIN_PLURALS, MONTHS, NUMBERS, PETS, RELATIONS, ROLES

_OF_KIN: Final = (
    r"(?:(?:older|younger|little|big|elder|eldest|oldest|youngest|twin|best|good|old|close|new|half|first|second|baby"
    r"|foster|adopted|middle|lovely|dear|late|team|line|rescue|\d+[ -]?(?:years?|months?)[ -]old)[ -])*"
)
_KIN: Final = rf"(?P<kin>{_OF_KIN}[\w-]+)"
_TITLED: Final = r"(?:Mr|Mrs|Ms|Dr|Prof|Professor)\b"
_TITLES: Final = re.compile(r"^(?:mr|mrs|ms|dr|prof|professor|herr|frau)\.? (?=\w)")
_TITLE: Final = r"(?:(?:Mr|Mrs|Ms|Dr|Herr|Frau|Professor)\.? )?"
_CAPITAL: Final = rf"(?-i:{_TITLE}[^\W\d_a-z][^\W_]*(?:['-][^\W\d_]+)*(?<!'s))"
_NAME: Final = rf"(?P<name>{_CAPITAL})"
_NAMED: Final = (
    re.compile(rf"(?:my|our) {_KIN}'s name is {_NAME}(?:,? and (?P<rest>.+))?", re.IGNORECASE),
    re.compile(rf"(?:my|our) {_KIN} is (?:called|named) {_NAME}(?:,? and (?P<rest>.+))?", re.IGNORECASE),
    re.compile(rf"{_NAME} is (?:my|our) {_KIN}(?:,? and (?P<rest>.+))?", re.IGNORECASE),
    re.compile(rf"(?:my|our) {_KIN},? {_NAME},?(?: (?P<rest>.+))?", re.IGNORECASE),
)
_UNNAMED: Final = re.compile(rf"(?:my|our) {_KIN} (?P<rest>.+)", re.IGNORECASE)
_AND: Final = re.compile(
    r",?\s+and\s+(?=(?:also |now )?"
    r"(?:works|lives|loves|likes|hates|enjoys|has|is|studies|teaches|plays|speaks|owns|runs)\b)"
)
_KNOWN: Final = re.compile(rf"{_NAME},? (?P<rest>.+)", re.IGNORECASE)
_PRONOUN: Final = re.compile(r"(?:he|she) (?P<rest>.+)", re.IGNORECASE)
_OF_A_PERSON: Final = re.compile(
    r"(?:(?:has|is) )?(?:now |just |recently )?(?:works? (?:at|for|as)|lives? in|moved to"
    r"|got (?:married|engaged|divorced)|(?:got|found|started) an? (?:new )?job|retired|studies|left|(?:just )?turned (?=\d)|turns (?=\d)|turning (?=\d))",
    re.IGNORECASE,
)
"""Phrases that apply to people only. The name before one of these phrases is the name of a person."""
_NO_PERSON: Final = re.compile(
    r"(?:we|you|he|she|it|they|this|that|these|those|there|who|what|which|one|everyone|everybody|someone|somebody"
    r"|nobody|people|mum|mom|dad|mother|father|work|life|home)$",
    re.IGNORECASE,
)
_TOGETHER_WITH: Final = re.compile(rf".+ (?:together )?with (?:my|our) {_KIN},? {_NAME}", re.IGNORECASE)

# ------------------------------------------------------------------------------------------------ relations
_OLD: Final = r"(?:,? \(?(?P<age>\d{1,2})\)?(?=$|[),.;!]| and\b| years old))?"
_APPOSED: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:my|our) {_KIN}(?:'s name is|,? (?:is )?(?:called|named)|(?:'s)?,|:)? \(?{_NAME}{_OLD}",
        rf"\b(?:my|our) {_KIN} is (?!{_TITLED}){_NAME}(?=$|[,.!;]| and\b)",
        rf"(?:^|[,.;:!(] ?|\b(?:and|for|with|to) ){_NAME}{_OLD}(?:, who is|, that is| \(that is| \(| is| was|,| has become| became| \() ?"
        rf"(?:now |even )*(?:my|our) (?:new )?{_KIN}(?=$|[,.;:!?)]| and\b| now\b)",
        rf"\b(?:the) (?P<kin>{'|'.join(sorted(PETS, key=len, reverse=True))}) \({_NAME}\)",
        rf"\b(?:got|adopted|have|bought|rescued) an? {_KIN}(?: too| as well)?, {_NAME}(?=$|[,.;!)])",
        rf"(?:^|[,.;:!(] ?|\band ){_NAME},? (?:is )?(?:the|our|my) {_KIN}(?=$|[,.;:!?)])",
    )
)
_SEVERAL: Final = re.compile(
    rf"\b(?:my|our|the|(?:have|have got|got)) (?:(?:{NUMBERS}) )?(?:[a-z]+ )?(?P<kin>{'|'.join(KIN_PLURALS)})"
    rf"(?:,? (?:are )?(?:called|named)|,| are|:| \()? (?P<names>{_CAPITAL}[^.!?]*)",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(
    rf"(?:^|,? (?:and )|, ){_NAME}(?: ?\((?P<note>[^)]*)\)| (?P<age>\d{{1,2}}))?(?=$|[,.;:]| and\b| [a-z])"
)
_HIS_NAME: Final = re.compile(
    rf"(?:^|[,.;!] ?|\band |\bbut )(?:(?:his|her|its|the) name is|(?:he|she|it) is (?:called|named)|name is|called|(?:I|we) (?:have )?(?:named|called) (?:him|her|it)) "
    rf"(?P<name>{_CAPITAL}(?: {_CAPITAL})?)",
    re.IGNORECASE,
)
_BECAME: Final = re.compile(
    rf"\b(?:he|she) (?:(?:is|has) (?:even |now )?(?:become )?|became |now is )(?:my|our) (?:new )?{_KIN}(?=$|[,.;!])",
    re.I,
)
_MENTIONED: Final = re.compile(
    rf"(?:\b(?:my|our|(?:have|got|adopted|bought|rescued|getting|has) an?|thanks|thank you) |^|[,;:.!?] (?:and |but )?)(?!(?:my|our|an?|the|thanks|thank|i|we)\b)(?P<kin>{_OF_KIN}[a-z-]+)\b",
    re.IGNORECASE,
)
_NEW_PARTNER: Final = re.compile(
    r"\b(?:met|seeing|dating) (?:someone|somebody)(?: new| special| nice)?(?=$|[!.,])", re.IGNORECASE
)
_WITHIN: Final = re.compile(
    r"(?<![.!?…] )(?<!\bin )(?<!\bat )(?<!\bto )(?<!\bon )(?<!\bfrom )(?<!\bof )(?<=\w )"
    rf"(?!(?:{MONTHS}|\w+day)\b)(?-i:[A-Z][a-z]+)\b",
    re.IGNORECASE,
)


_OF_A_THING: Final = re.compile(r"\b(?:an?|the|my|our|old|new|his|her)(?: [a-z]+)? $", re.IGNORECASE)
"""Words before a capitalised word that is not a person's name: "an old Volvo"."""


@dataclass(slots=True)
class Mention:
    """A mentioned person or animal. `kin` is empty for a bare name."""

    kin: str
    name: str | None = None


@dataclass(slots=True)
class Talk:
    """People and animals mentioned so far, by name, and the last mention."""

    named: dict[str, str] = field(default_factory=dict)
    """The word for the relation (`sister`, `dog`), by name in small letters."""
    last: Mention | None = None
    setting: Setting = field(default_factory=Setting)
    """Activity that the speaker's messages belong to."""

    def mention(self, kin: str, name: str | None) -> None:
        self.last = Mention(kin, name)
        if name is not None:
            self.named[name.lower()] = kin


def relations(plain: str, talk: Talk) -> list[SpokenStatement]:
    """Find the speaker's relations to people and animals in a sentence, also in a question: "what could I give my wife
    Ada?". Record the mentions in `talk`."""
    found = list(_relations(plain, talk))
    if not found and _NEW_PARTNER.search(plain):
        talk.mention("partner", None)
    elif not found:
        _mention_all(plain, talk)
    return found


def _mention_all(plain: str, talk: Talk) -> None:
    for match in _MENTIONED.finditer(plain):
        words = match["kin"].lower().split()
        if is_kin(words[-1]) or is_kin(words[0]):
            talk.mention(" ".join(words) if is_kin(words[-1]) else words[0], None)


def _relations(plain: str, talk: Talk) -> Iterator[SpokenStatement]:
    if match := _SEVERAL.search(plain):
        kin = KIN_PLURALS[match["kin"].lower()]
        for item in _ITEM.finditer(match["names"]):
            if not is_name(item["name"]):
                break
            talk.mention(kin, item["name"])
            yield _relation(kin, item["name"])
        return
    for pattern in _APPOSED:
        for match in pattern.finditer(plain):
            if is_kin(match["kin"]) and is_name(match["name"]) and not _NO_PERSON.match(match["name"]):
                talk.mention(match["kin"].lower(), match["name"])
                yield _relation(match["kin"], match["name"])
                if "age" in match.groupdict() and match["age"] and not is_pets(match["kin"]):
                    yield SpokenStatement(match["name"].lower(), f"Is {match['age']} years old", "identity")
    for match in _HIS_NAME.finditer(plain):
        _mention_all(plain[: match.start()], talk)
        last = talk.last
        if last is not None and last.kin and last.name is None and is_name(match["name"]):
            talk.mention(last.kin, match["name"])
            yield _relation(last.kin, match["name"])
    if match := _BECAME.search(plain):
        name = talk.last.name if talk.last is not None else None
        if name is not None and match["kin"].lower().split()[-1] in (RELATIONS | ROLES) - CHILDREN:
            talk.mention(match["kin"].lower(), name)
            yield _relation(match["kin"], name)
    if (
        (match := _WITHIN.search(plain))
        and not _OF_A_THING.search(plain[: match.start()])
        and is_name(match[0])
        and match[0].lower() not in talk.named
    ):
        talk.last = talk.last if talk.last is not None and talk.last.kin else Mention("", match[0])


def is_kin(words: str) -> bool:
    last = words.lower().split()[-1]
    return last in RELATIONS | PETS | ROLES or (last in CHILDREN and last not in KIN_PLURALS)


# ------------------------------------------------------------------------------------------------ statements
def statements_about_people(
    clause: str, *, subjects: Collection[str], talk: Talk | None = None
) -> list[SpokenStatement]:
    """Find statements about people. A bare first name counts as a person in three cases: it is in `subjects`, an
    earlier sentence introduced the person, or the words after the name apply to people only."""
    talk = talk if talk is not None else Talk()
    for pattern in _NAMED:
        if (match := pattern.fullmatch(clause)) and is_kin(match["kin"]) and is_name(match["name"]):
            return [
                _relation(match["kin"], match["name"]),
                *_about(match["name"], match.groupdict().get("rest"), match["kin"]),
            ]
    if (match := _UNNAMED.fullmatch(clause)) and is_kin(match["kin"]) and not is_pets(match["kin"]):
        return _of_unnamed(match["kin"], match["rest"])
    if (match := _PRONOUN.fullmatch(clause)) and talk.last is not None and not is_pets(talk.last.kin or "x"):
        if talk.last.name is not None:
            return _about(talk.last.name, match["rest"], talk.last.kin)
        return _of_unnamed(talk.last.kin, match["rest"])
    match = _KNOWN.fullmatch(clause)
    if match is None or not is_name(match["name"]) or _NO_PERSON.match(match["name"]):
        return []
    name = match["name"].lower()
    if name in subjects or name in talk.named or _OF_A_PERSON.match(match["rest"]):
        return _about(match["name"], match["rest"], talk.named.get(name, ""))
    return []


def _of_unnamed(kin: str, rest: str) -> list[SpokenStatement]:
    whole = statements(_first_person(rest))
    spoken = whole or [said for part in re.split(r",? and ", rest) for said in statements(_first_person(part))]
    return [
        SpokenStatement("user", capitalised(f"{kin} {said.content[:1].lower()}{said.content[1:]}"), "relationship")
        for said in spoken
        if not said.content.startswith("Name ")
    ]


def companions(clause: str) -> list[SpokenStatement]:
    """Find a person whom a statement about the speaker names: "I live in Ghent with my brother Paul"."""
    match = _TOGETHER_WITH.fullmatch(without_tail(clause))
    if match and is_kin(match["kin"]) and is_name(match["name"]):
        return [_relation(match["kin"], match["name"])]
    return []


def _relation(kin: str, name: str) -> SpokenStatement:
    kin = kin.lower()
    if kin in ("kid", "kiddo"):
        kin = "child"
    if kin in ("eldest", "oldest", "youngest"):
        kin = f"{kin} child"
    article = "an" if kin[0] in "aeiou" else "a"
    return SpokenStatement(subject="user", content=f"Has {article} {kin} named {name}", category="relationship")


def _about(name: str, rest: str | None, kin: str) -> list[SpokenStatement]:
    """Return the statements about this person; none for an animal."""
    if not rest or (kin and is_pets(kin)):
        return []
    parts = [_first_person(part) for part in _AND.split(rest)]
    found = [said for part in parts for said in statements(part)]
    beside = Beside()
    beside.add(found)
    found += [said for part in parts for said in endings(part, beside=beside)]
    return [
        replace(statement, subject=_TITLES.sub("", name.lower()))
        for statement in found
        if not statement.content.startswith("Name ")
    ]


def _first_person(rest: str) -> str:
    """Convert the text to the first person ("works at Google" → "I work at Google"), so that the same rules read both
    forms."""
    verb, _, objects = rest.partition(" ")
    if verb.lower() in ("already", "also", "now", "just", "still", "really", "absolutely", "both") and objects:
        return _first_person(objects)
    match verb.lower():
        case "is":
            base = "am"
        case "has":
            base = "have"
        case "does":
            base = "do"
        case word if word.endswith("ies") and len(word) > 4:
            base = word[:-3] + "y"
        case word if word.endswith(("shes", "ches", "xes", "sses", "zzes", "oes")):
            base = word[:-2]
        case word if word.endswith("s") and not word.endswith("ss"):
            base = word[:-1]
        case word:
            base = word
    return f"I {base} {objects}".strip()
