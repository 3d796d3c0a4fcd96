"""The order of trust: user, then assistant, then tool. A less trusted statement never changes a more trusted fact.

It never closes, corrects or rewords that fact, never changes its dates, and never makes it late. It becomes pending, or
a separate fact. `keep_trust_order` (conflict.py) enforces this for every decision of the conflict pipeline; proposals
use `outranks`. In the other direction, a less trusted fact never delays a statement: `heed_trust`
(neighbour_relations.py) hides it from the pipeline, or returns the pending fact that the statement confirms.
"""

from __future__ import annotations

from typing import Protocol

from ...schemas.facts import Trust

TRUST: tuple[Trust, ...] = ("tool", "assistant", "user")
"""Trust levels, lowest first."""


class Trusted(Protocol):
    """A fact or a statement."""

    @property
    def trust(self) -> Trust: ...


def outranks(one: Trusted, other: Trusted) -> bool:
    """Return whether `one` is more trusted than `other`."""
    return TRUST.index(one.trust) > TRUST.index(other.trust)
