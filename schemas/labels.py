"""Labels of turns: messages whose content is more sensitive than their turn declared. Labels of erased sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from .base import Contract, GivenId, Instant, OurId
from .turns import MESSAGES_MAX, Sensitivity


class TurnLabel(Contract):
    """A label of one turn in the collection `labels`. The observer writes it; the recorder applies it to `turns`."""

    label_id: OurId
    tenant_id: GivenId
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    messages: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=MESSAGES_MAX)]
    """Indexes of the messages."""
    sensitivity: Sensitivity
    at: Instant
    """Time of the observation, or of the retraction."""
    retracted: bool = False
    """True when the turn was taken back. Its messages are deleted when the label is applied."""


class SessionLabel(Contract):
    """The label of an erased session in the collection `labels`. When it is applied, all messages of the session are
    deleted. It stays for ever."""

    label_id: OurId
    tenant_id: GivenId
    user_id: GivenId
    session_id: GivenId
    at: Instant
    """Time of the erasure."""


def read_label(payload: Mapping[str, Any]) -> TurnLabel | SessionLabel:
    """Read a record of the collection `labels`. Only the label of a turn names a turn."""
    return (TurnLabel if "turn_id" in payload else SessionLabel).from_payload(payload)
