"""Claims: subject, predicate and object of each clause of a statement, with polarity, tense and certainty."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .locales import Locale, Valued
from .markers import MarkedClause
from .tokenizer import Segment, Token, content, segments, tells_when

PREDICATE_MAX = 64


@dataclass(frozen=True, slots=True)
class Claim:
    """One clause of a statement in parsed form."""

    about: Segment
    """The subject of the clause. Empty when the clause is about the subject of the whole statement."""
    predicate: str | None
    valued: Valued
    object: tuple[Segment, ...]
    words: Segment
    """All words of the clause in order, without stop words and without markers such as `not`."""
    names: frozenset[str]
    numbers: frozenset[str]
    denied: bool = False
    hedged: bool = False
    added: bool = False
    past: bool = False
    former: Segment = ()
    """The value that was true before or is denied: `tea` in `from tea to coffee`, `Basel` in `Bern, not Basel`."""
    either_way: bool = False
    """True when the object is a list in which the order has no meaning."""
    moved: bool = False
    """True when the clause has the form `from X to Y`. `former` and `object` are then of one kind: two employers, towns
    or drinks."""
    switched: bool = False
    """True when the verb says that the object replaces an earlier thing of the same kind: `switched to day shifts`."""
    changed: bool = False
    """True when a word says that the earlier state was different: `now`, `again`."""
    instead: bool = False
    """True when a phrase says that the clause replaces an earlier statement: `now`, `changed my mind`."""
    event: bool = False
    """True when the verb reports a change: `passed the test`."""
    another: bool = False
    """True when the object is one more thing of its kind: `a second cat`."""
    gone: bool = False
    """True when the clause says that a person or thing no longer exists."""
    limits: frozenset[str] = frozenset()
    """Times that come again, to which the clause is limited: `weekends` in `no longer works weekends`."""
    role: Segment = ()
    """The role of the object: `browser` in `Firefox as browser`."""

    @property
    def said(self) -> Segment:
        """The words of the object in order."""
        return tuple(word for segment in self.object for word in segment)


def asserts(claim: Claim) -> bool:
    """Return whether the claim says that something is true now."""
    return not (claim.denied or claim.hedged or claim.past)


def claim_of(
    clause: MarkedClause,
    whose: Segment,
    predicate: str | None,
    valued: Valued,
    after: Sequence[Token],
    rest: Sequence[Token],
    pack: Locale,
    *,
    value: str | None = None,
) -> Claim:
    """Build the claim of a clause.

    `whose` is the subject of the clause. `after` are the tokens after the predicate; they name the object. `value` is
    an object that the predicate itself gives; it comes before the other objects. `rest` are the tokens at the end of
    the clause that are about other people or things.
    """
    spoken = [*after, *rest]
    things = tuple(tuple(token.word for token in segment) for segment in segments(spoken, pack))
    if value is not None:
        things = ((value,), *things)
    whole = predicate is not None or clause.tokens == list(after)
    return Claim(
        about=whose,
        predicate=predicate,
        valued=valued,
        object=things,
        words=content([*clause.tokens, *rest] if whole else spoken, pack),
        names=frozenset(token.word for token in spoken if token.is_name),
        numbers=frozenset(token.word for token in spoken if token.is_number),
        denied=clause.denied,
        hedged=clause.hedged,
        added=clause.added,
        past=clause.past,
        former=clause.former,
        moved=clause.moved,
        changed=clause.changed,
        event=clause.event,
        another=clause.another,
        role=_role(spoken, pack),
        limits=_limits([*clause.tokens, *spoken], pack),
        either_way=any(token.text in pack.both_ways for token in spoken)
        and all(token.text in pack.both_ways for token in spoken if token.text in pack.separators),
    )


def _limits(found: Sequence[Token], pack: Locale) -> frozenset[str]:
    """Return the times that come again.

    `last night`, `Friday evening` and `resigned at night` name one time, so they are left out.
    """
    once = bool(found) and found[0].tense == "past"
    return frozenset(
        token.word
        for before, token in zip((None, *found), found, strict=False)
        if token.text in pack.recurring
        or (token.text in pack.dayparts and not once and (before is None or not tells_when(before.text, pack)))
    )


def _role(spoken: Sequence[Token], pack: Locale) -> Segment:
    place = next((place for place, token in enumerate(spoken) if token.text in pack.roles), None)
    if place is None:
        return ()
    until = itertools.takewhile(lambda token: token.text not in pack.separators, spoken[place + 1 :])
    return content(list(until), pack)
