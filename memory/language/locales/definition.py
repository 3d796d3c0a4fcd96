"""Definition of a locale pack: `define_locale_pack` builds a pack and checks its fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final, ParamSpec, get_args

from .pack import Locale, Tense, Valued

Arguments = ParamSpec("Arguments")

_NAME: Final = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")
_PREDICATE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NOTATION: Final = re.compile(r"[{}|]")
_SHOWN_MAX: Final = 20
"""Maximum number of problems that one error lists."""
_PHRASES: Final = ("ends", "ends_work", "ended", "begins", "carriers", "switches", "becomes")
_MARKER_PHRASES: Final = ("negations", "never", "endings", "hedges", "additive", "contrasts", "instead")
_AS_WRITTEN: Final = frozenset(("name", "aliases", "contractions"))
"""Fields in which capital letters are allowed."""


class LocalePackError(ValueError):
    """A locale pack is not well formed. The message names each wrong field and its correction."""


@dataclass(frozen=True, slots=True)
class _Problem:
    field: str
    what: str

    def __str__(self) -> str:
        return f"{self.field}: {self.what}"


def _checked(make: Callable[Arguments, Locale]) -> Callable[Arguments, Locale]:
    def define_locale_pack(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Locale:
        """Build a locale pack from its fields (see `Locale`). Raises LocalePackError when a field is wrong."""
        pack = make(*args, **kwargs)
        check_locale_pack(pack)
        return pack

    return define_locale_pack


define_locale_pack = _checked(Locale)


def check_locale_pack(pack: Locale) -> None:
    """Check the fields of a pack. Raises LocalePackError with a list of at most `_SHOWN_MAX` problems."""
    problems = [*_containers(pack)] or [
        *_name(pack),
        *_rules(pack),
        *_phrases(pack),
        *_words(pack),
        *_verbs(pack),
        *_references(pack),
        *_spellings(pack),
        *_time_words(pack),
    ]
    if problems:
        more = len(problems) - _SHOWN_MAX
        shown = [f"- {each}" for each in problems[:_SHOWN_MAX]] + ([f"- and {more} more"] if more > 0 else [])
        raise LocalePackError("\n".join((f"the locale pack {pack.name!r} is not well formed:", *shown)))


def _containers(pack: Locale) -> Iterator[_Problem]:
    """Check that each field has the right container type.

    The other checks run only when this check finds nothing. They would read a text in place of a tuple letter by
    letter.
    """
    for owner, prefix in (
        (pack, ""),
        (pack.markers, "markers."),
        (pack.time_words, "time_words."),
        (pack.event_words, "event_words."),
    ):
        for field in fields(owner):
            value = getattr(owner, field.name)
            kind = str(field.type)
            for start, of, example in (
                ("tuple", tuple, 'a tuple: phrases("…") or words("…") makes one'),
                ("frozenset", frozenset, 'a frozenset: frozenset(words("…"))'),
                ("Mapping", Mapping, 'a mapping: {"…": "…"}'),
                ("str", str, 'a text: "…"'),
            ):
                if kind.startswith(start) and not isinstance(value, of):
                    yield _Problem(f"{prefix}{field.name}", f"{type(value).__name__} given, write {example}")


def _name(pack: Locale) -> Iterator[_Problem]:
    if not _NAME.fullmatch(pack.name):
        yield _Problem("name", f"{pack.name!r} is no language tag, write one in lower case: 'en', 'pt-br'")


def _rules(pack: Locale) -> Iterator[_Problem]:
    for place, rule in enumerate(pack.rules):
        where = f"rules[{place}] ({rule.predicate})"
        if not _PREDICATE.fullmatch(rule.predicate):
            yield _Problem(where, "a predicate has 1 to 64 of a-z, 0-9 and _, and begins with a letter: 'works_at'")
        if rule.valued not in get_args(Valued):
            yield _Problem(where, f"valued {rule.valued!r}, write one of {', '.join(get_args(Valued))}")
        if isinstance(rule.phrases, str) or not rule.phrases:
            yield _Problem(where, 'phrases is a tuple with at least one phrase: phrases("live in|reside in")')
            continue
        if isinstance(rule.among, str):
            yield _Problem(where, 'among is a text, write a frozenset: frozenset(words("…"))')
        for phrase in rule.phrases:
            yield from _phrase(f"{where}.phrases", phrase)


def _phrases(pack: Locale) -> Iterator[_Problem]:
    for name in _PHRASES:
        for phrase in getattr(pack, name):
            yield from _phrase(name, phrase)
    for name in _MARKER_PHRASES:
        for phrase in getattr(pack.markers, name):
            yield from _phrase(f"markers.{name}", phrase)


def _phrase(where: str, phrase: str) -> Iterator[_Problem]:
    words = phrase.split()
    if not words:
        yield _Problem(where, "an empty phrase, remove it")
    elif words[0] in ("#", "*"):
        yield _Problem(where, f"{phrase!r} begins with {words[0]!r}, begin with a word: phrases are found by it")
    elif _NOTATION.search(phrase):
        yield _Problem(where, f"{phrase!r} has braces or bars, spell it out with phrases('…')")
    elif phrase != phrase.lower():
        yield _Problem(where, f"{phrase!r} has capital letters, write {phrase.lower()!r}")


def _words(pack: Locale) -> Iterator[_Problem]:
    """Check that each word is a single word in lower case, because tokens are compared with single words."""
    for owner, prefix in ((pack, ""), (pack.markers, "markers.")):
        for field in fields(owner):
            value = getattr(owner, field.name)
            if field.name in _AS_WRITTEN or not isinstance(value, frozenset):
                continue
            for word in sorted(value):
                if word != word.lower():
                    yield _Problem(f"{prefix}{field.name}", f"{word!r} has capital letters, write {word.lower()!r}")
                elif not word or len(word.split()) > 1:
                    yield _Problem(f"{prefix}{field.name}", f"{word!r} is not one word, write single words")


def _time_words(pack: Locale) -> Iterator[_Problem]:
    for owner, prefix in ((pack.time_words, "time_words."), (pack.event_words, "event_words.")):
        for field in fields(owner):
            for word in getattr(owner, field.name):
                if word != word.lower():
                    yield _Problem(f"{prefix}{field.name}", f"{word!r} has capital letters, write {word.lower()!r}")


def _verbs(pack: Locale) -> Iterator[_Problem]:
    for form, (base, tense) in pack.verbs.items():
        if tense not in get_args(Tense):
            yield _Problem("verbs", f"{form!r} has the tense {tense!r}, write one of {', '.join(get_args(Tense))}")
        if form != form.lower() or base != base.lower():
            yield _Problem("verbs", f"{form!r} of {base!r} has capital letters, write both in lower case")
    for base, tenses in pack.auxiliaries.items():
        if wrong := sorted(set(tenses) - set(get_args(Tense))):
            names = ", ".join(get_args(Tense))
            yield _Problem("auxiliaries", f"{base!r} has the tense {wrong[0]!r}, write one of {names}")


def _references(pack: Locale) -> Iterator[_Problem]:
    """Check the fields that refer to a predicate in `rules` or a verb in `verbs`, and the values of two other
    fields."""
    known = {rule.predicate for rule in pack.rules}
    named = {"occupation": pack.occupation, "owning": pack.owning}
    named |= {f"implied[{place}].predicate": each.predicate for place, each in enumerate(pack.implied)}
    named |= {f"implied[{place}].other": each.other for place, each in enumerate(pack.implied)}
    for where, predicate in named.items():
        if predicate and predicate not in known:
            yield _Problem(where, f"no rule has the predicate {predicate!r}, add one to rules")
    bases = {base for base, _ in pack.verbs.values()}
    for field in ("copulas", "states", "auxiliaries"):
        for base in sorted(getattr(pack, field)):
            if base not in bases:
                yield _Problem(field, f"{base!r} is no base form of verbs, add its forms there")
    for word, digits in pack.numbers.items():
        if not str(digits).isdecimal():
            yield _Problem("numbers", f"{word!r} is {digits!r}, write digits: '7'")
    for ending, _ in pack.suffixes:
        if not ending:
            yield _Problem("suffixes", "an empty ending, remove it")


def _spellings(pack: Locale) -> Iterator[_Problem]:
    """Check that no word contains a letter that `letters` replaces, because such a word would never be found."""
    if not pack.letters:
        return
    for where, word in _all_words(pack):
        if any(letter in word for letter in pack.letters):
            spelled = word
            for letter, instead in pack.letters.items():
                spelled = spelled.replace(letter, instead)
            yield _Problem(where, f"{word!r} is never found, because `letters` writes it {spelled!r}: write that")


def _all_words(pack: Locale) -> Iterator[tuple[str, str]]:
    for rule in pack.rules:
        yield from ((f"rules ({rule.predicate})", each) for each in (*rule.phrases, *rule.among))
    for name in _PHRASES:
        yield from ((name, each) for each in getattr(pack, name))
    for name in _MARKER_PHRASES:
        yield from ((f"markers.{name}", each) for each in getattr(pack.markers, name))
    yield from (("verbs", each) for each in pack.verbs)
    yield from (("numbers", each) for each in pack.numbers)
    for field in fields(pack):
        value = getattr(pack, field.name)
        if isinstance(value, frozenset):
            yield from ((field.name, each) for each in sorted(value))
