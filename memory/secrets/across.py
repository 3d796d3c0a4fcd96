"""Secrets that cross a boundary: from one part of a message to the next, or from a message to the next message of the
same speaker."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ...schemas.turns import TurnMessage
from .findings import Finding
from .secret_filter import SecretFilter

LOOK_BACK: Final = 200
"""Maximum number of characters at the end of a speaker's earlier messages that are searched together with the speaker's
next message."""
LOOK_AHEAD: Final = 200
"""Maximum number of characters at the beginning of the next message that are searched together with the end of the
earlier messages."""
_STARTS_WITHIN: Final = 64
"""Number of characters of the next message within which a value must begin."""
_WORDS: Final = ("password", "pin", "passphrase")
"""Kinds whose values may be ordinary words. Two messages joined without a line end may form such a value by accident.
The value then counts only when nothing follows it in the last message."""
_ENDS: Final = " \t\r\n.,;!?"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a message. `text` begins at position `start` of message `index`."""

    index: int
    start: int
    text: str


def across_parts(message: TurnMessage, secrets: SecretFilter) -> list[Finding]:
    """Return the findings in the text parts of a message, joined without line ends. The spans are positions in
    `message.text`."""
    if not isinstance(message.content, tuple):
        return []
    texts = [part.text for part in message.content if part.type == "text" and part.text is not None]
    if len(texts) < 2:
        return []
    ends = [*accumulate(map(len, texts))]
    found = [
        Finding(each.kind, each.start + bisect_right(ends, each.start), each.end + bisect_right(ends, each.end - 1))
        for each in secrets.find("".join(texts))
    ]
    whole = {each.end for each in secrets.find(message.text)} if found else set()
    return [each for each in found if each.kind not in _WORDS or each.end not in whole]


def across_messages(messages: Sequence[TurnMessage], secrets: SecretFilter) -> dict[int, list[Finding]]:
    """Return the findings that cross from one message to the next message of the same speaker. A finding has one entry,
    by message index, for each message that contains a part of the secret.

    When one message only names the secret, the finding is the value in the next message.
    """
    speakers = [(message.role, message.name) for message in messages]
    if len(set(speakers)) == len(speakers):
        return {}
    found = defaultdict[int, list[Finding]](list)
    said = dict[tuple[str, str | None], list[_Piece]]()
    for index, (message, speaker) in enumerate(zip(messages, speakers, strict=True)):
        text = message.text
        if not text.strip():
            continue
        before = said.get(speaker, [])
        if before:
            ahead = _Piece(index, 0, _beginning(text))
            for number, finding in _found_across([*before, ahead], secrets):
                found[number].append(finding)
        said[speaker] = _end_of([*before, _Piece(index, 0, text)])
    return found


def _found_across(pieces: Sequence[_Piece], secrets: SecretFilter) -> Iterator[tuple[int, Finding]]:
    """Yield (message index, finding) for secrets that reach into the last piece.

    The pieces are searched twice: joined with a line end, and joined without one, because a key may be split anywhere.
    """
    whole = set[int]()
    for glue in ("\n", ""):
        joined = glue.join(piece.text for piece in pieces)
        starts = [0, *accumulate(len(piece.text) + len(glue) for piece in pieces)]
        last = starts[len(pieces) - 1]
        for each in secrets.find(joined):
            if each.end <= last or each.start >= last + _STARTS_WITHIN:
                continue
            if not glue and each.kind in _WORDS and (each.end - last in whole or _goes_on(joined, each, last)):
                continue
            whole.add(each.end - last)
            for piece, start in zip(pieces, starts, strict=False):
                first, end = max(each.start, start), min(each.end, start + len(piece.text))
                if first < end:
                    yield piece.index, Finding(each.kind, first - start + piece.start, end - start + piece.start)


def _goes_on(joined: str, finding: Finding, last: int) -> bool:
    """Return whether text follows a value that begins in an earlier message. Such text shows that the last message is a
    sentence and not the end of a secret."""
    return finding.start < last and joined[finding.end :].strip(_ENDS) != ""


def _beginning(text: str) -> str:
    if len(text) <= LOOK_AHEAD:
        return text
    gap = max(map(text.rfind, " \n", (0, 0), (LOOK_AHEAD, LOOK_AHEAD)))
    return text[: gap if gap > 0 else LOOK_AHEAD]


def _end_of(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Return the last pieces, with at most LOOK_BACK characters in total."""
    kept, room = list[_Piece](), LOOK_BACK
    for piece in reversed(pieces):
        if len(piece.text) > room:
            cut = len(piece.text) - room
            gap = min((at for at in (piece.text.find(" ", cut), piece.text.find("\n", cut)) if at != -1), default=cut)
            kept.append(_Piece(piece.index, piece.start + gap, piece.text[gap:]))
            break
        kept.append(piece)
        room -= len(piece.text)
    return kept[::-1]
