"""Removal of invisible characters.

Every text that enters the product passes `clean_text` once: messages, arguments and answers. Invisible characters can
hide text that a model reads and a person does not see. They can also reverse the order in which a person sees the text.
Invisible characters that a script or an emoji needs are kept: one joiner between two letters or two emoji, one
variation selector after an emoji.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

_LINE_ENDS: Final = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85]")
_HIDDEN: Final = re.compile(
    "["
    r"\x00-\x08\x0e-\x1b\x1f\x7f-\x9f"  # controls, except tab and line ends
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # soft hyphen, grapheme joiner, fillers without width
    r"\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"  # variation selectors
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks, embeddings, overrides and isolates
    r"\u200b-\u200d\u2060-\u2065\u206a-\u206f\ufeff"  # spaces and joiners without width
    r"\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # annotations, shorthand and musical controls
    r"\U000e0000-\U000e007f"  # tags: copies of ASCII
    "]+"
)
_EMOJI: Final = (
    r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55\u3030"
    r"\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINED: Final = (
    r"\u0620-\u06ff\u0710-\u072f\u0750-\u077f\u0840-\u085b\u0860-\u08ff"  # Arabic, Syriac and related scripts
    r"\u0900-\u0dff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3\u1820-\u18aa\u1b05-\u1b4c\ua840-\ua877"  # Indic, Mongolian
)
_UNSPACED: Final = r"\u0e01-\u0e4e\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3"
"""Letters of Thai, Lao, Burmese and Khmer. Texts in these scripts mark the end of a word with a zero-width space."""
_NEEDED: Final = re.compile(
    rf"(?<=[{_EMOJI}])\ufe0f?\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]"
    rf"|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    rf"|(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])"
    rf"|(?<=[{_UNSPACED}])\u200b(?=[{_UNSPACED}])"
    r"|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
    r"|(?<=\U0001f3f4)\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    r"|\U000e0077\U000e006c\U000e0073)\U000e007f"  # the flags of England, Scotland and Wales
)
"""Hidden characters that a script or an emoji needs. A run of hidden characters is kept only if this pattern matches
the whole run; otherwise the run is removed."""
_ID: Final = re.compile(r"(?:.*_)?ids?")


def clean_text(text: str) -> str:
    """Return the text without invisible characters and controls, with `\\n` for every line end.

    The time is linear in the length of the text. A clean text is returned unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_needed, _LINE_ENDS.sub("\n", text))


def clean_value(value: JsonValue) -> JsonValue:
    """Clean every text inside a JSON value. Values of fields such as `id` and `fact_ids` do not change, because they
    name records."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_value(each) for each in value]
    if isinstance(value, dict):
        return {name: each if _ID.fullmatch(name) else clean_value(each) for name, each in value.items()}
    return value


def hidden_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each run of characters that `clean_text` removes, without the line ends that it
    replaces."""
    for run in _HIDDEN.finditer(text):
        if not _is_needed(run):
            yield run.span()


def _needed(run: re.Match[str]) -> str:
    return run.group() if _is_needed(run) else ""


def _is_needed(run: re.Match[str]) -> bool:
    """Return whether the surrounding text needs a run of hidden characters."""
    found = _NEEDED.match(run.string, run.start())
    return found is not None and found.end() == run.end()
