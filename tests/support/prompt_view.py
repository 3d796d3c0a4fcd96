"""The contents of a prompt, read back from its messages (docs/reference/models.md).

It is independent of the offline model's own reader, so that the two check each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

ITEM = re.compile(r"^\[([wcefp]\d+)\]\s?(.*)$")
TURN = re.compile(r"^\[(t\d+)\]$")
ESCAPED = re.compile(r"^(\s*)\\(\[[twcefp]\d+\])", re.MULTILINE)
SPEAKER = re.compile(r"^(user|assistant|tool|system)(?: \([^()\n]*\))?: ?", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """One line that the model may refer to: its short id, its heading, its content."""

    id: str
    heading: str
    content: str

    @property
    def subject(self) -> str:
        """The heading's last word. Headings are subjects, perhaps with a few words before them."""
        words = re.sub(r"[#*:]", " ", self.heading).split()
        return words[-1].lower() if words else "user"


@dataclass(frozen=True)
class PromptView:
    turns: dict[str, str] = field(default_factory=dict)
    """`t1` → its text, un-escaped."""
    working: dict[str, Shown] = field(default_factory=dict)
    context: dict[str, Shown] = field(default_factory=dict)
    episodes: dict[str, Shown] = field(default_factory=dict)
    facts: dict[str, Shown] = field(default_factory=dict)

    def id_of(self, content: str) -> str | None:
        """Return the short id of `content` among working entries, facts or episodes."""
        for shown in (*self.working.values(), *self.facts.values(), *self.episodes.values()):
            if shown.content == content:
                return shown.id
        return None


def view(messages: Sequence[tuple[str, str]]) -> PromptView:
    """Parse messages, given as (role, content). System messages are skipped: they hold instructions and examples."""
    shown: dict[str, dict[str, Shown]] = {"w": {}, "c": {}, "e": {}, "f": {}, "p": {}}
    turns: dict[str, list[str]] = {}
    users = [content for role, content in messages if role == "user"]
    for place, content in enumerate(users):
        heading, turn = "", None
        for line in content.split("\n"):
            if place == len(users) - 1 and (match := TURN.match(line)):
                turn = match.group(1)
                turns[turn] = []
            elif turn is not None:
                turns[turn].append(line)
            elif match := ITEM.match(line):
                shown[match.group(1)[0]][match.group(1)] = Shown(match.group(1), heading, match.group(2))
            elif line.strip():
                heading = line.strip()
    texts = {turn: ESCAPED.sub(r"\1\2", "\n".join(lines)).strip("\n") for turn, lines in turns.items()}
    return PromptView(turns=texts, working=shown["w"], context=shown["c"], episodes=shown["e"], facts=shown["f"])


def user_text(turn: str) -> str:
    """Return what the user said in a turn's text: its `user:` messages, or all of it if no role is named."""
    if not SPEAKER.search(turn):
        return turn
    parts = SPEAKER.split(turn)[1:]
    return "\n".join(text.rstrip("\n") for role, text in zip(parts[0::2], parts[1::2], strict=True) if role == "user")
