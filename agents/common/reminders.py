"""Reminders: commands that a stage sends itself later.

A reminder has no effect of its own. It only sends a command, and the command is an event like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

from ...schemas.errors import Relinquished, Transient
from ...schemas.outcomes import OutRecord

log = structlog.get_logger(__name__)
COMMANDS_PER_SECOND: Final = 50
TICK: Final = 0.2
"""Seconds between two looks at what is due."""
AT_ONCE: Final = round(COMMANDS_PER_SECOND * TICK)
"""Commands that a look sends at least, if so many are due."""


async def send_reminders(
    due: Callable[[int], Iterable[OutRecord]],
    send_durably: Callable[[OutRecord], Awaitable[None]],
    *,
    room: Callable[[], int] = lambda: AT_ONCE,
) -> None:
    """Send what is due for as long as the worker runs, at most `room()` commands at each look.

    `due(n)` returns at most `n` records whose time has come. They are sent side by side.
    """
    while True:
        records = list(due(room()))
        results = await asyncio.gather(*(send_durably(record) for record in records), return_exceptions=True)
        for failure in results:
            if isinstance(failure, Transient | Relinquished):  # it is due again after the pause
                log.warning("reminder_not_sent", why=str(failure))
            elif failure is not None:
                raise failure
        await asyncio.sleep(TICK)
