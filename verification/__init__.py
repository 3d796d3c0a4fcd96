"""The history checker: what the topics and the store say of a run, held to the invariants (docs/verify.md).

`history.py` reads the dump, `invariants.py` judges it; nothing here writes.
"""

from .history import Reading, read_history
from .invariants import Expected, Verdict, Violation, verify
from .rows import History

__all__ = ["Expected", "History", "Reading", "Verdict", "Violation", "read_history", "verify"]
