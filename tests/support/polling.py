"""Waiting on a condition with a deadline: the only polling loop of the tests."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
Probe = Callable[[], T] | Callable[[], Awaitable[T]]
SHOWN = 500
"""Characters of the last value in a message."""


class TimedOut(AssertionError):
    """A condition did not hold in time. The message names it, and what was seen last."""


async def wait_for(
    probe: Probe[T],
    what: str,
    *,
    until: Callable[[T], object] = bool,
    deadline: float = 30.0,
    pause: float = 0.05,
    detail: Callable[[], str] = str,
) -> T:
    """Call `probe`, a function or coroutine function, until `until` accepts its value; return that value.

    `what` names what is waited for, `deadline` and `pause` are seconds, `detail` adds to the message (a log's end).
    """
    end = time.monotonic() + deadline
    while True:
        answer = probe()
        seen: T = await answer if inspect.isawaitable(answer) else answer
        if until(seen):
            return seen
        if time.monotonic() > end:
            raise _timed_out(what, deadline, seen, detail)
        await asyncio.sleep(pause)


def wait_for_blocking(
    probe: Callable[[], T],
    what: str,
    *,
    until: Callable[[T], object] = bool,
    deadline: float = 30.0,
    pause: float = 0.05,
    detail: Callable[[], str] = str,
) -> T:
    """Do the same as `wait_for` without an event loop."""
    end = time.monotonic() + deadline
    while not until(seen := probe()):
        if time.monotonic() > end:
            raise _timed_out(what, deadline, seen, detail)
        time.sleep(pause)
    return seen


def at_least(count: int) -> Callable[[int], bool]:
    """For `until`: accept this number and greater ones."""
    return lambda seen: seen >= count


def has_ended(exit_code: int | None) -> bool:
    """For `until`: accept the exit code of a process that has ended."""
    return exit_code is not None


def _timed_out(what: str, deadline: float, seen: object, detail: Callable[[], str]) -> TimedOut:
    shown = repr(seen)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    return TimedOut(f"waited {deadline:g} s for {what}; last seen: {shown}\n{detail()}".rstrip())
