"""Secrets that the layout of a text connects with a label: the value on the line below a label, the items of a list
below a label, and the cells of a table column whose header is a label."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Final

from ..language.locales.secret_labels import SecretKind
from .findings import Finding
from .labelled import LabelledText, label_readers, plain_label
from .text_view import TextView
from .told_values import is_strong, stands_for_another, trimmed, value_end

_BEFORE: Final = re.compile(
    r"[\s>*#_\"'`|\u2022\d.)-]{0,8}+(?:[\w'&.-]{1,20}+ ){0,4}+[\u3040-\u30ff\u4e00-\u9fff]{0,8}+"
)
_MARKED: Final = re.compile(r"[ \t]*+(?:[-*\u2022]|\d{1,2}[.)])[ \t]")
_PURPOSE: Final = (
    r"(?: (?:for|of|to|fur|von|vom|zum|de|del|para|du|pour|di|per|do|da|voor|van|dla|\u043e\u0442|\u0434\u043b\u044f)"
    r"(?: [\w'&.-]{1,20}+){1,3}?)?"
)
_ITEM: Final = re.compile(
    r"[ \t>|]*+(?:(?:[-*\u2022]"
    r"|\d{1,2}[.)])[ \t]++)?(?P<name>[^\W\d][\w .'&-]{0,24}+[:=][ \t]++)?[\"'`]?(?P<value>\S{3,128}?)[\"'`"
    r"|]?\s*+$"
)
_LINES_MAX: Final = 20
"""Maximum number of values below one label."""
_LINE_MAX: Final = 400
"""Maximum length of a line with a label and of a row of a table, in characters."""
_RULE: Final = re.compile(r"[\s|:+=-]*+")
_CELL: Final = " \t\"'`*_"
_HEAD: Final = re.compile(r"[\w ./#&'*`_-]{0,40}+")
_DELIMITERS: Final = "|;,\t"
_HEADING_MAX: Final = 80
"""Maximum length of a line that is a label, in characters."""
_Lines = Sequence[tuple[int, int]]
"""The start and end of each line."""


def laid_out_secrets(labelled: LabelledText) -> Iterator[Finding]:
    """Yield the values below labels."""
    text, small = labelled.view.text, labelled.small
    if "\n" not in text:
        return
    ends = [match.start() for match in re.finditer(r"\n|\Z", text)]
    lines = [*zip((0, *(end + 1 for end in ends)), ends, strict=False)]
    tables = _Tables(text, lines)
    read = 0
    for number in _lines_with(labelled, ends):
        start, end = lines[number]
        if start < read or end - start > _LINE_MAX or number + 1 == len(lines):
            continue
        for finding in _below(text, small, number, lines, tables):
            read = max(read, finding.end)
            yield finding


def _lines_with(labelled: LabelledText, ends: Sequence[int]) -> list[int]:
    """Return the numbers of the lines with a word that may belong to a label."""
    places = labelled.places()
    if places is None:
        return [*range(len(ends))]
    return sorted({bisect_left(ends, place) for place in places})


def _below(text: str, small: str, number: int, lines: _Lines, tables: _Tables) -> Iterator[Finding]:
    start, end = lines[number]
    line = text[start:end]
    delimiter = _delimiter_of_head(line, text, lines[number + 1])
    is_heading = end - start <= _HEADING_MAX and _has_item_below(text, number, lines)
    labels = _labels_of(small[start:end]) if delimiter is not None or is_heading else []
    if delimiter is not None:
        yield from tables.values(number, delimiter, _columns(line, delimiter, labels))
    if is_heading:
        for first, last, kind in labels[:1]:
            if _BEFORE.fullmatch(line, 0, first) and _after_label().fullmatch(line.lower(), last):
                yield from _listed(text, line, kind, number, lines)


@cache
def _after_label() -> re.Pattern[str]:
    """Return the pattern of the rest of a line that is a label: a purpose, a verb, punctuation."""
    words = [each.words for each in label_readers()]
    copulas = "|".join(filter(None, (verb for each in words for verb in (each.copulas, each.sure_copulas))))
    return re.compile(rf"{_PURPOSE}(?:[ ]?(?:{TextView(copulas).text}))?[\s*_`\"')\]:=|>\uff1a-]{{0,8}}+")


def _labels_of(line: str) -> list[tuple[int, int, SecretKind]]:
    """Return the labels of a lower-case line, by position."""
    found = [(match.start(), match.end(), match.lastgroup) for match in plain_label().finditer(line)]
    labelled = LabelledText(TextView(line), line, line)
    found += [(match.start(), match.end(), match.lastgroup) for _, match in labelled.labels()]
    return sorted(found)  # type: ignore[arg-type]


def _has_item_below(text: str, number: int, lines: _Lines) -> bool:
    """Return whether the next non-empty line is an item: a value, optionally with a name before it. At most one empty
    line may come before the item."""
    for start, end in lines[number + 1 : number + 3]:
        if text[start:end].strip():
            return _ITEM.match(text, start, end) is not None
    return False


def _delimiter_of_head(line: str, text: str, below: tuple[int, int]) -> str | None:
    """Return the delimiter of a line that may be a table header. The next line must contain the delimiter as often as
    this line."""
    for delimiter in _DELIMITERS:
        count = line.count(delimiter)
        if count and text.count(delimiter, *below) == count:
            return delimiter if all(map(_HEAD.fullmatch, line.strip().split(delimiter))) else None
    return None


def _listed(text: str, line: str, kind: SecretKind, number: int, lines: _Lines) -> Iterator[Finding]:
    """Yield the values on the lines below a label: one line, or the items of a list."""
    has_colon = line.rstrip(" \t\r*_").endswith((":", "=", "\uff1a"))
    is_item = _MARKED.match(line) is not None and not has_colon
    found = blank = 0
    for start, end in lines[number + 1 : number + 2 + _LINES_MAX]:
        if not text[start:end].strip():
            blank += 1
            if found or blank > 1:
                return
            continue
        item = _ITEM.match(text, start, end)
        is_marked = _MARKED.match(text, start, end) is not None
        if item is None or (item["name"] and not has_colon):
            return
        if (is_item and is_marked) or (found and not (is_marked or item["name"]) and kind != "pin"):
            return
        value = trimmed(item["value"])
        if not _is_value(value, kind):
            return
        found += 1
        yield Finding(kind, item.start("value"), item.start("value") + len(value))


def _columns(line: str, delimiter: str, labels: list[tuple[int, int, SecretKind]]) -> dict[int, SecretKind]:
    """Return the kinds of the columns whose header is a label."""
    kinds: dict[int, SecretKind] = {}
    for first, last, kind in labels:
        before, after = line[:first], line[last:]
        own = before.rpartition(delimiter)[2].strip(_CELL)
        if own.count(" ") <= 1 and not any(map(str.isdigit, own)) and not after.partition(delimiter)[0].strip(_CELL):
            kinds[before.count(delimiter)] = kind
    return kinds


class _Tables:
    """The tables of a text. A column is read once for each kind, even when many rows have a label."""

    def __init__(self, text: str, lines: _Lines) -> None:
        self._text = text
        self._lines = lines
        self._ends: dict[tuple[str, int], int] = {}
        self._columns_read: dict[tuple[str, int], set[tuple[int, SecretKind]]] = {}

    def values(self, head: int, delimiter: str, kinds: dict[int, SecretKind]) -> Iterator[Finding]:
        """Yield the values below a header, which is line `head`. `kinds`: the kinds of its columns."""
        text, (start, end) = self._text, self._lines[head]
        table = delimiter, text.count(delimiter, start, end)
        if head >= self._ends.get(table, 0):
            self._ends[table] = self._end(head + 1, *table)
            self._columns_read[table] = set()
        read = self._columns_read[table]
        columns = [each for each in kinds.items() if each not in read]
        read.update(columns)
        for start, end in islice(self._lines, head + 1, self._ends[table]) if columns else ():
            row = text[start:end]
            if _RULE.fullmatch(row):
                continue
            cells = row.split(delimiter)
            for column, kind in columns:
                value = cells[column].strip(_CELL)
                if value and _is_value(value, kind):
                    place = text.index(value, start + sum(map(len, cells[:column])) + column)
                    yield Finding(kind, place, place + len(value))

    def _end(self, row: int, delimiter: str, count: int) -> int:
        """Return the number of the first line from `row` on that is not a row of the table."""
        for number, (start, end) in enumerate(islice(self._lines, row, None), row):
            if end - start > _LINE_MAX or self._text.count(delimiter, start, end) != count:
                return number
        return len(self._lines)


def _is_value(value: str, kind: SecretKind) -> bool:
    if kind in ("password", "passphrase"):
        has_letter = any(map(str.isalpha, value))
        is_word = has_letter and not any(map(str.isspace, value))
        return is_word and is_strong(value, named=False) and not stands_for_another(value)
    return value_end(value, 0, kind, named=kind == "pin", spaced=True) == len(value)
