"""Messages of a context: the sentences that no statement of memory covers, cut to a passage that fits the cue. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..facts.similarity import overlap, words
from ..language.locales import Locale
from ..language.questions import only_asks
from ..language.text import folded, one_line
from ..trust.excerpts import split_sentences
from ..trust.forget_requests import asks_to_forget
from ..trust.rendered_text import is_unsafe, safe_name, states_persona
from .context_lines import USER, one_plain_line

STATED: Final = 0.6
"""A sentence is covered when a statement contains at least this share of its words."""
PASSAGE_MAX: Final = 300
"""Maximum length of the passage of a message, in code points."""
READ_MAX: Final = 8_000
"""Number of leading code points of a message that are read."""
CUT: Final = "…"
_QUOTES: Final = str.maketrans("“”„", '"""')


def unstated_passage(content: str, stated: Sequence[str], *, role: str, cue: str, packs: tuple[Locale, ...]) -> str:
    """Return the passage of a message that a context shows, or "" when nothing is left to show.

    `stated` are the statements of memory and their quotes. Left out are sentences that a statement covers, sentences
    that must not be shown in a prompt, requests to forget, and sentences that repeat the cue. Of another role than the
    user, sentences that say who the assistant is are left out. A rest that only asks is left out, too.
    """
    known, asked = [words(each) for each in stated], words(cue)
    kept = [
        line
        for each in split_sentences(content[:READ_MAX])
        if (line := one_plain_line(each))
        if (its := words(line)) and not its <= asked
        if not any(overlap(its, theirs) >= STATED for theirs in known)
        if not asks_to_forget(folded(line))
        if not is_unsafe(USER, line) and (role == USER or not states_persona(line))
    ]
    if not kept or only_asks(" ".join(kept), packs):
        return ""
    return _passage(kept, asked).translate(_QUOTES)


def _passage(sentences: Sequence[str], cue: frozenset[str]) -> str:
    """Return the sentences within the maximum length, beginning at the sentence with the most words of the cue."""
    if len(whole := " ".join(sentences)) <= PASSAGE_MAX:
        return whole
    first = max(range(len(sentences)), key=lambda n: (len(words(sentences[n]) & cue), -n))
    shown, rest = sentences[first], first + 1
    while rest < len(sentences) and len(shown) + 1 + len(sentences[rest]) <= PASSAGE_MAX:
        shown, rest = f"{shown} {sentences[rest]}", rest + 1
    if len(shown) > PASSAGE_MAX:
        head, _, _ = shown[:PASSAGE_MAX].rpartition(" ")
        shown, rest = head or shown[:PASSAGE_MAX], 0
    return f"{f'{CUT} ' if first else ''}{shown}{f' {CUT}' if rest < len(sentences) else ''}"


def speaker_of(role: str, name: str | None) -> str:
    """Return who said a message, for a prompt: the user, a person with a name, the assistant, or a tool.

    The name of an assistant or a tool is not shown, so that its text never reads as a person's word.
    """
    if role == "assistant":
        return "the assistant"
    if role != USER:
        return "a tool"
    shown = one_line(one_plain_line(name or ""))
    return safe_name(shown) if shown and shown != USER else "the user"
