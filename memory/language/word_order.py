"""Word order: move the verb of a clause to the front, for languages with the verb in second or last place; pure.

Examples: `Ist im Mai nach Köln gezogen` becomes `gezogen nach Köln im Mai`, where `gezogen` counts as a past form.
`Trinkt abends keinen Kaffee mehr` becomes `trinkt keinen mehr Kaffee abends`. A negation follows the verb, and words of
time come last; the other words keep their order. The rules are in the pack's `WordOrder`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .locales import Locale, WordOrder
from .tokenizer import Token, tells_when

_FINITE = ("present", "past")


@dataclass(frozen=True, slots=True)
class Arranged:
    """A clause with the verb first. If the clause names a subject, the verb follows the subject."""

    tokens: list[Token]
    planned: bool = False
    """True when the clause is about the future."""
    announced: bool = False
    """True when the clause is in the present tense, in a language in which this tense may announce a one-time event."""


def arrange(found: Sequence[Token], pack: Locale) -> Arranged:
    order = pack.word_order
    if order is None:
        return Arranged(list(found))
    words = [token for token in found if token.text not in order.fillers or token.is_name]
    place = _finite(words, pack)
    if place is None:
        return Arranged(_without_finite(words, order))
    front, verb, after = words[:place], words[place], words[place + 1 :]
    if front and after and after[0].text in pack.subjects:
        after = after[1:]
        front, after = [], [*after, *front]
    elif front and _says_where_or_when(front, pack):
        front, after = [], [*after, *front]
    verbs, after, planned = _verb_group(verb, after, pack, order)
    negation, after = _negation(after, pack, order)
    announced = order.present_announces and verbs[0].tense == "present" and verbs[0].base not in pack.copulas
    return Arranged([*front, *verbs, *negation, *_times_last(after, pack, order)], planned, announced)


def joined_infinitives(found: Sequence[Token], pack: Locale) -> Iterator[Token]:
    """Drop commas that do not separate clauses.

    - The comma before an infinitive that belongs to an earlier verb: `plant, nach Graz zu ziehen`.
    - The comma before a relative clause: `ein Sohn, der singt`. The first word of the relative clause is replaced by a
      word of `markers.others`, so that the relative clause is not read as a claim about the subject.
    """
    order = pack.word_order
    for place, token in enumerate(found):
        if order is not None and token.text == ",":
            group = _until_break(found[place + 1 :])
            if _ends_in_infinitive(group, order) or (group and group[0].text in pack.markers.others):
                continue
            if len(group) > 1 and group[0].text in order.relative and group[-1].tense in _FINITE:
                yield replace(group[0], text=min(pack.markers.others), base=min(pack.markers.others))
                continue
        if order is not None and place and found[place - 1].text == "," and token.text in order.relative:
            group = _until_break(found[place:])
            if len(group) > 1 and group[-1].tense in _FINITE:
                continue  # the replacement was yielded at the comma
        yield token


def shares_auxiliary(before: Sequence[Token], after: Sequence[Token], pack: Locale) -> bool:
    """Return whether the participles before and after `und` share one auxiliary: `hat Google verlassen` and `bei Stripe
    angefangen`."""
    order = pack.word_order
    group = _until_break(after)
    return (
        order is not None
        and bool(before)
        and bool(group)
        and _is_participle(before[-1], order)
        and _is_participle(group[-1], order)
        and not any(token.tense in _FINITE and not _is_participle(token, order) for token in group)
    )


def prepositions_first(found: list[Token], pack: Locale) -> Iterator[list[Token]]:
    """Yield the words unchanged. Then, for each prepositional phrase except the first, yield the words with that phrase
    before the first one."""
    yield found
    starts = [place for place, token in enumerate(found) if place > 0 and token.text in pack.separators]
    for start, end in itertools.pairwise([*starts[1:], len(found)]):
        yield [*found[: starts[0]], *found[start:end], *found[starts[0] : start], *found[end:]]


def _until_break(found: Sequence[Token]) -> list[Token]:
    group: list[Token] = []
    for token in found:
        if token.is_break:
            break
        group.append(token)
    return group


def _ends_in_infinitive(group: Sequence[Token], order: WordOrder) -> bool:
    if not group or group[0].tense in _FINITE:
        return False
    marked = len(group) > 1 and group[-2].text == order.infinitive_mark and group[-1].tense == "base"
    return marked or (group[-1].tense == "ongoing" and group[-1].text != group[-1].base)


def _finite(words: Sequence[Token], pack: Locale) -> int | None:
    """Return the position of the finite verb; None when there is none. A plural verb has the form of the infinitive, so
    an infinitive inside the clause counts when there is no other finite verb."""
    finite = next((place for place, token in enumerate(words) if token.tense in _FINITE and not token.is_name), None)
    if finite is not None:
        return finite
    plural = (place for place, token in enumerate(words) if token.tense == "base" and 0 < place < len(words) - 1)
    return next(plural, None)


def _without_finite(words: list[Token], order: WordOrder) -> list[Token]:
    """Return a clause that has no finite verb. A participle at its end moves to the front and counts as a past form."""
    if words and _is_participle(words[-1], order):
        return [_past(words[-1], order), *words[:-1]]
    return words


def _says_where_or_when(front: Sequence[Token], pack: Locale) -> bool:
    first = front[0]
    return (
        first.text in pack.separators
        or first.is_number
        or (not first.is_name and (first.text in pack.adverbs or tells_when(first.text, pack)))
    )


def _verb_group(
    verb: Token, after: list[Token], pack: Locale, order: WordOrder
) -> tuple[list[Token], list[Token], bool]:
    """Return the parts of the verb in the order that the rules expect, the other words, and whether the clause is about
    the future."""
    if verb.tense == "base":
        verb = replace(verb, tense="present")
    last = next((place for place in reversed(range(len(after))) if _is_participle(after[place], order)), None)
    if last is not None and verb.base in order.perfect and _has_perfect(verb, after[last], order):
        rest = after[:last] + after[last + 1 :]
        inner = next((place for place, token in enumerate(rest) if _is_participle(token, order)), None)
        if after[last].text == "worden" and inner is not None:
            passive = replace(_past(after[last], order), text=after[last].text)
            return [passive, _participle(rest[inner], order)], rest[:inner] + rest[inner + 1 :], False
        done = _past(after[last], order)
        verbs, rest = _with_infinitive([done], rest, order)
        return verbs, rest, False
    if last is not None and (verb.base in order.passive or verb.base in order.perfect_of_change):
        return [verb, _participle(after[last], order)], after[:last] + after[last + 1 :], False
    if len(after) > 1 and verb.base in order.perfect and after[-1].base in order.modals and after[-2].tense == "base":
        return [replace(after[-1], tense="past"), after[-2]], after[:-2], False  # hat sich scheiden lassen
    if last is not None and after[-1].base in order.passive and verb.base in order.modals:
        passive = replace(after[-1], tense=verb.tense)  # musste verkauft werden
        hedge = [verb] if verb.tense == "present" else []
        return [*hedge, passive, _participle(after[last], order)], after[:last] + after[last + 1 : -1], False
    if after and after[-1].tense == "base" and (verb.base in order.modals or verb.base in order.passive):
        main = after[-1] if verb.base in order.modals else replace(after[-1], tense="present")
        verbs = [verb, main] if verb.base in order.modals else [main]
        return verbs, after[:-1], verb.base in order.passive
    verb, after = _with_particle(verb, after, pack, order)
    verbs, after = _with_infinitive([verb], after, order)
    if len(verbs) == 1 and verb.base in pack.copulas and len(after) > 1 and _is_adjective(after[-1]):
        verbs, after = [verb, after[-1]], after[:-1] if after[0].text in pack.separators else after
        verbs = verbs if len(after) == 0 or after[-1] is not verbs[-1] else verbs[:1]
    return verbs, after, False


def _has_perfect(auxiliary: Token, participle: Token, order: WordOrder) -> bool:
    return auxiliary.base not in order.perfect_of_change or order.participles[participle.text] in order.changing


def _is_participle(token: Token, order: WordOrder) -> bool:
    return token.text in order.participles and not token.is_name and token.tense is not None


def _past(token: Token, order: WordOrder) -> Token:
    return replace(token, base=order.participles[token.text], tense="past")


def _participle(token: Token, order: WordOrder) -> Token:
    return replace(token, base=order.participles[token.text], tense="participle")


def _is_adjective(token: Token) -> bool:
    return token.tense is None and not (token.is_name or token.is_noun or token.is_number or token.is_break)


def _with_particle(verb: Token, after: list[Token], pack: Locale, order: WordOrder) -> tuple[Token, list[Token]]:
    """Join a verb with its separated particle. The particle is the last word, or is before an infinitive or a
    preposition."""
    bases = {base for base, _ in pack.verbs.values()} if after else set()
    for place in reversed(range(len(after))):
        particle = after[place].text
        if particle not in order.particles or particle + verb.base not in bases or after[place].is_name:
            continue
        following = after[place + 1] if place + 1 < len(after) else None
        if following is None or following.text in pack.separators or following.tense == "ongoing":
            joined = particle + verb.base
            return replace(verb, base=joined, word=joined), after[:place] + after[place + 1 :]
    return verb, after


def _with_infinitive(verbs: list[Token], after: list[Token], order: WordOrder) -> tuple[list[Token], list[Token]]:
    """Move an infinitive directly after the verb to which it belongs: `hört auf, Wein zu trinken` becomes `hört auf,
    trinken Wein`."""
    for place, token in enumerate(after):
        marked = place > 0 and after[place - 1].text == order.infinitive_mark and token.tense == "base"
        if marked or (token.tense == "ongoing" and token.text != token.base):
            start = place - 1 if marked else place
            return [*verbs, replace(token, tense="ongoing")], after[:start] + after[place + 1 :]
    return verbs, after


def _negation(after: list[Token], pack: Locale, order: WordOrder) -> tuple[list[Token], list[Token]]:
    """Remove the first negation from the words after the verb, with a word such as `mehr` that belongs to the negation.
    Return the removed words and the other words."""
    denials = {*pack.markers.negations, *pack.markers.never}
    place = next((place for place, token in enumerate(after) if token.text in denials), None)
    if place is None:
        return [], after
    taken, rest = [after[place]], after[:place] + after[place + 1 :]
    more = next((at for at, token in enumerate(rest) if at >= place and token.text in order.after_negation), None)
    if more is not None:
        taken, rest = [*taken, rest[more]], rest[:more] + rest[more + 1 :]
    return taken, rest


def _times_last(after: list[Token], pack: Locale, order: WordOrder) -> list[Token]:
    """Move time expressions behind the other words: `seit 2020 in Köln` becomes `in Köln seit 2020`."""
    times: list[Token] = []
    others: list[Token] = []
    place = 0
    while place < len(after):
        end = _end_of_time(after, place, pack, order)
        (times if end > place else others).extend(after[place : max(end, place + 1)])
        place = max(end, place + 1)
    return [*others, *times]


def _end_of_time(after: Sequence[Token], place: int, pack: Locale, order: WordOrder) -> int:
    """Return the position after the time expression that begins at `place`; `place` when no expression begins there."""
    at = place
    if (
        after[at].is_number
        and len(after[at].text) == 4
        and after[at].text[:2] in ("19", "20")
        and place + 1 < len(after)
    ):
        return place + 1 if after[place + 1].text in pack.separators else place  # zog 2021 nach Bonn
    if after[at].text in order.time_prepositions:
        at += 1
    start = at
    while at < len(after) and (after[at].is_number or tells_when(after[at].text, pack)):
        at += 1
    if at == start or (start == place and after[start].is_number):
        return place
    said = after[start:at]
    year = start > place and all(token.is_number and len(token.text) == 4 for token in said)
    return at if year or any(tells_when(token.text, pack) for token in said) else place
