"""What a statement claims: of whom, which predicate with which object, and whether it affirms, denies or only guesses.

"Left Google and now works at Stripe" is two claims of the subject. `read` takes a text apart with a locale pack, clause
by clause; what it does not know it leaves open (`predicate` None), and the zones and the model decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .locales import Locale, Rule, Valued
from .wording import Token, tokens

PREDICATE_MAX = 64
_MARKERS_WITHIN = 5
"""Negations and hedges stand this near to a clause's beginning, or they are said of something else."""
_WHOSE_AT_MOST = 7
"""Words before the verb that say of whom or of what it speaks."""

Segment = tuple[str, ...]
"""Words that name one thing: what stands between two prepositions."""


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

    @property
    def said(self) -> Segment:
        """The words of the object, in order."""
        return tuple(word for segment in self.object for word in segment)


def read(text: str, pack: Locale) -> tuple[Claim, ...]:
    """At least one claim; the empty one where the text says nothing."""
    claims: list[Claim] = []
    added = False
    for clause in _clauses(tokens(text, pack), pack):
        former = _contrast(clause, pack)
        if former is not None and claims:
            claims[-1] = replace(claims[-1], former=claims[-1].former + former)
            continue
        if _is_aside(clause, pack):
            added = True
            continue
        claims += _of_clause(clause, pack, added=added)
        added = False
    return tuple(claims) or (_NOTHING,)


def predicate_of(text: str, pack: Locale) -> str | None:
    """The predicate that a fact of this text has: of its first claim that something is so."""
    claims = read(text, pack)
    return next((_full_name(each) for each in claims if asserts(each) and each.predicate), None)


def asserts(claim: Claim) -> bool:
    return not (claim.denied or claim.hedged or claim.past)


def full_names(text: str, pack: Locale) -> tuple[str, ...]:
    """The single-valued predicates that a text speaks of, as stored facts have them."""
    names = (_full_name(each) for each in read(text, pack) if each.predicate and each.valued == "single")
    return tuple(dict.fromkeys(names))


def _full_name(claim: Claim) -> str:
    return "_".join((*claim.about, claim.predicate or ""))[:PREDICATE_MAX]


_NOTHING = Claim((), None, "unsure", (), (), frozenset(), frozenset())


# ------------------------------------------------------------------------------------------------ clauses
def _clauses(found: Sequence[Token], pack: Locale) -> Iterator[list[Token]]:
    """At breaks, and at `and` and `but` before a verb: what follows speaks of the subject again."""
    clause: list[Token] = []
    for place, token in enumerate(found):
        joins = token.text in ("and", "but", "then") and _begins_clause(found[place + 1 :], pack)
        if token.is_break or joins:
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
        if token.text not in pack.stop_words | {"no", "not", "longer", "never"}:
            return False
    return False


def _contrast(clause: Sequence[Token], pack: Locale) -> Segment | None:
    """`…, not in Basel`: what it is not."""
    for phrase in pack.markers.contrasts:
        size = len(phrase.split())
        if [token.text for token in clause[:size]] == phrase.split() and not any(t.tense for t in clause[size:]):
            return _content(clause[size:], pack)
    return None


def _is_aside(clause: Sequence[Token], pack: Locale) -> bool:
    """`Besides Luca, …`"""
    return clause[0].text in pack.markers.additive and not any(token.tense in ("present", "past") for token in clause)


# ------------------------------------------------------------------------------------------------ one clause
@dataclass(slots=True)
class _Clause:
    """A clause while its markers are taken out."""

    tokens: list[Token]
    denied: bool = False
    hedged: bool = False
    added: bool = False
    past: bool = False
    over: bool = False
    """It was so, or never was: whichever its tense, it speaks of now."""
    ongoing: bool = False
    """`is moving`: of what happens once, it is still to come."""
    former: Segment = ()


def _of_clause(found: Sequence[Token], pack: Locale, *, added: bool) -> list[Claim]:
    own, rest = _cut(found, pack)
    clause = _Clause(list(own), added=added)
    _strip_subject(clause, pack)
    about = _whose(clause.tokens, pack)
    head, clause.tokens = clause.tokens[: len(about)], clause.tokens[len(about) :]
    _take_markers(clause, pack)
    _take_auxiliaries(clause, pack)
    _take_former(clause, pack)
    whose = _content(head, pack)
    person = any(token.base in pack.people for token in head) or any(token.is_name for token in head)
    attribute = bool(head) and not (person and not _is_value(clause.tokens, pack))
    if attribute and _rule(head + clause.tokens, pack) is not None:
        clause.tokens, whose, attribute = head + clause.tokens, (), False  # a rule begins with the noun: `name is`
    if head and any(_matches(clause.tokens, phrase, pack) for phrase in pack.ended):
        clause.denied, clause.past = True, False
        return [_claim(clause, (), None, "unsure", head, rest, pack)]
    if attribute and clause.tokens:
        value = _value_at(clause.tokens, pack)
        if value:
            return [_attribute(clause, head, clause.tokens[value:], rest, pack)]
    if not head and (changed := _changed(clause.tokens, pack)) is not None:
        clause.past = False
        return [_attribute(clause, *changed, rest, pack)]
    return _said(clause, whose, rest, pack)


