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


async def send_reminders(
    due: Callable[[int], Iterable[OutRecord]], send_durably: Callable[[OutRecord], Awaitable[None]]
) -> None:
    """Send what is due for as long as the worker runs, at most 50 commands a second.

    `due(n)` returns at most `n` records whose time has come.
    """
    while True:
        for record in due(round(COMMANDS_PER_SECOND * TICK)):
            try:
                await send_durably(record)
            except (Transient, Relinquished) as error:  # it is due again after the pause
                log.warning("reminder_not_sent", why=str(error))
        await asyncio.sleep(TICK)
