"""Points of a restored turn: its messages as they were, their windows, and the windows of their neighbours.

The turns of an export come in the order of their ids. Each turn therefore also completes the windows of the neighbours
that are stored already. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...memory.recall.context_windows import NEIGHBOURS, ContextWindow, WindowMessage, build_windows
from ...schemas import ids
from ...schemas.outcomes import ApplyLabels, InsertPoints, NewWindows, Write
from ...schemas.working_set import StoredMessage
from .message_points import Vectors, completed_window, message_point, search_text


@dataclass(frozen=True, slots=True)
class StoredNeighbour:
    """A stored message of the session's thread, and the collection that has it."""

    message: StoredMessage
    collection: str


def places_around(messages: Sequence[StoredMessage]) -> range:
    """Return the places of the thread whose messages are needed for the windows; empty for a turn outside the
    thread."""
    places = [each.session_place for each in messages if each.session_place is not None]
    return range(max(0, min(places) - NEIGHBOURS), max(places) + NEIGHBOURS + 1) if places else range(0)


def windows_by_id(messages: Sequence[StoredMessage], around: Sequence[StoredNeighbour]) -> Mapping[str, ContextWindow]:
    """Return the windows of the turn's messages and of its direct neighbours, by message id."""
    own = {each.session_place: each for each in messages if each.session_place is not None}
    if not own:
        return {}
    thread = {each.message.session_place: each.message for each in around} | own
    first, last = min(own), max(own)
    while first - 1 in thread:
        first -= 1
    while last + 1 in thread:
        last += 1
    line = [thread[place] for place in range(first, last + 1) if place in thread]
    windows = build_windows((), [WindowMessage(search_text(each), each.owner_key, each.sensitivity) for each in line])
    changed = range(min(own) - 1, max(own) + 2)
    return {
        each.message_id: window
        for each, window in zip(line, windows.turn, strict=True)
        if each.session_place in changed
    }


def restored_texts(messages: Sequence[StoredMessage], windows: Mapping[str, ContextWindow]) -> list[str]:
    """Return the distinct texts to embed."""
    texts = (*map(search_text, messages), *(window.text for window in windows.values()))
    return list(dict.fromkeys(text for text in texts if text.strip()))


def restored_writes(
    messages: Sequence[StoredMessage],
    windows: Mapping[str, ContextWindow],
    around: Sequence[StoredNeighbour],
    vectors: Vectors,
    *,
    collection: str,
) -> tuple[Write, ...]:
    """Return the writes: the missing messages, the windows of the neighbours, then the labels of the turn and of its
    session. They may have been taken back after the export."""
    own = {each.message_id for each in messages}
    points = tuple(message_point(each, windows.get(each.message_id), vectors) for each in messages)
    neighbours = [
        NewWindows(
            collection=each.collection,
            tenant_id=each.message.tenant_id,
            points=(completed_window(each.message, windows[each.message.message_id], vectors),),
        )
        for each in around
        if each.message.message_id not in own and each.message.message_id in windows
    ]
    first = messages[0]
    session_key = ids.session_key(first.tenant_id, first.user_id, first.session_id)
    label_ids = (ids.label_id(session_key, first.turn_id), ids.session_label_id(session_key))
    labels = ApplyLabels(tenant_id=first.tenant_id, ids=label_ids)
    return (InsertPoints(collection=collection, points=points), *neighbours, labels)