def _cut(found: Sequence[Token], pack: Locale) -> tuple[Sequence[Token], Sequence[Token]]:
    """What is said of the subject, and what is said beside it."""
    for place, token in enumerate(found):
        if place > 1 and token.text in pack.markers.others:
            return found[:place], found[place:]
    return found, ()


def _strip_subject(clause: _Clause, pack: Locale) -> None:
    found = clause.tokens
    while found and (found[0].text in pack.subjects or (found[0].text in pack.stop_words and found[0].tense is None)):
        found = found[1:]
    if found and found[0].text in pack.markers.additive:
        clause.added, found = True, found[1:]
    clause.tokens = found


def _whose(found: Sequence[Token], pack: Locale) -> Sequence[Token]:
    """The words before the verb, where the clause does not begin with one: `sister` lives in Oslo, `rent` is 900."""
    if not found or _is_verb(found, 0, pack) or _begins_with_marker(found, pack):
        return ()
    joined = False
    for place in range(1, min(len(found), _WHOSE_AT_MOST + 1)):
        token = found[place]
        if token.tense in ("present", "past") and token.text != "'s":
            return found[:place] if not joined or token.base in pack.copulas else ()
        joined = joined or token.text in pack.separators
    return ()


def _is_verb(found: Sequence[Token], place: int, pack: Locale) -> bool:
    token = found[place]
    if token.tense is None:
        return False
    followed = any(each.base in pack.copulas and each.tense == "present" for each in found[place + 1 : place + 3])
    return token.tense != "base" or not followed


def _begins_with_marker(found: Sequence[Token], pack: Locale) -> bool:
    markers = pack.markers
    return any(
        _starts(found, phrase)
        for phrase in (*markers.hedges, *markers.endings, *markers.never, *markers.negations, *markers.additive)
    )


def _starts(found: Sequence[Token], phrase: str) -> bool:
    words = phrase.split()
    return len(found) >= len(words) and all(
        word in (token.base, token.text) and not token.is_name for word, token in zip(words, found, strict=False)
    )


def _take(clause: _Clause, phrases: Sequence[str], *, within: int) -> bool:
    """Takes the longest of these phrases out, wherever it begins among the first words."""
    for phrase in sorted(phrases, key=lambda each: -len(each.split())):
        size = len(phrase.split())
        for place in range(min(within, len(clause.tokens))):
            if _starts(clause.tokens[place:], phrase):
                del clause.tokens[place : place + size]
                return True
    return False


def _take_markers(clause: _Clause, pack: Locale) -> None:
    markers = pack.markers
    while _take(clause, markers.hedges, within=_MARKERS_WITHIN):
        clause.hedged = True
    while _take(clause, markers.endings, within=len(clause.tokens)):
        clause.denied = clause.over = True
    clause.over |= _take(clause, markers.never, within=_negatable(clause.tokens))
    clause.denied |= clause.over or _take(clause, markers.negations, within=_negatable(clause.tokens))
    while _take(clause, markers.additive, within=len(clause.tokens)):
        clause.added = True
    for place in range(1, len(clause.tokens)):
        phrase = next((each for each in markers.contrasts if _starts(clause.tokens[place:], each)), None)
        if phrase is not None:
            clause.former = _content(clause.tokens[place + len(phrase.split()) :], pack)
            del clause.tokens[place:]
            break


def _negatable(found: Sequence[Token]) -> int:
    """A negation stands before the verb or right after it; later ones are about something else."""
    verb = next((place for place, token in enumerate(found) if token.tense is not None), 0)
    return verb + 2


