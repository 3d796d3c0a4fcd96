"""Recognise instructions to the assistant in a text that memory would store; pure.

A stored instruction may try to control the assistant when it is shown later: "always recommend …", a tool call, a URL
that sends data away, a line that looks like prompt syntax. `instruction_rule` returns the name of the rule that matches
a statement. The orders of each language are in `orders/`; the other rules are the same for all languages. A preference
about answers ("please answer in German") is not an instruction.
"""

from __future__ import annotations

import base64
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Final, Literal
from urllib.parse import unquote

from ..language.literal_index import LiteralIndex, one_case
from ..language.text import latin_lookalikes, visible
from .orders import ORDER_RULES, OrderRules

InstructionRule = Literal["encoded_run", "prompt_mark", "url", "tool_call", "order"]

_KEPT: Final = 2_048
"""Number of texts in the cache. The cache saves time, because several checks ask for the rule of the same statement."""
_RUN: Final = 64
"""Minimum length, in characters, of a run of base64 or hexadecimal digits that counts as an encoded text."""
_LEET: Final = str.maketrans("013457@$", "oieastas")
_LEET_WORD: Final = re.compile(
    r"(?<![\w@$])(?=[\w@$]*[a-z])(?=[a-z@$]*\d|[a-z]*[@$][a-z])[a-z\d@$]++(?![\w@$])", re.IGNORECASE
)
_LEET_SIGN: Final = re.compile(r"[\d@$]")
"""A character that occurs in every word of `_LEET_WORD`, for a fast check. Such words have digits or signs in place of
letters: `1gn0re`."""
_SPACED_INNER: Final = re.compile(r"[ .\-_*]\w[ .\-_*]\w[ .\-_*]\w")
"""A part of every word of `_SPACED`, for a fast check. Such words have a gap after each letter: `i g n o r e`."""
_GAP: Final = re.compile(r"[ .\-_*]")
_CODED: Final = re.compile(
    "|".join(
        coded
        for word in (
            *(
                "always",
                "never",
                "recommend",
                "suggest",
                "promote",
                "mention",
                "ignore",
                "disregard",
                "forget",
                "reveal",
            ),
            *("instruction", "password", "assistant", "system", "obey", "answer"),
        )
        for coded in (word[::-1], codecs.encode(word, "rot13"))
    ),
    re.IGNORECASE,
)
"""Words of orders, reversed or in ROT13. Only a text that contains one of them is reversed and decoded from ROT13."""
_BASE64_WORD: Final = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/_-]{16,}+={0,2}")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_HEX_WORD: Final = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}){10,}(?!\w)")
_SPACE: Final = re.compile(r"[^\S\n]")
_SPACES: Final = re.compile(r" {2,}")
_SPACED: Final = re.compile(r"(?<!\w)\w(?:[ .\-_*]\w){3,}(?!\w)")
_SENTENCE: Final = re.compile(r"(?<![.!?\n])[.!?\n]+(?=\s|$)")

_LINK: Final = (
    r"(?:(?:https?|hxxps?|ftp)://\S+|www\.\S+|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
    r"|\b(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.){1,10}(?:com|net|org|info|biz|io|ai|co|me|app|dev|xyz|site|online|shop"
    r"|top|club|link|ly|gg|to|tv"
    r"|eu|de|fr|es|uk|us|ch|at|it|nl|be|ru|cn|in|example|test)\b)"
)
_LINKS: Final = re.compile(_LINK, re.IGNORECASE)
_CASE: Final = "(?-i:"
"""The beginning of a case-sensitive part of a pattern."""
_NAME: Final = r"(?-i:[A-Z][\w&'-]+)"

