"""Split a message into the sender's own words and quoted text; pure.

People paste mails, pages, logs and chats, and assistants quote the texts that they read. Quoted text is not the
sender's own words. It has the trust of a tool's output, whoever sent the message. `split_quotations` finds quoted text
by signs such as quotation marks, mail headers and announcements. It does not judge the content of the quoted text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ..language.text import visible
from .paste_words import ANNOUNCED, ATTRIBUTION, HEADER_NAMES, REPORTED, ROLE_NAMES, SEPARATOR, STRONG_HEADERS

QUOTED_WORDS: Final = 3
"""Minimum number of words between quotation marks that count as a quotation. Fewer words are a name, a title or an
emphasis."""
_CHARS_A_WORD: Final = 2
"""Number of characters that count as one word in a script without spaces between words."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a message: the sender's own words (`own` is True) or a quotation."""

    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    """The text of the line as a reader sees it (`visible`)."""

    @property
    def empty(self) -> bool:
        return not self.text.strip()


_LINE: Final = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|\Z)")
_FENCE: Final = re.compile(r"\s*+(```+|~~~+)")
_QUOTED_LINE: Final = re.compile(r"\s*+(?:>|\|\s|»\s)")
_RULE: Final = re.compile(r"\s*+[-=*_~]{3,}+\s*+$")
_BANNER: Final = re.compile(r"\s*+[-=*_#~]{3,}+\s*+(?P<name>[^\W\d_][^-=*_#~\n]{0,60}?)\s*+[-=*_#~]{3,}+\s*+$")
_LAST: Final = re.compile(r"\b(?:end|ende|fin|stop)\b", re.IGNORECASE)
_LOG: Final = re.compile(
    r"\s*+(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b|Traceback \(|at [\w.$<>]+\(|File \".*\", line \d+"
    r"|[\[(<]?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)[\])>]?[:\s]|[\w.]*(?:Error|Exception): "
    r"|\[?\d{1,2}[./]\d{1,2}[./]\d{2,4},? \d{1,2}:\d\d.{0,40}?: |(?:[^\s=]+=\S*\s+){2,}[^\s=]+=|@@ |>>> |HTTP/\d"
    r"|\$ [a-z][\w./-]*(?:\s|$)|(?:GET|POST|PUT) /)"
)
_ROLE: Final = re.compile(rf"\s*+[\[(<*_#\"]*+\s*+(?:{ROLE_NAMES})\s*+[\])>*_\"]*+\s*+:", re.IGNORECASE)
_HEADER: Final = re.compile(rf"\s*+[*_]*+(?P<name>{HEADER_NAMES})\s*+[*_]*+\s*+:\s*+\S", re.IGNORECASE)
_HEADER_INLINE: Final = re.compile(rf"(?<!\w)(?P<name>{HEADER_NAMES})\s*+:\s*+\S", re.IGNORECASE)
_STRONG: Final = re.compile(STRONG_HEADERS, re.IGNORECASE)
_SEPARATOR: Final = re.compile(rf"[\s\-_=*>]*+(?:{SEPARATOR})[\s\-_=*:]*+$", re.IGNORECASE)
_ATTRIBUTION: Final = re.compile(rf"\s*+(?:{ATTRIBUTION})\s{{0,20}}+:", re.IGNORECASE)
_ANNOUNCED: Final = re.compile(rf"(?:{ANNOUNCED})", re.IGNORECASE)
_REPORTED: Final = re.compile(rf"(?:{REPORTED})\s*+:\s*+(?=\S)", re.IGNORECASE)
_ENCLOSED: Final = (
    (('"""', "'''"), re.compile(r"(?P<mark>\"{3}|'{3})[\s\S]*?(?:(?P=mark)|\Z)")),
    (("<|",), re.compile(r"<\|[^|<>]{0,40}\|>[\s\S]*?(?:<\|(?:im_)?end[^|<>]{0,20}\|>|\Z)", re.IGNORECASE)),
)
"""Patterns of text between marks. Each has its opening marks, which are searched first because that is faster."""
_TAG: Final = re.compile(r"[<\[](?P<end>/?)(?P<name>[a-z][\w-]{0,30})\b[^<>\[\]]{0,200}[>\]]", re.IGNORECASE)
_FORMATTING: Final = frozenset(
    ("b", "i", "u", "s", "em", "strong", "br", "hr", "a", "span", "sub", "sup", "small", "mark", "del", "ins")
)
"""Tags that only format text, so the text between them is not a quotation."""
_QUOTING: Final = frozenset(
    ("blockquote", "q", "quote", "cite", "pre", "code", "page", "document", "result", "article", "body", "html")
)
"""Tags that begin a quotation even without a closing tag. The quotation then ends with the message."""
_BRACKETED: Final = frozenset(["quote", "code", "cite"])
"""Tags that are also recognised in square brackets."""
_PAIRS: Final = {
    "“": "”“",
    "„": "“”‟",
    "‟": "”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "《": "》",
    "〈": "〉",
    "‘": "’",
    "‚": "‘’",
    '"': '"',
    "'": "'",
    "`": "`",
    "＂": "＂",
    "″": "″",
}
"""Opening quotation marks. Each has its possible closing marks."""
_OPENING: Final = re.compile(f"[{''.join(_PAIRS)}]")
_CLOSING: Final = {mark: re.compile(f"[{closing}]") for mark, closing in _PAIRS.items()}
_ALIKE: Final = frozenset("\"'`＂″")
"""Marks that both open and close a quotation. Such a mark opens after a space and closes before a space."""
_ELISION: Final = re.compile(r"(?:\d|cause|cuz|til|till|em|tis|twas|bout|n\b|round)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_JSON: Final = re.compile(r"\{\s*[\"'][^\"'\n]{1,80}[\"']\s*:|\[\s{0,80}\{\s{0,80}[\"']")


def split_quotations(text: str) -> tuple[Passage, ...]:
    """Split a message into own words and quotations. The joined passages are the whole message."""
    quoted = _merged(_blocks(text))
    quoted = _merged((*quoted, *(span for gap in _gaps(quoted, len(text)) for span in _in_line(text, gap))))
    passages: list[Passage] = []
    place = 0
    for start, end in quoted:
        passages += [Passage(text[place:start], True), Passage(text[start:end], False)]
        place = end
    passages.append(Passage(text[place:], True))
    return tuple(passage for passage in passages if passage.text)


def count_words(text: str) -> int:
    """Return the number of words. In scripts without spaces between words, `_CHARS_A_WORD` characters count as one
    word."""
    if text.isascii():
        return len(_WORD.findall(text))
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + unspaced // _CHARS_A_WORD


# ------------------------------------------------------------------------------------------------ blocks
def _blocks(text: str) -> Iterator[Span]:
    """Yield quotations of whole lines, and text between marks, tags or brackets."""
    for marks, pattern in _ENCLOSED:
        if any(mark in text for mark in marks):
            yield from (found.span() for found in pattern.finditer(text))
    if "<" in text or "[" in text:
        yield from _tagged(text)
    if "{" in text or "[" in text:
        yield from _json(text)
    lines = _lines(text)
    last_banner = max((n for n, line in enumerate(lines) if _ends_banner(line)), default=-1)
    place = 0
    while place < len(lines):
        quotation = _quotation_at(lines, place, len(text), last_banner)
        if quotation is None:
            place += 1
        else:
            span, place = quotation
            yield span


def _tagged(text: str) -> Iterator[Span]:
    """Yield the text between tags that quote, with the tags."""
    tags = [found for found in _TAG.finditer(text) if _is_quoting_tag(found)]
    ends: dict[str, list[int]] = {}
    for tag in tags:
        if tag["end"]:
            ends.setdefault(tag["name"].lower(), []).append(tag.end())
    place = 0
    for tag in tags:
        name = tag["name"].lower()
        if tag["end"] or tag.start() < place:
            continue
        closing = ends.get(name, [])
        after = bisect_right(closing, tag.end())
        if after < len(closing):
            place = closing[after]
            yield tag.start(), place
        elif name in _QUOTING:
            place = len(text)
            yield tag.start(), place


def _is_quoting_tag(tag: re.Match[str]) -> bool:
    name = tag["name"].lower()
    return name in _BRACKETED if tag.group().startswith("[") else name not in _FORMATTING


def _ends_banner(line: _Line) -> bool:
    return _BANNER.match(line.text) is not None and _LAST.search(line.text) is not None


def _quotation_at(lines: list[_Line], place: int, end: int, last_banner: int) -> tuple[Span, int] | None:
    """Return the quotation that begins at the line `place`, and the number of the line after the quotation; None when
    no quotation begins there."""
    line = lines[place]
    if not line.text or line.text.isspace() or line.text.isalnum():  # a fast check that excludes many lines
        return None
    if fence := _FENCE.match(line.text):
        fenced = (n for n in range(place + 1, len(lines)) if lines[n].text.strip().startswith(fence.group(1)))
        closing = next(fenced, len(lines) - 1)
        return (line.start, lines[closing].end), closing + 1
    if _QUOTED_LINE.match(line.text) or _LOG.match(line.text):
        return (line.start, line.end), place + 1
    if ":" in line.text and _ROLE.match(line.text):
        last = place
        while last + 1 < len(lines) and not lines[last + 1].empty:
            last += 1
        return (line.start, lines[last].end), last + 1
    if _BANNER.match(line.text) and not _SEPARATOR.match(line.text) and not _ends_banner(line) and place < last_banner:
        closing = next(n for n in range(place + 1, last_banner + 1) if _ends_banner(lines[n]))
        return (line.start, lines[closing].end), closing + 1
    if _SEPARATOR.match(line.text) or _is_header(lines, place):
        return (line.start, end), len(lines)
    return _introduced(lines, place, end)


def _is_header(lines: list[_Line], place: int) -> bool:
    """Return whether the header of a mail begins at the line `place`.

    A header has at least two different header names. It also has an `@`, or a name that only mails have.
    """
    if ":" not in lines[place].text:
        return False
    names, shown = set(), ""
    for line in lines[place : place + 5]:
        found = _HEADER.match(line.text)
        if found is None:
            break
        names.add(found.group("name").lower())
        shown += line.text + "\n"
    if len(names) == 1:
        inline = {found.group("name").lower() for found in _HEADER_INLINE.finditer(lines[place].text)}
        if len(inline) >= 3:
            names, shown = inline, lines[place].text
    return len(names) >= 2 and ("@" in shown or any(_STRONG.fullmatch(name) for name in names))


def _introduced(lines: list[_Line], place: int, end: int) -> tuple[Span, int] | None:
    """Return the quotation that an attribution or an announcement at the line `place` introduces, and the number of the
    line after the quotation.

    The quotation ends at a ruled line (`-----`) or at the end of the message. Return None when the quotation begins
    with a mark such as `>`, a fence or a quotation mark, because other rules find such quotations.
    """
    line = lines[place]
    text, last = line.text, place
    after = lines[place + 1].text if place + 1 < len(lines) else ""
    if ":" not in text and ":" not in after:
        return None
    attributed = _ATTRIBUTION.match(text) if ":" in text else None
    if attributed is None and after:
        wrapped = f"{text.strip()} {after.strip()}"
        attributed = _ATTRIBUTION.fullmatch(wrapped)
        if attributed is not None:
            text, last = wrapped, place + 1
            attributed = _ATTRIBUTION.match(text)
    announced = text.rstrip().endswith(":") and _ANNOUNCED.match(_last_sentence(text)) is not None
    if attributed is None and not announced:
        return None
    if attributed is not None and text[attributed.end() :].strip() and last == place:
        return (line.start, end), len(lines)
    following = next((n for n in range(last + 1, len(lines)) if not lines[n].empty), None)
    if following is None:
        return None
    body = lines[following].text.lstrip()
    if _QUOTED_LINE.match(body) or _FENCE.match(body) or body[:1] in _PAIRS or body[:1] in "{[<":
        return None
    closing = next((n for n in range(following + 1, len(lines)) if _RULE.match(lines[n].text)), None)
    return (lines[following].start, end if closing is None else lines[closing].end), (
        len(lines) if closing is None else closing + 1
    )


def _last_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s+", text.strip())[-1]


def _lines(text: str) -> list[_Line]:
    if text.isprintable():  # one line
        return [_Line(0, len(text), visible(text).rstrip("\n"))] if text else []
    return [
        _Line(found.start(), found.end(), visible(found.group()).rstrip("\n"))
        for found in _LINE.finditer(text)
        if found.group()
    ]


def _json(text: str) -> Iterator[Span]:
    """Yield JSON objects and lists of objects. An object without an end goes to the end of the message."""
    place = 0
    while (start := _next_bracket(text, place)) is not None:
        depth, at, in_string, mark = 0, start, False, ""
        while at < len(text):
            char = text[at]
            if in_string:
                if char == "\\":
                    at += 1
                elif char == mark:
                    in_string = False
            elif char == '"':
                in_string, mark = True, char
            elif char in "{[":
                depth += 1
            elif char in "}]":
                depth -= 1
                if not depth:
                    break
            at += 1
        place = min(at + 1, len(text))
        yield start, place


def _next_bracket(text: str, place: int) -> int | None:
    found = _JSON.search(text, place)
    return None if found is None else found.start()


# ------------------------------------------------------------------------------------------------ in a line
def _in_line(text: str, gap: Span) -> Iterator[Span]:
    """Yield quotations inside lines: text between quotation marks, and text after `she said:` and similar words."""
    place, unmatched = gap[0], set[str]()
    while (opening := _OPENING.search(text, place, gap[1])) is not None:
        start, mark = opening.start(), opening.group()
        place = start + 1
        if mark in unmatched or not _opens(text, start):
            continue
        closing = _closing(text, start, gap[1])
        if closing is None:
            unmatched.add(mark)
            continue
        if count_words(text[start + 1 : closing]) >= QUOTED_WORDS:
            yield start, closing + 1
        place = closing + 1
    if text.find(":", *gap) < 0:
        return
    end = gap[0]
    for found in _REPORTED.finditer(text, *gap):
        if found.end() >= end:  # otherwise the quotation before it already covers the rest of this line
            line = _LINE.match(text, found.end())
            end = min(gap[1], line.end() if line else gap[1])
            yield found.end(), end


def _opens(text: str, place: int) -> bool:
    mark, before = text[place], text[place - 1 : place]
    if mark in _ALIKE or mark in "‘»›":
        if before and not (before.isspace() or before in "([{—–-:,;/*_>"):
            return False
        if mark in _ALIKE and text[place + 1 : place + 2].isspace():
            return False
    return not (mark in "'‘" and _ELISION.match(text, place + 1))


def _closing(text: str, opening: int, end: int) -> int | None:
    """Return the position of the mark that closes the quotation opened at `opening`; None when no mark closes it."""
    mark = text[opening]
    for closing in _CLOSING[mark].finditer(text, opening + 1, end):
        at = closing.start()
        after = text[at + 1 : at + 2]
        if mark in "'‘‚" and (after.isalnum() or text[at - 1].isspace()):
            continue  # an apostrophe
        if mark in _ALIKE and text[at - 1].isspace() and after and not after.isspace():
            continue  # the mark opens another quotation
        return at
    return None


# ------------------------------------------------------------------------------------------------ spans
def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return merged


def _gaps(spans: Iterable[Span], end: int) -> Iterator[Span]:
    place = 0
    for start, after in spans:
        if place < start:
            yield place, start
        place = after
    if place < end:
        yield place, end
