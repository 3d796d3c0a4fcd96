"""The policies in force in a process: the policies of the deployment, of tenants, and of agents with a persona."""

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
"""Settings that only the deployment may set. A process needs some of these settings before it knows the tenant. For
other settings, a process loads a component for each value, such as an encoder."""
APPLIED_SECTIONS: Final = ("working", "capture", "evidence", "routing", "confidence", "conflict", "slots")
"""Policy sections that control how a turn is observed and reflected."""
_ONLY_SHOWN: Final = frozenset(("capture.instructions",))
"""Settings of these sections that only the prompt uses. They are not in the record of a turn."""
PERSONAS_MAX: Final = 256
_DEPLOYMENT_SECTIONS: Final = frozenset(each.name for each in dataclasses.fields(MemoryPolicy)) - frozenset(
    TenantPolicy.model_fields
)
Table = Mapping[str, Any]


class PolicyRefused(ValueError):
    """An invalid policy. `problems`: one line for each wrong name or value."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def policy_of(table: Table, deployment: MemoryPolicy) -> MemoryPolicy:
    """Return the deployment's policy, overridden by a tenant's values. Raises PolicyRefused."""
    fixed = sorted(name for name in (*_DEPLOYMENT_SECTIONS, *DEPLOYMENT_ONLY) if _has_setting(table, name))
    ours = {name: value for name, value in table.items() if name not in _DEPLOYMENT_SECTIONS}
    policy, problems = policy_from(MemoryPolicy, ours, path="", base=deployment)
    problems += [f"{name}: only the deployment's file sets it" for name in fixed]
    if policy is not None and len(policy.personas) > PERSONAS_MAX:
        problems.append(f"personas: there are {len(policy.personas)}; at most {PERSONAS_MAX} are kept")
    if policy is None or problems:
        raise PolicyRefused(problems)
    return without_disabled_tiers(policy)


def read_policy(value: bytes) -> Table:
    """Parse a tenant's policy from JSON. Raises PolicyRefused."""
    if len(value) > POLICY_MAX_BYTES:
        raise PolicyRefused([f"the policy has {len(value)} bytes; at most {POLICY_MAX_BYTES} are allowed"])
    try:
        table = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise PolicyRefused([f"the policy is not valid JSON: {error}"]) from None
    if not isinstance(table, dict):
        raise PolicyRefused(["the policy is not a JSON object"])
    return table


def applied_settings(policy: MemoryPolicy, deployment: MemoryPolicy) -> dict[str, Any]:
    """Return the settings for a turn that differ from the deployment's, by name: `{"capture.threshold": 0.3}`."""
    ours, theirs = _turn_settings(policy), _turn_settings(deployment)
    return {name: value for name, value in ours.items() if value != theirs.get(name)}


def with_settings(deployment: MemoryPolicy, settings: Table) -> MemoryPolicy:
    """Return the deployment's policy, overridden by a turn's settings. Raises PolicyRefused."""
    known = _turn_settings(deployment)
    former = {f"capture.{name}": f"capture.{now}" for name, now in former_names(CapturePolicy).items()}
    settings = {former.get(name, name): value for name, value in settings.items()}
    if unknown := [name for name in settings if name not in known and not name.startswith("slots.")]:
        raise PolicyRefused([f"{name}: this setting does not apply to turns" for name in unknown])
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
    """The policies for the reflection of turns. The policy of a turn is the deployment's policy, overridden by the
    settings in the `cause` of the turn's record."""

    def __init__(self, deployment: MemoryPolicy) -> None:
        self._deployment = deployment
        self._known = lru_cache(maxsize=256)(lambda text: with_settings(deployment, json.loads(text)))

    def of(self, observed: Observed) -> MemoryPolicy | None:
        """Return the policy of a turn. None: the turn's settings do not fit the deployment's policy, and the caller
        uses the deployment's policy."""
        applied = observed.cause.applied
        if applied is None or not applied.settings:
            return self._deployment
        try:
            return self._known(json.dumps(applied.settings, sort_keys=True))
        except PolicyRefused:
            return None


class TenantPolicies:
    """The policies in force in this process. Only the policy reader of the process calls `set` and `remove`."""

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
        """Return the agent's persona and the settings that differ from the deployment's policy. None: there is no
        persona and no difference."""
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
        """Activate a tenant's policy. Raises PolicyRefused and keeps the previous policy when the new one is
        invalid."""
        policy = policy_of(table, self.deployment)
        self.remove(tenant_id)
        self._tenants[tenant_id] = policy

    def remove(self, tenant_id: str) -> None:
        """Remove a tenant's policy, so that the deployment's policy applies to the tenant again."""
        self._tenants.pop(tenant_id, None)
        self._agents = {key: each for key, each in self._agents.items() if key[0] != tenant_id}
        self._applied = {key: each for key, each in self._applied.items() if key[0] != tenant_id}


def flat_settings(policy: MemoryPolicy) -> dict[str, Any]:
    """Return every setting by its full name: `{"capture.threshold": 0.4}`. A slot is one setting: `slots.employer`."""
    tables = dataclasses.asdict(policy)
    slots = tables.pop("slots")
    return {**dict(_flat(tables)), **{f"slots.{name}": slot for name, slot in slots.items()}}


def _turn_settings(policy: MemoryPolicy) -> dict[str, Any]:
    return {
        name: value
        for name, value in flat_settings(policy).items()
        if name.partition(".")[0] in APPLIED_SECTIONS and name not in _ONLY_SHOWN
    }


def _has_setting(table: Any, name: str) -> bool:
    """Return whether a table contains a setting of this name. The table is not validated yet."""
    for part in name.split("."):
        if not isinstance(table, Mapping) or part not in table:
            return False
        table = table[part]
    return True


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the full name and the value of each setting: `capture.threshold`, 0.3."""
    for name, value in table.items():
        place = f"{path}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{place}.")
        else:
            yield place, list(value) if isinstance(value, tuple) else value
