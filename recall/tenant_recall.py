"""Recall with the policy of each tenant (memory/tenant_policies.py)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ..memory.policies import MemoryPolicy
from ..memory.tenant_policies import TenantPolicies
from .request import RecallRequest
from .service import RecallPort, RecallResult


class TenantRecall:
    """`RecallPort` that delegates each read to a port with the tenant's policy.

    `make` creates the port of a policy. The port is cached until the tenant's policy changes.
    """

    def __init__(self, *, policies: TenantPolicies, make: Callable[[MemoryPolicy], RecallPort]) -> None:
        self._policies = policies
        self._make = make
        self._shared = make(policies.deployment)
        self._own: dict[str, tuple[MemoryPolicy, RecallPort]] = {}

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        return await self._of(request.tenant_id).recall(request, now=now)

    def _of(self, tenant_id: str) -> RecallPort:
        policy = self._policies.of(tenant_id)
        if policy is self._policies.deployment:
            self._own.pop(tenant_id, None)
            return self._shared
        known = self._own.get(tenant_id)
        if known is None or known[0] is not policy:
            known = self._own[tenant_id] = policy, self._make(policy)
        return known[1]
