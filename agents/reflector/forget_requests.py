"""Requests of users to forget something, kept for statements that arrive later than the request.

The owner's row has them. A statement may arrive later because it comes from another topic or a slower session, from an
import, or from a dead letter that is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Self

from ...memory.facts.retractions import takes_back
from ...memory.facts.statements import Statement
from ...memory.facts.transitions import Stamp
from ...memory.policies import MemoryPolicy
from ...schemas.base import Instant
from ...schemas.observations import Observation
from ...schemas.slots import OTHER, TypedValue
from ...schemas.turns import Owner
from ..common.stored_row import RowPart

KEPT: Final = 64
"""Maximum number of requests of an owner. The oldest request is removed first."""
KEPT_FOR: Final = timedelta(days=90)
"""Time for which a request is kept, from its arrival."""


class ForgetRequest(RowPart):
    """One request: the statement to forget, the time of the request, and its turn."""

    subject: str
    content: str
    slot: str = OTHER
    value: str | None = None
    denied: bool = False
    qualifier: str | None = None
    valid_from: Instant | None = None
    said_at: Instant
    observation_id: str | None = None
    """The observation that the request names."""
    wrong: bool = False
    """True when the user said that the statement was never true."""
    user_id: str
    session_id: str
    turn_id: str
    until: Instant
    """The time at which the request is removed."""

    @classmethod
    def of(
        cls,
        observation: Observation,
        statement: Statement,
        *,
        user_id: str,
        session_id: str,
        turn_id: str,
        now: datetime,
    ) -> Self:
        return cls(
            subject=statement.subject,
            content=statement.content,
            **statement.typed.fields(),
            valid_from=statement.valid_from,
            said_at=statement.occurred_at,
            observation_id=observation.replaces_observation_id,
            wrong=observation.is_correction,
            user_id=user_id,
            session_id=session_id,
            turn_id=turn_id,
            until=now + KEPT_FOR,
        )

    def is_of(self, user_id: str, session_id: str, turn_id: str | None = None) -> bool:
        """Return whether the request was made in this turn, or in any turn of the session."""
        return (self.user_id, self.session_id) == (user_id, session_id) and turn_id in (None, self.turn_id)

    def counts_for(self, statement: Statement, stamp: Stamp, policy: MemoryPolicy) -> bool:
        """Return whether the request takes back a statement that arrives now. Statements of the request's own turn are
        decided in the order of the turn."""
        of_turn = any((each.session_id, each.turn_id) == (self.session_id, self.turn_id) for each in statement.evidence)
        if self.said_at < statement.occurred_at or of_turn:
            return False
        named = self.observation_id is not None and any(
            each.observation_id == self.observation_id for each in statement.evidence
        )
        return named or takes_back(self._statement(statement.tenant_id, statement.owner), statement, stamp, policy)

    def _statement(self, tenant_id: str, owner: Owner) -> Statement:
        return Statement(
            fact_id="",
            tenant_id=tenant_id,
            owner=owner,
            subject=self.subject,
            content=self.content,
            category="knowledge",
            confidence=0.0,
            occurred_at=self.said_at,
            valid_from=self.valid_from,
            typed=TypedValue(self.slot, self.value, self.denied, self.qualifier),
        )


def with_request(kept: Sequence[ForgetRequest], request: ForgetRequest, *, now: datetime) -> tuple[ForgetRequest, ...]:
    """Return the kept requests with one more, the oldest first, without those whose time is over."""
    current = sorted((*(each for each in kept if each.until > now), request), key=lambda each: each.said_at)
    return tuple(current[-KEPT:])
