"""The policy in force when tiers are off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.memory.effective_policy import without_disabled_tiers
from memstream.memory.policies import ConsolidationPolicy, HygienePolicy, JanitorTrigger, MemoryPolicy, TiersPolicy

WITHOUT_FACTS = TiersPolicy(semantic=False, digest=False)
ALONE = TiersPolicy(episodic=False, semantic=False, digest=False)


def test_with_all_on_nothing_follows() -> None:
    assert without_disabled_tiers(MemoryPolicy()) == MemoryPolicy()


def test_without_a_digest_only_the_digest_is_left_out() -> None:
    policy = MemoryPolicy(tiers=TiersPolicy(digest=False))
    assert without_disabled_tiers(policy) == replace(policy, digest=replace(policy.digest, enabled=False))


@pytest.mark.parametrize(
    ("janitor", "then"),
    [("consolidation", "schedule"), ("capture", "capture"), ("schedule", "schedule"), ("manual", "manual")],
)
def test_without_facts_no_run_is_started_and_the_janitor_still_comes(
    janitor: JanitorTrigger, then: JanitorTrigger
) -> None:
    policy = without_disabled_tiers(
        MemoryPolicy(
            tiers=WITHOUT_FACTS,
            consolidation=ConsolidationPolicy(trigger="schedule", every=5),
            hygiene=HygienePolicy(janitor=janitor),
        )
    )
    assert (policy.consolidation.trigger, policy.consolidation.cluster, policy.prune.facts) == ("manual", 0, 0)
    assert (policy.hygiene.enabled, policy.hygiene.janitor, policy.hygiene.confidence_floor) == (True, then, 0.0)


def test_without_episodes_nothing_is_kept_in_order() -> None:
    policy = without_disabled_tiers(MemoryPolicy(tiers=ALONE))
    assert not policy.hygiene.enabled
    assert not policy.digest.enabled
    assert without_disabled_tiers(policy) == policy
