"""What a statement claims: of whom, which predicate with which object, and whether it affirms, denies or guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .locales import Locale, Valued
from .markers import MarkedClause
from .tokenizer import Segment, Token, content, segments

PREDICATE_MAX = 64


@dataclass(frozen=True, slots=True)
class Claim:
    about: Segment
    """Of whom; empty: of the statement's own subject."""
    predicate: str | None
    valued: Valued
    object: tuple[Segment, ...]
    words: Segment
    """All that it says, but for markers and stop words, in order."""
    names: frozenset[str]
    numbers: frozenset[str]
    denied: bool = False
    hedged: bool = False
    added: bool = False
    past: bool = False
    former: Segment = ()
    """What it says it was before, or is not: from tea to coffee; Bern, not Basel."""
    either_way: bool = False
    """Its object is a list: the order means nothing."""
    moved: bool = False
    """`former` and `object` are of one kind: from one employer, town or drink to another."""
    switched: bool = False
    """Its object takes the place of what there was of its kind."""

    @property
    def said(self) -> Segment:
        """The words of the object, in order."""
        return tuple(word for segment in self.object for word in segment)


def asserts(claim: Claim) -> bool:
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
        either_way=any(token.text in pack.both_ways for token in spoken)
        and all(token.text in pack.both_ways for token in spoken if token.text in pack.separators),
    )