_ENCODED: Final = (
    re.compile(rf"(?<![A-Za-z0-9])[0-9a-fA-F]{{{_RUN},}}"),
    re.compile(
        rf"(?<![A-Za-z0-9+/_-])(?=[A-Za-z0-9+/_-]*[a-z])(?=[A-Za-z0-9+/_-]*[A-Z])(?=[A-Za-z0-9+/_-]*\d)[A-Za-z0-9+/_-]{{{_RUN},}}"
    ),
    re.compile(rf"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{{{_RUN},}}={{0,2}}"),
    re.compile(rf"(?:(?:\\x|0x|%|&#x|\\u00)?[0-9a-fA-F]{{2}}[\s,:;]?){{{_RUN // 2},}}(?![0-9a-zA-Z])"),
    re.compile(rf"(?:[01][\s,]?){{{_RUN},}}"),
)
_TOKEN_BEGINS: Final = r"(?<![^\s<>\"])"
_ADDRESS: Final = r"(?:\w://|www\.|(?<=[\w-])\.[\w-]++/)"
"""The part of a token that shows that the token is an address."""
_NEW_LINE: Final = r"(?<!\s)[^\S\n\r]*+[\n\r]\s*+"
"""White space with a line end. A match begins only at the first white space; otherwise a search would read a long run
of white space many times."""
_RULED: Final = r"(?:(?<=-{3})(?!-)|(?<=={3})(?!=)|(?<=\*{3})(?!\*))"
"""The end of a run of three or more `-`, `=` or `*`."""
_ROLES: Final = r"(?:system|assistant|developer|tool|function|user|human|ai|operator|admin|administrator)"
_PROMPT_MARKS: Final = (
    re.compile(r"<\|[^|<>]{0,40}\|>"),
    re.compile(
        r"\[\s*+(?:/\s*+)?(?:memory\s+[0-9a-f]{4,}|memory\s+\S+\s+(?:begins|ends)|inst|system|assistant|user)\b"
        r"[^\]\n]{0,80}\]"
    ),
    re.compile(r"<<\s*+(?:/\s*+)?sys(?:tem)?\s*+>>"),
    re.compile(
        rf"<\s*+(?:/\s*+)?(?:{_ROLES}|instructions?|prompt|im_start|im_end|turn|start_of_turn|end_of_turn|tool_call|tool_response|function_calls?|invoke|s)\b[^<>\n]{{0,60}}>"
    ),
    re.compile(
        rf"(?:^|[.!?\"'>)\]}}*#|]\s*+|(?<=[-=]{{3}})(?![-=])\s*+|{_NEW_LINE})"
        rf"{_ROLES}(?:\s+(?:prompt|message|note|instruction|override|update))?\s*:"
    ),
    re.compile(rf"(?:^\s*+|{_NEW_LINE}|[.!?]\s\s*+)#{{1,6}}\s*(?:{_ROLES}|instructions?|response|prompt)\b"),
    re.compile(rf"(?:^\s*+|{_NEW_LINE})\[[twcefpo]\d+\]"),
    re.compile(r"<!--|--!?>|<!\[cdata\[|\[//\]: ?#|display ?: ?none|<\s?style\b"),
    re.compile(
        rf"{_RULED}\s*+(?:(?:begin|end|start|stop)\s*+)?(?:of\s++)?(?:the\s++)?(?:system|developer|admin"
        r"|hidden|new)\b[^-=*\n]{0,30}(?:-{3,}|={3,}|\*{3,}|prompt|instructions?)"
    ),
)
_TOOL_WORDS: Final = (
    r"(?:tools?|functions?|plug-?ins?|apis?|commands?|scripts?|endpoints?|werkzeuge?|tools?|funktion(?:en)?"
    r"|befehle?|skripte?"
    r"|herramientas?|funci(?:o|ó)n(?:es)?|comandos?|guiones|outils?|fonctions?|commandes?)"
)
_TOOL_ORDERS: Final = (
    r"(?:call|invoke|run|execute|use|trigger|rufe?|nutze|benutze|verwende|starte|fuhre?|führe?|ejecuta|ejecute"
    r"|llama|llame|usa|use|invoca"
    r"|appelle|appelez|execute|exécute|exécutez|lance|lancez|utilise|utilisez)"
)
_ACTS: Final = (
    r"(?:send|delete|erase|drop|wipe|transfer|exec|execute|run|pay|grant|approve|forget|export|upload|post"
    r"|exfiltrate|remove|purge|disable|revoke)"
)
_TOOL_CALLS: Final = (
    re.compile(
        r"(?<![\w.])(?:(?![a-z])\w*+\.++)*+[a-z](?=[\w.])[\w.]*+(?<=\w)\s?\(\s*+(?:\{|[\"']|[a-z_]\w*\s*[=:])[^()\n]*\)?"
    ),
    re.compile(r"[\"'](?:tool|tool_name|function|function_call|tool_calls?|arguments|parameters)[\"']\s*:"),
    re.compile(rf"\b{_ACTS}_[a-z]\w*"),
    re.compile(
        rf"(?:^|[.,;:!?]\s*+|{_NEW_LINE}|\b(?:to|must|should|shall|and|then|please|always|und|bitte|y|et)\s){_TOOL_ORDERS}\s[^.!?\n]{{0,40}}\b{_TOOL_WORDS}\b\s+[a-z]+[_.][a-z_.]+"
    ),
    re.compile(
        rf"(?:^|[.;!?]\s*+|{_NEW_LINE}|\b(?:assistant|ai|model|assistenten|asistente)\s+(?:to|must|should|shall)\s|\b(?:please|always|bitte|siempre|toujours)\s){_TOOL_ORDERS}\s(?:\w+\s){{1,4}}?{_TOOL_WORDS}\b"
    ),
    re.compile(
        rf"(?:^|[.,;:!?]\s*+|{_NEW_LINE}|\b(?:to|must|should|shall|and|then|please|always)\s){_TOOL_ORDERS}\s(?:the\s)?[a-z]+[_][a-z_]+\b"
    ),
    re.compile(rf"(?:^|[.;!?]\s*+|{_NEW_LINE})(?:call|invoke|execute)\s[a-z]+\.[a-z]+\b"),
    re.compile(
        r"\b(?:curl|wget|nc|bash|sh|powershell)\s+(?:-\w+\s+)*(?:https?://|\S+\.\w{2,}/|-c\b)|\brm\s+-\w*[rf]"
        r"|\b(?:os\.system|subprocess\.\w+|eval|exec)\s*\("
    ),
    re.compile(r"<\s*script\b|\bjavascript:|\bdrop\s+table\b"),
)
_URLS: Final = (
    re.compile(rf"{_TOKEN_BEGINS}(?>[^\s<>\"]*?{_ADDRESS})(?>[^\s<>\"?#&;]*[?#&;])[^\s<>\"=]*="),
    re.compile(
        rf"(?<!\S)(?>\S*?{_ADDRESS})\S*?(?:\{{[^{{}}\s]*+\}}|<[^>]{{1,60}}>|\[[^\]]{{1,60}}\]|\$\w|%s\b|%\(|\*\*)"
    ),
    re.compile(r"\w://[^\s/@][^\s/@:]*+:[^\s/@]*+@|\bdata:[\w/+.-]+[;,]|\bjavascript:"),
    re.compile(r"!\[[^\]\n]{0,200}+\] ?[(\[]"),
    re.compile(r"\[[^\]\n]{1,200}+\]:\s?<?(?:\w++:)?//"),
    re.compile(r"<\s?(?:a|img|iframe|form|link|meta|object|embed|svg|video|audio)\b[^>\n]{0,200}="),
)


