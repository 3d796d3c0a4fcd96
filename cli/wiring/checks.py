"""What `memstream doctor` says of one thing that it has looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `fix` says what to do; empty when all is well."""

    check: str
    ok: bool
    detail: str
    fix: str = ""
