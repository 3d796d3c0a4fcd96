"""Outcomes in a stage's table: each row keeps the last outcome of its key."""

from __future__ import annotations

from ...schemas.outcomes import Outcome
from ...streams.engine.handler import Rows, StageDecision, same_source
from ...streams.log.port import Position
from .stored_row import StoredRow


class OutcomeRow(StoredRow):
    """Base of a row that keeps the last outcome of its key."""

    last: Outcome | None = None

    @classmethod
    def last_decision(cls, rows: Rows, key: str) -> StageDecision | None:
        """Return the key's last outcome as the table has it."""
        raw = rows.row(key)
        row = cls() if raw is None else cls.read(raw)
        return None if row.last is None else StageDecision(row.last, key, raw)

    def has_handled(self, position: Position) -> bool:
        """Tell whether the last outcome is the one of the record at this position."""
        return self.last is not None and same_source(self.last.source, position)

    def decision(self, key: str, outcome: Outcome) -> StageDecision:
        """Put the outcome into this row, which is written under `key`."""
        return StageDecision(outcome, key, self.model_copy(update={"last": outcome}).to_bytes())
