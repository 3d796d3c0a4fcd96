"""Slots: the typed form of a statement, next to its text.

`Works at Stripe` has the slot `employer` and the value `Stripe`. The policy `[memory.slots]` defines the slots
(memory/policies/slots.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

from pydantic import StringConstraints

OTHER: Final = "other"
"""The slot of a statement that fits no defined slot. Names that the policy does not define are treated like it."""
SLOT_MAX: Final = 40
VALUE_MAX: Final = 200
QUALIFIER_MAX: Final = 80

SlotName = Annotated[str, StringConstraints(pattern=rf"^[a-z][a-z0-9_]{{0,{SLOT_MAX - 1}}}$")]
SlotValue = Annotated[str, StringConstraints(min_length=1, max_length=VALUE_MAX)]
Qualifier = Annotated[str, StringConstraints(min_length=1, max_length=QUALIFIER_MAX)]


@dataclass(frozen=True, slots=True)
class TypedValue:
    """The slot of a statement, its value, and the limits within which the value holds."""

    slot: str = OTHER
    value: str | None = None
    """The value as a short noun phrase. None: unknown; the conflict pipeline then compares the texts."""
    denied: bool = False
    """True when the statement says that the subject does not have the value, or no longer has it."""
    qualifier: str | None = None
    """The condition under which the value holds (`at night`, `with milk`), or the kind of thing that it belongs to
    (`colour` for the slot `favourite`)."""

    def fields(self) -> dict[str, Any]:
        """Return the four fields of a record."""
        return asdict(self)


UNTYPED: Final = TypedValue()
