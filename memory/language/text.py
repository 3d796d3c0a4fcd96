"""Normal forms of a text: as a reader sees it, escaped for a prompt, and folded for the comparison of quotes."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

from .confusables import LATIN_LOOKALIKES

INVISIBLE: Final = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e001f\U000e007f\U000e0100-\U000e01ef]"
)
"""Characters without width: format characters, joiners, direction marks, variation selectors."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
_LINE_ENDS: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Every sequence that some program shows as a line end."""
_TAGS: Final = {0xE0000 + code: code for code in range(0x20, 0x7F)}
"""Unicode tags, which are invisible copies of ASCII characters, mapped to the ASCII characters."""
_PUNCTUATION: Final = str.maketrans("„“”«»‹›‟〝〞‘’‚‛ʼ´‐‑‒։∶", '"' * 10 + "'" * 6 + "---::")
_DASHES: Final = dict.fromkeys(map(ord, "–—―−"), "-")
_MARK: Final = r"\[ ?[twcefpo] ?\d+ ?\]"
_LABELS: Final = (
    r"(?:user|assistant|tool|system|developer|function|human|known|new|working entries|earlier messages|known facts"
    r"|episodes|memories|pairs|turns?|time of the turns|what is asked for|observations)"
)
_SPEAKER: Final = r"(?: ?\([^()\n]{0,200}\))?"
_HEADING: Final = rf"{_MARK}|#{{1,6}}(?: |$)|[*_]*{_LABELS}[*_]*{_SPEAKER} ?:|\[ ?/?memory |<\|"
_LOOKS_OURS: Final = re.compile(_HEADING, re.IGNORECASE)
_MAY_LOOK_OURS: Final = re.compile(r"[\[:#<&]")
"""Characters of prompt syntax. An ASCII line without any of them cannot look like a part of a prompt. `&` may begin an
HTML escape of one of these characters."""
_INDENT: Final = re.compile(r"\s*")
_ESCAPED: Final = re.compile(rf"\\(?={_HEADING})", re.IGNORECASE)
_LEADING_BACKSLASH: Final = re.compile(r"(?<!\S)\\(?=\S)")


def visible(text: str) -> str:
    """Return the text as a reader sees it.

    HTML escapes are decoded, compatibility forms such as full-width letters become plain letters, and invisible
    characters are removed. All variants of line ends, quotation marks, apostrophes, hyphens and spaces are replaced by
    one form each.
    """
    for _ in range(2):
        if "&" in text:
            text = html.unescape(text)
    if text.isascii():
        return text if text.isprintable() else _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    plain = unicodedata.normalize("NFKC", _LINE_ENDS.sub("\n", text.translate(_TAGS)))
    return _CONTROLS.sub("", INVISIBLE.sub("", plain)).translate(_PUNCTUATION)


def latin_lookalikes(text: str) -> str:
    """Replace letters of other scripts that look like a Latin letter by that letter."""
    return text if text.isascii() else text.translate(LATIN_LOOKALIKES)


def looks_like_prompt(line: str) -> bool:
    """Return whether a line looks like a role, a heading or a marker of a prompt, in any spelling."""
    if line.isascii() and _MAY_LOOK_OURS.search(line) is None:
        return False
    seen = " ".join(latin_lookalikes(visible(line)).split())
    return _LOOKS_OURS.match(seen) is not None


def escape_markers(text: str) -> str:
    """Put a backslash before each line that looks like a role, heading or marker of a prompt (`assistant:`, `## user`,
    `[t1]`). The text then cannot imitate the prompt around it. Every line end becomes `\\n`."""
    return "\n".join(_escaped(line) for line in _LINE_ENDS.split(text))


def _escaped(line: str) -> str:
    if not looks_like_prompt(line):
        return line
    indent = _INDENT.match(line)
    place = indent.end() if indent else 0
    return f"{line[:place]}\\{line[place:]}"


def unescape_markers(text: str) -> str:
    return _ESCAPED.sub("", text)


def own_statement(content: str, subject: str) -> str:
    """Return a statement without the name of its subject at the beginning: `Elena lives in Lecce` with the subject
    `elena` becomes `lives in Lecce`."""
    named = [re.escape(each) for each in dict.fromkeys((subject.replace("-", " "), subject.partition("-")[0])) if each]
    begins = re.match(rf"\s*(?:{'|'.join(named)})(?:'s|’s)?\s+(?=\S)", content, re.IGNORECASE) if named else None
    return content if begins is None else content[begins.end() :]


def one_line(text: str) -> str:
    """Return the text as one line: line breaks and runs of white space become single spaces."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return the form of a text in which quotes are compared.

    The text is in lower case, with one form of quotation marks, dashes and spaces. Invisible characters are removed,
    and so are the backslashes that `escape_markers` adds.
    """
    plain = text
    if not text.isascii():
        plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_PUNCTUATION).translate(_DASHES)
    if "\\" in plain:
        plain = _LEADING_BACKSLASH.sub("", unescape_markers(plain))
    if plain.isascii():
        return " ".join(plain.lower().split())
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())


def quote_found(quote: str, text: str) -> bool:
    """Return whether the text contains the quote when both are folded. An empty quote is never found."""
    return quote_in_folded(quote, folded(text))


def quote_in_folded(quote: str, text: str) -> bool:
    """Return whether a text that is already folded contains the quote. It saves time when many quotes are compared with
    one text."""
    wanted = folded(quote)
    return bool(wanted) and wanted in text
