"""Labels of turns: messages whose words turned out to be more sensitive than the turn said."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .base import Contract, GivenId, Instant, OurId
from .turns import MESSAGES_MAX, Sensitivity


class TurnLabel(Contract):
    """A label of one turn in the collection `labels`. The observer writes it, the recorder applies it to `turns`."""

    label_id: OurId
    tenant_id: GivenId
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    messages: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=MESSAGES_MAX)]
    """The indexes of the messages."""
    sensitivity: Sensitivity
    at: Instant
    """When it was observed."""
