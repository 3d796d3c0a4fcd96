"""The effective policy when some memory tiers are off."""

from __future__ import annotations

from dataclasses import replace

from .policies import MemoryPolicy


def without_disabled_tiers(policy: MemoryPolicy) -> MemoryPolicy:
    """Return the policy without the work that writes to disabled tiers; unchanged when all tiers are on.

    Without facts, consolidation has nothing to write, so no run starts. The janitor, which follows a run by default,
    then runs on its schedule. Without episodes the janitor has no work.
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
            hygiene=replace(
                policy.hygiene, janitor=janitor, confidence_floor=0.0, waiting_facts=0, waiting_facts_judged=0
            ),
        )
    if not tiers.episodic:
        policy = replace(policy, hygiene=replace(policy.hygiene, enabled=False))
    return policy
