"""Relation of a new statement to a known statement, by the claims of both texts; pure.

A claim is one assertion of a text: a subject, a predicate and objects. The rules here compare words and ignore the
similarity of the embeddings. When the rules give no clear relation, the similarity zone decides
(docs/explanation/conflicts.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..language.claims import Claim
from ..language.locales import Locale
from ..language.tokenizer import Segment, akin, compared, compared_all, generals, tells_when

_YEAR = re.compile(r"(19|20)\d\d")


class Relation(Enum):
    """Relations of two claims. Each value is the reason that a decision reports."""

    DENIED = "a marker differs"
    VALUE = "the same statement with another number"
    OTHER = "another value of a predicate that has one at a time"
    CORRECTED = "corrected by the speaker"
    REPLACED = "replaced by the speaker"
    REORDERED = "the same words in another order"
    NAME = "the same words with another name"
    TOUCHED = "a change that concerns what is known"
    GUESSED = "a plan or a guess about what is known"
    DIFFERS = "each says what the other does not"
    UNCLEAR = "nothing is known of the predicate"
    SAME = "the same statement"
    MORE = "the same statement with more detail"
    LESS = "what is known says more"
    BESIDE = "another value of a predicate that may have several"
    APART = "about something else"


@dataclass(frozen=True, slots=True)
class ClaimRelation:
    relation: Relation
    same_predicate: bool
    """True when both claims name the same known predicate."""
    shares: bool = False
    """True when both claims are about the same subject and share a word besides the predicate."""


SAME_STATEMENT = (Relation.SAME, Relation.MORE, Relation.LESS)
_CONTRADICTIONS = (Relation.DENIED, Relation.VALUE, Relation.OTHER)
_OPEN = (Relation.REORDERED, Relation.TOUCHED, Relation.GUESSED, Relation.DIFFERS, Relation.UNCLEAR, Relation.BESIDE)


def relate(old: Sequence[Claim], new: Sequence[Claim], pack: Locale) -> ClaimRelation:
    """Relate two texts by all pairs of their claims.

    A contradiction between any two claims decides. Otherwise the texts are one statement when every claim of one text
    has an equivalent claim in the other text. Otherwise the first relation of `_OPEN` that occurs decides.
    """
    table = [[_relate_with_change(mine, theirs, pack) for theirs in new] for mine in old]
    found = {relation for row in table for relation in row}
    same = any(_one_predicate(mine, theirs) for mine in old for theirs in new)
    shares = any(set(mine.said) & set(theirs.said) for mine in old for theirs in new if mine.about == theirs.about)
    for relation in _CONTRADICTIONS:
        if relation in found:
            return ClaimRelation(relation, same, shares)
    covers_old = all(any(each in (Relation.SAME, Relation.MORE) for each in row) for row in table)
    covers_new = bool(found & {Relation.SAME, Relation.LESS}) and all(
        any(row[place] in (Relation.SAME, Relation.LESS) for row in table) or claim.denied
        for place, claim in enumerate(new)
    )
    if covers_old or covers_new:
        return ClaimRelation(
            Relation.SAME if covers_old and covers_new else Relation.MORE if covers_old else Relation.LESS, same, shares
        )
    return ClaimRelation(next((each for each in _OPEN if each in found), Relation.APART), same, shares)


def _one_predicate(old: Claim, new: Claim) -> bool:
    return old.predicate is not None and (old.about, old.predicate) == (new.about, new.predicate)


def _relate_with_change(old: Claim, new: Claim, pack: Locale) -> Relation:
    """Relate two claims. Return TOUCHED when the words do not decide and the new claim states a change that may have
    ended the old claim."""
    relation = _relate(old, new, pack)
    undecided = relation in (Relation.APART, Relation.DIFFERS, Relation.UNCLEAR)
    if new.another and old.numbers and not old.past and _heads(old) & _heads(new):
        return Relation.TOUCHED  # old: has one child; new: had a second child
    return Relation.TOUCHED if undecided and _concerns(new, old, pack) else relation


def _concerns(new: Claim, old: Claim, pack: Locale) -> bool:
    """Return whether the new claim states a change that concerns the old claim: `learned to swim` after `cannot
    swim`."""
    if (
        not (new.changed or new.event or new.former)
        or new.hedged
        or new.added
        or new.switched
        or old.past
        or old.about != new.about
    ):
        return False
    if new.event and new.predicate in pack.fulfils.get(old.predicate or "", ()):
        return True
    if old.predicate in pack.lasting or new.predicate in pack.lasting:
        return False
    if new.former and not new.moved and _names(new.former, old, pack):
        return True  # new: uses Disney+ instead of Netflix; old: watches Netflix
    if new.about and old.predicate is None and new.predicate is None and not old.denied and not new.denied:
        return True  # new: new boss is easy-going; old: boss is strict
    said = [word for word in _all(new) if not tells_when(word, pack) and word not in new.numbers]
    named = [tuple(word for word in each if not tells_when(word, pack)) for each in (*old.object, old.words)]
    things = {each[-1] for each in named if each} | (old.names & set(_all(old)))
    if old.valued == "single" and old.predicate:
        things.add(compared(old.predicate.rpartition("_")[2], pack))  # old: the exam is in May; new: passed the exam
    return any(akin(word, thing, pack) for word in said for thing in things if not tells_when(thing, pack))


def _relate(old: Claim, new: Claim, pack: Locale) -> Relation:
    if new.gone and old.about and old.about == new.words:
        return Relation.APART if old.past or old.predicate in pack.lasting else Relation.DENIED
    if new.former and not old.denied and _names_former_value(old, new, pack):
        return Relation.DENIED
    if old.about != new.about:
        return Relation.APART
    if old.hedged or new.hedged:
        return _guessed(old, new, pack)
    if old.past != new.past:
        return (
            Relation.UNCLEAR
            if new.past and _one_predicate(old, new) and _within(new.said, old.said, pack)
            else Relation.APART
        )
    if old.denied != new.denied:
        denial, claim = (old, new) if old.denied else (new, old)
        if not denial.limits <= {*claim.words, *claim.said}:
            return Relation.APART  # denial: no longer works weekends; claim: works at Siemens
        if _denies(denial, claim, pack):
            return Relation.DENIED
        open_ = None in (denial.predicate, claim.predicate) and set(denial.words) & set(_all(claim))
        return Relation.UNCLEAR if open_ else Relation.APART
    return _compared(old, new, pack)


def _names_former_value(old: Claim, new: Claim, pack: Locale) -> bool:
    """Return whether the new claim's former value (`instead of Netflix`) is the value of the old claim."""
    differ = new.predicate is not None and old.predicate is not None and new.predicate != old.predicate
    one_of_its_kind = new.moved and old.valued != "multi" and old.predicate not in pack.lasting
    if differ and not one_of_its_kind and new.predicate not in _all(old):
        return False
    whom = () if new.about == old.about else new.about
    return _within(whom, _all(old), pack) and _names(new.former, old, pack)


