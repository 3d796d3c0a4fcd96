"""Word queries: plain words, "phrases", AND, OR, NOT, prefix*, and parentheses; pure.

Adjacent words without an operator must all occur in a text. A plain word also matches a word with the same stem. A
phrase matches only its exact words, in their order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..language.identification import pack_of
from ..language.locales.pack import Locale
from ..language.text import folded
from ..language.tokenizer import stem

_TOKEN: Final = re.compile(r'"[^"]*"?|[()]|[^\s()"]+')
_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")
DEPTH_MAX: Final = 32
"""Maximum nesting of parentheses and NOTs."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The words of a text and their stems, which queries are compared with."""

    words: tuple[str, ...]
    stems: frozenset[str]

    def has_phrase(self, phrase: Sequence[str]) -> bool:
        length = len(phrase)
        return any(self.words[at : at + length] == tuple(phrase) for at in range(len(self.words) - length + 1))


_Condition = Callable[[_Text], bool]


class WordQuery:
    """A parsed query. An invalid query raises ValueError with the reason. Stems follow the language of the query."""

    def __init__(self, query: str, *, locale: str) -> None:
        self._pack = pack_of(query, locale)
        parser = _Parser(deque(_TOKEN.findall(query)), self._pack)
        self._condition = parser.any_of()
        if parser.tokens:
            raise ValueError(f"unexpected {parser.tokens[0]!r}: a parenthesis is closed that was not opened")

    def matches(self, text: str) -> bool:
        words = _words(text)
        return self._condition(_Text(words, frozenset(stem(each, self._pack) for each in words)))


class _Parser:
    """A recursive descent parser. It removes the tokens that it has parsed from `tokens`."""

    def __init__(self, tokens: deque[str], pack: Locale) -> None:
        self.tokens = tokens
        self._pack = pack
        self._depth = 0

    def any_of(self) -> _Condition:
        options = [self.all_of()]
        while self._take("OR"):
            options.append(self.all_of())
        return options[0] if len(options) == 1 else lambda text: any(each(text) for each in options)

    def all_of(self) -> _Condition:
        parts = [self.one()]
        while self.tokens and self.tokens[0] not in ("OR", ")"):
            self._take("AND")
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else lambda text: all(each(text) for each in parts)

    def one(self) -> _Condition:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"at most {DEPTH_MAX} parentheses and NOTs may be nested")
        try:
            return self._one()
        finally:
            self._depth -= 1

    def _one(self) -> _Condition:
        if not self.tokens:
            raise ValueError("the query ends where a word is needed")
        token = self.tokens.popleft()
        if token == "NOT":
            inner = self.one()
            return lambda text: not inner(text)
        if token == "(":
            inner = self.any_of()
            if not self._take(")"):
                raise ValueError("a parenthesis is not closed")
            return inner
        if token in (")", "AND", "OR"):
            raise ValueError(f"a word is needed before {token!r}")
        if token.startswith('"'):
            return _phrase(token.strip('"'))
        return self._word(token)

    def _word(self, token: str) -> _Condition:
        words = _words(token)
        if not words:
            raise ValueError(f"{token!r} has no letters or digits")
        if token.endswith("*"):
            prefix = words[-1]
            before = words[:-1]
            return lambda text: (
                all(each in text.words for each in before) and any(each.startswith(prefix) for each in text.words)
            )
        stems = [stem(each, self._pack) for each in words]
        return lambda text: all(
            word in text.words or its_stem in text.stems for word, its_stem in zip(words, stems, strict=True)
        )

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.popleft()
            return True
        return False


def _phrase(text: str) -> _Condition:
    words = _words(text)
    if not words:
        raise ValueError("a phrase needs at least one word")
    return lambda searched: searched.has_phrase(words)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(folded(text)))
