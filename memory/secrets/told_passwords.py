"""Passwords, PINs, passphrases, keys and tokens in sentences: the noun, a connector, then a value.

A value is quoted, contains a digit or a symbol, or is the whole object of its clause. A text that only talks about a
password has no such value: "my password is too long", "the PIN has four digits".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ..language.locales.secret_labels import SecretKind
from . import lexicon
from .findings import PLACEHOLDER, Finding
from .text_view import lowered

_NOUN: Final = re.compile(
    "(?:" + "|".join(f"(?P<{kind}>{words})" for kind, words in lexicon.NOUNS) + r")(?![a-z0-9\u00df-\uffff])"
)
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,128})\"|'([^'\n]{1,128})'(?![a-z])|`([^`\n]{1,128})`")
_BARE: Final = re.compile(r"[^\s]{1,256}")
_TRAILING: Final = ".,;:)]}\"'`>*"
_STRONG: Final = re.compile(r"[0-9@#$%^&*_+=~|\\!<>{}?\u20ac\u00a3\u00a7]|[a-z][A-Z]")
_CODE_LIKE: Final = re.compile(
    r"\$[A-Z_{(]|\{\{|<[\w \-/]|%[A-Z_]+%|\$\{|[A-Za-z_][\w.]*[\[(]|(?:os|process|env|config|settings|"
    r"secrets|self|args|vault)\."
    r"|https?://|[x*.\u2022_-]{3,}$|[\w.+-]+@[\w-]+(?:\.[\w-]+)+$",
    re.IGNORECASE,
)
"""Texts in place of a value: a variable, a call, a placeholder, an address."""
_WORD: Final = re.compile(r"[^\s.,;!?\"|]+")
_CLAUSE_END: Final = re.compile(
    r"[ \t]*(?:[.,;!?)\"\n|]|$|- |\u2014)|[ \t]+(?:and|but|so|or|und|aber|y|pero|et|mais|btw|please|bitte)\b"
)
_PIN: Final = re.compile(
    r"[#*]?(?:[A-Z]-\d{4,8}|\d(?:[ -]\d){3,9}|\d{2,4}(?:[ -]\d{2,4}){1,3}|\d{3,10}|"
    r"[A-Za-z]{0,2}\d[A-Za-z0-9]{2,7})[#*]?(?![\w])"
)
_KEY: Final = re.compile(r"[A-Za-z0-9_+/=-][!-~]{7,511}")
_MARKUP: Final = re.compile(
    r"<(?P<name>[\w:.-]{0,24}(?:password|passwd|passwort|secret|token|apikey|api_key))>(?P<value>[^<\n]{1,256})</"
)
_OPTIONS: Final = re.compile(
    r"(?:mysql|mysqldump|mariadb|sshpass)\b[^\n|;]{0,120}? -p(?P<one>[^\s\"'-][^\s]{2,64})"
    r"|(?:curl|wget|http)\b[^\n|;]{0,200}? (?:-u|--user)[ =]['\"]?[^\s:'\"]{1,64}:(?P<two>[^\s'\"]{2,64})"
    r"|sshpass -p ['\"]?(?P<three>[^\s'\"]{2,64})"
)
_PHRASE_WORDS_MAX: Final = 24
_OBJECT_WORDS_MAX: Final = 5
_STORY_NEAR: Final = 40
_NOUN_MAX: Final = 96
"""Maximum length of a noun, in characters."""
_BEFORE: Final = 120
"""Number of characters before a noun in which its value may be."""


def told_passwords(text: str) -> Iterator[Finding]:
    """Yield the values of passwords, PINs, passphrases, keys and tokens in sentences."""
    small = lowered(text)
    stems = sorted(place for stem in lexicon.STEMS for place in _places(stem, small))
    if not stems:
        return
    has_password = False
    for noun in _nouns(small, stems):
        kind: SecretKind = noun.lastgroup  # type: ignore[assignment]
        if not _stands_alone(small, noun):
            continue
        if lexicon.GENERIC.search(small, max(0, noun.start() - 32), noun.start()):
            continue
        is_clear = lexicon.AMBIGUOUS.fullmatch(noun[0]) is None and not _is_of_game_or_story(small, noun)
        place = _value_after(text, small, noun.end(), kind, is_clear=is_clear)
        if place is None and kind == "password" and "code" in noun[0]:
            place = _value_after(text, small, noun.end(), "pin", is_clear=True)
        if place is None:
            place = _value_before(text, small, noun.start(), kind)
        while place is not None:
            yield Finding(kind, *place)
            has_password = True
            further = lexicon.AND.match(small, place[1])
            place = further and _value(text, small, further.end(), kind, is_named=False, is_direct=None)
    if has_password:
        for another in lexicon.ANOTHER_ONE.finditer(small):
            place = _value(text, small, another.end(), "password", is_named=True, is_direct=None)
            if place is not None:
                yield Finding("password", *place)
    yield from _named_by_syntax(text, small)


def _places(stem: str, small: str) -> Iterator[int]:
    place = small.find(stem)
    while place >= 0:
        yield place
        place = small.find(stem, place + 1)


def _nouns(small: str, stems: Iterable[int]) -> Iterator[re.Match[str]]:
    """Yield the nouns of a text. `stems` are the sorted positions of stems; every noun contains a stem."""
    first = last = 0
    for stem in stems:
        if stem - _NOUN_MAX > last:
            yield from _NOUN.finditer(small, first, last)
            first = stem - _NOUN_MAX
        last = stem + _NOUN_MAX
    yield from _NOUN.finditer(small, first, last)


def _stands_alone(small: str, noun: re.Match[str]) -> bool:
    """Return whether the noun is not part of another word."""
    return not small[noun.start() - 1 : noun.start()].isalnum() or noun.end() - noun.start() > lexicon.SHORT_NOUN


def _is_of_game_or_story(small: str, noun: re.Match[str]) -> bool:
    """Return whether the noun means a password of a game, a film or a novel, not a password of the speaker."""
    return (
        lexicon.OF_A_DAY.match(small, noun.end()) is not None
        or lexicon.STORY.search(small, max(0, noun.start() - _STORY_NEAR), noun.end() + _STORY_NEAR) is not None
    )


def _value_after(text: str, small: str, start: int, kind: SecretKind, *, is_clear: bool) -> tuple[int, int] | None:
    window = min(len(small), start + 160)
    if symbol := lexicon.SYMBOL.match(small, start, window):
        between = small[start : symbol.end()]
        is_direct = not re.search(r"[a-z]|[ \t]-", between)
        place = _value(text, small, symbol.end(), kind, is_named=True, is_direct=is_direct or None)
        if place is not None:
            return place
    if verb := lexicon.VERB.match(small, start, window):
        place = _value(text, small, verb.end(), kind, is_named=True, is_direct=False if is_clear else None)
        if place is not None:
            return place
    for connector in (lexicon.NAMED_VERB, lexicon.CHANGE, lexicon.FOLLOW_UP, lexicon.BESIDE):
        if between_them := connector.match(small, start, window):
            place = _value(
                text, small, between_them.end(), kind, is_named=connector is not lexicon.BESIDE, is_direct=None
            )
            if place is not None:
                return place
    return None


def _value(
    text: str, small: str, start: int, kind: SecretKind, *, is_named: bool, is_direct: bool | None
) -> tuple[int, int] | None:
    """Return the span of a value that begins at `start`; None when there is none.

    Args:
        is_named: True when a connector before the value announces the value.
        is_direct: True when the connector is a symbol directly after the noun; False for another connector; None when
            the value must look like a secret.
    """
    if quoted := _QUOTED.match(text, start):
        group = quoted.lastindex or 1
        content = quoted[group].strip()
        if not content or not is_named or _stands_for_another(content) or not _fits_kind(content, kind):
            return None
        return quoted.span(group)
    if PLACEHOLDER.match(text, start):
        return None
    if kind == "pin":
        number = _PIN.match(text, start)
        return None if number is None or lexicon.UNITS.match(small, number.end()) else number.span()
    bare = _BARE.match(text, start)
    if bare is None:
        return None
    value = _trimmed(bare[0])
    end = start + len(value)
    if not value or _stands_for_another(value):
        return None
    if kind in ("api_key", "token"):
        return (start, end) if _looks_like_key(value, 8 if is_named else 16) else None
    if _is_strong(value) and not lexicon.UNITS.match(small, end):
        enough = (
            len(value) >= 3
            if is_named
            else len(value) >= 6 and re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)
        )
        return (start, end) if enough else None
    if is_direct is None or lexicon.UNITS.match(small, end):
        return None
    return _whole_object(small, start, kind, is_direct=is_direct)


def _whole_object(small: str, start: int, kind: SecretKind, *, is_direct: bool) -> tuple[int, int] | None:
    """Return the span from `start` to the end of the clause; None when its words cannot be a secret, or describe a
    secret."""
    most = _PHRASE_WORDS_MAX if kind == "passphrase" else _OBJECT_WORDS_MAX
    place, words = start, list[str]()
    while len(words) < most and (word := _WORD.match(small, place)):
        words.append(word[0])
        place = word.end()
        if _CLAUSE_END.match(small, place):
            break
        place += len(small[place : place + 2]) - len(small[place : place + 2].lstrip(" "))
    else:
        return None
    if not words or (any(len(word) < 2 for word in words) and len(words) == 1):
        return None
    if any(_is_label(word) or PLACEHOLDER.search(word) for word in words):
        return None
    said = sum(word in lexicon.TOPIC for word in words)
    if kind == "passphrase" and len(words) >= 3:
        return (start, place) if said <= len(words) / (4 if words[0] in lexicon.TOPIC else 3) else None
    if is_direct and len(words) > 2:
        return None if any(word in lexicon.FUNCTION_WORDS for word in words) else (start, place)
    if any(word in lexicon.TOPIC or lexicon.TOPIC_ENDINGS.match(word) for word in words):
        return None
    if not any(sign.isalnum() for sign in words[0]) or "'" in words[0]:
        return None
    return start, place


def _is_label(word: str) -> bool:
    """Return whether a lower-case word announces a secret itself: `password:`."""
    return word[-1] in ":=" and _NOUN.fullmatch(word, 0, len(word) - 1) is not None


def _value_before(text: str, small: str, end: int, kind: SecretKind) -> tuple[int, int] | None:
    first = max(0, end - _BEFORE)
    if first and (gap := small.find(" ", first, end)) != -1:
        first = gap + 1
    found = lexicon.BEFORE_NOUN.search(small[first:end])
    if found is None:
        return None
    start = first + found.start("value")
    raw = text[start : first + found.end("value")]
    if raw[0] in "\"'`":
        content = raw[1:-1]
        is_value = not _stands_for_another(content) and _fits_kind(content, kind)
        return (start + 1, start + 1 + len(content)) if is_value else None
    value = _trimmed(raw)
    if _stands_for_another(value) or not _is_strong(value) or PLACEHOLDER.search(raw):
        return None
    if kind == "pin":
        return (start, start + len(value)) if _PIN.fullmatch(value) else None
    if kind in ("api_key", "token"):
        return (start, start + len(value)) if _looks_like_key(value, 16) else None
    has_both = re.search(r"[0-9#$%^&*_+=~|!@]", value) and re.search(r"[A-Za-z]", value)
    return (start, start + len(value)) if has_both and len(value) >= 5 else None


def _named_by_syntax(text: str, small: str) -> Iterator[Finding]:
    """Yield secrets in markup, in command options, and after a user name."""
    if "</" in small:
        for markup in _MARKUP.finditer(small):
            if not _stands_for_another(markup["value"]):
                yield Finding("password", *markup.span("value"))
    if " -" in small:
        for option in _OPTIONS.finditer(small):
            yield Finding("password", *option.span(option.lastgroup or 0))
    for both in lexicon.CREDENTIALS.finditer(small) if any(map(small.__contains__, lexicon.CREDENTIAL_STEMS)) else ():
        value = _trimmed(text[both.start("value") : both.end("value")])
        if _is_strong(value) and not _stands_for_another(value):
            yield Finding("password", both.start("value"), both.start("value") + len(value))


def _trimmed(value: str) -> str:
    """Return a bare value without trailing punctuation and without a following setting."""
    for mark in ("&", ";"):
        head, sign, rest = value.partition(mark)
        if sign and "=" in rest:
            value = head
    return value.rstrip(_TRAILING)


def _is_strong(value: str) -> bool:
    return (
        _STRONG.search(value) is not None
        and any(map(str.isalnum, value))
        and not re.fullmatch(r"\d+%|[A-Za-z]+\?", value)
    )


def _stands_for_another(value: str) -> bool:
    return (
        _CODE_LIKE.match(value) is not None or PLACEHOLDER.search(value) is not None or not any(map(str.isalnum, value))
    )


def _fits_kind(value: str, kind: SecretKind) -> bool:
    if kind in ("api_key", "token"):
        return _looks_like_key(value, 8)
    if kind == "pin":
        return bool(_PIN.fullmatch(value))
    word = value.lower()
    return (
        word not in lexicon.TOPIC
        and not (word.isalpha() and _NOUN.fullmatch(word))
        and not (" " not in word and lexicon.TOPIC_ENDINGS.match(word))
    )


def _looks_like_key(value: str, least: int) -> bool:
    has_both = re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    return len(value) >= least and _KEY.fullmatch(value) is not None and bool(has_both)
