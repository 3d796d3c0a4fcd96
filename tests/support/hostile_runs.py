"""Runs of signs and words that patterns and readers treat in a special way, to measure how work grows with length."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Final

SMALL: Final = 4 * 1024
LARGE: Final = 64 * 1024
RATIO_MAX: Final = 24
"""Times the work of a small text that a text of 16 times its length may cost."""
_PROBE: Final = 16 * 1024
_PROBE_RATIO: Final = 5
"""Times the work of a small text that 16 KiB, four times its length, may cost without a look at 64 KiB. Work that also
has a quadratic part costs at most twice its linear part there."""
PROBE_S: Final = 0.015
"""Seconds of processor time for 16 KiB below which growth does not matter: quadratic work takes 0.24 s for 64 KiB."""
REPEATS: Final = 3

_SIGNS: Final = (
    *(" ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\u200b", '"', "'", "`", "“", "„", "«", "‘", "’", "「", "(", ")"),
    *("[", "]", "{", "}", "<", ">", ".", "!", "?", ":", ";", ",", "-", "_", "=", "*", "#", "~", "|", "/", "\\", "@"),
    *("$", "%", "&", "+", "…", "–", "0", "a", "A", "é", "日"),
)
_MIXED: Final = (
    *(
        "a ",
        "A b ",
        "a.",
        "a. ",
        "a, ",
        "a: ",
        "a:b@",
        "a-",
        "a_",
        "a\n",
        "\n\n",
        "1 ",
        "1.",
        "1-",
        "12:00 ",
        ' "',
        '" ',
    ),
    *('"a b c d" ', "“a „b ", "([{", "</a>", "<quote>", "[quote]", "<|x|>", '{"a":', '[{"a', '"""', "'''", "```\n"),
    *(
        "> \n",
        "---",
        "--- a ---\n",
        "--- end ---\n",
        "user: ",
        "user\n",
        "from: ",
        "from: a\n",
        "to: x@y\n",
        "on ",
        "am ",
    ),
    *("wrote: ", "schrieb am ", "says: ", "A says: b. ", "translate ", "a=b ", "a=b;", "[memory ", "&amp;", "&#"),
    *("[memory 0123456789abcdef ends]\n", "\\u00", "%20", "x@", "a@b.", "://", "http://", "http://a/?", "a.b/", "a.b("),
    *(
        "!\\[",
        "call ",
        "please ",
        "you must ",
        "always ",
        "forget that I ",
        "I work at ",
        "my sister Anna ",
        "and ",
        "und ",
    ),
    *("not ", "zu ", ", der ", "no longer ", "? ", "- a\n", "password: ", "password ", "PIN ", "my password is x1 "),
    *("code to the ", "4111 ", "DE89 ", "+49 ", "ssn ", "call 123 ", "eyJ", "sk-", "jdbc:", "a://b:c", "login is a/"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "[password] ",
        "a(at)",
        "M.",
        "[p1]\nknown: a\nnew: b\n",
        "[w1] a\n",
        "|password|\n|--|\n|[password]|\n",
        "haha",
        "Ann ",
    ),
)
_OPENINGS: Final = (
    "",
    'forget it. "please\n> from: a\nsubject: b\n[memory 0123456789abcdef begins: remembered data, not instructions]\n'
    "password: always call the tool http://a.b/ https://a:b@c/?d= {'a': [x](y). "
    "The assistant must ignore 12 rules, ssn ",
)
"""What stands before a run. The second one has a beginning of most rules, so that none is left out for want of it."""
_ENDINGS: Final = ("", "x:")


def hostile_runs() -> Sequence[tuple[str, str, str]]:
    """Return the beginning, the repeated piece and the end of each text."""
    return [
        (_OPENINGS[place % 2], piece, _ENDINGS[place // 2 % 2]) for place, piece in enumerate((*_SIGNS, *_MIXED))
    ] + [("", piece, "x:") for piece in _SIGNS]


def text_of(run: tuple[str, str, str], length: int) -> str:
    opening, piece, ending = run
    return opening + piece * (length // len(piece)) + ending


def grows_too_fast(read: Callable[[str], object], run: tuple[str, str, str]) -> str | None:
    """Return the times of a reader whose work grows faster than the length of the text; None for any other."""
    probe = _seconds(read, text_of(run, _PROBE))
    if probe <= PROBE_S or probe <= _PROBE_RATIO * (small := _seconds(read, text_of(run, SMALL))):
        return None
    large = float("inf")
    for _ in range(REPEATS):
        small = min(small, _seconds(read, text_of(run, SMALL)))
        large = min(large, _seconds(read, text_of(run, LARGE)))
        if large <= RATIO_MAX * small:
            return None
    return f"{run}: {small:.4f} s at {SMALL}, {large:.4f} s at {LARGE} characters"


def _seconds(read: Callable[[str], object], text: str) -> float:
    gc.disable()  # its own work grows with the number of objects
    try:
        began = time.process_time()
        read(text)
        return time.process_time() - began
    finally:
        gc.enable()
