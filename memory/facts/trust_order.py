"""The order of trust: user, then assistant, then tool. A less trusted statement never changes a more trusted fact.

A less trusted statement never closes, corrects or rewords the fact and never changes its dates. The statement becomes
pending, or a separate fact. `keep_trust_order` (conflict.py) enforces this rule for the conflict pipeline; proposals
use `outranks`. A second rule protects statements: a statement never waits because of a less trusted fact. `heed_trust`
(neighbour_relations.py) hides such facts from the pipeline.
"""

from __future__ import annotations

from typing import Protocol

from ...schemas.facts import Trust

TRUST: tuple[Trust, ...] = ("tool", "assistant", "user")
"""Trust levels, lowest first."""


class Trusted(Protocol):
    """A fact or a statement: anything that has a trust."""

    @property
    def trust(self) -> Trust: ...


def outranks(one: Trusted, other: Trusted) -> bool:
    """Return whether `one` is more trusted than `other`."""
    return TRUST.index(one.trust) > TRUST.index(other.trust)