class _Pattern:
    """A pattern that ignores case, compiled when it is first used, because most patterns are never needed.

    The text is converted to lower case before the search, which avoids `re.IGNORECASE`. With that flag a search takes
    two to five times as long, because `re` then tries each branch in full instead of checking its first letter. Only a
    pattern with a case-sensitive part is searched with the flag in the unchanged text.
    """

    def __init__(self, pattern: str) -> None:
        self._keeps_case = _CASE in pattern
        self.source = without_accents(pattern)

    def is_in(self, text: str) -> bool:
        return self._compiled.search(text if self._keeps_case else one_case(text)) is not None

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE if self._keeps_case else 0)


@lru_cache(_KEPT)
def instruction_rule(text: str) -> InstructionRule | None:
    """Return the name of the rule that makes a statement an instruction to the assistant; None when no rule matches."""
    plain = _plain(text)
    if len(plain) >= _RUN and any(pattern.search(plain) for pattern in _ENCODED):
        return "encoded_run"
    lower = latin_lookalikes(plain).lower()
    found = _Candidates()
    if found.matches(_PROMPT_MARKS, lower):
        return "prompt_mark"
    if found.matches(_URLS, lower) or ("%" in lower and found.matches(_URLS, unquote(lower))):
        return "url"
    if found.matches(_TOOL_CALLS, lower):
        return "tool_call"
    if any(_is_order(each, found) for each in (*_spellings(plain), *_decoded(plain))):
        return "order"
    return None


class _Candidates:
    """A cache of the patterns that a text and its other spellings may match. It saves time, because most spellings of a
    text differ only in case."""

    def __init__(self) -> None:
        self._known: dict[str, list[int]] = {}

    def matches(self, patterns: Sequence[re.Pattern[str]], text: str) -> bool:
        found = self.of(text)
        if not found:
            return False
        first = _FIXED.index(patterns[0])
        return any(_FIXED[number].search(text) for number in found if first <= number < first + len(patterns))

    def of(self, text: str) -> list[int]:
        text = one_case(text)
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = _index().candidates(text)
        return found


_FIXED: Final = (*_PROMPT_MARKS, *_URLS, *_TOOL_CALLS)


def _is_order(text: str, found: _Candidates) -> bool:
    patterns = _order_patterns()
    may_match: dict[str, list[_OrderPattern]] = {}
    for number in found.of(text):
        if number >= len(_FIXED):
            pattern = patterns[number - len(_FIXED)]
            may_match.setdefault(pattern.language, []).append(pattern)
    return any(
        _signs(language).is_in(text) and _is_order_in(text, language, candidates)
        for language, candidates in may_match.items()
    )


def _is_order_in(text: str, language: str, candidates: Sequence[_OrderPattern]) -> bool:
    if any(each.pattern.is_in(text) for each in candidates if not each.standing):
        return True
    standing = [each.pattern for each in candidates if each.standing]
    return bool(standing) and any(
        any(pattern.is_in(sentence) for pattern in standing)
        and not any(pattern.is_in(_LINKS.sub(" ", sentence)) for pattern in _preferences(language))
        for sentence in _SENTENCE.split(text)
    )


