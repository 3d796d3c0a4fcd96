"""Which predicate a clause speaks of, and with which object, by the rules of the locale pack (memory-model §6, 4).

"X is V" makes X a predicate with one value; what no rule knows stays open (`predicate` None).
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


def extract_claims(clause: MarkedClause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    found, shelves = clause.tokens, index_phrases(pack)
    ruled = rule_of(found, pack)
    if _tells_of_an_end(found, pack):
        ended = match_phrase(found, shelves.ends, pack)
        work = match_phrase(found, shelves.ends_work, pack, lambda each: _only_says_when(found[each.end :], pack))
        if work is not None and work.size >= _size(ended):
            clause.denied, clause.past = True, False
            ends = dict.fromkeys(each.predicate for each in pack.implied)
            return [claim_of(clause, whose, name, "single", (), (), pack) for name in ends]
        if ended is not None and ended.size >= _size(ruled) and not clause.former:
            return _ended(ended, clause, whose, pack)
    if ruled is None:
        return _unruled(clause, whose, rest, pack)
    rule = ruled.phrase.rule
    assert rule is not None
    clause.denied ^= rule.denied
    clause.hedged |= rule.happened and clause.ongoing
    clause.past = clause.past and not rule.happened
    value = rule.absent if rule.absent and _names_nothing(ruled.object, pack) else rule.value
    after, implied = _role_and_employer(clause, whose, rule.predicate, ruled.object, pack)
    return [claim_of(clause, whose, rule.predicate, rule.valued, after, rest, pack, value=value), *implied]


def _size(found: PhraseMatch | None) -> int:
    return 0 if found is None else found.size


def _tells_of_an_end(found: Sequence[Token], pack: Locale) -> bool:
    """`Sold honey`, not `sells honey`: in the present that is a habit."""
    habit = bool(found) and found[0].tense == "present"
    return not habit or found[0].base in pack.copulas or found[0].base in pack.auxiliaries


def _only_says_when(found: Sequence[Token], pack: Locale) -> bool:
    said = itertools.takewhile(lambda token: token.text not in pack.reasons, found)
    return all(token.is_number or tells_when(token.word, pack) for token in counted(list(said), pack))


def _ended(ended: PhraseMatch, clause: MarkedClause, whose: Segment, pack: Locale) -> list[Claim]:
    """`Quit smoking` denies that one smokes, `quit the choir` whatever is known of the choir."""
    after = list(ended.object)
    if len(after) > 1 and after[0].base in pack.auxiliaries and after[1].tense == "ongoing":
        after = after[1:]
    clause.denied, clause.past = True, False
    if after and after[0].tense == "ongoing":
        clause.tokens = after
        return extract_claims(clause, whose, (), pack)  # why it ended is no part of it
    return [claim_of(clause, whose, None, "unsure", after, (), pack)]


def _names_nothing(after: Sequence[Token], pack: Locale) -> bool:
    """`Drinks`, `drinks heavily`, `drinks with friends`: it does not say what."""
    said = [token for token in after if not says_how(token, pack) and not tells_when(token.word, pack)]
    return not said or said[0].text in pack.separators


def _unruled(clause: MarkedClause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    """A known occupation after `is a`, or what takes the place of something; else nothing is known of the predicate."""
    found = clause.tokens
    if found and found[0].base in pack.copulas:
        first = segments(found[1:], pack)
        indefinite = any(token.text in pack.articles for token in found[1:3])
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
    """Known, or by its ending: `is a beekeeper`, but not `is a perfectionist`, nor `is older`."""
    last = segment[-1]
    said = {last.text, last.text.removesuffix("s")}
    if said & pack.not_occupations:
        return False
    ending = indefinite and not last.is_name and last.text.removesuffix("s").endswith(pack.occupation_endings)
    return bool(said & pack.occupations) or ending


def _role_and_employer(
    clause: MarkedClause, whose: Segment, predicate: str, after: Sequence[Token], pack: Locale
) -> tuple[Sequence[Token], list[Claim]]:
    """`Works at Google as a nurse` names a role too, `is a nurse at Google` an employer: what is left of the object,
    and what the other claim is."""
    for each in pack.implied:
        place = next((place for place, token in enumerate(after) if token.text in each.prepositions), None)
        if each.predicate != predicate or place is None:
            continue
        other = after[place + 1 :]
        if _is_proper(other, pack) if each.named else not _only_says_when(other, pack):
            return after[:place], [claim_of(clause, whose, each.other, "single", other, (), pack)]
    return after, []


def _is_proper(after: Sequence[Token], pack: Locale) -> bool:
    """Whether the first thing is named by names alone, and is no department."""
    thing = counted(list(itertools.takewhile(lambda token: token.text not in pack.separators, after)), pack)
    return bool(thing) and all(token.is_name and token.text not in pack.not_employers for token in thing)


def rule_of(found: Sequence[Token], pack: Locale) -> PhraseMatch | None:
    """The rule of the longest phrase that the clause begins with, and the words of its object."""
    return match_phrase(found, index_phrases(pack).rules, pack, lambda each: _has_what_it_needs(each, pack))


def _has_what_it_needs(each: PhraseMatch, pack: Locale) -> bool:
    rule = each.phrase.rule
    if rule is None or not (rule.named or rule.among):
        return True
    if rule.among:
        return any(not rule.among.isdisjoint((token.text, token.word)) for token in each.object)
    return any(token.is_name and not tells_when(token.text, pack) for token in each.object)


def is_value(found: Sequence[Token], pack: Locale) -> bool:
    """`is Anna`: a copula before a name."""
    after = [token for token in found[1:] if token.text not in pack.separators]
    return bool(after) and found[0].base in pack.copulas and after[0].is_name


def value_at(found: Sequence[Token], pack: Locale) -> int:
    """Where V begins in `X is V`; 0: that is not what is said."""
    if found[0].base in pack.copulas:
        return 1
    becomes = match_phrase(found, index_phrases(pack).becomes, pack)
    return 0 if becomes is None else becomes.end


def changed_attribute(found: Sequence[Token], pack: Locale) -> tuple[Sequence[Token], Sequence[Token]] | None:
    """X and V of `changed X to V`."""
    for verb, before in pack.sets:
        if found and found[0].base == verb:
            place = next((place for place, token in enumerate(found) if token.text == before), 0)
            if 1 < place < len(found) - 1 and not any(token.text in pack.separators for token in found[1:place]):
                return found[1:place], found[place + 1 :]
    return None


def attribute_claim(
    clause: MarkedClause, head: Sequence[Token], value: Sequence[Token], rest: Sequence[Token], pack: Locale
) -> Claim:
    """`X is V`: one V at a time, whatever X is."""
    clause.past = False
    named = [token for token in head if counts(token, pack)]
    if len(named) > 1 and named[-1].text == pack.name_word:
        named = named[:-1]
    plain = (pack.same_words.get(token.text, token.text.removesuffix("'s")) for token in named)
    name = "_".join(word.replace(" ", "_") for word in plain)[:PREDICATE_MAX]
    return claim_of(clause, (), name or None, "single" if name else "unsure", value, rest, pack)
