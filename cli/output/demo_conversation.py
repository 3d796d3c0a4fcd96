"""Conversation of `memstream demo`: two sessions of one person, with statements that are easy to misread.

In the first session, the person changes her job and corrects a place. Other turns contain a preference, a statement
about a second person, and small talk without facts. Turn ids are fixed, so the turns of a second run are duplicates and
change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

TENANT = "demo"
USER = "ana"


@dataclass(frozen=True, slots=True)
class Said:
    session_id: str
    turn_id: str
    text: str


def _session(session_id: str, *texts: str) -> tuple[Said, ...]:
    return tuple(Said(session_id, f"{session_id}-{number}", text) for number, text in enumerate(texts, start=1))


CONVERSATION: tuple[Said, ...] = (
    *_session(
        "monday",
        "Hello there! Lovely weather, isn't it?",
        "My name is Ana and I work at Google as a software engineer.",
        "I live in Berlin.",
        "Sorry, I meant Potsdam, not Berlin.",
        "I prefer green tea over coffee.",
        "Guess what, I left Google. I now work at Stripe.",
    ),
    *_session(
        "thursday",
        "My brother Tom lives in Vienna.",
        "Could you tell me how many ounces are in a pound?",
        "I am learning to play the cello.",
        "Ha, thanks, that was quick!",
    ),
)
