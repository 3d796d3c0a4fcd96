"""The history checker: what the topics and the store say of a run, held to the invariants (docs/how-to/verify.md).

`history.py` reads the dump, `invariants.py` judges it; nothing here writes.
"""

from .history import HistoryScope, read_history
from .invariants import Expected, InvariantVerdict, Violation, verify
from .rows import History

__all__ = ["Expected", "History", "HistoryScope", "InvariantVerdict", "Violation", "read_history", "verify"]
