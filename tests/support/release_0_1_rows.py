"""Table rows as version 0.1.0 wrote them, without later fields."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
FIELDS: dict[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "observer.SessionRow": (
            "turns working recent seen commands refused waiting_from waiting_next waiting_ends waiting_last last"
        ),
        "reflector.OwnerRow": "turns episodes changes commands last",
        "reflector.SessionTurns": "turn_number",
        "consolidation.OwnerRow": "counters runs waiting commands last",
        "consolidation.SessionTurns": "turn_number",
    }.items()
}
"""Fields by stage and kind of row. Recall counts had no row."""
RUN = frozenset(
    ("run_id", "status", "at", "episodes", "facts_shown", "changes", "dropped", "command_ids", "model", "prompt",
     "usage")
)  # fmt: skip
COUNTERS = frozenset(("episodes", "turns", "evicted"))
WAITING = frozenset(("tenant_id", "owner", "run_id", "attempt"))


def of_first_release(row: str, fields: Json) -> Json:
    """Remove the later fields. `row` is a name of FIELDS; `fields` are of such a row as this version writes it."""
    kept = _only(fields, FIELDS[row])
    if "counters" in kept:
        kept["counters"] = _only(kept["counters"], COUNTERS)
        kept["runs"] = [_only(run, RUN) for run in kept["runs"]]
        kept["waiting"] = kept["waiting"] and _only(kept["waiting"], WAITING)
    return kept


def _only(fields: Json, names: frozenset[str]) -> Json:
    return {name: value for name, value in fields.items() if name in names}
