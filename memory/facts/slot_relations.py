"""Relation of a new statement to a known statement by their slots and values; pure.

`Works at Siemens` has the slot `employer` and the value `Siemens`. The slots and values decide when both statements
have them. The texts still decide on what a slot cannot hold: a plan, an addition (`too`), a former value (`not tea`).
Whenever slot and text disagree, the relation of the texts holds (docs/explanation/conflicts.md).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ...schemas.slots import TypedValue
from ..language.claims import Claim
from ..language.locales import Locale
from ..language.plain_words import is_spaceless
from ..language.tokenizer import Segment, Token, akin, compared, generals, tells_when, tokens
from ..policies import SlotPolicy
from .relations import SAME_STATEMENT, ClaimRelation, Relation
from .slot_predicates import PREDICATE_SLOTS

ValueRelation = Literal["same", "more", "less", "count", "reordered", "other"]
"""Relation of the new value to the known value.

- same: the same value.
- more: the new value has all words of the known value and further words; less: the reverse.
- count: another number of the same things: `two cats`, `three cats`.
- reordered: the same words in another order: `coffee to tea`.
- other: another value.
"""


@dataclass(frozen=True)
class TypedText:
    """One of the two statements: its slot and value, and the claims of its text."""

    typed: TypedValue
    claims: Sequence[Claim] = ()
    """Empty when no locale pack can read the text."""

    @cached_property
    def hedged(self) -> bool:
        return bool(self.claims) and all(claim.hedged for claim in self.claims)

    @cached_property
    def past(self) -> bool:
        """True when each claim is about the past, has a known predicate, and denies nothing."""
        return bool(self.claims) and all(claim.past and claim.predicate is not None for claim in self.claims)

    @cached_property
    def denied(self) -> bool:
        return bool(self.claims) and all(claim.denied for claim in self.claims)

    @cached_property
    def limits(self) -> frozenset[str]:
        """Times that come again, to which the text is limited: `at night`. A model may leave them out of the slot."""
        return frozenset(word for claim in self.claims for word in claim.limits)

    @cached_property
    def added(self) -> bool:
        return any(claim.added or claim.another for claim in self.claims)

    @cached_property
    def former(self) -> Segment:
        """Words of the value that the text takes back: `tea` in `coffee, not tea`."""
        return tuple(word for claim in self.claims for word in claim.former)

    @cached_property
    def switched(self) -> bool:
        """True when the text says that its value takes the place of an earlier one: `now`, `switched to`."""
        return any(claim.switched or claim.moved or claim.instead for claim in self.claims)

    @cached_property
    def about(self) -> frozenset[Segment]:
        return frozenset(claim.about for claim in self.claims)


def relate_slots(
    old: TypedText,
    new: TypedText,
    by_text: ClaimRelation,
    pack: Locale,
    slot_of: Callable[[str], SlotPolicy | None],
) -> ClaimRelation | None:
    """Relate two statements by their slots; None when a statement has no known slot or no value, or when its text says
    something else than its slot.

    `by_text` is the relation of the texts, and `pack` the locale pack of the new text.
    """
    mine, theirs = slot_of(old.typed.slot), slot_of(new.typed.slot)
    if mine is None or theirs is None or old.typed.value is None or new.typed.value is None:
        return None
    if old.about and new.about and not old.about & new.about:
        return None  # somebody else's: the sister's employer
    if any(each.denied and not each.typed.denied and not _is_opposite(each, slot_of) for each in (old, new)):
        return None
    value = compare_values(old.typed.value, new.typed.value, pack)
    shares = bool(_words(old.typed.value, pack) & _words(new.typed.value, pack))
    if old.typed.slot != new.typed.slot:
        opposite = new.typed.slot == mine.opposite or old.typed.slot == theirs.opposite
        if opposite and not old.typed.denied and not new.typed.denied:
            inverted = replace(new, typed=replace(new.typed, slot=old.typed.slot, denied=True))
            return ClaimRelation(_with_denial(old, inverted, value, pack), True, shares)
        if mine.values == theirs.values == "single" and mine.category == theirs.category:
            return None  # spouse and marital status, employer and job: the end of one may be the end of the other
        return _of_different_slots(old, new, by_text, pack)
    if old.typed.denied != new.typed.denied:
        return ClaimRelation(_with_denial(old, new, value, pack), True, shares)
    single = mine.values == "single"
    return ClaimRelation(_alike(old, new, value, by_text.relation, pack, single=single), True, shares)


def _is_opposite(each: TypedText, slot_of: Callable[[str], SlotPolicy | None]) -> bool:
    """Return whether the text denies the opposite of the slot: `Cannot stand jazz` denies `likes`."""
    slot = slot_of(each.typed.slot)
    said = {PREDICATE_SLOTS.get(claim.predicate or "") for claim in each.claims}
    return slot is not None and bool(slot.opposite) and said == {slot.opposite}


def _of_different_slots(old: TypedText, new: TypedText, by_text: ClaimRelation, pack: Locale) -> ClaimRelation:
    """Relate statements with different slots. They never contradict each other, unless the new text names the known
    value: `Got divorced from Helen` ends `spouse`: `Helen`."""
    said = [word for claim in new.claims for word in (*claim.about, *claim.words, *claim.said, *claim.former)]
    named = all(any(akin(word, other, pack) for other in said) for word in _words(old.typed.value or "", pack))
    keeps = (*SAME_STATEMENT, Relation.DENIED, Relation.TOUCHED, Relation.GUESSED)
    if named and by_text.relation in keeps:
        return by_text
    return ClaimRelation(Relation.APART, False, by_text.shares)


def _with_denial(old: TypedText, new: TypedText, value: ValueRelation, pack: Locale) -> Relation:
    """Relate statements of which one denies its value. A denial rules out its value and the kinds of its value, and
    nothing else: `coffee` rules out `black coffee`, but not the reverse."""
    denial, claim = (old, new) if old.typed.denied else (new, old)
    if new.hedged:
        return Relation.GUESSED if value in ("same", "more", "less") else Relation.BESIDE
    if denial.typed.qualifier is not None and not _same_qualifier(denial, claim, pack):
        return Relation.BESIDE
    if denial.limits - claim.limits:
        return Relation.BESIDE
    if claim is new and claim.typed.qualifier is not None and not _same_qualifier(denial, claim, pack):
        return Relation.BESIDE
    covered: ValueRelation = "more" if claim is new else "less"
    if value == "same" or (value == covered and _rules_out(denial, claim, pack)):
        return Relation.DENIED
    kind = _is_of_kind(claim.typed.value or "", denial.typed.value or "", pack)
    return Relation.DENIED if kind and claim is old else Relation.BESIDE


def _alike(
    old: TypedText, new: TypedText, value: ValueRelation, by_text: Relation, pack: Locale, *, single: bool
) -> Relation:
    """Relate two statements of one slot that both affirm their value, or both deny it."""
    same = value in ("same", "more", "less")
    if not _same_qualifier(old, new, pack):
        return Relation.BESIDE
    if new.typed.denied:
        return by_text if value == "same" and by_text in SAME_STATEMENT else Relation.BESIDE
    if new.hedged and not old.hedged:
        return Relation.GUESSED if single or same else Relation.BESIDE
    if old.hedged and not new.hedged:
        return Relation.DENIED if value in ("same", "more") else Relation.BESIDE
    if old.past or new.past:
        return Relation.APART if old.past != new.past else by_text
    if new.former and not same and _names(new.former, old.typed.value or "", pack):
        return Relation.DENIED
    if same:
        return _of_one_value(old, new, value, by_text, single=single)
    if value == "reordered":
        return Relation.REORDERED
    if new.added or old.added:
        return Relation.BESIDE
    if single:
        return by_text if by_text in SAME_STATEMENT else Relation.OTHER
    if value == "count":
        return Relation.VALUE
    return Relation.REPLACED if new.switched else Relation.BESIDE


def _of_one_value(old: TypedText, new: TypedText, value: ValueRelation, by_text: Relation, *, single: bool) -> Relation:
    if new.added and not old.added:
        return Relation.BESIDE
    if not single and by_text in (Relation.APART, Relation.BESIDE) and _predicates_differ(old, new):
        return Relation.BESIDE  # speaks French, learns French
    if value == "same" and by_text in (*SAME_STATEMENT, Relation.VALUE, Relation.REORDERED):
        return by_text
    return {"more": Relation.MORE, "less": Relation.LESS}.get(value, Relation.SAME)


def _predicates_differ(old: TypedText, new: TypedText) -> bool:
    mine = {claim.predicate for claim in old.claims if claim.predicate}
    theirs = {claim.predicate for claim in new.claims if claim.predicate}
    return bool(mine) and bool(theirs) and not mine & theirs


# ------------------------------------------------------------------------------------------------------- values
def compare_values(old: str, new: str, pack: Locale) -> ValueRelation:
    """Compare two values. Case, punctuation, articles, and the spelling of numbers and units have no meaning."""
    mine, theirs = _things(old, pack), _things(new, pack)
    if mine == theirs:
        return "same"
    one, other = [word for thing in mine for word in thing], [word for thing in theirs for word in thing]
    if sorted(one) == sorted(other):
        return "reordered"
    if _counts(one, other, pack):
        return "count"
    if mine[0] == theirs[0] and _has_kind(old) and _has_kind(new):
        return _compare_kinds(mine[-1], theirs[-1], pack)
    if _covers(theirs, mine, pack):
        return "more"
    return "less" if _covers(mine, theirs, pack) else "other"


def _has_kind(value: str) -> bool:
    """Return whether a value has the kind of the thing that it names: `Soot (cat)`."""
    return value.endswith(")") and "(" in value


def _compare_kinds(mine: Segment, theirs: Segment, pack: Locale) -> ValueRelation:
    """Compare the kinds of two things with the same name. Two kinds are two things, unless one is a kind of the other:
    a puppy is a dog."""
    kinds = generals(pack)
    if _contains(theirs, mine, pack) or mine[-1] in kinds.get(theirs[-1], ()):
        return "more"
    return "less" if _contains(mine, theirs, pack) or theirs[-1] in kinds.get(mine[-1], ()) else "other"


def share_head(old: str, new: str, pack: Locale) -> bool:
    """Return whether two values name things of one kind: `light mode` and `dark mode`, `tea` and `coffee`."""
    mine, theirs = ({thing[-1] for thing in _things(each, pack)} for each in (old, new))
    kinds = generals(pack)
    over = [heads | {general for head in heads for general in kinds.get(head, ())} for heads in (mine, theirs)]
    return any(akin(one, other, pack) for one in over[0] for other in over[1])


def _things(value: str, pack: Locale) -> tuple[Segment, ...]:
    """Return the words of each thing in a value, in the form for comparison. Prepositions, commas and parentheses
    separate things."""
    found = tokens(unicodedata.normalize("NFKC", value).replace("(", ","), pack)
    things: list[list[str]] = [[]]
    for place, token in enumerate(found):
        last = place == len(found) - 1
        if token.is_break or (token.text in pack.separators and things[-1] and not last):
            things.append([])
        elif last or not _is_small(token, pack):
            things[-1] += _forms(token, pack)
    said = tuple(tuple(thing) for thing in things if thing)
    return said or ((unicodedata.normalize("NFKC", value).casefold().strip(),),)


def _is_small(token: Token, pack: Locale) -> bool:
    return not token.is_number and (
        token.text in pack.stop_words or token.text in pack.articles or token.text in pack.separators
    )


def _forms(token: Token, pack: Locale) -> list[str]:
    if token.is_number:
        return [token.word]
    return [compared(word.casefold(), pack) for word in token.text.split()]


def _words(value: str, pack: Locale) -> frozenset[str]:
    return frozenset(word for thing in _things(value, pack) for word in thing)


def _covers(large: Sequence[Segment], small: Sequence[Segment], pack: Locale) -> bool:
    """Return whether the words of each thing in `small` are in a thing of `large`."""
    return all(any(_contains(more, less, pack) for more in large) for less in small)


def _contains(more: Segment, less: Segment, pack: Locale) -> bool:
    return all(any(akin(word, other, pack) or _begins(other, word) for other in more) for word in less)


def _begins(long: str, short: str) -> bool:
    """Return whether a word in a script without spaces begins with another word."""
    return bool(short) and long.startswith(short) and is_spaceless(short[0])


def _counts(one: Sequence[str], other: Sequence[str], pack: Locale) -> bool:
    """Return whether both values count the same things: a number comes first, and all other words are equal."""
    numbered = len(one) > 1 and len(other) > 1 and one[0][:1].isdigit() and other[0][:1].isdigit()
    return numbered and list(one[1:]) == list(other[1:]) and not any(tells_when(word, pack) for word in one[1:])


def _rules_out(denial: TypedText, claim: TypedText, pack: Locale) -> bool:
    """Return whether the denied value, which the other value contains, is its kind (`coffee` of `black coffee`) or its
    beginning (`Siemens` of `Siemens Energy`)."""
    less, more = _things(denial.typed.value or "", pack), _things(claim.typed.value or "", pack)
    return all(
        any(
            thing[-1:] == each[-1:]
            or thing[: len(each)] == each
            or _begins(thing[0], each[0])
            or each[-1] in generals(pack).get(thing[-1], ())
            for thing in more
        )
        for each in less
    )


def _is_of_kind(value: str, kind: str, pack: Locale) -> bool:
    """Return whether the locale pack knows the value as a thing of this kind: wine is alcohol."""
    said, wanted = _things(value, pack), _things(kind, pack)
    over = {general for thing in said for general in generals(pack).get(thing[-1], ())}
    return len(wanted) == 1 and len(wanted[0]) == 1 and wanted[0][0] in over


def _names(words: Segment, value: str, pack: Locale) -> bool:
    """Return whether the words name the value: they have all its words, or they are its kind."""
    said = tuple(word for word in words if not tells_when(word, pack))
    forms = tuple(compared(word, pack) for word in said)
    if not forms:
        return False
    things = _things(value, pack)
    return all(_contains(forms, thing, pack) for thing in things) or any(
        _contains(thing, forms, pack) and thing[-1] == forms[-1] for thing in things
    )


def _same_qualifier(one: TypedText, other: TypedText, pack: Locale) -> bool:
    mine, theirs = one.typed.qualifier, other.typed.qualifier
    if mine is None or theirs is None:
        return mine is theirs
    return _words(mine, pack) == _words(theirs, pack)