def _take_auxiliaries(clause: _Clause, pack: Locale) -> None:
    """Has worked → worked, and not past; is working → working; did not work → past."""
    clause.tokens = [t for t in clause.tokens if t.text not in pack.adverbs]
    found = clause.tokens
    if len(found) > 1 and found[0].base in pack.auxiliaries and found[0].base not in pack.copulas:
        follows = found[1].tense
        helps = follows is not None
        if found[0].base == "have":
            helps = follows in ("past", "participle") and not found[1].text.endswith("ing")
        if helps:
            clause.past = found[0].base == "do" and found[0].tense == "past"
            found = found[1:]
            if len(found) > 1 and found[0].base in pack.copulas and found[1].text.endswith("ing"):
                found = found[1:]
            clause.tokens = found
            return
    if (
        len(found) > 1
        and found[0].base in pack.copulas
        and found[1].tense == "participle"
        and found[1].text.endswith("ing")
    ):
        clause.past = found[0].tense == "past"
        clause.ongoing = True
        clause.tokens = found[1:]
        return
    clause.past = bool(found) and found[0].tense == "past"
    over = next((place for place, token in enumerate(found) if place > 1 and token.text in pack.markers.until), None)
    if clause.over:
        clause.past = False
    if clause.past and over is not None:
        clause.denied, clause.past, clause.tokens = True, False, found[:over]


def _take_former(clause: _Clause, pack: Locale) -> None:
    for before, after in pack.markers.former:
        if not _starts(clause.tokens, before):
            continue
        rest = clause.tokens[len(before.split()) :]
        place = next((place for place, token in enumerate(rest) if token.text == after), None)
        if place is not None:
            clause.former = _content(rest[:place], pack)
            verb = clause.tokens[:1]
            clause.tokens = verb + rest[place:]
            return


