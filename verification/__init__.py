"""The history checker: it checks the topics, tables and store of one run against the invariants of
docs/how-to/verify.md.

`memstream verify` reads everything once with `read_history` (history.py), which decodes records and points
(decoding.py) into compact rows (rows.py). `verify` (invariants.py) then runs one pure check per invariant over these
rows and returns one `InvariantVerdict` each. Tests call both functions, and pass the expected properties of a run to
`verify`. Nothing in this package writes.
"""

from .history import HistoryScope, read_history
from .invariants import Expected, InvariantVerdict, Violation, verify
from .rows import History

__all__ = ["Expected", "History", "HistoryScope", "InvariantVerdict", "Violation", "read_history", "verify"]
