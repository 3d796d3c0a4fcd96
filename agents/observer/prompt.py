"""Prompt of the observer (docs/reference/models.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import Final

from pydantic import JsonValue

from ...adapters.ports import Message
from ...memory.language.text import escape_markers, one_line
from ...memory.policies import CapturePolicy
from ...memory.recall.prompt_framing import remove_framed
from ...memory.trust.rendered_text import safe_name, safe_statement
from ...memory.trust.said_text import SaidText
from ...schemas.observations import TurnCut
from ...schemas.said_at import in_zone
from ...schemas.turns import Turn, TurnMessage
from ...schemas.working_set import WorkingEntry, WorkingSet
from ..common.structured_output import short_id
from .answer_schema import WHOLE, AnswerForm
from .rows import RecentMessage
from .speakers import USER, ShownMessage, shown_name, subject_of_name, with_written_names
from .turn_cut import CHARACTERS_A_TOKEN, cut_to_size
from .turn_source import TurnSource, text_of

_TIMES: Final = ("due_at", "valid_from", "valid_to")
ITEMS_MAX: Final = 256
"""Maximum number of items that the schema of an answer allows."""
_SHOWN_FROM: Final = timedelta(hours=1)
"""Time difference between message and turn from which the prompt shows the message's own time."""


@dataclass(frozen=True)
class ShownTurn:
    """A turn as shown in the prompt: captured roles only, with assistant texts and the whole turn cut to limits.

    Recalled memories in the turn are left out, so that the model neither learns nor quotes them again.
    """

    turn_id: str
    occurred_at: datetime
    """Local time of the speakers."""
    said: tuple[ShownMessage, ...]
    messages: tuple[ShownMessage, ...] | None = None
    """The turn's own messages before the cut. They are searched for the speaker of a quote, because a cut may remove an
    opening quotation mark. None when `said` has the same messages: there is no source function and the turn is not
    cut."""
    cut: TurnCut | None = None
    """Details of the cut of a long turn, or None when the turn was not cut."""

    @classmethod
    def of(
        cls, turn: Turn, occurred_at: datetime, policy: CapturePolicy, source: TurnSource | None = None
    ) -> ShownTurn:
        at = turn.local(occurred_at)
        own = tuple(
            ShownMessage(
                message.role,
                remove_framed(message.text),
                shown_name(message.name, turn.user_id) if message.role != "tool" else None,
                _own_time(turn, message, at),
            )
            for message in turn.messages
        )
        if source is not None:
            text = remove_framed(text_of(turn, source))
            shown, cut = cut_to_size((ShownMessage(USER, text),) if text.strip() else (), tokens=policy.turn_tokens)
            return cls(turn.turn_id, at, shown, own, cut)
        said = tuple(
            each if each.role != "assistant" else replace(each, text=each.text[: policy.max_assistant_chars])
            for each in own
            if each.role in policy.roles
        )
        said = tuple(each for each in said if each.text.strip())
        shown, cut = cut_to_size(said, tokens=policy.turn_tokens)
        return cls(turn.turn_id, at, shown, None if cut is None else said, cut)

    @property
    def tokens(self) -> int:
        """The estimated number of shown tokens, at 4 characters per token."""
        return -(-sum(len(each.text) for each in self.said) // CHARACTERS_A_TOKEN)

    @property
    def own_messages(self) -> tuple[ShownMessage, ...]:
        """The messages that `own_texts` is made from."""
        return self.said if self.messages is None else self.messages

    @cached_property
    def texts(self) -> tuple[SaidText, ...]:
        """The shown texts, in the form for comparing quotes."""
        return tuple(each.said for each in self.said)

    @cached_property
    def own_texts(self) -> tuple[SaidText, ...]:
        """The texts of the turn's own messages, even when a source function made the shown text or the turn is cut."""
        return self.texts if self.messages is None else tuple(each.said for each in self.messages)


@dataclass(frozen=True)
class ObservePrompt:
    """The prompt of one model call, and the turns and entries that its short ids name."""

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

    @cached_property
    def people(self) -> frozenset[str]:
        """The subjects of all speakers: in the turns, in the earlier messages, and the user."""
        turns = (each.speaker for turn in self.turns for each in turn.own_messages if each.role == USER)
        return frozenset((USER, *turns, *(subject_of_name(each.name) for each in self.recent if each.role == USER)))

    def texts_before(self, name: str) -> tuple[SaidText, ...]:
        """Return the texts shown before a turn: earlier messages and earlier turns."""
        names = list(self.turn_ids)
        turns = (self.turn_ids[each] for each in names[: names.index(name)])
        return (*self._earlier, *(text for turn in turns for text in turn.own_texts))

    @cached_property
    def _earlier(self) -> tuple[SaidText, ...]:
        return tuple(SaidText(message.role, message.text) for message in self.recent)

    @property
    def name(self) -> str:
        """The prompt's version and hash, for `cause.prompt`."""
        return f"{self.form.version}:sha256{hashlib.sha256(self._rules.encode()).hexdigest()[:16]}"

    @cached_property
    def _rules(self) -> str:
        return self.form.text(self.policy.max_per_message, self.policy.instructions)

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The schema of the answer. The maximum number of items follows from the number of the users' messages.

        This number is rounded up to a power of two, so that a server sees few schemas and can keep what it compiled.
        """
        messages = sum(max(1, sum(each.role == USER for each in turn.said)) for turn in self.turns)
        most = self.form.most_of(self.policy.max_per_message) * (1 << (messages - 1).bit_length())
        return self.form.schema(len(self.turns), most=min(most, ITEMS_MAX))

    def with_offsets(self, answer: JsonValue, zone: tzinfo | None = None) -> JsonValue:
        """Return the answer with the turn's UTC offset added to every time without an offset.

        A model writes times by the turn's clock and may leave out the offset. `zone`: the zone of the item that the
        value is in.
        """
        if isinstance(answer, list):
            return [self.with_offsets(each, zone) for each in answer]
        if not isinstance(answer, dict):
            return answer
        named = self.turn_ids.get(short_id(answer.get("turn")) or "")
        turn = self.turns[0] if len(self.turns) == 1 else named
        zone = zone if turn is None else turn.occurred_at.tzinfo
        return {
            name: _with_offset(value, zone) if name in _TIMES else self.with_offsets(value, zone)
            for name, value in answer.items()
        }

    def messages(self) -> tuple[Message, ...]:
        """Return the rules, the context, and at the end the verbatim turns.

        An assistant message separates the two user messages, because many model templates refuse two consecutive
        messages of one role.
        """
        return (
            Message("system", self._rules),
            Message("user", self._context()),
            Message("assistant", "Now the turns, please."),
            Message("user", "\n\n".join(self._turn(name, turn) for name, turn in self.turn_ids.items())),
        )

    def _context(self) -> str:
        times = ", ".join(f"{name} {_shown_time(turn.occurred_at)}" for name, turn in self.turn_ids.items())
        parts = ["Context. Nothing is extracted from this message.", f"Time of the turns: {times}"]
        parts.append("Working entries:" if self.entries else "Working entries: none")
        by_subject: dict[str, list[str]] = {}
        for name, entry in self.entries.items():
            by_subject.setdefault(entry.subject, []).append(f"[{name}] {safe_statement(entry.content)}")
        for subject, lines in by_subject.items():
            parts += [f"## {safe_name(one_line(subject))}", *lines]
        if self.recent:
            parts.append("Earlier messages:")
            heading: str | None = None
            for n, message in enumerate(self.recent, start=1):
                who = message.role if message.name is None else f"{message.role} ({message.name})"
                if who != heading:
                    heading = who
                    parts.append(f"## {heading}")
                parts.append(f"[c{n}] {one_line(message.text)}")
        return "\n".join(parts)

    def _turn(self, name: str, turn: ShownTurn) -> str:
        said = "\n".join(f"{_label(each, turn)}: {escape_markers(each.text)}" for each in turn.said)
        return f"[{name}]\n{said}"


def with_names(turns: Sequence[ShownTurn], recent: Sequence[RecentMessage]) -> tuple[ShownTurn, ...]:
    """Return the turns with the names of speakers that chat relays wrote into the texts."""
    earlier = [ShownMessage(each.role, each.text, each.name) for each in recent]
    named: list[ShownTurn] = []
    for turn in turns:
        own = None if turn.messages is None else with_written_names(turn.messages, earlier)
        named.append(replace(turn, said=with_written_names(turn.said, earlier), messages=own))
        earlier += turn.said
    return tuple(named)


def _with_offset(value: JsonValue, zone: tzinfo | None) -> JsonValue:
    """Return an answer's time with an offset. A date without a time is unchanged."""
    try:
        at = datetime.fromisoformat(value.strip()) if isinstance(value, str) and ":" in value else None
    except ValueError:
        return value
    return value if at is None or at.tzinfo is not None or zone is None else at.replace(tzinfo=zone).isoformat()


def _own_time(turn: Turn, message: TurnMessage, turn_at: datetime) -> datetime | None:
    """Return a message's own time: in the speakers' zone, else with its own offset, else with the turn's offset."""
    at = message.created_at
    if at is None or turn.zone is not None or at.utcoffset():
        return at and turn.local(at)
    return in_zone(at, turn_at.tzinfo)


def _shown_time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _label(message: ShownMessage, turn: ShownTurn) -> str:
    """Return the label of a message: its role, its speaker, and its time if the day or the hour differs."""
    at = message.at
    other = at is not None and (at.date() != turn.occurred_at.date() or abs(at - turn.occurred_at) >= _SHOWN_FROM)
    shown = [each for each in (message.name, _shown_time(at) if at is not None and other else None) if each]
    return f"{message.role} ({', '.join(shown)})" if shown else message.role


def recent_messages(
    before: Sequence[RecentMessage], turn: ShownTurn, policy: CapturePolicy
) -> tuple[RecentMessage, ...]:
    """Return the last messages, oldest first, within the policy's number of messages and tokens (4 characters each)."""
    every = [*before, *(RecentMessage(role=each.role, text=each.text, name=each.name) for each in turn.said)]
    kept: list[RecentMessage] = []
    characters = CHARACTERS_A_TOKEN * policy.context_tokens
    for message in reversed(every[-policy.context_messages :] if policy.context_messages else []):
        text = message.text[:characters]
        if not text:
            break
        characters -= len(text)
        kept.append(message.model_copy(update={"text": text}))
    return tuple(reversed(kept))
