"""Outcomes in a stage's table: each row keeps the last outcome of its key."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Annotated, Self, TypeVar

from pydantic import Field

from ...schemas.outcomes import Outcome, Source
from ...schemas.row_keys import index_key
from ...streams.engine.handler import Rows, StageDecision
from .pending_index import INDEX_ROW
from .stored_row import StoredRow

R = TypeVar("R")
Decided = tuple[R, StageDecision]
"""A row with its outcome, and the decision that writes it."""


def row_size(decision: StageDecision) -> int:
    """Return the size of the row of a decision in bytes."""
    return len(decision.row or b"")


class OutcomeRow(StoredRow):
    """Base of a row that keeps the last outcome of its key."""

    last: Outcome | None = None
    indexed: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    """The kinds under which the index has this row (pending_index.py)."""

    def index_kinds(self) -> tuple[str, ...]:
        """Return the kinds under which the index must have this row."""
        return ()

    @classmethod
    def last_decision(cls, rows: Rows, key: str) -> StageDecision | None:
        """Return the key's last outcome as the table has it."""
        raw = rows.row(key)
        row = cls() if raw is None else cls.read(raw)
        return None if row.last is None else StageDecision(row.last, key, raw)

    def has_handled(self, event: Source) -> bool:
        """Return whether the last outcome was decided for this event: one with the same coordinates and the same id."""
        return self.last is not None and self.last.source == event

    def decide(
        self,
        key: str,
        outcome: Outcome,
        *,
        before: Mapping[str, bytes] | None = None,
        standing: Collection[str] = (),
    ) -> Decided[Self]:
        """Put the outcome into this row, which is written under `key`. Return the row and the decision.

        `before`: rows to write before it. The outcome names them. Index rows that this row needs now are written before
        it; those that it needs no longer are deleted when the outcome is done, but not those of the kinds `standing`.
        The row keeps the outcome without vectors (`store_writes.with_vectors`).
        """
        needed = self.index_kinds()
        kinds = (*needed, *(kind for kind in self.indexed if kind in standing and kind not in needed))
        new = {index_key(kind, key): INDEX_ROW for kind in kinds if kind not in self.indexed}
        old = tuple(index_key(kind, key) for kind in self.indexed if kind not in kinds)
        if new or old:
            update = {"before": (*outcome.before, *new), "cleanup": (*outcome.cleanup, *old)}
            outcome = outcome.model_copy(update=update)
        row = self.model_copy(update={"last": outcome.without_vectors(), "indexed": kinds})
        return row, StageDecision(outcome, key, row.to_bytes(), before={**(before or {}), **new})

    def decision(self, key: str, outcome: Outcome, *, standing: Collection[str] = ()) -> StageDecision:
        """Return the decision alone; see `decide`."""
        return self.decide(key, outcome, standing=standing)[1]
