"""Which predicate a clause speaks of, and with which object, by the rules of the locale pack (memory-model §6, 4).

"X is V" makes X a predicate with one value; what no rule knows stays open (`predicate` None).
"""

from __future__ import annotations

from collections.abc import Sequence

from .claims import PREDICATE_MAX, Claim, claim_of
from .locales import Locale, Rule
from .markers import Clause
from .wording import Segment, Token, counted, counts, says_how, segments


def said_claims(clause: Clause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    found = clause.tokens
    if any(_ends_work(found, phrase, pack) for phrase in pack.ends_work):
        clause.denied, clause.past = True, False
        return [claim_of(clause, whose, name, "single", (), (), pack) for name, _, _ in pack.implied]
    ended = max((phrase for phrase in pack.ends if matches(found, phrase, pack)), key=len, default=None)
    if ended is not None and not clause.former:
        after = found[matches(found, ended, pack) or 0 :]
        if len(after) > 1 and after[0].base in pack.auxiliaries and after[1].tense == "ongoing":
            after = after[1:]
        clause.denied, clause.past = True, False
        if after and after[0].tense == "ongoing":
            clause.tokens = after
            return said_claims(clause, whose, rest, pack)
        return [claim_of(clause, whose, None, "unsure", after, rest, pack)]
    matched = rule_of(found, pack)
    if matched is None:
        return _unruled(clause, whose, rest, pack)
    rule, after = matched
    clause.denied ^= rule.denied
    clause.hedged |= rule.happened and clause.ongoing
    clause.past = clause.past and not rule.happened
    claims = [claim_of(clause, whose, rule.predicate, rule.valued, after, rest, pack, value=rule.value)]
    return claims + _role_and_employer(clause, whose, rule.predicate, after, pack)


def _ends_work(found: Sequence[Token], phrase: str, pack: Locale) -> bool:
    size = matches(found, phrase, pack)
    return size is not None and all(
        token.is_number or token.text in pack.times for token in counted(found[size:], pack)
    )


def _unruled(clause: Clause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    """A known occupation after `is a`; else nothing is known of the predicate."""
    found = clause.tokens
    if found and found[0].base in pack.copulas:
        first = segments(found[1:], pack)
        if first and _is_occupation(first[0], pack):
            clause.past = clause.past and found[0].base in pack.states
            claims = [claim_of(clause, whose, pack.occupation, "single", found[1:], rest, pack)]
            return claims + _role_and_employer(clause, whose, pack.occupation, found[1:], pack)
    return [claim_of(clause, whose, None, "unsure", found, rest, pack)]


def _is_occupation(segment: Sequence[Token], pack: Locale) -> bool:
    last = segment[-1]
    plain = last.text.removesuffix("s")
    return not last.is_name and (
        last.text in pack.occupations or plain in pack.occupations or plain.endswith(pack.occupation_endings)
    )


def _role_and_employer(
    clause: Clause, whose: Segment, predicate: str, after: Sequence[Token], pack: Locale
) -> list[Claim]:
    """`Works at Google as a nurse` names a role too, `is a nurse at Google` an employer."""
    for named, prepositions, other in pack.implied:
        place = next((place for place, token in enumerate(after) if token.text in prepositions), None)
        if named == predicate and place is not None:
            return [claim_of(clause, whose, other, "single", after[place + 1 :], (), pack)]
    return []


def rule_of(found: Sequence[Token], pack: Locale) -> tuple[Rule, list[Token]] | None:
    """The rule of the longest phrase that the clause begins with, and the words of its object."""
    if not found:
        return None
    begins = (found[0].base, found[0].text, found[0].word)
    best: tuple[int, Rule, list[Token]] | None = None
    for rule in pack.rules:
        for phrase in rule.phrases:
            if not phrase.startswith(begins):
                continue
            end = matches(found, phrase, pack)
            size = len(phrase.split())
            if end is None or (best is not None and best[0] >= size):
                continue
            spelled = zip(found[:end], _aligned(found, phrase, pack), strict=True)
            captured = [token for token, word in spelled if word in ("#", "*", "") and counts(token, pack)]
            after = [*found[end:], *captured] if size == end else [*captured, *found[end:]]
            if rule.named and not any(token.is_name for token in after):
                continue
            best = size, rule, after
    return None if best is None else best[1:]


def matches(found: Sequence[Token], phrase: str, pack: Locale) -> int | None:
    """How many tokens the phrase takes; None: the clause does not begin with it."""
    aligned = _aligned(found, phrase, pack)
    return len(aligned) if aligned is not None and aligned else None


def _aligned(found: Sequence[Token], phrase: str, pack: Locale) -> list[str]:
    """Which word of the phrase each token stands for ("" for one that is passed over); empty: it does not fit."""
    first, _, _ = phrase.partition(" ")
    if not found or first not in (found[0].base, found[0].text, found[0].word, "#", "*"):
        return []  # most phrases
    done: list[str] = []
    place = 0
    for word in phrase.split():
        while (
            place < len(found)
            and place
            and word not in (found[place].base, found[place].text)
            and not (word == "#" and found[place].is_number)
            and _passed_over(found[place], pack)
        ):
            done.append("")
            place += 1
        if place >= len(found):
            return []
        token = found[place]
        fits = token.is_number if word == "#" else word == "*" or word in (token.base, token.text, token.word)
        if not fits:
            return []
        done.append(word)
        place += 1
    return done


def _passed_over(token: Token, pack: Locale) -> bool:
    return (token.text in pack.stop_words and token.text not in pack.separators) or says_how(token, pack)


def is_value(found: Sequence[Token], pack: Locale) -> bool:
    """`is Anna`: a copula before a name."""
    after = [token for token in found[1:] if token.text not in pack.separators]
    return bool(after) and found[0].base in pack.copulas and after[0].is_name


def value_at(found: Sequence[Token], pack: Locale) -> int:
    """Where V begins in `X is V`; 0: that is not what is said."""
    if found[0].base in pack.copulas:
        return 1
    return next((size for phrase in pack.becomes if (size := matches(found, phrase, pack))), 0)


def changed_attribute(found: Sequence[Token], pack: Locale) -> tuple[Sequence[Token], Sequence[Token]] | None:
    """X and V of `changed X to V`."""
    for verb, before in pack.sets:
        if found and found[0].base == verb:
            place = next((place for place, token in enumerate(found) if token.text == before), 0)
            if 1 < place < len(found) - 1 and not any(token.text in pack.separators for token in found[1:place]):
                return found[1:place], found[place + 1 :]
    return None


def attribute_claim(
    clause: Clause, head: Sequence[Token], value: Sequence[Token], rest: Sequence[Token], pack: Locale
) -> Claim:
    """`X is V`: one V at a time, whatever X is."""
    clause.past = False
    named = [token for token in head if counts(token, pack)]
    if len(named) > 1 and named[-1].text == pack.name_word:
        named = named[:-1]
    plain = (pack.same_words.get(token.text, token.text.removesuffix("'s")) for token in named)
    name = "_".join(word.replace(" ", "_") for word in plain)[:PREDICATE_MAX]
    return claim_of(clause, (), name or None, "single" if name else "unsure", value, rest, pack)
