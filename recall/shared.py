"""Recall over what groups share with their members: whoever asks for a member's memory reads it, too.

Membership is read anew for each request, so what is detached is gone from the next read.
"""

from __future__ import annotations

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
PATIENCE: Final = 0.5
"""Seconds that a recall waits for the groups."""


class GroupReader(Protocol):
    """Port to groups (record_reader.py implements it)."""

    async def groups_of(self, tenant_id: str, member: Owner) -> Sequence[MemoryGroup]: ...


class SharedRecall:
    """A `RecallPort` that adds the groups of the owner to each request. Where they do not answer, the owner's own
    memory does, and `missing` names the groups."""

    def __init__(self, *, inner: RecallPort, groups: GroupReader) -> None:
        self._inner = inner
        self._groups = groups

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        if request.owner.scope not in MEMBERS:
            return await self._inner.recall(request, now=now)
        parts = DeadlineReads(patience=PATIENCE)
        groups = await parts.ask(PART, lambda: self._groups.groups_of(request.tenant_id, request.owner))
        found = await self._inner.recall(_with(request, groups or ()), now=now)
        return replace(found, missing=(*found.missing, *parts.missing))


def _with(request: RecallRequest, groups: Sequence[MemoryGroup]) -> RecallRequest:
    if not groups:
        return request
    named = dict.fromkeys((*request.groups, *(group.group_id for group in groups)))
    facts = dict.fromkeys(fact_id for group in groups for fact_id in group.fact_ids)
    return replace(request, groups=tuple(named)[:GROUPS_MAX], shared_facts=tuple(facts)[:SHARED_MAX])
