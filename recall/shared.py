"""Recall with shared memory: a read for a member of a group also reads the memory that the group owns or shares.

The owner's groups are read in every request, so that the next read no longer returns a record that a group stopped
sharing. The groups and the memory are read in parallel: the searches start with the groups of the owner's last read,
and restart when the groups have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from ..schemas.groups import MemoryGroup
from ..schemas.turns import Owner
from .deadline import DeadlineReads
from .record_reader import RecordReader
from .request import GROUPS_MAX, SHARED_MAX, RecallRequest
from .service import RecallPort, RecallResult

MEMBERS: Final = ("user", "agent")
"""Owner scopes that can be members."""
PART: Final = "groups"
PATIENCE: Final = 1.5
"""Seconds that a recall waits for the groups. The searches run concurrently and have the same limit."""
OWNERS_MOST: Final = 1_000
"""Maximum number of owners whose groups are cached."""


class SharedRecall:
    """`RecallPort` that adds the owner's groups to each request. When the groups do not answer, it reads only the
    owner's own memory, and `missing` contains the groups."""

    def __init__(self, *, inner: RecallPort, groups: RecordReader) -> None:
        self._inner = inner
        self._groups = groups
        self._last: dict[tuple[str, Owner], Sequence[MemoryGroup]] = {}
        """The groups of each owner at the owner's last read. Owners without groups are not in it. The most recently
        read owner is last."""

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        tenant_id, owner = request.tenant_id, request.owner
        if owner.scope not in MEMBERS or request.pinned:
            return await self._inner.recall(request, now=now)
        parts = DeadlineReads(patience=PATIENCE)
        expected = with_groups(request, self._last.get((tenant_id, owner), ()))
        reading = asyncio.create_task(self._inner.recall(expected, now=now))
        try:
            groups = await parts.ask(PART, lambda: self._groups.groups_of(tenant_id, owner))
            if groups is not None:
                self._remember((tenant_id, owner), groups)
            wanted = with_groups(request, groups or ())
            if wanted != expected:
                reading.cancel()
                reading = asyncio.create_task(self._inner.recall(wanted, now=now))
            found = await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return replace(found, missing=(*found.missing, *parts.missing))

    def _remember(self, member: tuple[str, Owner], groups: Sequence[MemoryGroup]) -> None:
        self._last.pop(member, None)
        if groups:
            self._last[member] = groups
        if len(self._last) > OWNERS_MOST:
            del self._last[next(iter(self._last))]


def with_groups(request: RecallRequest, groups: Sequence[MemoryGroup]) -> RecallRequest:
    """Add groups, and the facts that they share, to a request."""
    if not groups:
        return request
    named = dict.fromkeys((*request.groups, *(group.group_id for group in groups)))
    facts = dict.fromkeys(fact_id for group in groups for fact_id in group.fact_ids)
    return replace(request, groups=tuple(named)[:GROUPS_MAX], shared_facts=tuple(facts)[:SHARED_MAX])