def _all(claim: Claim) -> Segment:
    return (*claim.about, *claim.words, *claim.said)


def _guessed(old: Claim, new: Claim, pack: Locale) -> Relation:
    """Relate two claims of which at least one is a plan or a guess.

    A new plan or guess never closes a known claim that is certain. It closes a known plan that it denies. A certain new
    claim closes a known plan that it fulfils.
    """
    if old.hedged and new.hedged:
        compared = _compared(old, new, pack) if old.denied == new.denied else Relation.DENIED
        if compared is Relation.DENIED:
            return compared if _denies(*((old, new) if old.denied else (new, old)), pack) else Relation.APART
        return compared if compared in SAME_STATEMENT else Relation.BESIDE
    if new.hedged:
        touches = _one_predicate(old, new) or (bool(new.words) and _within(new.words, _all(old), pack))
        return Relation.GUESSED if touches else Relation.APART
    came_about = _one_predicate(old, new) and bool(old.said) and _within(old.said, new.said, pack)
    return Relation.DENIED if came_about and not new.past and old.denied == new.denied else Relation.APART


def _denies(denial: Claim, claim: Claim, pack: Locale) -> bool:
    """Return whether a denial rules out a claim.

    The denial of a general thing also denies a particular thing: `no longer drinks coffee` denies `drinks black
    coffee`. The denial of a particular thing does not deny the general thing.
    """
    if denial.predicate is None and claim.predicate in pack.lasting:
        return False  # a lasting claim stays true: a person who drops a course still knows the subject
    if denial.predicate is not None and claim.predicate is not None:
        if denial.predicate != claim.predicate:
            return not denial.said and bool(denial.words) and denial.words[:1] == claim.words[:1]
        first = denial.valued == "single" and bool(denial.object) and denial.object[:1] == claim.object[:1]
        if first and (_names_differ(denial, claim, pack) or _denies_another(denial, claim, pack)):
            return False  # denial: was married to Ruth; claim: is married to Selma
        said = tuple(word for word in denial.said if not tells_when(word, pack)) or denial.said
        return first or _names(said, claim, pack)
    return bool(denial.words) and _names(denial.words, claim, pack)


