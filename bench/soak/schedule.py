"""The schedule of faults: a pure function of the seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal[
    "kill -9",
    "SIGTERM",
    "SIGSTOP",
    "worker added",
    "broker restarted",
    "broker killed",
    "store away",
    "model away",
]
FIRST = 15.0
"""Seconds until the first fault. The groups have formed before."""
GAP = (3.0, 12.0)
"""Range of seconds between the end of one fault and the beginning of the next."""
OUTAGE = 10.0
"""Longest outage of the broker in seconds.

A worker whose send has waited for 30 s ends and is restarted. Spared workers must run from start to end, so that their
memory can be judged. The fault matrix covers longer outages.
"""
OVERLAPPING = 0.2
"""Share of faults that begin while the previous fault still lasts."""
BAG: Sequence[Kind] = (
    "kill -9", "kill -9", "kill -9", "SIGTERM", "SIGTERM", "SIGSTOP", "SIGSTOP", "worker added",
    "broker restarted", "broker killed", "store away", "model away",
)  # fmt: skip
"""The kinds of faults. They are drawn without replacement until none is left, so that each kind occurs."""
EMBEDDED_BAG: Sequence[Kind] = ("kill -9", "kill -9", "SIGTERM")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `at` and `lasts` in seconds; `pick`, 0 to 1, selects the worker (or the variant)."""

    at: float
    kind: Kind
    lasts: float
    pick: float


def planned(*, seed: int, seconds: float, session_timeout: float, bag: Sequence[Kind] = BAG) -> list[Fault]:
    """Return faults over `seconds`; the last fault ends before the end."""
    rng = random.Random(f"faults/{seed}")
    faults: list[Fault] = []
    left: list[Kind] = []
    at = FIRST
    while True:
        left = left or rng.sample(list(bag), len(bag))
        kind = left.pop()
        fault = Fault(round(at, 1), kind, round(_lasts(kind, rng, session_timeout), 1), rng.random())
        if fault.at + fault.lasts > seconds:
            return faults
        faults.append(fault)
        overlaps = rng.random() < OVERLAPPING and not kind.startswith("broker")
        at += fault.lasts * rng.random() if overlaps else fault.lasts + rng.uniform(*GAP)


def parts(faults: Sequence[Fault], middle: float) -> tuple[list[Fault], list[Fault]]:
    """Return the faults that end before `middle` seconds, and the faults that begin after it."""
    return [each for each in faults if each.at + each.lasts <= middle], [each for each in faults if each.at >= middle]


def later(faults: Sequence[Fault], seconds: float) -> list[Fault]:
    return [replace(each, at=each.at + seconds) for each in faults]


def _lasts(kind: Kind, rng: random.Random, session_timeout: float) -> float:
    """Return the duration of the outage in seconds. The supervisor restarts a killed worker immediately."""
    match kind:
        case "kill -9" | "SIGTERM":
            return rng.uniform(0, 4)
        case "SIGSTOP":
            return session_timeout + rng.uniform(2, 6)
        case "worker added":
            return rng.uniform(20, 40)
        case "broker restarted" | "broker killed":
            return rng.choice((0.0, rng.uniform(2, OUTAGE / 2), rng.uniform(OUTAGE / 2, OUTAGE)))
        case "store away":
            return rng.uniform(5, 25)
        case "model away":
            return rng.uniform(10, 45)
