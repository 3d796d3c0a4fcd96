"""The observer's prompt (docs/reference/models.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from ...adapters.ports import Message
from ...memory.language.text import escape_markers, one_line
from ...memory.policies import CapturePolicy
from ...memory.recall.prompt_framing import remove_framed
from ...memory.trust.evidence import SaidText
from ...memory.trust.rendered_text import safe_name, safe_statement
from ...schemas.cloudevents import rfc3339
from ...schemas.observations import TurnCut
from ...schemas.turns import Role, Turn
from ...schemas.working_set import WorkingEntry, WorkingSet
from .answer_schema import WHOLE, AnswerForm
from .rows import RecentMessage
from .turn_cut import CHARACTERS_A_TOKEN, cut_to_size
from .turn_source import TurnSource, text_of


@dataclass(frozen=True)
class ShownTurn:
    """A turn as the prompt shows it: the captured roles, with the assistant's text cut to a limit, and a long turn cut
    to its own. Recalled memories that were rendered into the turn are left out, so that they are neither learnt again
    nor quoted as evidence."""

    turn_id: str
    occurred_at: datetime
    said: tuple[tuple[Role, str], ...]
    messages: tuple[tuple[Role, str], ...] | None = None
    """The turn's own messages, to tell who said what, when a source function made the text or the turn is cut: where a
    quotation begins may be left out."""
    cut: TurnCut | None = None
    """What is left out of a long turn."""

    @classmethod
    def of(
        cls, turn: Turn, occurred_at: datetime, policy: CapturePolicy, source: TurnSource | None = None
    ) -> ShownTurn:
        if source is not None:
            text = remove_framed(text_of(turn, source))
            own = tuple((message.role, remove_framed(message.text)) for message in turn.messages)
            shown, cut = cut_to_size((("user", text),) if text.strip() else (), tokens=policy.turn_tokens)
            return cls(turn.turn_id, occurred_at, shown, own, cut)
        said: list[tuple[Role, str]] = []
        for message in turn.messages:
            text = remove_framed(message.text)
            if message.role == "assistant":
                text = text[: policy.max_assistant_chars]
            if message.role in policy.roles and text.strip():
                said.append((message.role, text))
        shown, cut = cut_to_size(tuple(said), tokens=policy.turn_tokens)
        return cls(turn.turn_id, occurred_at, shown, None if cut is None else tuple(said), cut)

    @property
    def tokens(self) -> int:
        """Estimate of the tokens shown, at 4 characters a token."""
        return -(-sum(len(text) for _, text in self.said) // CHARACTERS_A_TOKEN)

    @cached_property
    def texts(self) -> tuple[SaidText, ...]:
        """What is shown, in the form that quotes are compared in."""
        return tuple(SaidText(role, text) for role, text in self.said)

    @cached_property
    def own_texts(self) -> tuple[SaidText, ...]:
        """The turn's own messages: what is shown, unless a source function made it or the turn is cut."""
        return self.texts if self.messages is None else tuple(SaidText(role, text) for role, text in self.messages)


@dataclass(frozen=True)
class ObservePrompt:
    """The messages for the model, and the records behind their short ids."""

    turns: tuple[ShownTurn, ...]
    working: WorkingSet
    recent: tuple[RecentMessage, ...]
    policy: CapturePolicy
    form: AnswerForm = WHOLE

    @cached_property
    def turn_ids(self) -> dict[str, ShownTurn]:
        return {f"t{n}": turn for n, turn in enumerate(self.turns, start=1)}

    @cached_property
    def entries(self) -> dict[str, WorkingEntry]:
        return {f"w{n}": entry for n, entry in enumerate(self.working.entries, start=1)}

    def texts_before(self, name: str) -> tuple[SaidText, ...]:
        """Return what is shown before a turn: earlier messages, and the turns before it."""
        names = list(self.turn_ids)
        turns = (self.turn_ids[each] for each in names[: names.index(name)])
        return (*self._earlier, *(text for turn in turns for text in turn.own_texts))

    @cached_property
    def _earlier(self) -> tuple[SaidText, ...]:
        return tuple(SaidText(message.role, message.text) for message in self.recent)

    @property
    def name(self) -> str:
        """The prompt's name and hash, for `cause.prompt`."""
        return f"{self.form.version}:sha256{hashlib.sha256(self._rules.encode()).hexdigest()[:16]}"

    @cached_property
    def _rules(self) -> str:
        return self.form.rules.format(max_per_turn=self.policy.max_per_turn)

    def messages(self) -> tuple[Message, ...]:
        """Return rules, context, and last the turns, verbatim. The assistant message between them is needed because the
        templates of many open models refuse two messages of one role in a row."""
        return (
            Message("system", self._rules),
            Message("user", self._context()),
            Message("assistant", "Now the turns, please."),
            Message("user", "\n\n".join(self._turn(name, turn) for name, turn in self.turn_ids.items())),
        )

    def _context(self) -> str:
        times = ", ".join(f"{name} {rfc3339(turn.occurred_at)}" for name, turn in self.turn_ids.items())
        parts = ["Context. Nothing is extracted from this message.", f"Time of the turns: {times}"]
        parts.append("Working entries:" if self.entries else "Working entries: none")
        by_subject: dict[str, list[str]] = {}
        for name, entry in self.entries.items():
            by_subject.setdefault(entry.subject, []).append(f"[{name}] {safe_statement(entry.content)}")
        for subject, lines in by_subject.items():
            parts += [f"## {safe_name(one_line(subject))}", *lines]
        if self.recent:
            parts.append("Earlier messages:")
            role: str | None = None
            for n, message in enumerate(self.recent, start=1):
                if message.role != role:
                    role = message.role
                    parts.append(f"## {role}")
                parts.append(f"[c{n}] {one_line(message.text)}")
        return "\n".join(parts)

    def _turn(self, name: str, turn: ShownTurn) -> str:
        said = "\n".join(f"{role}: {escape_markers(text)}" for role, text in turn.said)
        return f"[{name}]\n{said}"


def recent_messages(
    before: Sequence[RecentMessage], turn: ShownTurn, policy: CapturePolicy
) -> tuple[RecentMessage, ...]:
    """Return the last messages, oldest first, within the policy's number of messages and tokens (4 characters each)."""
    every = [*before, *(RecentMessage(role=role, text=text) for role, text in turn.said)]
    kept: list[RecentMessage] = []
    characters = CHARACTERS_A_TOKEN * policy.context_tokens
    for message in reversed(every[-policy.context_messages :] if policy.context_messages else []):
        text = message.text[:characters]
        if not text:
            break
        characters -= len(text)
        kept.append(RecentMessage(role=message.role, text=text))
    return tuple(reversed(kept))
