"""Outcomes in a stage's table. Each row keeps the last outcome of its key."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Annotated, Self, TypeVar

from pydantic import Field

from ...schemas.outcomes import Outcome, Source
from ...schemas.row_keys import index_key
from ...streams.engine.decision import Rows, StageDecision
from .pending_index import INDEX_ROW
from .stored_row import StoredRow

R = TypeVar("R")
Decided = tuple[R, StageDecision]
"""A row with its outcome, and the decision that writes the row."""


def row_size(decision: StageDecision) -> int:
    """Return the size in bytes of the decision's row."""
    return len(decision.row or b"")


class OutcomeRow(StoredRow):
    """Base of a row that keeps the last outcome of its key."""

    last: Outcome | None = None
    indexed: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    """The index kinds under which this row is listed (pending_index.py)."""

    def index_kinds(self) -> tuple[str, ...]:
        """Return the index kinds under which this row must be listed."""
        return ()

    @classmethod
    def last_decision(cls, rows: Rows, key: str) -> StageDecision | None:
        """Return the key's last outcome as stored in the table."""
        raw = rows.row(key)
        row = cls() if raw is None else cls.read(raw)
        return None if row.last is None else StageDecision(row.last, key, raw)

    def has_handled(self, event: Source) -> bool:
        """Return whether the last outcome was decided for this event. Coordinates and id must match."""
        return self.last is not None and self.last.source == event

    def decide(
        self,
        key: str,
        outcome: Outcome,
        *,
        before: Mapping[str, bytes] | None = None,
        standing: Collection[str] = (),
    ) -> Decided[Self]:
        """Add the outcome to this row, which is stored under `key`. Return the row and the decision.

        `before`: rows to write before this row; the outcome names them. Missing index rows are written before this
        row. Index rows that this row no longer needs are deleted when the outcome is done, except the kinds in
        `standing`. The row keeps the outcome without vectors (`store_writes.with_vectors`).
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
        """Return only the decision; see `decide`."""
        return self.decide(key, outcome, standing=standing)[1]
