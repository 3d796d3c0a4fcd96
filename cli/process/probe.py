"""Periodic probe of a server, for /readyz."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...schemas.errors import Fatal, Transient

PROBE_SECONDS = 5.0


@dataclass(slots=True)
class Probe:
    """Availability of one server. `ask` is any call that a healthy server answers."""

    ask: Callable[[], Awaitable[object]]
    reached: bool = True
    why: str = ""

    async def watch(self) -> None:
        """Probe until cancelled."""
        while True:
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    await self.ask()
            except (Transient, Fatal) as error:
                remedy = error.remedy if isinstance(error, Transient) else ""
                self.reached, self.why = False, f"{error} ({remedy})" if remedy else str(error)
            except TimeoutError:
                self.reached, self.why = False, f"no answer within {PROBE_SECONDS:.0f} s: is it up, or too busy?"
            else:
                self.reached, self.why = True, ""
            await asyncio.sleep(PROBE_SECONDS)
