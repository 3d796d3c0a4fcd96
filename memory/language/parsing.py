"""Parser: turn a text into claims, clause by clause, with a locale pack.

"Left Google and now works at Stripe" gives two claims about the subject. A clause that the pack does not understand
becomes a claim without a predicate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ...schemas.base import CONTENT_MAX
from .claims import PREDICATE_MAX, Claim, asserts, claim_of
from .locales import Locale
from .markers import (
    MarkedClause,
    begins_with_marker,
    index_markers,
    says_instead,
    take_auxiliaries,
    take_former,
    take_markers,
)
from .phrase_index import index_phrases, match_phrase
from .predicates import attribute_claim, changed_attribute, extract_claims, is_value, rule_of, value_at
from .tokenizer import Segment, Token, content, counted, counts, tells_when, tokens
from .word_order import arrange, joined_infinitives, shares_auxiliary

READ_KEPT = 2_048
"""Number of parsed texts in the cache."""
_SUBJECT_WORDS_MAX = 7
"""Maximum number of words before the verb that may name the subject of a clause."""

_NOTHING = Claim((), None, "unsure", (), (), frozenset(), frozenset())


@lru_cache(maxsize=READ_KEPT)
def read(text: str, pack: Locale) -> tuple[Claim, ...]:
    """Return the claims of a text. A text without content has one empty claim.

    Results are cached, because every new statement is compared with several known statements. Only the first
    `CONTENT_MAX` characters are parsed, because the time grows faster than the length of a clause. `CONTENT_MAX` is the
    maximum length of a statement.
    """
    claims: list[Claim] = []
    added = False
    found = list(joined_infinitives(tokens(text[:CONTENT_MAX], pack), pack))
    for clause in _clauses(found, pack):
        former = _contrast(clause, pack)
        if former is not None and claims:
            claims[-1] = replace(claims[-1], former=claims[-1].former + former)
            continue
        if _is_aside(clause, pack):
            added = True
            continue
        claims += _of_clause(clause, pack, added=added)
        added = False
    if says_instead(found, pack):
        claims = [replace(claim, instead=True) for claim in claims]
    return tuple(claims) or (_NOTHING,)


def predicate_of(text: str, pack: Locale) -> str | None:
    """Return the predicate of the first claim that is true now and has a predicate; None when there is none."""
    claims = read(text, pack)
    return next((_full_name(each) for each in claims if asserts(each) and each.predicate), None)


def full_names(text: str, pack: Locale) -> tuple[str, ...]:
    """Return the single-valued predicates of a text, in the form in which stored facts have them."""
    names = (_full_name(each) for each in read(text, pack) if each.predicate and each.valued == "single")
    return tuple(dict.fromkeys(names))


def _full_name(claim: Claim) -> str:
    return "_".join((*claim.about, claim.predicate or ""))[:PREDICATE_MAX]


def _clauses(found: Sequence[Token], pack: Locale) -> Iterator[list[Token]]:
    """Split a text into clauses: at punctuation, and at `and` and `but` before a verb. The clause after `and` or `but`
    has the same subject as the clause before it."""
    clause: list[Token] = []
    for place, token in enumerate(found):
        after = found[place + 1 :]
        joins = token.text in pack.joins and (_begins_clause(after, pack) or shares_auxiliary(clause, after, pack))
        if (token.is_break and not _is_location_of_name(found, place)) or joins:
            if clause:
                yield clause
            clause = []
        else:
            clause.append(token)
    if clause:
        yield clause


def _begins_clause(rest: Sequence[Token], pack: Locale) -> bool:
    for token in rest[:3]:
        if token.tense in ("present", "past"):
            return True
        if token.text not in index_markers(pack).negations_and_stop_words:
            return False
    return False


def _is_location_of_name(found: Sequence[Token], place: int) -> bool:
    """Return whether the words after a comma say where the name before the comma is: `Hackney, London`."""
    after = list(itertools.takewhile(lambda token: not token.is_break, found[place + 1 :]))
    return place > 0 and found[place - 1].is_name and bool(after) and all(token.is_name for token in after)


def _contrast(clause: Sequence[Token], pack: Locale) -> Segment | None:
    """Return the denied words of a clause such as `not in Basel` in `lives in Bern, not in Basel`; None for any other
    clause."""
    for _, _, words in index_markers(pack).contrasts.get(clause[0].text, ()):
        size = len(words)
        if tuple(token.text for token in clause[:size]) == words and not any(t.tense for t in clause[size:]):
            return content(clause[size:], pack)
    return None


def _is_aside(clause: Sequence[Token], pack: Locale) -> bool:
    """Return whether a clause has no verb and only announces an addition: `besides Luca`."""
    return clause[0].text in pack.markers.additive and not any(token.tense in ("present", "past") for token in clause)


def _of_clause(found: Sequence[Token], pack: Locale, *, added: bool) -> list[Claim]:
    own, rest = _cut(found, pack)
    arranged = arrange(own, pack)
    clause = MarkedClause(arranged.tokens, added=added, hedged=arranged.planned, ongoing=arranged.announced)
    _strip_subject(clause, pack)
    clause.tokens = _plain_order(clause.tokens, pack)
    about = _subject_words(clause.tokens, pack)
    head, clause.tokens = clause.tokens[: len(about)], clause.tokens[len(about) :]
    take_markers(clause, pack)
    take_auxiliaries(clause, pack)
    clause.perfect &= not any(token.text in pack.durations for token in found)
    take_former(clause, pack)
    whose = content(head, pack)
    person = any(token.base in pack.people for token in head) or any(token.is_name for token in head)
    attribute = bool(head) and not (person and not is_value(clause.tokens, pack))
    if attribute and rule_of(head + clause.tokens, pack) is not None:
        # The rule begins with the noun: `name is`.
        clause.tokens, whose, attribute = head + clause.tokens, (), False
    if head and match_phrase(clause.tokens, index_phrases(pack).ended, pack) is not None:
        clause.denied, clause.past = True, False
        gone = match_phrase(clause.tokens, index_phrases(pack).gone, pack) is not None
        return [replace(claim_of(clause, (), None, "unsure", head, rest, pack), gone=gone)]
    if attribute and clause.tokens:
        value = value_at(clause.tokens, pack)
        if value:
            return [attribute_claim(clause, head, clause.tokens[value:], rest, pack)]
    if not head and (changed := changed_attribute(clause.tokens, pack)) is not None:
        clause.past = False
        return [attribute_claim(clause, *changed, rest, pack)]
    return extract_claims(clause, whose, rest, pack)


def _cut(found: Sequence[Token], pack: Locale) -> tuple[Sequence[Token], Sequence[Token]]:
    """Split a clause into the words about the subject and the words about other people or things."""
    for place, token in enumerate(found):
        if place > 1 and token.text in pack.markers.others:
            only_when = all(tells_when(each.text, pack) or each.is_number for each in counted(found[place:], pack))
            return found[:place], () if only_when else found[place:]
    return found, ()


def _strip_subject(clause: MarkedClause, pack: Locale) -> None:
    found = _without_time(clause.tokens, pack)
    clause.changed = bool(found) and found[0].text in pack.markers.changes
    while found and (found[0].text in pack.subjects or (found[0].text in pack.stop_words and found[0].tense is None)):
        found = found[1:]
    if found and found[0].text in pack.markers.additive:
        clause.added, found = True, found[1:]
    clause.tokens = found


def _without_time(found: list[Token], pack: Locale) -> list[Token]:
    """Return the clause without a time expression before its verb: `In 2019 moved to Rome` becomes `moved to Rome`."""
    place = 0
    while place < len(found) and (
        found[place].is_number
        or tells_when(found[place].text, pack)
        or found[place].text in pack.separators
        or (place > 0 and found[place].text in pack.stop_words and found[place].tense is None)
    ):
        place += 1
    told = any(tells_when(token.text, pack) or token.is_number for token in found[:place])
    return found[place:] if told and place < len(found) and found[place].tense in ("present", "past") else found


def _plain_order(found: list[Token], pack: Locale) -> list[Token]:
    """Return a clause in which the relationship comes first: `Paolo is the husband` becomes `husband is Paolo`."""
    place = next((place for place, token in enumerate(found) if token.base in pack.copulas), 0)
    head, value = found[:place], counted(found[place + 1 :], pack)
    indefinite = any(token.text in pack.articles for token in found[place + 1 :])
    turned = bool(head) and not indefinite and len(value) == 1 and value[0].text in pack.people and not value[0].is_name
    if not turned or any(token.base in pack.people or token.tense for token in head):
        return found
    return [*value, found[place], *(replace(token, is_name=True) for token in head)]


def _subject_words(found: Sequence[Token], pack: Locale) -> Sequence[Token]:
    """Return the words before the verb, or no words when the clause begins with a verb.

    Examples: `sister` in `sister lives in Oslo`, `rent` in `rent is 900`.
    """
    if not found or _is_verb(found, 0, pack) or begins_with_marker(found, pack):
        return ()
    joined = False
    for place in range(1, min(len(found), _SUBJECT_WORDS_MAX + 1)):
        token = found[place]
        if token.tense in ("present", "past") and token.text != "'s":
            if joined and token.base not in pack.copulas:
                continue  # `language for code reviews is French`: `reviews` is not the verb
            return found[:place]
        joined = joined or token.text in pack.separators
    return ()


def _is_verb(found: Sequence[Token], place: int, pack: Locale) -> bool:
    token = found[place]
    if token.tense is None:
        return False
    followed = any(each.tense in ("present", "past") for each in found[place + 1 : place + 3])
    if place == 0 and token.tense == "past" and len(found) > 1 and counts(found[1], pack) and found[1].tense is None:
        near = itertools.takewhile(lambda each: not each.is_break, found[1 : _SUBJECT_WORDS_MAX + 1])
        if any(each.base in pack.copulas and each.tense == "present" for each in near):
            return False  # `preferred editor is Vim`: `preferred` is not the verb
    return token.tense != "base" or not followed
