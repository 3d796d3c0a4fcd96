"""The policy in force when tiers of memory are off."""

from __future__ import annotations

from dataclasses import replace

from .policies import MemoryPolicy


def without_disabled_tiers(policy: MemoryPolicy) -> MemoryPolicy:
    """The policy without the work that would go into tiers that are off. All on: as it is.

    Without facts there is nothing that a run could consolidate episodes into, so none is started; the janitor, which
    follows a run by default, then comes by the hour. Without episodes there is nothing to keep in order either.
    """
    tiers = policy.tiers
    if not tiers.digest:
        policy = replace(policy, digest=replace(policy.digest, enabled=False))
    if not tiers.semantic:
        janitor = "schedule" if policy.hygiene.janitor == "consolidation" else policy.hygiene.janitor
        policy = replace(
            policy,
            consolidation=replace(policy.consolidation, trigger="manual", cluster=0),
            prune=replace(policy.prune, facts=0),
            hygiene=replace(policy.hygiene, janitor=janitor, confidence_floor=0.0),
        )
    if not tiers.episodic:
        policy = replace(policy, hygiene=replace(policy.hygiene, enabled=False))
    return policy