def _denies_another(denial: Claim, claim: Claim, pack: Locale) -> bool:
    """Return whether the denial names a thing that is neither in the claim nor a person: `is not married to her job`
    after `is married to Dave`."""
    named = [word for segment in denial.object[1:] for word in segment if not tells_when(word, pack)]
    people = compared_all(pack.people, pack)
    return any(word not in people and not _within((word,), _all(claim), pack) for word in named)


def _names_differ(one: Claim, other: Claim, pack: Locale) -> bool:
    """Return whether both claims contain names and share no name. Names of times do not count."""
    mine, theirs = ({name for name in each.names if not tells_when(name, pack)} for each in (one, other))
    return bool(mine) and bool(theirs) and not mine & theirs


def _names(words: Segment, claim: Claim, pack: Locale) -> bool:
    """Return whether the words name the thing of the claim, or a kind to which that thing belongs. Words of time do not
    count.

    `car` does not name a car loan; `alcohol` names wine.
    """
    words = tuple(word for word in words if not tells_when(word, pack)) or words
    every = _with_kinds(_all(claim), pack)
    words = words if _within(words, every, pack) else _without_shells(words, pack)
    if not words or not _within(words, every, pack):
        return not words
    things = (*claim.object, claim.about, claim.words[:1])
    ends = {segment[-1] for each in things for segment in (each, _without_shells(each, pack)) if segment}
    named = claim.names | frozenset(word for segment in claim.object for word in segment if word in claim.names)
    return any(akin(words[-1], end, pack) for end in _with_kinds(tuple(ends | named), pack))


def _without_shells(words: Segment, pack: Locale) -> Segment:
    """Return the words without trailing shell words: `gym membership` becomes `gym`."""
    while len(words) > 1 and words[-1] in compared_all(pack.shells, pack):
        words = words[:-1]
    return words


def _with_kinds(words: Segment, pack: Locale) -> Segment:
    return (*words, *(general for word in words for general in generals(pack).get(word, ())))


def _within(some: Sequence[str], every: Sequence[str], pack: Locale) -> bool:
    return all(any(akin(word, other, pack) for other in every) for word in some)


def _compared(old: Claim, new: Claim, pack: Locale) -> Relation:
    """Relate two claims of the same polarity and tense."""
    if old.predicate is not None and new.predicate is not None and old.predicate != new.predicate:
        if new.role and new.role == old.role and new.changed:
            return Relation.SAME if old.object[:1] == new.object[:1] else Relation.OTHER
        if any({old.predicate, new.predicate} <= each for each in pack.like) and not new.another:
            same = _objects(old, new, pack)
            return same if same in SAME_STATEMENT and old.object and new.object else Relation.APART
        return Relation.SAME if _names_what_one_has(old, new, pack) else Relation.APART
    if new.switched and _of_one_kind(old, new, pack):
        return Relation.OTHER
    alike = _one_predicate(old, new)
    relation = _objects(old, new, pack) if alike else _texts(old, new, pack)
    if relation in SAME_STATEMENT and new.another == old.another:
        return relation
    if new.added or old.added or (new.denied and relation is not Relation.REORDERED):
        return Relation.BESIDE
    if relation in (Relation.VALUE, Relation.REORDERED) or not alike:
        return relation
    if new.role and new.role == old.role:
        return Relation.OTHER
    if new.object[:1] != old.object[:1] and any(set(each[:1]) & pack.over for each in new.object[:1]):
        return Relation.BESIDE if _names_differ(old, new, pack) else Relation.OTHER
    if old.past or new.valued == "multi":
        again = new.changed and not new.denied and bool(set(old.said) & set(new.said))
        return Relation.DIFFERS if again else Relation.BESIDE
    return Relation.OTHER if new.valued == "single" else Relation.DIFFERS


def _names_what_one_has(old: Claim, new: Claim, pack: Locale) -> bool:
    """Return whether one claim says that a thing is owned and the other claim gives the name of that thing.

    Example: `has a dog named Rex` and `the dog is called Rex`.
    """
    has, other = (old, new) if old.predicate == pack.owning else (new, old)
    named = bool(other.names) and other.names <= has.names
    return has.predicate == pack.owning and named and has.said == (compared(other.predicate or "", pack), *other.said)


