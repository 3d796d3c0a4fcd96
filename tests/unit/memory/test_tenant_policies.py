"""Policies of tenants: laid over the deployment's, refused by name, and what a turn's cause keeps of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from memstream.memory.policies import CapturePolicy, MemoryPolicy, TiersPolicy
from memstream.memory.tenant_policies import (
    PolicyRefused,
    TenantPolicies,
    TurnPolicies,
    policy_of,
    read_policy,
    with_settings,
)
from memstream.schemas.observations import AppliedPolicy, ObservedBy
from memstream.schemas.policies import TenantPolicy
from tests.support.record_builders import observed

COACH = {"personas": {"coach": {"openness": 0.9}}}


def refused(table: dict[str, Any], deployment: MemoryPolicy | None = None) -> tuple[str, ...]:
    with pytest.raises(PolicyRefused) as error:
        policy_of(table, deployment or MemoryPolicy())
    return error.value.problems


class TestOverTheDeployment:
    def test_what_is_not_named_stays(self) -> None:
        deployment = MemoryPolicy(capture=CapturePolicy(max_per_message=5))
        policy = policy_of({"capture": {"threshold": 0.5, "roles": ["user"]}}, deployment)
        assert policy.capture == CapturePolicy(max_per_message=5, threshold=0.5, roles=("user",))
        assert dataclasses.replace(policy, capture=deployment.capture) == deployment

    @pytest.mark.parametrize("section", TenantPolicy.model_fields)
    def test_every_section_that_a_tenant_may_set_is_one_of_the_policy(self, section: str) -> None:
        assert policy_of({section: {}}, MemoryPolicy()) == MemoryPolicy()

    @pytest.mark.parametrize(
        ("table", "problem"),
        [
            ({"captur": {}}, "captur: there is no such setting (did you mean capture?)"),
            ({"capture": {"treshold": 1}}, "capture.treshold: there is no such setting (did you mean threshold?)"),
            ({"capture": {"threshold": 2}}, "capture: capture.threshold must be between 0 and 1, not 2.0"),
            ({"capture": {"threshold": "much"}}, "capture.threshold: Input should be a valid number"),
            ({"capture": 7}, "capture: expected a table [capture]"),
            ({"conflict": {"hot": 0.5}}, "conflict: conflict zones must rise: conflict_check, near_dup, hot"),
            ({"budget": {"max_output_tokens": 1}}, "budget: only the deployment's file sets it"),
            ({"privacy": {"pin": "allow"}}, "privacy: only the deployment's file sets it"),
            ({"capture": {"source": "os:system"}}, "capture.source: only the deployment's file sets it"),
            ({"recall": {"patience": 9}}, "recall.patience: only the deployment's file sets it"),
            ({"limits": {"turns_per_minute": -1}}, "limits: limits.turns_per_minute must be 0 to 1000000, not -1"),
            ({"personas": {"a": {"opennes": 1}}}, 'personas."a".opennes: there is no such setting'),
            ({"personas": {"a": {"openness": 2}}}, 'personas."a": openness must be between 0 and 1, not 2.0'),
            ({"tools": {"pack": ["recal"]}}, "tools: tools.pack: there is no tool recal; there are memory_add"),
        ],
    )
    def test_what_is_wrong_is_named(self, table: dict[str, Any], problem: str) -> None:
        assert [each for each in refused(table) if each.startswith(problem)], refused(table)

    def test_all_that_is_wrong_is_named_at_once(self) -> None:
        assert len(refused({"capture": {"x": 1}, "recall": {"y": 1}, "budget": {}})) == 3

    def test_a_tier_that_is_off_stays_off(self) -> None:
        deployment = MemoryPolicy(tiers=TiersPolicy(digest=False))
        assert not policy_of({"digest": {"enabled": True}}, deployment).digest.enabled

    @pytest.mark.parametrize("value", [b"", b"{", b"[]", b"3", b"[" * 100_000, b'{"a": "' + b"x" * 262_144 + b'"}'])
    def test_what_is_no_policy_is_refused(self, value: bytes) -> None:
        with pytest.raises(PolicyRefused, match="the policy"):
            read_policy(value)


class TestInForce:
    def test_of_each_tenant_its_own(self) -> None:
        policies = TenantPolicies(MemoryPolicy())
        policies.set("acme", {"capture": {"threshold": 0.5}})
        assert policies.of("acme").capture.threshold == 0.5
        assert policies.of("other") is policies.deployment

    def test_a_persona_is_of_its_agent(self) -> None:
        policies = TenantPolicies(MemoryPolicy())
        policies.set("acme", COACH)
        found = [policies.of("acme", each).capture.threshold for each in ("coach", "another", None)]
        assert found == [0.3, 0.4, 0.4]
        assert policies.of("other", "coach") is policies.deployment

    def test_a_wrong_one_leaves_the_last_good_one(self) -> None:
        policies = TenantPolicies(MemoryPolicy())
        policies.set("acme", COACH)
        with pytest.raises(PolicyRefused):
            policies.set("acme", {"capture": {"threshold": 7}})
        assert policies.of("acme", "coach").capture.threshold == 0.3

    def test_a_new_one_replaces_personas_too(self) -> None:
        policies = TenantPolicies(MemoryPolicy())
        policies.set("acme", COACH)
        assert policies.of("acme", "coach").capture.threshold == 0.3
        policies.set("acme", {"capture": {"threshold": 0.5}} | COACH)
        assert policies.of("acme", "coach").capture.threshold == 0.4
        policies.remove("acme")
        assert policies.of("acme", "coach") is policies.deployment


class TestOfATurn:
    def test_the_cause_keeps_what_differs(self) -> None:
        policies = TenantPolicies(MemoryPolicy())
        assert policies.applied("acme", "coach") is None
        policies.set("acme", {"routing": {"significance": 0.5}, "recall": {"limit": 3}} | COACH)
        assert policies.applied("acme", "coach") == AppliedPolicy(
            persona="coach",
            settings={
                "capture.threshold": 0.3,
                "capture.max_per_message": 9,
                "capture.emotion": True,
                "routing.significance": 0.5,
            },
        )
        assert policies.applied("acme", None) == AppliedPolicy(settings={"routing.significance": 0.5})

    def test_the_former_name_of_a_setting_is_read(self) -> None:
        """A policy, and the cause of a turn, as version 0.3 wrote them."""
        policy = policy_of({"capture": {"max_per_turn": 5}}, MemoryPolicy())
        assert policy.capture.max_per_message == 5
        cause = ObservedBy(applied=AppliedPolicy(settings={"capture.max_per_turn": 4, "routing.significance": 0.5}))
        found = TurnPolicies(MemoryPolicy()).of(observed(cause=cause))
        assert found is not None
        assert (found.capture.max_per_message, found.routing.significance) == (4, 0.5)

    def test_the_turn_is_reflected_by_it(self) -> None:
        policies = TenantPolicies(MemoryPolicy())
        policies.set("acme", {"conflict": {"near_dup": 0.9}, "working": {"capacity": 3}} | COACH)
        cause = ObservedBy(applied=policies.applied("acme", "coach"))
        found = TurnPolicies(MemoryPolicy()).of(observed(cause=cause))
        assert found == dataclasses.replace(policies.of("acme", "coach"), personas={}, recall=MemoryPolicy().recall)

    def test_without_settings_the_deployments_holds(self) -> None:
        deployment = MemoryPolicy(capture=CapturePolicy(threshold=0.7))
        turns = TurnPolicies(deployment)
        assert turns.of(observed()) is deployment
        assert turns.of(observed(cause=ObservedBy(applied=AppliedPolicy(settings={}, persona="a")))) is deployment

    @pytest.mark.parametrize(
        "settings",
        [{"tiers.semantic": False}, {"capture": {}}, {"capture.threshold": 7}, {"capture.threshold.x": 1}, {"": 1}],
    )
    def test_settings_that_do_not_fit_are_none(self, settings: dict[str, Any]) -> None:
        with pytest.raises(PolicyRefused):
            with_settings(MemoryPolicy(), settings)
        cause = ObservedBy(applied=AppliedPolicy(settings=settings))
        assert TurnPolicies(MemoryPolicy()).of(observed(cause=cause)) is None
