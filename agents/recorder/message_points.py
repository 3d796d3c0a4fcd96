"""Points of turns in the session log: messages with places and windows, for one or several turns. Pure functions.

Only messages of the session's thread (`is_talk`) have a place and a window. Messages of tools and systems, and messages
without words, are not in the thread. A place is the number of a message in the thread. A window is a message's text
together with the texts of neighbouring messages; it is embedded for search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...memory.recall.context_windows import ContextWindow, MessageWindows, WindowMessage, build_windows, is_talk
from ...memory.recall.prompt_framing import remove_framed
from ...memory.secrets.turns import ProtectedTurn
from ...schemas import ids
from ...schemas.base import why_unstorable
from ...schemas.collections import TURNS as TURNS_COLLECTION
from ...schemas.outcomes import ApplyLabels, InsertPoints, NewWindows, OutPoint, OutWindow, Write
from ...schemas.turns import Owner, Turn
from ...schemas.working_set import StoredMessage
from ...streams.log.port import Record
from ..common.erased_events import Happening
from ..common.turn_routing import happening_of_turn, message_time, occurred_at, turn_hash

Vectors = Mapping[str, Sequence[float]]
"""Vectors by text."""


@dataclass(frozen=True, slots=True)
class VerbatimTurn:
    """The recorder's event: a decoded turn with masked secrets, and its owner."""

    protected: ProtectedTurn
    owner: Owner
    session_key: str
    message_ids: tuple[str, ...]
    follows_log: bool
    """True when the turn has no time of its own. Its time is then never earlier than the time of the session's previous
    turn."""

    @classmethod
    def of(cls, protected: ProtectedTurn, owner: Owner, *, follows_log: bool) -> VerbatimTurn:
        turn = protected.turn
        session = turn.session_key
        message_ids = (ids.message_id(session, turn.turn_id, index) for index in range(len(turn.messages)))
        return cls(protected, owner, session, tuple(message_ids), follows_log)

    @property
    def turn(self) -> Turn:
        return self.protected.turn

    @property
    def happening(self) -> Happening:
        return happening_of_turn(self.turn)


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """The messages before a turn in the thread of its session."""

    next_place: int | None
    """The place of the turn's first message, or None for a turn recorded by version 0.1."""
    messages: tuple[StoredMessage, ...] = ()
    """The last `NEIGHBOURS` messages, oldest first."""
    last_in: str = TURNS_COLLECTION
    """The collection of the last message in `messages`."""


@dataclass(frozen=True, slots=True)
class PlacedTurn:
    """A turn to record, with the collection of its period."""

    record: Record
    work: VerbatimTurn
    collection: str


@dataclass(frozen=True, slots=True)
class TurnMessages:
    """The messages of consecutive turns, and the windows of the messages in the thread."""

    turns: tuple[tuple[str, tuple[StoredMessage, ...]], ...]
    """The collection and the messages of each turn."""
    windows: MessageWindows
    window_of: Mapping[str, ContextWindow]
    """Windows by message id, for messages of the thread."""

    def own_texts(self) -> list[str]:
        """Return the distinct search texts of the messages."""
        texts = (search_text(message) for _, messages in self.turns for message in messages)
        return list(dict.fromkeys(text for text in texts if text.strip()))

    def texts(self) -> list[str]:
        """Return all texts to embed: the messages, their windows, and the completed window of the previous message."""
        completed = [] if self.windows.before is None else [self.windows.before]
        windows = (window.text for window in (*self.windows.turn, *completed))
        return list(dict.fromkeys([*self.own_texts(), *windows]))


def turn_messages(turns: Sequence[PlacedTurn], before: EarlierMessages) -> TurnMessages:
    """Return the messages of turns that follow `before` in their session. Windows include neighbouring turns."""
    placed = []
    place = before.next_place
    said_until = max((message.occurred_at for message in before.messages), default=None)
    for turn in turns:
        when = occurred_at(turn.work.turn, turn.record)
        if said_until is not None and turn.work.follows_log:
            when = max(when, said_until)
        said_until = when if said_until is None else max(when, said_until)
        messages, place = _messages(turn, place, when=when)
        placed.append((turn.collection, messages))
    talk = [message for _, messages in placed for message in messages if is_talk(message.role, search_text(message))]
    windows = build_windows(_lines(before.messages), _lines(talk))
    window_of = dict(zip((message.message_id for message in talk), windows.turn, strict=True))
    return TurnMessages(tuple(placed), windows, window_of)


