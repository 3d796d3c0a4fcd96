"""Recall over what groups share with their members: whoever asks for a member's memory reads it, too.

Membership is read anew for each request, so what is detached is gone from the next read. It is read beside the
memory itself: the searches begin with the groups of the owner's last read, and begin again where the groups are others
now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from ..schemas.groups import MemoryGroup
from ..schemas.turns import Owner
from .deadline import DeadlineReads
from .request import GROUPS_MAX, SHARED_MAX, RecallRequest
from .service import RecallPort, RecallResult

MEMBERS: Final = ("user", "agent")
"""Scopes of owners that can be members."""
PART: Final = "groups"
PATIENCE: Final = 1.5
"""Seconds that a recall waits for the groups: as long as for the searches, which run at the same time."""
OWNERS_MOST: Final = 1_000
"""Owners whose groups are remembered."""


class GroupReader(Protocol):
    """Port to groups (record_reader.py implements it)."""

    async def groups_of(self, tenant_id: str, member: Owner) -> Sequence[MemoryGroup]: ...


class SharedRecall:
    """A `RecallPort` that adds the groups of the owner to each request. Where they do not answer, the owner's own
    memory does, and `missing` names the groups."""

    def __init__(self, *, inner: RecallPort, groups: GroupReader) -> None:
        self._inner = inner
        self._groups = groups
        self._last: dict[tuple[str, Owner], Sequence[MemoryGroup]] = {}
        """The groups of those owners who were in any, the one read last at the end."""

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        tenant_id, owner = request.tenant_id, request.owner
        if owner.scope not in MEMBERS:
            return await self._inner.recall(request, now=now)
        parts = DeadlineReads(patience=PATIENCE)
        expected = _with(request, self._last.get((tenant_id, owner), ()))
        reading = asyncio.create_task(self._inner.recall(expected, now=now))
        try:
            groups = await parts.ask(PART, lambda: self._groups.groups_of(tenant_id, owner))
            if groups is not None:
                self._remember((tenant_id, owner), groups)
            wanted = _with(request, groups or ())
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


def _with(request: RecallRequest, groups: Sequence[MemoryGroup]) -> RecallRequest:
    if not groups:
        return request
    named = dict.fromkeys((*request.groups, *(group.group_id for group in groups)))
    facts = dict.fromkeys(fact_id for group in groups for fact_id in group.fact_ids)
    return replace(request, groups=tuple(named)[:GROUPS_MAX], shared_facts=tuple(facts)[:SHARED_MAX])
