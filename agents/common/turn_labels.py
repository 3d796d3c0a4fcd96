"""Labels applied to the session log: a sensitivity of a turn, that the turn was taken back, or that its session was
erased.

The observer learns from the model that a message is secret, and from a command that a turn or a session is taken back.
The recorder stores the message. The two stages work in any order. The observer writes the label before it reads the
messages, and the recorder stores the messages before it reads the label. So the stage that reads last sees the write of
the other stage and applies the label.
"""

from __future__ import annotations

from collections.abc import Sequence

from qdrant_client import models

from ...adapters.ports import NewWindow, Payload, StoredPoint, VectorStore
from ...adapters.vectors.conditions import equals
from ...memory.recall.prompt_framing import remove_framed
from ...memory.secrets.secret_filter import at_least
from ...schemas import ids
from ...schemas.collections import LABELS, TURNS
from ...schemas.labels import SessionLabel, TurnLabel, read_label
from ...schemas.turns import SENSITIVITIES, up_to
from ...schemas.working_set import StoredMessage


async def apply_labels(store: VectorStore, *, tenant_id: str, label_ids: Sequence[str]) -> None:
    """Apply these labels to their stored messages. Missing labels and messages are skipped. Idempotent."""
    found = await store.get(LABELS, tenant_id=tenant_id, ids=label_ids)
    for label in (read_label(each.payload) for each in found.values()):
        if isinstance(label, SessionLabel):
            await _delete_messages(store, label)
        else:
            await _apply(store, label)


async def _delete_messages(store: VectorStore, label: SessionLabel) -> None:
    """Delete all messages of an erased session."""
    named = (equals("user_id", label.user_id), equals("session_id", label.session_id))
    where = models.Filter(must=[*named])
    found = await store.select(TURNS, tenant_id=label.tenant_id, where=where, fields=("session_id",))
    for collection in dict.fromkeys(each.collection for each in found):
        gone = [each.id for each in found if each.collection == collection]
        await store.delete(collection or TURNS, tenant_id=label.tenant_id, ids=gone)


async def _apply(store: VectorStore, label: TurnLabel) -> None:
    """Remove the messages' text from the windows of their neighbours, then set the messages' sensitivity or delete
    them.

    The windows are changed first. After a crash between the two steps, both steps are applied again.
    """
    session = ids.session_key(label.tenant_id, label.user_id, label.session_id)
    message_ids = [ids.message_id(session, label.turn_id, index) for index in label.messages]
    found = await store.get(TURNS, tenant_id=label.tenant_id, ids=message_ids)
    messages = [StoredMessage.from_payload(each.payload) for each in found.values()]
    if not messages:
        return
    collection = next(iter(found.values())).collection or TURNS  # all messages of a turn are in one period
    await _leave_windows(store, label, messages)
    if label.retracted:
        await store.delete(collection, tenant_id=label.tenant_id, ids=list(found))
        return
    for sensitivity in SENSITIVITIES:
        raised = [each for each in messages if at_least(each.sensitivity, label.sensitivity) == sensitivity]
        stale = [each.message_id for each in raised if each.sensitivity != sensitivity]
        if stale:
            fields: Payload = {"sensitivity": sensitivity}
            await store.set_payload(collection, tenant_id=label.tenant_id, ids=stale, fields=fields)


async def _leave_windows(store: VectorStore, label: TurnLabel, messages: Sequence[StoredMessage]) -> None:
    """Reduce the windows of neighbours to the neighbours' own text: of each neighbour with a lower sensitivity than the
    label, or of every neighbour of a turn that was taken back."""
    places = {each.session_place for each in messages if each.session_place is not None}
    beside = {place + step for place in places for step in (-1, 1)} - places
    if not beside:
        return
    where = models.Filter(
        must=[
            equals("user_id", label.user_id),
            equals("session_id", label.session_id),
            models.FieldCondition(key="session_place", range=models.Range(gte=min(beside), lte=max(beside))),
        ]
    )
    found = await store.select(TURNS, tenant_id=label.tenant_id, where=where)
    readable = [
        each.id
        for each in found
        if each.payload.get("session_place") in beside
        and (label.retracted or label.sensitivity not in up_to(StoredMessage.from_payload(each.payload).sensitivity))
    ]
    if readable:
        stored = await store.get(TURNS, tenant_id=label.tenant_id, ids=readable, with_dense=True)
        for collection in dict.fromkeys(each.collection for each in stored.values()):
            windows = [_own_window(each) for each in stored.values() if each.collection == collection]
            await store.rewindow(collection or TURNS, tenant_id=label.tenant_id, points=windows)


def _own_window(stored: StoredPoint) -> NewWindow:
    text = remove_framed(StoredMessage.from_payload(stored.payload).content)
    return NewWindow(id=stored.id, text=text or None, window=stored.dense)