def session_writes(
    turns: Sequence[PlacedTurn], made: TurnMessages, before: EarlierMessages, vectors: Vectors
) -> tuple[Write, ...]:
    """Return the writes of consecutive turns: messages, the completed window of the previous message, labels.

    Each turn is inserted after the previous turn is stored. So after a crash, all turns before a stored turn are stored
    too, and the place of the stored turn is known.
    """
    writes: list[Write] = [
        InsertPoints(
            collection=collection,
            points=tuple(
                message_point(message, made.window_of.get(message.message_id), vectors) for message in messages
            ),
        )
        for collection, messages in made.turns
    ]
    turn = turns[0].work.turn
    if made.windows.before is not None:
        completed = completed_window(before.messages[-1], made.windows.before, vectors)
        writes.append(NewWindows(collection=before.last_in, tenant_id=turn.tenant_id, points=(completed,)))
    return (*writes, _labels(turns, before))


def search_text(message: StoredMessage) -> str:
    """Return the text by which search finds a message, without memories that were inserted into the prompt.

    The message itself is stored with its full text.
    """
    return remove_framed(message.content)


def _messages(placed: PlacedTurn, place: int | None, *, when: datetime) -> tuple[tuple[StoredMessage, ...], int | None]:
    """Return a turn's messages and the next free place. Messages of the thread take places from `place` on."""
    work, record = placed.work, placed.record
    turn = work.turn
    owner_key = work.owner.key(turn.tenant_id)
    next_place = place
    messages = []
    for index, (message, sensitivity) in enumerate(zip(turn.messages, work.protected.sensitivities, strict=True)):
        text = message.text
        takes_place = next_place is not None and is_talk(message.role, remove_framed(text))
        messages.append(
            StoredMessage(
                message_id=work.message_ids[index],
                message_index=index,
                role=message.role,
                name=message.name,
                content=text,
                tenant_id=turn.tenant_id,
                owner_key=owner_key,
                user_id=turn.user_id,
                session_id=turn.session_id,
                turn_id=turn.turn_id,
                occurred_at=message_time(message, when),
                sensitivity=sensitivity,
                agent_id=turn.agent_id,
                tags=turn.tags,
                metadata={name: value for name, value in turn.metadata.items() if why_unstorable(value) is None},
                turn_sha256=turn_hash(work.protected, record) if index == 0 else None,
                session_place=next_place if takes_place else None,
                first_place=place if index == 0 else None,
            )
        )
        if next_place is not None and takes_place:
            next_place += 1
    return tuple(messages), next_place


def _labels(turns: Sequence[PlacedTurn], before: EarlierMessages) -> ApplyLabels:
    """Return the write that applies the labels of these turns, of the turns in their windows, and of their session.

    This write must come last.
    """
    first = turns[0].work
    named = dict.fromkeys([*(each.work.turn.turn_id for each in turns), *(said.turn_id for said in before.messages)])
    label_ids = (ids.label_id(first.session_key, each) for each in named)
    session_label = ids.session_label_id(first.session_key)
    return ApplyLabels(tenant_id=first.turn.tenant_id, ids=(*label_ids, session_label))


def message_point(message: StoredMessage, window: ContextWindow | None, vectors: Vectors) -> OutPoint:
    """Return the point of a message. The window of a message outside the thread is its own text."""
    text = search_text(message)
    found_by = window or ContextWindow(text, nearby="")
    return OutPoint(
        id=message.message_id,
        payload=message.to_payload(),
        dense=vectors.get(text),
        text=text or None,
        nearby=found_by.nearby,
        window=vectors.get(found_by.text),
    )


def completed_window(message: StoredMessage, window: ContextWindow, vectors: Vectors) -> OutWindow:
    """Return the new search data of a stored message that got a neighbour."""
    return OutWindow(
        id=message.message_id,
        text=search_text(message) or None,
        nearby=window.nearby,
        window=vectors.get(window.text),
    )


def _lines(messages: Iterable[StoredMessage]) -> list[WindowMessage]:
    return [WindowMessage(search_text(message), message.owner_key, message.sensitivity) for message in messages]
