"""Result of one check of `memstream doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check. `fix` is the remedy; it is empty if the check passes."""

    check: str
    ok: bool
    detail: str
    fix: str = ""
