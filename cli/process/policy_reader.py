"""Reader of memory.policies: the policies of tenants that are in force in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import structlog

from ...memory.policies import MemoryPolicy
from ...memory.tenant_policies import PolicyRefused, TenantPolicies, read_policy
from ...schemas import ids
from ...schemas.cloudevents import MAJOR_VERSION, major_version
from ...schemas.errors import StageError
from ...schemas.topics import POLICIES, Topic
from ...streams.log.port import Log, Record
from .followed_topic import FollowedTopic

log = structlog.get_logger(__name__)


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
class PolicyReader(FollowedTopic):
    """Reader that keeps `policies` equal to the topic. It is the only writer of `policies`."""

    topic: ClassVar[Topic] = POLICIES
    pause: ClassVar[float] = 5.0
    policies: TenantPolicies
    states: dict[str, PolicyState] = field(default_factory=dict)

    def _take_all(self, records: Sequence[Record]) -> None:
        for tenant_id in self.states.keys() - set(map(_tenant_of, records)):  # removed during an outage of the log
            self.policies.remove(tenant_id)
            del self.states[tenant_id]
        for record in records:
            self._take(record)

    def _not_read(self, error: StageError) -> None:
        log.warning("policies_not_read", why=str(error), remedy="none: the present policies stay in force")

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
