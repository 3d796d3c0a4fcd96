"""Find the predicate and the object of a clause by the rules of the locale pack.

A clause `X is V` has the predicate X with one value. When no rule matches a clause, its predicate is None.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from .claims import PREDICATE_MAX, Claim, claim_of
from .locales import Locale
from .markers import MarkedClause
from .phrase_index import PhraseMatch, index_phrases, match_phrase
from .tokenizer import Segment, Token, counted, counts, says_how, segments, tells_when
from .word_order import prepositions_first


def extract_claims(clause: MarkedClause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    found = clause.tokens = _best_order(clause.tokens, pack)
    shelves = index_phrases(pack)
    ruled = rule_of(found, pack)
    if _may_report_end(found, pack):
        ended = match_phrase(found, shelves.ends, pack)
        work = match_phrase(found, shelves.ends_work, pack, lambda each: _is_only_time(found[each.end :], pack))
        if work is not None and work.size >= _size(ended):
            clause.denied, clause.past = True, False
            ends = dict.fromkeys(each.predicate for each in pack.implied)
            return [claim_of(clause, whose, name, "single", (), (), pack) for name in ends]
        if ended is not None and ended.size >= _size(ruled) and not clause.former:
            return _claims_of_end(ended, clause, whose, pack)
    if ruled is None:
        return _claims_without_rule(clause, whose, rest, pack)
    rule = ruled.phrase.rule
    assert rule is not None
    clause.denied ^= rule.denied
    clause.hedged |= rule.happened and clause.ongoing
    clause.event |= clause.past and rule.happened
    clause.past = (clause.past or (clause.perfect and not clause.denied)) and not rule.happened
    value = rule.absent if rule.absent and _names_nothing(ruled.object, pack) else rule.value
    after, implied = _role_and_employer(clause, whose, rule.predicate, ruled.object, pack)
    return [claim_of(clause, whose, rule.predicate, rule.valued, after, rest, pack, value=value), *implied]


def _best_order(found: list[Token], pack: Locale) -> list[Token]:
    """Return the clause with the order of prepositional phrases for which the longest phrase of the pack matches.

    Some languages allow several orders: `zieht mit Ana nach Köln` and `zieht nach Köln mit Ana` mean the same. Among
    orders with equally long matches, an order that matches a rule for names wins, then the given order.
    """
    if pack.word_order is None:
        return found
    shelves = index_phrases(pack)

    def matched(order: list[Token]) -> tuple[int, bool]:
        ends = match_phrase(order, shelves.ends, pack) if _may_report_end(order, pack) else None
        ruled = rule_of(order, pack)
        rule = ruled.phrase.rule if ruled is not None else None
        return max(_size(ruled), _size(ends)), rule is not None and rule.named

    return max(prepositions_first(found, pack), key=matched)


def _size(found: PhraseMatch | None) -> int:
    return 0 if found is None else found.size


def _may_report_end(found: Sequence[Token], pack: Locale) -> bool:
    """Return whether the clause may report an end. `sold honey` may; `sells honey` may not, because it is a habit."""
    habit = bool(found) and found[0].tense == "present"
    return (
        not habit
        or found[0].base in pack.ending_verbs
        or found[0].base in pack.copulas
        or found[0].base in pack.auxiliaries
    )


def _is_only_time(found: Sequence[Token], pack: Locale) -> bool:
    said = itertools.takewhile(lambda token: token.text not in pack.reasons, found)
    return all(token.is_number or tells_when(token.word, pack) for token in counted(list(said), pack))


def _claims_of_end(ended: PhraseMatch, clause: MarkedClause, whose: Segment, pack: Locale) -> list[Claim]:
    """Return the claims of a clause that reports an end.

    `quit smoking` denies the claim `smokes`. `quit the choir` is a denial without a predicate, which rules out
    all known claims about the choir.
    """
    after = list(ended.object)
    if len(after) > 1 and after[0].base in pack.auxiliaries and after[1].tense == "ongoing":
        after = after[1:]
    clause.denied, clause.past = True, False
    if after and after[0].tense == "ongoing":
        clause.tokens = after
        return extract_claims(clause, whose, (), pack)  # leave out `rest`, the reason
    after = _without_reason(after, pack)
    return [claim_of(clause, whose, None, "unsure", after, (), pack)]


def _without_reason(after: list[Token], pack: Locale) -> list[Token]:
    """Return the ended thing without the reason and without the next event: `the club over a quarrel` becomes `the
    club`."""
    for place, token in enumerate(after[1:], start=1):
        joined = token.text in pack.joins and after[place + 1 : place + 2]
        if token.text in pack.reasons or (joined and after[place + 1].text in pack.separators):
            return after[:place]
    return after


def _names_nothing(after: Sequence[Token], pack: Locale) -> bool:
    """Return whether a clause has no object, as in `drinks`, `drinks heavily` and `drinks with friends`."""
    said = [token for token in after if not says_how(token, pack) and not tells_when(token.word, pack)]
    return not said or said[0].text in pack.separators


def _claims_without_rule(clause: MarkedClause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    """Return the claims of a clause that matches no rule.

    The claim is an occupation (`is a nurse`), a switch to another thing (`switched to tea`), or a claim without a
    predicate.
    """
    found = clause.tokens
    if found and found[0].base in pack.copulas:
        first = segments(found[1:], pack)
        indefinite = pack.bare_occupations or any(token.text in pack.articles for token in found[1:3])
        if first and _is_occupation(first[0], pack, indefinite=indefinite):
            clause.past = clause.past and found[0].base in pack.states
            after, implied = _role_and_employer(clause, whose, pack.occupation, found[1:], pack)
            return [claim_of(clause, whose, pack.occupation, "single", after, rest, pack), *implied]
    switched = match_phrase(found, index_phrases(pack).switches, pack)
    if switched is not None:
        clause.past = False
        clause.hedged |= clause.ongoing
        return [replace(claim_of(clause, whose, None, "unsure", switched.object, rest, pack), switched=True)]
    return [claim_of(clause, whose, None, "unsure", found, rest, pack)]


def _is_occupation(segment: Sequence[Token], pack: Locale, *, indefinite: bool) -> bool:
    """Return whether the words name an occupation: a listed occupation, or a word with an ending of occupations.

    `beekeeper` is an occupation. `perfectionist` is not, because it is an exception; `older` is not, because no article
    comes before it.
    """
    last = segment[-1]
    said = {last.text, last.text.removesuffix("s")}
    if said & pack.not_occupations:
        return False
    ending = indefinite and not last.is_name and last.text.removesuffix("s").endswith(pack.occupation_endings)
    return bool(said & pack.occupations) or ending


def _role_and_employer(
    clause: MarkedClause, whose: Segment, predicate: str, after: Sequence[Token], pack: Locale
) -> tuple[Sequence[Token], list[Claim]]:
    """Split an object that names a role and an employer.

    `works at Google as a nurse` also names a role; `is a nurse at Google` also names an employer. Return the object
    without the second part, and a claim about the second part.
    """
    for each in pack.implied:
        if each.predicate != predicate:
            continue
        for place in [place for place, token in enumerate(after) if token.text in each.prepositions]:
            other = after[place + 1 :]
            if _is_proper(other, pack) if each.named else not _is_only_time(other, pack):
                return after[:place], [claim_of(clause, whose, each.other, "single", other, (), pack)]
            if not each.named:
                break
    return after, []


def _is_proper(after: Sequence[Token], pack: Locale) -> bool:
    """Return whether the first thing is a proper name. Names of departments do not count."""
    thing = counted(list(itertools.takewhile(lambda token: token.text not in pack.separators, after)), pack)
    return bool(thing) and all(token.is_name and token.text not in pack.not_employers for token in thing)


def rule_of(found: Sequence[Token], pack: Locale) -> PhraseMatch | None:
    """Return the longest rule that matches the beginning of the clause."""
    return match_phrase(found, index_phrases(pack).rules, pack, lambda each: _meets_needs(each, pack))


def _meets_needs(each: PhraseMatch, pack: Locale) -> bool:
    rule = each.phrase.rule
    if rule is None or not (rule.named or rule.among):
        return True
    if rule.among:
        return any(not rule.among.isdisjoint((token.text, token.word)) for token in each.object)
    return any(token.is_name and not tells_when(token.word, pack) for token in each.object)


def is_value(found: Sequence[Token], pack: Locale) -> bool:
    """Return whether the clause is a form of `be` and a name: `is Anna`."""
    after = counted(found[1:], pack)
    return bool(after) and found[0].base in pack.copulas and after[0].is_name


def value_at(found: Sequence[Token], pack: Locale) -> int:
    """Return the position of V in a clause `is V` or `became V`; 0 when the clause has another form."""
    if found[0].base in pack.copulas:
        return 1
    becomes = match_phrase(found, index_phrases(pack).becomes, pack)
    return 0 if becomes is None else becomes.end


def changed_attribute(found: Sequence[Token], pack: Locale) -> tuple[Sequence[Token], Sequence[Token]] | None:
    """Return X and V of a clause `changed X to V`; None when the clause has another form."""
    for verb, before in pack.sets:
        if found and found[0].base == verb:
            place = next((place for place, token in enumerate(found) if token.text == before), 0)
            if 1 < place < len(found) - 1 and not any(token.text in pack.separators for token in found[1:place]):
                return found[1:place], found[place + 1 :]
    return None


def attribute_claim(
    clause: MarkedClause, head: Sequence[Token], value: Sequence[Token], rest: Sequence[Token], pack: Locale
) -> Claim:
    """Return the claim of a clause `X is V`. `head` is X, `value` is V. The predicate X has one value at a time."""
    clause.past = False
    named = [token for token in head if counts(token, pack)]
    if len(named) > 1 and named[-1].text == pack.name_word:
        named = named[:-1]
    plain = (pack.same_words.get(token.text, token.text.removesuffix("'s")) for token in named)
    name = "_".join(word.replace(" ", "_") for word in plain)[:PREDICATE_MAX]
    return claim_of(clause, (), name or None, "single" if name else "unsure", value, rest, pack)
