"""Reader of front matter: a YAML mapping without tags, anchors and aliases.

Notes are edited by people and rewritten by programs, so any style of YAML is read. Plain words are null, a boolean, a
number, or text; never a date. The parser's constructors are not used, so YAML creates nothing but these values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import JsonValue

from ...schemas.front_door.json_text import DEPTH_MAX, NotJson, parse_text
from ..import_file import ImportRefused

FENCE: Final = re.compile(r"^---[ \t]*$", re.MULTILINE)
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][-+]?\d{1,3})?", re.ASCII)


class NotFrontMatter(ValueError):
    """A note without usable front matter. The message says what is wrong, without its content."""


def read_front_matter(raw: bytes) -> dict[str, JsonValue]:
    """Return the front matter of a note. Raises NotFrontMatter."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise NotFrontMatter("is UTF-16: save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotFrontMatter("is not UTF-8: save it as UTF-8") from None
    fences = FENCE.finditer(text.replace("\r\n", "\n"))
    first, last = next(fences, None), next(fences, None)
    if first is None or last is None or first.start() != 0:
        raise NotFrontMatter("has no front matter between two lines ---")
    value = _parsed(first.string[first.end() : last.start()])
    if not isinstance(value, dict):
        raise NotFrontMatter("has front matter that is no mapping")
    return value


def _parsed(text: str) -> JsonValue:
    try:
        import yaml  # not a dependency of the client alone
    except ImportError:
        raise ImportRefused("notes are read with PyYAML: install it (pip install pyyaml)") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(yaml.parse(text, Loader=loader)).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise NotFrontMatter(f"has front matter that is no YAML{where}") from None


class _Builder:
    """Builder of values from the events of a YAML parser."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events

    def document(self) -> JsonValue:
        self._next()  # the start of the stream
        if not self._is(self._next(), "DocumentStart"):
            return None
        value = self._value(self._next(), 0)
        self._next()
        if not self._is(self._next(), "StreamEnd"):
            raise NotFrontMatter("has more than one YAML document")
        return value

    def _next(self) -> Any:
        return next(self._events)

    def _is(self, event: Any, name: str) -> bool:
        return type(event).__name__ == f"{name}Event"

    def _value(self, event: Any, depth: int) -> JsonValue:
        if self._is(event, "Alias") or getattr(event, "anchor", None):
            raise NotFrontMatter("has a YAML anchor or alias: write the value itself")
        if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:str"):
            raise NotFrontMatter("has a YAML tag: write the value without it")
        if depth > DEPTH_MAX:
            raise NotFrontMatter(f"is nested deeper than {DEPTH_MAX} levels")
        if self._is(event, "Scalar"):
            return event.value if event.style or event.tag else _plain(event.value)
        return self._mapping(depth) if self._is(event, "MappingStart") else self._sequence(depth)

    def _sequence(self, depth: int) -> JsonValue:
        values = []
        while not self._is(event := self._next(), "SequenceEnd"):
            values.append(self._value(event, depth + 1))
        return values

    def _mapping(self, depth: int) -> JsonValue:
        values: dict[str, JsonValue] = {}
        while not self._is(event := self._next(), "MappingEnd"):
            if not self._is(event, "Scalar"):
                raise NotFrontMatter("has a name that is no text")
            self._value(event, depth)  # refuses tags and anchors of names
            if event.value in values:
                raise NotFrontMatter("has a name twice")
            values[event.value] = self._value(self._next(), depth + 1)
        return values


def _plain(text: str) -> JsonValue:
    """Return the value of a word without quotes."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _NUMBER.fullmatch(text):
        try:
            return parse_text(text)
        except NotJson:
            return text
    return text
