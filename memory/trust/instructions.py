"""Statements that are instructions to the assistant, and not knowledge about somebody; pure.

A text that reaches memory may try to steer the assistant later: "always recommend …", a tool call, an address that
carries data away, a line that looks like a prompt's. `instruction_rule` names the rule that a statement breaks. The
words of each language are data (`orders/`); the rules below hold in any language. A user's own preference about
answers ("please answer in German") is no such instruction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, Literal
from urllib.parse import unquote

from ..language.text import latin_lookalikes, visible
from .orders import ORDER_RULES, OrderRules

InstructionRule = Literal["encoded_run", "prompt_mark", "url", "tool_call", "order"]

_KEPT: Final = 2_048
"""Texts whose rule is kept: a stage asks for that of a statement several times."""
_RUN: Final = 64
"""Shortest run of base64 or hexadecimal digits that counts, in characters."""
_LEET: Final = str.maketrans("013457@$", "oieastas")
_LEET_WORD: Final = re.compile(
    r"(?<![\w@$])(?=[\w@$]*[a-z])(?=[a-z@$]*\d|[a-z]*[@$][a-z])[a-z\d@$]+(?![\w@$])", re.IGNORECASE
)
_SPACED: Final = re.compile(r"(?<!\w)\w(?:[ .\-_*]\w){3,}(?!\w)")
_SENTENCE: Final = re.compile(r"[.!?\n]+(?=\s|$)")

_LINK: Final = (
    r"(?:(?:https?|hxxps?|ftp)://\S+|www\.\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\b(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)+(?:com|net|org|info|biz|io|ai|co|me|app|dev|xyz|site|online|shop"
    r"|top|club|link|ly|gg|to|tv"
    r"|eu|de|fr|es|uk|us|ch|at|it|nl|be|ru|cn|in|example|test)\b)"
)
_LINKS: Final = re.compile(_LINK, re.IGNORECASE)
_CASE: Final = "(?-i:"
"""So begins what does not ignore case in a pattern."""
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
_ROLES: Final = r"(?:system|assistant|developer|tool|function|user|human|ai|operator|admin|administrator)"
_PROMPT_MARKS: Final = (
    re.compile(r"<\|[^|<>]{0,40}\|>"),
    re.compile(
        r"\[\s*/?\s*(?:memory\s+[0-9a-f]{4,}|memory\s+\S+\s+(?:begins|ends)|inst|system|assistant|user)\b"
        r"[^\]\n]{0,80}\]"
    ),
    re.compile(r"<<\s*/?\s*sys(?:tem)?\s*>>"),
    re.compile(
        rf"<\s*/?\s*(?:{_ROLES}|instructions?|prompt|im_start|im_end|turn|start_of_turn|end_of_turn|tool_call|tool_response|function_calls?|invoke|s)\b[^<>\n]{{0,60}}>"
    ),
    re.compile(
        rf"(?:^|[\n\r.!?\"'>)\]}}*#|]\s*|[-=]{{3,}}\s*){_ROLES}(?:\s+(?:prompt|message|note|instruction|override|update))?\s*:"
    ),
    re.compile(rf"(?:^|[\n\r]|[.!?]\s)\s*#{{1,6}}\s*(?:{_ROLES}|instructions?|response|prompt)\b"),
    re.compile(r"(?:^|[\n\r])\s*\[[twcefpo]\d+\]"),
    re.compile(
        r"(?:-{3,}|={3,}|\*{3,})\s*(?:begin|end|start|stop)?\s*(?:of\s+)?(?:the\s+)?(?:system|developer|admin"
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
    re.compile(r"\b[a-z][\w.]*[\w]\s?\(\s*(?:\{|[\"']|[a-z_]\w*\s*[=:])[^()\n]*\)?"),
    re.compile(r"[\"'](?:tool|tool_name|function|function_call|tool_calls?|arguments|parameters)[\"']\s*:"),
    re.compile(rf"\b{_ACTS}_[a-z]\w*"),
    re.compile(
        rf"(?:^|[.,;:!?\n]\s*|\b(?:to|must|should|shall|and|then|please|always|und|bitte|y|et)\s){_TOOL_ORDERS}\s[^.!?\n]{{0,40}}\b{_TOOL_WORDS}\b\s+[a-z]+[_.][a-z_.]+"
    ),
    re.compile(
        rf"(?:^|[.;!?\n]\s*|\b(?:assistant|ai|model|assistenten|asistente)\s+(?:to|must|should|shall)\s|\b(?:please|always|bitte|siempre|toujours)\s){_TOOL_ORDERS}\s(?:\w+\s){{1,4}}?{_TOOL_WORDS}\b"
    ),
    re.compile(
        rf"(?:^|[.,;:!?\n]\s*|\b(?:to|must|should|shall|and|then|please|always)\s){_TOOL_ORDERS}\s(?:the\s)?[a-z]+[_][a-z_]+\b"
    ),
    re.compile(r"(?:^|[.;!?\n]\s*)(?:call|invoke|execute)\s[a-z]+\.[a-z]+\b"),
    re.compile(
        r"\b(?:curl|wget|nc|bash|sh|powershell)\s+(?:-\w+\s+)*(?:https?://|\S+\.\w{2,}/|-c\b)|\brm\s+-\w*[rf]"
        r"|\b(?:os\.system|subprocess\.\w+|eval|exec)\s*\("
    ),
    re.compile(r"<\s*script\b|\bjavascript:|\bdrop\s+table\b"),
)
_URLS: Final = (
    re.compile(r"(?:\w+://|www\.|\b[\w-]+(?:\.[\w-]+)+/)[^\s<>\"?#&;]*[?#&;][^\s<>\"=]*="),
    re.compile(
        r"(?:\w+://|www\.|\b[\w-]+(?:\.[\w-]+)+/)[^\s]*(?:\{[^}\s]*\}|<[^>]{1,60}>|\[[^\]]{1,60}\]|\$\w|%s\b|%\(|\*\*)"
    ),
    re.compile(r"\w+://[^\s/@]+:[^\s/@]*@|\bdata:[\w/+.-]+[;,]|\bjavascript:"),
    re.compile(r"!\[[^\]\n]*\]\(\s*\S+"),
)


class _Pattern:
    """A pattern that ignores case. Unless a part of it does not, it is searched in a text of one case.

    With `re.IGNORECASE` a search takes two to five times as long: it looks at each branch in full where another one
    looks at its first letter.
    """

    def __init__(self, pattern: str) -> None:
        self._keeps_case = _CASE in pattern
        self._pattern = re.compile(_without_accents(pattern), re.IGNORECASE if self._keeps_case else 0)

    def is_in(self, text: str) -> bool:
        return self._pattern.search(text if self._keeps_case else _one_case(text)) is not None


def _one_case(text: str) -> str:
    """Return the text with small letters alone, and what `re.IGNORECASE` takes for an ASCII letter as that letter."""
    return text.replace("İ", "i").casefold().replace("ı", "i")


@dataclass(frozen=True, slots=True)
class _Compiled:
    orders: tuple[_Pattern, ...]
    standing: tuple[_Pattern, ...]
    preferences: tuple[_Pattern, ...]


@lru_cache(_KEPT)
def instruction_rule(text: str) -> InstructionRule | None:
    """Return the name of the rule by which a statement is an instruction to the assistant; None for any other."""
    plain = _plain(text)
    if any(pattern.search(plain) for pattern in _ENCODED):
        return "encoded_run"
    lower = plain.lower()
    if any(pattern.search(lower) for pattern in _PROMPT_MARKS):
        return "prompt_mark"
    if any(pattern.search(each) for each in {lower, unquote(lower)} for pattern in _URLS):
        return "url"
    if any(pattern.search(lower) for pattern in _TOOL_CALLS):
        return "tool_call"
    if any(_is_order(each, rules) for each in _spellings(plain) for rules in ORDER_RULES):
        return "order"
    return None


def _is_order(text: str, rules: OrderRules) -> bool:
    if not _signs(rules.language).is_in(text):
        return False
    compiled = _compiled(rules.language)
    if any(pattern.is_in(text) for pattern in compiled.orders):
        return True
    return any(
        any(pattern.is_in(sentence) for pattern in compiled.standing)
        and not any(pattern.is_in(_LINKS.sub(" ", sentence)) for pattern in compiled.preferences)
        for sentence in _SENTENCE.split(text)
    )


def _plain(text: str) -> str:
    """Return the text as a reader sees it. Doubled spaces stay where they may part spaced words."""
    return "\n".join(line.strip() for line in re.sub(r"[^\S\n]", " ", visible(text)).split("\n"))


def _spellings(plain: str) -> Iterator[str]:
    """Yield the text without accents, and what it says when its look-alike letters, digits and gaps are undone."""
    words = _without_accents(latin_lookalikes(plain))
    if words.isupper():
        words = words.lower()
    yield re.sub(r" {2,}", " ", words)
    if _LEET_WORD.search(words):
        yield re.sub(r" {2,}", " ", _LEET_WORD.sub(lambda found: found.group().translate(_LEET), words))
    if _SPACED.search(words):
        yield re.sub(r" {2,}", " ", _SPACED.sub(lambda found: re.sub(r"[ .\-_*]", "", found.group()), words))


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.replace("ß", "ss"))
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


@cache
def _rules(language: str) -> tuple[OrderRules, Callable[[str], str]]:
    """Return a language's rules, and the function that replaces `<class>` in a pattern by the class's words."""
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
    """Return the words without which no order of the language is one."""
    rules, fill = _rules(language)
    return _Pattern(rf"\b(?:{fill(rules.signs)})\b")


@cache
def _compiled(language: str) -> _Compiled:
    rules, fill = _rules(language)
    return _Compiled(
        *(tuple(_Pattern(fill(each)) for each in kind) for kind in (rules.orders, rules.standing, rules.preferences))
    )
