"""The pure part of session summaries: the turns that wait for a summary, and the text of a turn in the prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from ...schemas.episodes import SUMMARISED_MAX, EpisodesRecorded
from ...schemas.facts import Trust
from ...schemas.turns import SENSITIVITIES, Sensitivity, up_to
from ...schemas.working_set import StoredMessage
from ..policies import CapturePolicy
from ..recall.context import tokens
from ..recall.prompt_framing import remove_framed

WAITING_MAX: Final = SUMMARISED_MAX
"""Maximum turns of an owner that wait for a summary, in all sessions together. Only the newest turns wait; older turns
get no summary, but stay in the session log."""
SHOWN: Final = frozenset(up_to("internal"))
"""Sensitivities that go into a summary. Everybody who may see `internal` sees the summary."""


class SummaryBacklog(BaseModel):
    """The turns of one session that no summary covers yet, in their order."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]

    @property
    def session(self) -> tuple[str, str]:
        return self.user_id, self.session_id


def add_turn(waiting: Sequence[SummaryBacklog], recorded: EpisodesRecorded) -> tuple[SummaryBacklog, ...]:
    """Add one reflected turn, and move its session to the end of the list. When there are too many turns, turns are
    dropped from the beginning of the list."""
    session = recorded.user_id, recorded.session_id
    before = next((each.turn_ids for each in waiting if each.session == session), ())
    now = SummaryBacklog(user_id=session[0], session_id=session[1], turn_ids=(*before, recorded.turn_id))
    others = [each for each in waiting if each.session != session]
    kept: list[SummaryBacklog] = []
    room = WAITING_MAX
    for each in reversed((*others, now)):
        turns = each.turn_ids[-room:] if room else ()
        if turns:
            kept.append(each.model_copy(update={"turn_ids": turns}))
            room -= len(turns)
    return tuple(reversed(kept))


def sort_by_need(waiting: Sequence[SummaryBacklog], *, at_least: int) -> tuple[SummaryBacklog, ...]:
    """Return the sessions with at least `at_least` turns, most turns first; none when `at_least` is 0."""
    enough = [each for each in waiting if at_least and len(each.turn_ids) >= at_least]
    return tuple(sorted(enough, key=lambda each: -len(each.turn_ids)))


def remove_turns(
    waiting: Sequence[SummaryBacklog], session: SummaryBacklog, turns: Collection[str]
) -> tuple[SummaryBacklog, ...]:
    """Remove turns of a session, because they have a summary or will not be summarised."""
    left = []
    for each in waiting:
        if each.session == session.session:
            each = each.model_copy(update={"turn_ids": tuple(turn for turn in each.turn_ids if turn not in turns)})
        if each.turn_ids:
            left.append(each)
    return tuple(left)


class StoredTurn(BaseModel):
    """A turn of the session log, read from its message 0."""

    model_config = ConfigDict(hide_input_in_errors=True, frozen=True, extra="ignore")

    turn_id: str
    first_place: int | None = None
    """Index of the turn's first message in the thread of the session. None for turns that version 0.1 recorded; these
    turns come before all others."""
    occurred_at: datetime


def select_older_turns(session: Iterable[StoredTurn], *, keep: int) -> tuple[StoredTurn, ...]:
    """Return the turns of a session except the newest `keep`, in the order of the log.

    Turns whose `first_place` is None come first, in the order of their times.
    """
    ordered = sorted(
        session,
        key=lambda turn: (-1 if turn.first_place is None else turn.first_place, turn.occurred_at, turn.turn_id),
    )
    return tuple(ordered[: max(0, len(ordered) - keep)])


@dataclass(frozen=True, slots=True)
class SummaryTurn:
    """A turn as the prompt shows it. `said`: pairs of role and text."""

    turn_id: str
    occurred_at: datetime
    said: tuple[tuple[str, str], ...]
    sensitivity: Sensitivity

    @property
    def tokens(self) -> int:
        return sum(tokens(text) for _, text in self.said)

    @property
    def trust(self) -> Trust:
        return "user" if all(role == "user" for role, _ in self.said) else "assistant"


def to_summary_turns(
    turn_ids: Sequence[str], messages: Iterable[StoredMessage], policy: CapturePolicy
) -> tuple[SummaryTurn, ...]:
    """Return the turns that are in the session log, in the order of `turn_ids`.

    Only messages of the policy's `roles` are included. The text of the assistant is cut. Messages above the sensitivity
    `internal`, and rendered memories inside a text, are removed.
    """
    by_turn: dict[str, list[StoredMessage]] = {}
    for message in sorted(messages, key=lambda each: each.message_index):
        by_turn.setdefault(message.turn_id, []).append(message)
    return tuple(_to_summary_turn(turn, by_turn[turn], policy) for turn in turn_ids if turn in by_turn)


def _to_summary_turn(turn_id: str, messages: Sequence[StoredMessage], policy: CapturePolicy) -> SummaryTurn:
    said = []
    for message in messages:
        text = remove_framed(message.content)
        if message.role == "assistant":
            text = text[: policy.max_assistant_chars]
        if message.role in policy.roles and message.sensitivity in SHOWN and text.strip():
            said.append((message.role, text))
    sensitivity = max((each.sensitivity for each in messages), key=SENSITIVITIES.index)
    return SummaryTurn(turn_id, messages[0].occurred_at, tuple(said), sensitivity)


def take_within_tokens(turns: Sequence[SummaryTurn], limit: int) -> tuple[SummaryTurn, ...]:
    """Return the oldest turns with at most `limit` tokens in total, but at least one turn."""
    total = 0
    for place, turn in enumerate(turns):
        total += turn.tokens
        if place and total > limit:
            return tuple(turns[:place])
    return tuple(turns)
