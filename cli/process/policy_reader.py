"""Reader of memory.policies: the whole topic before the first event, then record by record.

The reader uses no consumer group, because every process needs every tenant's policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from ...memory.policies import MemoryPolicy
from ...memory.tenant_policies import PolicyRefused, TenantPolicies, read_policy
from ...schemas import ids
from ...schemas.cloudevents import MAJOR_VERSION, major_version
from ...schemas.errors import StageError
from ...schemas.topics import POLICIES
from ...streams.log.port import Log, Record

log = structlog.get_logger(__name__)
PAUSE = 5.0
"""Seconds until the topic is read again after the log did not answer."""


@dataclass(frozen=True, slots=True)
class PolicyState:
    """A tenant's policy in force, and the problems of a later policy that was refused."""

    in_force: Mapping[str, Any] | None = None
    """The tenant's settings; None if the deployment's policy applies."""
    since: datetime | None = None
    refused: tuple[str, ...] = ()
    """Problems of the last record if it was refused. The policy before it stays in force."""
    refused_at: datetime | None = None


@dataclass(slots=True)
class PolicyReader:
    """Reader that keeps `policies` equal to the topic. It is the only writer of `policies`."""

    log: Log
    policies: TenantPolicies
    states: dict[str, PolicyState] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)

    async def read_whole(self) -> None:
        """Read the topic to its end, then apply all its policies in one step.

        Otherwise an event could be handled with a policy that a later record replaces. Raises Transient.
        """
        if await self.log.partitions(POLICIES.name) is None:
            return  # an older deployment has no such topic; workers refuse to start without it
        ends = await self.log.ends(POLICIES.name)
        async with aclosing(self.log.read(POLICIES.name)) as records:
            every = [record async for record in records]
        for tenant_id in self.states.keys() - set(map(_tenant_of, every)):  # removed during an outage of the log
            self.policies.remove(tenant_id)
            del self.states[tenant_id]
        for record in every:
            self._take(record)
        self._next = dict(enumerate(ends))

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the topic in the background while the block runs."""
        task = asyncio.create_task(self.follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def follow(self) -> None:
        """Follow the topic until cancelled. While the log does not answer, the present policies stay in force."""
        while True:
            try:
                if not self._next:
                    await self.read_whole()
                async with aclosing(self.log.read(POLICIES.name, start=self._next, follow=True)) as records:
                    async for record in records:
                        self._take(record)
            except StageError as error:
                log.warning("policies_not_read", why=str(error), remedy="none: the present policies stay in force")
            self._next = {}
            await asyncio.sleep(PAUSE)

    def _take(self, record: Record) -> None:
        tenant_id = _tenant_of(record)
        at = record.written_at
        before = self.states.get(tenant_id, PolicyState())
        try:
            table = None if not record.value else _decoded(record)
            if table is None:
                self.policies.remove(tenant_id)
            else:
                self.policies.set(tenant_id, table)
        except PolicyRefused as refused:
            self.states[tenant_id] = PolicyState(before.in_force, before.since, refused.problems, at)
            log.warning(
                "policy_refused",
                tenant_id=tenant_id,
                offset=record.position.offset,
                wrong=list(refused.problems),
                remedy="correct it, and send it with `memstream policies set`; the last valid policy stays in force",
            )
            return
        self.states[tenant_id] = PolicyState(table, at)
        log.info("policy_in_force", tenant_id=tenant_id, offset=record.position.offset, sections=sorted(table or ()))


async def read_policies(log: Log, deployment: MemoryPolicy) -> TenantPolicies:
    """Return the present policies. Raises Transient."""
    reader = PolicyReader(log, TenantPolicies(deployment))
    await reader.read_whole()
    return reader.policies


def _tenant_of(record: Record) -> str:
    return ids.split((record.key or b"").decode("utf-8", "replace"))[0]


def _decoded(record: Record) -> Mapping[str, Any]:
    major = major_version(record.headers)
    if major not in (None, MAJOR_VERSION):
        raise PolicyRefused([f"major version {major} is not supported; this version reads {MAJOR_VERSION}"])
    return read_policy(record.value or b"")
