"""Decoder of damaged JSON from models.

It tolerates single and typographic quotes, quotes inside a string, line breaks, names without quotes, Python's
literals, comments, extra commas, and missing commas and outer brackets. A text that ends inside a value is an error,
because the missing end of a statement may reverse the statement's meaning. Libraries for damaged JSON accept such a
text and complete it. Some of these libraries take quadratic time; this decoder takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

MAX_DEPTH: Final = 50
"""Maximum nesting of lists and objects around a value."""

_IGNORED: Final = re.compile(r"(?:\s+|//[^\n]*|/\*(?:(?!\*/).)*\*/|#[^\n]*)*", re.DOTALL)
_CLOSERS: Final[Mapping[str, str]] = {
    '"': '"',
    "'": "'",
    **dict.fromkeys("“”„", '“”"'),
    **dict.fromkeys("‘’‚", "‘’'"),
}
"""Closing quotes by opening quote."""
_PIECE: Final[Mapping[str, re.Pattern[str]]] = {
    quote: re.compile(rf"[^\\{re.escape(closers)}]+") for quote, closers in _CLOSERS.items()
}
_AFTER_NAME: Final = re.compile(r"\s*:")
_AFTER_VALUE: Final = re.compile(
    r"\s*(?:[,}\]]|\Z|//|/\*|(?P<quote>[\"'“”])[\w$ -]{1,64}[\"'“”]\s*:|[\w$-]{1,64}\s*:\s*[\"'“”\[{])"
)
"""Text after the quote that ends a value. The last two alternatives match the next name after a missing comma."""
_BARE: Final = re.compile(r"[^\s,:{}\[\]\"'“”]+")
_NAME: Final = re.compile(r"[\w$-]+")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nil": None,
    "undefined": None,
    **dict.fromkeys(("nan", "inf", "infinity")),
}
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CODE: Final = re.compile(r"u([0-9a-fA-F]{4})")


class DamagedValue(ValueError):
    """No value begins here, or the value is not complete."""


def decode_leniently(text: str, place: int) -> tuple[JsonValue, int]:
    """Decode the object or list that begins at `place`. Return the value and the position after it. Raise
    `DamagedValue`."""
    reader = _Reader(text, place)
    return reader.value(0), reader.at


class _Reader:
    """Recursive descent parser of one text."""

    def __init__(self, text: str, place: int) -> None:
        self.at = place
        self._text = text

    def value(self, depth: int) -> JsonValue:
        if depth > MAX_DEPTH:
            raise DamagedValue("too deep")
        sign = self._next()
        if sign == "{":
            return self._object(depth + 1)
        if sign == "[":
            return self._list(depth + 1)
        return self._string(_AFTER_VALUE) if sign in _CLOSERS else self._word()

    def _object(self, depth: int) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        self.at += 1
        while not self._ends("}", "]", depth):
            name = self._string(_AFTER_NAME) if self._next() in _CLOSERS else self._take(_NAME)
            if self._next() != ":":
                raise DamagedValue("a name without a value")
            self.at += 1
            found[name] = self.value(depth)
            if self._next() == ",":
                self.at += 1
        return found

    def _list(self, depth: int) -> list[JsonValue]:
        found: list[JsonValue] = []
        self.at += 1
        while not self._ends("]", "}", depth):
            found.append(self.value(depth))
            if self._next() == ",":
                self.at += 1
        return found

    def _ends(self, own: str, other: str, depth: int) -> bool:
        """Return whether a list or an object ends here, and skip its closing bracket.

        The bracket may be missing before a closing bracket of the other kind. At the end of the text, it may also be
        missing for the outermost value and for a list directly inside this value.
        """
        sign = self._next()
        if sign == ",":
            self.at += 1
            return self._ends(own, other, depth) if self._next() != "," else self._fail()
        if sign == own:
            self.at += 1
            return True
        if sign == "":
            complete = self._text[: self.at].rstrip()[-1:] in ("}", "]")
            return (complete and depth <= 1 + (own == "]")) or self._fail()
        return sign == other and depth > 1

    def _fail(self) -> bool:
        raise DamagedValue("the value is not complete")

    def _string(self, after: re.Pattern[str]) -> str:
        """Read a string. A quote ends it only if `after` matches the text after the quote."""
        quote = self._text[self.at]
        piece, closers = _PIECE[quote], _CLOSERS[quote]
        self.at += 1
        parts: list[str] = []
        while self.at < len(self._text):
            found = piece.match(self._text, self.at)
            if found is not None:
                parts.append(found.group())
                self.at = found.end()
                continue
            sign = self._text[self.at]
            self.at += 1
            if sign == "\\":
                parts.append(self._escaped())
            elif sign in closers and after.match(self._text, self.at):
                return "".join(parts)
            else:
                parts.append(sign)
        raise DamagedValue("a string is not complete")

    def _escaped(self) -> str:
        code = _CODE.match(self._text, self.at)
        if code is not None:
            self.at = code.end()
            return chr(int(code.group(1), 16))
        sign = self._text[self.at : self.at + 1]
        self.at += 1
        return _ESCAPES.get(sign, sign)

    def _word(self) -> JsonValue:
        word = self._take(_BARE)
        plain = word.lower().lstrip("+-")
        if plain in _WORDS:
            return _WORDS[plain]
        if _NUMBER.fullmatch(word) and len(word) < 40:
            return int(word) if word.lstrip("+-").isdigit() else float(word)
        raise DamagedValue("a word without quotes")

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self.at)
        if found is None:
            raise DamagedValue("something else was expected")
        self.at = found.end()
        return found.group()

    def _next(self) -> str:
        """Skip white space and comments. Return the next character, or an empty string at the end of the text."""
        found = _IGNORED.match(self._text, self.at)
        self.at = self.at if found is None else found.end()
        return self._text[self.at : self.at + 1]