# ------------------------------------------------------------------------------------------------ predicates
def _said(clause: _Clause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    found = clause.tokens
    if any(_ends_work(found, phrase, pack) for phrase in pack.ends_work):
        clause.denied, clause.past = True, False
        return [_claim(clause, whose, name, "single", (), (), pack) for name in ("works_at", "works_as")]
    ended = max((phrase for phrase in pack.ends if _matches(found, phrase, pack)), key=len, default=None)
    if ended is not None and not clause.former:
        after = found[_matches(found, ended, pack) or 0 :]
        clause.denied, clause.past = True, False
        if after and after[0].text.endswith("ing") and after[0].tense == "participle":
            clause.tokens = after
            return _said(clause, whose, rest, pack)
        return [_claim(clause, whose, None, "unsure", after, rest, pack)]
    matched = _rule(found, pack)
    if matched is None:
        return _unruled(clause, whose, rest, pack)
    rule, after = matched
    clause.denied ^= rule.denied
    clause.hedged |= rule.happened and clause.ongoing
    clause.past = clause.past and not rule.happened
    claims = [_claim(clause, whose, rule.predicate, rule.valued, after, rest, pack, value=rule.value)]
    return claims + _role_and_employer(clause, whose, rule.predicate, after, pack)


def _ends_work(found: Sequence[Token], phrase: str, pack: Locale) -> bool:
    size = _matches(found, phrase, pack)
    return size is not None and all(
        token.is_number or token.text in pack.times for token in _counted(found[size:], pack)
    )


def _unruled(clause: _Clause, whose: Segment, rest: Sequence[Token], pack: Locale) -> list[Claim]:
    """A known occupation after `is a`; else nothing is known of the predicate."""
    found = clause.tokens
    if found and found[0].base in pack.copulas:
        first = _segments(found[1:], pack, stops=False)
        if first and _is_occupation(first[0], pack):
            clause.past = clause.past and found[0].base != "become"
            claims = [_claim(clause, whose, "works_as", "single", found[1:], rest, pack)]
            return claims + _role_and_employer(clause, whose, "works_as", found[1:], pack)
    return [_claim(clause, whose, None, "unsure", found, rest, pack)]


def _is_occupation(segment: Sequence[Token], pack: Locale) -> bool:
    last = segment[-1]
    plain = last.text.removesuffix("s")
    return not last.is_name and (
        last.text in pack.occupations or plain in pack.occupations or plain.endswith(pack.occupation_endings)
    )


def _role_and_employer(
    clause: _Clause, whose: Segment, predicate: str, after: Sequence[Token], pack: Locale
) -> list[Claim]:
    """`Works at Google as a nurse` names a role too, `is a nurse at Google` an employer."""
    wanted = {"works_at": (("as",), "works_as"), "works_as": (("at", "for"), "works_at")}.get(predicate)
    if wanted is None:
        return []
    words, other = wanted
    place = next((place for place, token in enumerate(after) if token.text in words), None)
    if place is None:
        return []
    return [_claim(clause, whose, other, "single", after[place + 1 :], (), pack)]


def _rule(found: Sequence[Token], pack: Locale) -> tuple[Rule, list[Token]] | None:
    """The rule of the longest phrase that the clause begins with, and the words of its object."""
    best: tuple[int, Rule, list[Token]] | None = None
    for rule in pack.rules:
        for phrase in rule.phrases:
            end = _matches(found, phrase, pack)
            size = len(phrase.split())
            if end is None or (best is not None and best[0] >= size):
                continue
            spelled = zip(found[:end], _aligned(found, phrase, pack), strict=True)
            captured = [token for token, word in spelled if word in ("#", "*", "") and _counts(token, pack)]
            after = [*found[end:], *captured] if size == end else [*captured, *found[end:]]
            if rule.named and not any(token.is_name for token in after):
                continue
            best = size, rule, after
    return None if best is None else best[1:]


def _matches(found: Sequence[Token], phrase: str, pack: Locale) -> int | None:
    """How many tokens the phrase takes; None: the clause does not begin with it."""
    aligned = _aligned(found, phrase, pack)
    return len(aligned) if aligned is not None and aligned else None


def _aligned(found: Sequence[Token], phrase: str, pack: Locale) -> list[str]:
    """Which word of the phrase each token stands for ("" for one that is passed over); empty: it does not fit."""
    done: list[str] = []
    place = 0
    for word in phrase.split():
        while (
            place < len(found)
            and place
            and word not in (found[place].base, found[place].text)
            and not (word == "#" and found[place].is_number)
            and (found[place].text in pack.stop_words - pack.separators or _says_how(found[place], pack))
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


def _is_value(found: Sequence[Token], pack: Locale) -> bool:
    """`is Anna`: a copula before a name."""
    return len(found) > 1 and found[0].base in pack.copulas and found[1].is_name


def _value_at(found: Sequence[Token], pack: Locale) -> int:
    """Where V begins in `X is V`; 0: that is not what is said."""
    if found[0].base in pack.copulas:
        return 1
    return next((size for phrase in pack.becomes if (size := _matches(found, phrase, pack))), 0)


def _changed(found: Sequence[Token], pack: Locale) -> tuple[Sequence[Token], Sequence[Token]] | None:
    """X and V of `changed X to V`."""
    for verb, before in pack.sets:
        if found and found[0].base == verb:
            place = next((place for place, token in enumerate(found) if token.text == before), 0)
            if 1 < place < len(found) - 1 and not any(token.text in pack.separators for token in found[1:place]):
                return found[1:place], found[place + 1 :]
    return None


def _attribute(
    clause: _Clause, head: Sequence[Token], value: Sequence[Token], rest: Sequence[Token], pack: Locale
) -> Claim:
    """`X is V`: one V at a time, whatever X is."""
    clause.past = clause.past and not clause.denied and value is clause.tokens
    plain = (pack.same_words.get(token.text, token.text.removesuffix("'s")) for token in head if _counts(token, pack))
    name = "_".join(word.replace(" ", "_") for word in plain)[:PREDICATE_MAX]
    return _claim(clause, (), name or None, "single" if name else "unsure", value, rest, pack)


def _claim(
    clause: _Clause,
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
    segments = tuple(
        words for segment in _segments(spoken, pack, stops=True) if (words := tuple(token.word for token in segment))
    )
    if value is not None:
        segments = ((value,), *segments)
    content = _content([*clause.tokens, *rest], pack)
    return Claim(
        about=whose,
        predicate=predicate,
        valued=valued,
        object=segments,
        words=content if predicate is not None or clause.tokens == list(after) else _content(spoken, pack),
        names=frozenset(token.word for token in spoken if token.is_name),
        numbers=frozenset(token.word for token in spoken if token.is_number),
        denied=clause.denied,
        hedged=clause.hedged,
        added=clause.added,
        past=clause.past,
        former=clause.former,
        either_way=any(token.text in pack.both_ways for token in spoken)
        and all(token.text in pack.both_ways for token in spoken if token.text in pack.separators),
    )


def _counted(found: Sequence[Token], pack: Locale) -> list[Token]:
    return [token for token in found if _counts(token, pack)]


def _content(found: Sequence[Token], pack: Locale) -> Segment:
    return tuple(token.word for token in _counted(found, pack))


def _counts(token: Token, pack: Locale) -> bool:
    return token.is_number or (token.text not in pack.stop_words and token.text not in pack.separators)


def _says_how(token: Token, pack: Locale) -> bool:
    manner = token.text.endswith(pack.manner) and len(token.text) > len(pack.manner) + 2
    return manner and not token.is_name and token.text not in pack.not_manner


def _segments(found: Sequence[Token], pack: Locale, *, stops: bool) -> list[list[Token]]:
    """Split at prepositions; `stops`: without words that say nothing."""
    segments: list[list[Token]] = [[]]
    for token in found:
        if token.text in pack.separators or (token.text in pack.articles and segments[-1]):
            segments.append([])
        elif token.is_number:
            segments.append([token])
        elif _says_how(token, pack):
            segments += [[token], []] if not segments[-1] else [[token]]
        elif _counts(token, pack):
            segments[-1].append(token)
    return [segment for segment in segments if segment]
