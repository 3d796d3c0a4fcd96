"""The label `tenant` has a bounded number of values."""

from __future__ import annotations

from memstream.streams.engine.metrics import OTHER_TENANTS, TENANT_LABELS, TenantLabels


def test_the_first_hundred_tenants_are_named_and_the_rest_are_other() -> None:
    labels = TenantLabels()
    named = [f"t{n}" for n in range(TENANT_LABELS)]
    assert [labels.of(tenant) for tenant in named] == named
    assert {labels.of(f"late{n}") for n in range(200)} == {OTHER_TENANTS}
    assert labels.of("t7") == "t7", "a named tenant keeps its name"
