"""Takeover: a static member takes the place of another process when the lease of that process ends (docs/adr/0063).

Kafka immediately gives a second process with the same MEMSTREAM_WORKER_ID the place of the first process, without a
rebalance. The first process notices this at its next heartbeat and may write until then. So the second process waits
until the lease of the first process has expired, before it learns its partitions. It then reads offsets and tables
after the last write of the first process.

A restarted process does not wait. It finds the member id of the previous process in its folder. If the group reports
this member, the previous process is dead, because each worker locks its folder.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

import structlog
from aiokafka.errors import NoError, for_code
from aiokafka.protocol.admin import DescribeGroupsRequest

log = structlog.get_logger(__name__)

FILE: Final = "member"
"""File in the folder of the tables with the member id of the last process that used this folder."""
MARGIN: Final = 0.5
"""Extra wait in seconds: a request that the other process sent at the end of its lease may still arrive."""
_GIVEN = re.compile(r"[\w-]{22}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Suffix that the broker appends to the instance id of a static member to form the member id."""


def member_of_instance(instance_id: str, members: Iterable[str]) -> str | None:
    """Return the member id of the static member with this instance id, or None."""
    start = f"{instance_id}-"
    return next((each for each in members if each.startswith(start) and _GIVEN.fullmatch(each[len(start) :])), None)


class Takeover:
    """The checks and waits around the JoinGroup of one static member. Used only in the consumer's thread.

    Args:
        group: the consumer group.
        instance_id: MEMSTREAM_WORKER_ID.
        folder: a folder that no other live process uses.
    """

    def __init__(self, *, group: str, instance_id: str, folder: Path) -> None:
        self._group = group
        self._instance_id = instance_id
        self._file = folder / FILE
        self._taken: str | None = None
        """The member whose place this process takes. It may still be alive."""

    @property
    def waits(self) -> bool:
        """True when the next join has to wait for another process."""
        return self._taken is not None

    async def before_join(self, ask: Callable[[Any], Awaitable[Any]]) -> None:
        """Ask the group which member has the instance id now. Called before this process's first JoinGroup."""
        described = (await ask(DescribeGroupsRequest([self._group]))).groups[0]
        if for_code(described[0]) is not NoError:
            self._taken = "unknown"
            return
        holder = member_of_instance(self._instance_id, (member[0] for member in described[5]))
        if holder is not None and holder != self._last():
            self._taken = holder

    async def after_join(
        self, member_id: str, *, lease: float, pause: float, beat: Callable[[float], Awaitable[bool]]
    ) -> None:
        """Wait until the other process's lease has ended, if that process may be alive. Then save this member's id.

        `lease`: length of a lease in seconds. `pause`: seconds between two heartbeats. `beat` waits for the given
        seconds, then sends a heartbeat. `beat` returns False when this process stops or has lost its place.
        """
        if self._taken is not None:
            log.warning(
                "worker_id_taken_over",
                worker_id=self._instance_id,
                group=self._group,
                seconds=round(lease + MARGIN, 1),
                why="another process has been a member of the group with this MEMSTREAM_WORKER_ID. It may still write, "
                "so this worker waits until the lease of that process has expired",
                remedy="none after a move to an empty folder; else give each worker its own id",
            )
            end = time.monotonic() + lease + MARGIN
            while (left := end - time.monotonic()) > 0:
                if not await beat(min(left, pause)):
                    return
            self._taken = None
        if self._last() != member_id:
            self._note(member_id)

    def _last(self) -> str:
        try:
            return self._file.read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def _note(self, member_id: str) -> None:
        written = self._file.with_suffix(".new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(member_id)
            os.replace(written, self._file)
        except OSError as error:
            remedy = "is the disk full? The next start waits for one lease"
            log.warning("member_not_kept", file=str(self._file), error=str(error), remedy=remedy)
