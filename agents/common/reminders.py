"""Reminders: commands that a stage sends to itself later.

A reminder only sends the command. The stage then handles the command like every other event.
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
"""Seconds between two checks for due commands."""
AT_ONCE: Final = round(COMMANDS_PER_SECOND * TICK)
"""Default limit of commands that one check sends."""


async def send_reminders(
    due: Callable[[int], Iterable[OutRecord]],
    send_durably: Callable[[OutRecord], Awaitable[None]],
    *,
    room: Callable[[], int] = lambda: AT_ONCE,
) -> None:
    """Send due commands until cancelled, at most `room()` commands at each check.

    `due(n)` returns at most `n` due records. They are sent concurrently.
    """
    while True:
        records = list(due(room()))
        results = await asyncio.gather(*(send_durably(record) for record in records), return_exceptions=True)
        for failure in results:
            if isinstance(failure, Transient | Relinquished):  # the record stays due for the next check
                log.warning("reminder_not_sent", why=str(failure))
            elif failure is not None:
                raise failure
        await asyncio.sleep(TICK)