def _of_one_kind(old: Claim, new: Claim, pack: Locale) -> bool:
    """Return whether the new claim switches to another thing of the same kind as a thing in the old claim.

    Example: `switched to day shifts` replaces other shifts.
    """
    if old.predicate in pack.lasting or not new.object:
        return False
    if new.role and new.role == old.role:
        return True
    said, head = set(new.object[0]), new.object[0][-1:]
    if any(said <= set(segment) or set(segment) <= said for segment in old.object):
        return False
    mine = {segment[-1] for segment in old.object if segment}
    return not set(_with_kinds(tuple(mine), pack)).isdisjoint(_with_kinds(head, pack))


def _heads(claim: Claim) -> set[str]:
    """Return the last word of each thing in the claim."""
    return {segment[-1] for segment in claim.object if segment}


def _objects(old: Claim, new: Claim, pack: Locale) -> Relation:
    """Relate two claims with the same predicate by their objects."""
    if sorted(old.said) == sorted(new.said):
        in_order = old.said == new.said or new.valued == "single" or (old.either_way and new.either_way)
        return Relation.SAME if in_order else Relation.REORDERED
    if _counts_another(old.said, new.said, old, new):
        return Relation.VALUE
    if old.valued == "unsure" and old.object[:1] != new.object[:1]:
        return Relation.DIFFERS  # prefers coffee to tea; prefers tea
    if not old.object or _covers(new.object, old.object, new, pack):
        return Relation.MORE
    if not new.object or _covers(old.object, new.object, old, pack):
        return Relation.LESS
    if old.numbers and new.numbers and not old.numbers & new.numbers:
        mine, theirs = _masked_object(old), _masked_object(new)
        if _covers(theirs, mine, new, pack) or _covers(mine, theirs, old, pack):
            return Relation.VALUE
    same_thing = old.object[0] == new.object[0] and len(old.object) > 1 and len(new.object) > 1
    beyond = _particulars(old, new), _particulars(new, old)
    if same_thing and new.valued == "single" and not all(beyond):
        return Relation.LESS  # the same value with different details
    return Relation.DIFFERS


def _particulars(one: Claim, other: Claim) -> set[str]:
    """Return the words of `one` that are not in `other`, without numbers."""
    return set(one.said) - set(other.said) - one.numbers


def _texts(old: Claim, new: Claim, pack: Locale) -> Relation:
    """Relate two claims by their words, when the predicate of a claim is unknown."""
    if old.words == new.words:
        return Relation.SAME
    if sorted(old.words) == sorted(new.words):
        return Relation.SAME if old.either_way and new.either_way else Relation.REORDERED
    if _counts_another(old.words, new.words, old, new):
        return Relation.VALUE
    if old.words[:1] == new.words[:1]:
        if _covers(new.object, old.object, new, pack):
            return Relation.MORE
        if _covers(old.object, new.object, old, pack):
            return Relation.LESS
    each_has_more = set(old.words) - set(new.words) and set(new.words) - set(old.words)
    return Relation.DIFFERS if each_has_more else Relation.UNCLEAR


def _counts_another(mine: Segment, theirs: Segment, old: Claim, new: Claim) -> bool:
    """Return whether two texts differ only in numbers, and are not events in different years."""
    numbered = bool(old.numbers) and bool(new.numbers)
    years = [{number for number in each.numbers if _YEAR.fullmatch(number)} for each in (old, new)]
    if years[0] != years[1] and old.past and new.past:
        return False  # two events in different years
    return numbered and _masked(mine, old.numbers) == _masked(theirs, new.numbers)


def _masked(words: Segment, numbers: frozenset[str]) -> list[str]:
    return sorted("#" if word in numbers else word for word in words)


def _masked_object(claim: Claim) -> list[Segment]:
    return [tuple("#" if word in claim.numbers else word for word in segment) for segment in claim.object]


def _covers(large: Sequence[Segment], small: Sequence[Segment], of: Claim, pack: Locale) -> bool:
    """Return whether `large` names every thing in `small`, perhaps with more detail. `of` is the claim of `large`.

    `small dog` covers `dog`. `tea towel` does not cover `tea`, because the last word names the kind of thing. The last
    word may differ when it is part of a name.
    """
    return bool(small) and all(any(_is_kind(more, less, of, pack) for more in large) for less in small)


def _is_kind(more: Segment, less: Segment, of: Claim, pack: Locale) -> bool:
    if not set(less) <= set(more) or (set(more) - set(less)) & compared_all(pack.altering, pack):
        return False
    return akin(more[-1], less[-1], pack) or (more[: len(less)] == less and more[-1] in of.names)
