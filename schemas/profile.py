"""Profile: the current values of a subject's slots."""

from __future__ import annotations

from .base import Content, Contract, Instant, OurId, Subject, Unit
from .facts import Trust
from .slots import Qualifier, SlotName, SlotValue
from .turns import Sensitivity


class ProfileValue(Contract):
    """One fact of a profile."""

    fact_id: OurId
    value: SlotValue | None
    """The value of the slot; null when the fact has none. Then only `content` states it."""
    qualifier: Qualifier | None
    """The condition or the kind of the value."""
    content: Content
    """The statement of the fact."""
    valid_from: Instant
    """Start of the validity."""
    valid_from_told: bool
    """True when the speaker stated `valid_from`. False when it is the time of the turn."""
    recorded_at: Instant
    confidence: Unit
    trust: Trust
    sensitivity: Sensitivity
    inverse_of: SlotName | None = None
    """For a value that another subject's fact states: the slot of that fact. `value` is that subject."""


class ProfileSlot(Contract):
    """One slot of a profile. Both lists have the newest fact first."""

    slot: SlotName
    values: tuple[ProfileValue, ...]
    denied: tuple[ProfileValue, ...] = ()
    """Values that the subject does not have, or no longer has."""


class Profile(Contract):
    """The profile of a subject. The slots have the order of the policy."""

    subject: Subject
    slots: tuple[ProfileSlot, ...]
    truncated: bool
    """True when there are more facts than a profile contains. The oldest facts are left out."""
