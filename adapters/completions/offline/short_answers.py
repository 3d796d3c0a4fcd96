"""Short answers and notes: statements in messages without a full sentence.

After "Where do you live?", "innsbruck" is read as "I live in innsbruck". "29, physio, from bergen" is a list of notes
about the speaker. A note that no rule can read is ignored.
"""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .sentences import sentences
from .spelling import with_names
from .values import is_diet, is_marital, is_occupation, is_origin, is_pets, is_plain_trade
from .wording import without_tail
from .words import CHILDREN, NUMBERS, OCCUPATIONS

_ASKED: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (r"where (?:do you live|are you (?:based|living|located))|(?:what|which) (?:city|town|country) (?:do|are) you", "I live in {x}"),
        (r"where (?:are you|do you come) from|where were you born", "I come from {x}"),
        (r"what (?:do you do(?: for (?:a living|work))?|is your (?:job|profession|occupation)|do you work as)\s*\?", "I am a {x}"),
        (r"where do you work|who do you work for", "I work at {x}"),
        (r"how old are you", "I am {x}"),
        (r"what is your name|who am i (?:talking|speaking) (?:to|with)|what (?:should|can|may) i call you", "my name is {x}"),
        (r"what is (?:his|her|its) name|what is (?:he|she|it) called", "name is {x}"),
        (r"how old is (?:he|she)\b", "he is {x}"),
        (r"(?:are you|do you have any) (?:allerg(?:ic|ies)|intolerances?)(?: to (?:anything|something))?", "I am allergic to {x}"),
        (r"what (?:languages )?do you (?P<v>speak|play|teach|study|drive|collect)", "I {v} {x}"),
        (r"(?:what|which) (?:kind of |sort of )?[\w ]{2,30}? do you (?P<v>speak|play|teach|study|drive|collect|like|love|enjoy|prefer)", "I {v} {x}"),
        (r"what are you (?:study|read)ing", "I study {x}"),
        (r"when is your birthday", "my birthday is {x}"),
        (r"do you have (?:any )?(?:kids|children|pets|siblings|brothers or sisters|a pet)", "I have {x}"),
    )
)  # fmt: skip
_SENTENCE: Final = re.compile(
    r"(?:i|we|you|he|she|it|they|that|this|my|our|no|nope|nah|none|not|nothing|why|what|how|who|when|where|can|could|do|is"
    r"|are|should|would|ok|okay|sure|well|thanks|thank|pls|please|maybe|never|dunno|idk|both|neither|anything)\b",
    re.IGNORECASE,
)
_YES: Final = re.compile(
    r"(?:yes|yeah|yep|yup|oh|um|uh|er|hmm|just|mostly|mainly|mainly in|in|at|as|a|an)[ ,.!]+", re.I
)
MAX_WORDS: Final = 7
MAX_NOTES: Final = 24
"""Maximum number of notes in one sentence. A longer list is not a list of notes about the speaker."""


def answered(message: str, asked: str) -> Iterator[tuple[str, str]]:
    """Yield the sentence that a short answer to the assistant's question implies, and the answer verbatim."""
    question = next((each for each in reversed(list(sentences(asked[-600:]))) if each.rstrip().endswith("?")), None)
    if question is None:
        return
    answer = next(sentences(message[:400]), "")
    short = answer.rstrip(" .!")
    while (bare := _YES.sub("", short, count=1)) != short:
        short = bare
    if not short or "?" in answer or len(short.split()) > MAX_WORDS or _SENTENCE.match(short):
        return
    plain = re.sub(r"\b(what|where|who|how|when)['’]s\b", r"\1 is", question, flags=re.IGNORECASE)
    for pattern, said in _ASKED:
        if match := pattern.search(plain):
            value = re.split(r"\s*[,;(–—]|\s+-\s", short)[0]
            if "name" in said:
                value = value[:1].upper() + value[1:]
            yield with_names(said.format(x=value, **match.groupdict())), answer
            return


# ------------------------------------------------------------------------------------------------ notes
_OPENING: Final = re.compile(
    r"(?:(?:hi|hey|hello|about me|me|quick intro|intro|profile|bio|facts?|save this|for the record|note)\b[ ,:!.-]*)+",
    re.I,
)
_NOTES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (r"(?P<x>[1-9]\d)(?: ?(?:years old|y/?o|years|m|f))?", "I am {x} years old"),
        (r"(?:originally )?from (?P<x>[\w' -]+)", "I come from {x}"),
        (r"(?:live|living|based|now|currently|home) in (?P<x>[\w' -]+)", "I live in {x}"),
        (r"(?:married|engaged|divorced|widowed|single|separated)(?: to .+)?", "I am {all}"),
        (rf"(?P<x>(?:an?|{NUMBERS}|1) [\w -]+?)(?: \(.*\))?", "I have {x}"),
        (r"allergic to (?P<x>.+)", "I am allergic to {x}"),
        (r"(?P<x>(?:shoe|ring|shirt|dress) size|blood type|birthday|star sign):? (?:is )?(?P<y>.+)", "my {x} is {y}"),
        (r"(?:speaks?|fluent in) (?P<x>.+)", "I speak {x}"),
        (r"(?:love|loves|like|likes|into) (?P<x>.+)", "I like {x}"),
        (r"(?:mum|mom|mother|dad|father|parent) of (?P<x>.+)", "I am a {all}"),
        (r"works? (?P<x>(?:as|at|for) .+)", "I work {x}"),
        (r"(?:no|don't eat|do not eat) (?P<x>meat|fish|pork|dairy|gluten|alcohol|nuts|eggs|seafood)(?: for me)?", "I do not eat {x}"),
    )
)  # fmt: skip


def noted(text: str) -> list[str]:
    """Return the sentences that a list of notes about the speaker implies; empty when the text is not a list of notes.
    `text` is without contractions and short forms.

    The rules must be able to read the first note and at least one other note. Otherwise the text may be an ordinary
    sentence with commas.
    """
    if not 0 < text.count(",") + text.count(" / ") + text.count("|") < MAX_NOTES:
        return []
    parts = [
        part.strip(" .!")
        for part in re.split(r",\s*(?:and )?|\s+/\s+|\s*\|\s*| (?=from [A-Z])", _OPENING.sub("", text, count=1))
    ]
    told = [_note(with_names(part)) for part in parts]
    read = [each for each in told if each is not None]
    return read if len(read) >= 2 and told[0] is not None else []


def _note(part: str) -> str | None:
    if not part:
        return None
    for pattern, said in _NOTES:
        if match := pattern.fullmatch(part):
            if said == "I have {x}" and not _counts(match["x"]):
                continue
            return said.format(all=part, **match.groupdict())
    plain = without_tail(part)
    place = re.fullmatch(r"(?P<what>[\w -]+?) (?:at|in) .+", plain)
    what = place["what"] if place else plain
    if is_occupation(what) and (len(what.split()) > 1 or what.lower() in OCCUPATIONS or is_plain_trade(what)):
        return f"I am {'an' if part[0].lower() in 'aeiou' else 'a'} {part}"
    return f"I am {part}" if is_diet(part) or is_marital(part) or (is_origin(part) and " " not in part) else None


def _counts(value: str) -> bool:
    return is_pets(value) or value.lower().split()[-1] in CHILDREN
