"""The policies in force in a process: the deployment's, those of tenants, and what an agent's persona moves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ..schemas.observations import AppliedPolicy, Observed
from ..schemas.policies import POLICY_MAX_BYTES, TenantPolicy
from .effective_policy import without_disabled_tiers
from .personas import with_persona
from .policies import MemoryPolicy
from .policies.observation import CapturePolicy
from .policies.parsing import former_names, policy_from

DEPLOYMENT_ONLY: Final = frozenset(
    (
        *("capture.source", "routing.scope", "routing.clock_ahead", "conflict.lexical"),
        *("recall.patience", "recall.reranker", "recall.rerank_pool", "recall.cross_encoder", "recall.late_encoder"),
        *("recall.tool.strategy", "session_log.retention_days"),
    )
)
"""Values that a process needs before it knows the tenant, or that need parts of their own."""
APPLIED_SECTIONS: Final = ("working", "capture", "routing", "confidence", "conflict")
"""Sections that rule how a turn is observed and reflected."""
PERSONAS_MAX: Final = 256
_DEPLOYMENT_SECTIONS: Final = frozenset(each.name for each in dataclasses.fields(MemoryPolicy)) - frozenset(
    TenantPolicy.model_fields
)
Table = Mapping[str, Any]


class PolicyRefused(ValueError):
    """A policy is wrong. `problems`: one line for each wrong name or value."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def policy_of(table: Table, deployment: MemoryPolicy) -> MemoryPolicy:
    """Lay a tenant's policy over the deployment's. Raises PolicyRefused."""
    fixed = sorted(name for name in (*_DEPLOYMENT_SECTIONS, *DEPLOYMENT_ONLY) if _names(table, name))
    ours = {name: value for name, value in table.items() if name not in _DEPLOYMENT_SECTIONS}
    policy, problems = policy_from(MemoryPolicy, ours, path="", base=deployment)
    problems += [f"{name}: only the deployment's file sets it" for name in fixed]
    if policy is not None and len(policy.personas) > PERSONAS_MAX:
        problems.append(f"personas: there are {len(policy.personas)}; at most {PERSONAS_MAX} are kept")
    if policy is None or problems:
        raise PolicyRefused(problems)
    return without_disabled_tiers(policy)


def read_policy(value: bytes) -> Table:
    """Read a tenant's policy from JSON. Raises PolicyRefused."""
    if len(value) > POLICY_MAX_BYTES:
        raise PolicyRefused([f"the policy has {len(value)} bytes; at most {POLICY_MAX_BYTES} are allowed"])
    try:
        table = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise PolicyRefused([f"the policy is no JSON: {error}"]) from None
    if not isinstance(table, dict):
        raise PolicyRefused(["the policy is no JSON object"])
    return table


def applied_settings(policy: MemoryPolicy, deployment: MemoryPolicy) -> dict[str, Any]:
    """Return by name what rules a turn's observation and differs from the deployment: `{"capture.threshold": 0.3}`."""
    ours, theirs = _ruling(policy), _ruling(deployment)
    return {name: value for name, value in ours.items() if value != theirs[name]}


def with_settings(deployment: MemoryPolicy, settings: Table) -> MemoryPolicy:
    """Return the deployment's policy with the settings of a turn. Raises PolicyRefused."""
    known = _ruling(deployment)
    former = {f"capture.{name}": f"capture.{now}" for name, now in former_names(CapturePolicy).items()}
    settings = {former.get(name, name): value for name, value in settings.items()}
    if unknown := [name for name in settings if name not in known]:
        raise PolicyRefused([f"{name}: no such setting rules a turn" for name in unknown])
    table: dict[str, Any] = {}
    for name, value in settings.items():
        place = table
        *path, last = name.split(".")
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    policy, problems = policy_from(MemoryPolicy, table, path="", base=deployment)
    if policy is None:
        raise PolicyRefused(problems)
    return policy


class TurnPolicies:
    """The policies by which turns are reflected: the deployment's with the settings in the cause of a turn."""

    def __init__(self, deployment: MemoryPolicy) -> None:
        self._deployment = deployment
        self._known = lru_cache(maxsize=256)(lambda text: with_settings(deployment, json.loads(text)))

    def of(self, observed: Observed) -> MemoryPolicy | None:
        """Return the policy of a turn; None for settings that do not fit the deployment's policy, which then holds."""
        applied = observed.cause.applied
        if applied is None or not applied.settings:
            return self._deployment
        try:
            return self._known(json.dumps(applied.settings, sort_keys=True))
        except PolicyRefused:
            return None


class TenantPolicies:
    """The policies in force in this process. `set` and `remove` are called by its policy reader alone."""

    def __init__(self, deployment: MemoryPolicy) -> None:
        self.deployment: Final = deployment
        self._tenants: dict[str, MemoryPolicy] = {}
        self._agents: dict[tuple[str, str], MemoryPolicy] = {}
        self._applied: dict[tuple[str, str | None], AppliedPolicy | None] = {}

    def of(self, tenant_id: str, agent_id: str | None = None) -> MemoryPolicy:
        """Return the policy of a tenant, with the effects of the agent's persona if it has one."""
        policy = self._tenants.get(tenant_id, self.deployment)
        if agent_id is None or agent_id not in policy.personas:
            return policy
        known = self._agents.get((tenant_id, agent_id))
        if known is None:
            known = self._agents[tenant_id, agent_id] = with_persona(policy, policy.personas[agent_id])
        return known

    def applied(self, tenant_id: str, agent_id: str | None) -> AppliedPolicy | None:
        """Return what differs from the deployment's policy for a turn; None when nothing does."""
        policy = self.of(tenant_id, agent_id)
        if policy is self.deployment:
            return None
        persona = agent_id if agent_id in policy.personas else None
        if (tenant_id, persona) not in self._applied:
            settings = applied_settings(policy, self.deployment)
            applied = AppliedPolicy(persona=persona, settings=settings) if persona or settings else None
            self._applied[tenant_id, persona] = applied
        return self._applied[tenant_id, persona]

    def set(self, tenant_id: str, table: Table) -> None:
        """Put a tenant's policy in force. Raises PolicyRefused; then the last one stays."""
        policy = policy_of(table, self.deployment)
        self.remove(tenant_id)
        self._tenants[tenant_id] = policy

    def remove(self, tenant_id: str) -> None:
        """Let the deployment's policy hold for a tenant again."""
        self._tenants.pop(tenant_id, None)
        self._agents = {key: each for key, each in self._agents.items() if key[0] != tenant_id}
        self._applied = {key: each for key, each in self._applied.items() if key[0] != tenant_id}


def flat_settings(policy: MemoryPolicy) -> dict[str, Any]:
    """Return every setting by its name: `{"capture.threshold": 0.4}`."""
    return dict(_flat(dataclasses.asdict(policy)))


def _ruling(policy: MemoryPolicy) -> dict[str, Any]:
    return {name: value for name, value in flat_settings(policy).items() if name.partition(".")[0] in APPLIED_SECTIONS}


def _names(table: Any, name: str) -> bool:
    """Whether a table of any form has a setting of this name."""
    for part in name.split("."):
        if not isinstance(table, Mapping) or part not in table:
            return False
        table = table[part]
    return True


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and value of each setting: `capture.threshold`, 0.3."""
    for name, value in table.items():
        place = f"{path}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{place}.")
        else:
            yield place, list(value) if isinstance(value, tuple) else value
