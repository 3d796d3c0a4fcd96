"""Labels of turns, set by the observer: the messages that contain a secret observation. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ...memory.language.text import folded, quote_in_folded
from ...memory.recall.prompt_framing import remove_framed
from ...schemas import ids
from ...schemas.collections import LABELS
from ...schemas.labels import TurnLabel
from ...schemas.observations import Observed
from ...schemas.outcomes import ApplyLabels, OutPoint, PutPoints, Write
from .batch import BatchTurn


def label_writes(observed: Sequence[Observed], turns: Sequence[BatchTurn], *, now: datetime) -> tuple[Write, ...]:
    """Return the writes that store a batch's labels and then apply them to stored messages."""
    labels = [label for record, turn in zip(observed, turns, strict=True) for label in _labels(record, turn, now)]
    if not labels:
        return ()
    points = tuple(OutPoint(id=label.label_id, payload=label.to_payload()) for label in labels)
    return (
        PutPoints(collection=LABELS, points=points),
        ApplyLabels(tenant_id=labels[0].tenant_id, ids=tuple(label.label_id for label in labels)),
    )


def _labels(record: Observed, turn: BatchTurn, now: datetime) -> Iterator[TurnLabel]:
    """Yield the label of a turn if a message contains a secret and is not yet marked as secret."""
    quotes = [each.evidence for each in record.observations if each.sensitivity == "secret"]
    told = {index for quote in quotes for index in _messages_with(quote, turn)}
    messages = tuple(sorted(index for index in told if turn.sensitivities[index] != "secret"))
    if messages:
        session = ids.session_key(record.tenant_id, record.user_id, record.session_id)
        yield TurnLabel(
            label_id=ids.label_id(session, record.turn_id),
            tenant_id=record.tenant_id,
            user_id=record.user_id,
            session_id=record.session_id,
            turn_id=record.turn_id,
            messages=messages,
            sensitivity="secret",
            at=now,
        )


def _messages_with(quote: str, turn: BatchTurn) -> Sequence[int]:
    """Return the indexes of the messages that contain a quote.

    If no message contains it, return the indexes of all messages with text. This is the case for a statement without a
    quote, and for text from an operator's source function.
    """
    texts = [folded(remove_framed(message.text)) for message in turn.turn.messages]
    holding = [index for index, text in enumerate(texts) if quote_in_folded(quote, text)]
    return holding or [index for index, text in enumerate(texts) if text]