def _plain(text: str) -> str:
    """Return the text as a reader sees it. Doubled spaces are kept, because they may separate words that have a gap
    after each letter."""
    shown = visible(text)
    if shown.isprintable():  # the text is one line, and its only white space is spaces
        return shown.strip()
    return "\n".join(line.strip() for line in _SPACE.sub(" ", shown).split("\n"))


def _spellings(plain: str) -> Iterator[str]:
    """Yield plain spellings of the text: without accents, with Latin letters for look-alike letters, with letters for
    digits, and without gaps inside words."""
    words = without_accents(plain)
    folded = without_accents(latin_lookalikes(plain))
    if folded != words:
        yield _with_single_spaces(words)
        words = folded
    if words.isupper():
        words = words.lower()
    yield _with_single_spaces(words)
    if _LEET_SIGN.search(words) and _LEET_WORD.search(words):
        yield _with_single_spaces(_LEET_WORD.sub(lambda found: found.group().translate(_LEET), words))
    if _SPACED_INNER.search(words) and _SPACED.search(words):
        yield _with_single_spaces(_SPACED.sub(lambda found: _GAP.sub("", found.group()), words))


def _decoded(plain: str) -> Iterator[str]:
    """Yield the decoded forms of the text: reversed, decoded from ROT13, and its decoded base64 and hexadecimal words.

    The reversed text and the text decoded from ROT13 are also yielded without the words before their first word of an
    order.
    """
    words = _with_single_spaces(without_accents(latin_lookalikes(plain)))
    if coded := [*_CODED.finditer(words)]:
        backwards = words[::-1]
        yield from (backwards, backwards[len(words) - coded[-1].end() :])
        moved = codecs.encode(words, "rot13")
        yield from (moved, moved[coded[0].start() :])
    for word in _BASE64_WORD.findall(plain):
        if word in (word.lower(), word.upper()):
            continue
        digits = word.rstrip("=").translate(_URL_SAFE)
        yield from _readable(base64.b64decode(digits[: len(digits) // 4 * 4]))
    for word in _HEX_WORD.findall(plain):
        yield from _readable(bytes.fromhex(word))


def _readable(data: bytes) -> Iterator[str]:
    """Yield the bytes as text, if they are printable UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if text.isprintable():
        yield text


def _with_single_spaces(text: str) -> str:
    return _SPACES.sub(" ", text) if "  " in text else text


def without_accents(text: str) -> str:
    """Return a text without accents, with `ss` in place of `ß`."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text.replace("ß", "ss"))
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


@cache
def _rules(language: str) -> tuple[OrderRules, Callable[[str], str]]:
    """Return the rules of a language, and a function that replaces `<name>` in a pattern with the words of that
    class."""
    rules = next(each for each in ORDER_RULES if each.language == language)
    classes = {
        "start": rf"(?:^|\n|[.!?;:,(*•>] *| [-–—] |\b(?:{rules.joints}) )",
        "link": _LINK,
        "Name": _NAME,
    }

    def fill(pattern: str) -> str:
        return re.sub(r"<(\w+)>", lambda found: classes[found.group(1)], pattern)

    for name, words in rules.words.items():
        classes[name] = fill(words)
    return rules, fill


@cache
def _signs(language: str) -> _Pattern:
    """Return a pattern that matches every text with an order in this language, for a fast check."""
    rules, fill = _rules(language)
    return _Pattern(rf"\b(?:{fill(rules.signs)})\b")


@cache
def _preferences(language: str) -> tuple[_Pattern, ...]:
    rules, fill = _rules(language)
    return tuple(_Pattern(fill(each)) for each in rules.preferences)


@dataclass(frozen=True, slots=True)
class _OrderPattern:
    language: str
    standing: bool
    pattern: _Pattern


@cache
def _order_patterns() -> tuple[_OrderPattern, ...]:
    """Return the patterns of orders in all languages. `standing` is True for orders that may be a preference."""
    found: list[_OrderPattern] = []
    for each in ORDER_RULES:
        rules, fill = _rules(each.language)
        found += (_OrderPattern(each.language, False, _Pattern(fill(pattern))) for pattern in rules.orders)
        found += (_OrderPattern(each.language, True, _Pattern(fill(pattern))) for pattern in rules.standing)
    return tuple(found)


@cache
def _index() -> LiteralIndex:
    """Return the literal index of all patterns: first `_FIXED`, then `_order_patterns`."""
    sources = (each.pattern.source for each in _order_patterns())
    return LiteralIndex([*(pattern.pattern for pattern in _FIXED), *sources])
