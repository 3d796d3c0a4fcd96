"""Labels of turns: messages whose content is more sensitive than their turn declared."""

from __future__ import annotations

from typing import Annotated

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
