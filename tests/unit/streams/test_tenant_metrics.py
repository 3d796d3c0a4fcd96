"""Gauges by tenant: what they show, and that their number is bounded."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from memstream.streams.engine.metrics import OTHER_TENANTS, TENANT_LABELS, Metrics, StageMetrics


class Shown:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = StageMetrics(Metrics(self.registry), "observer")

    def of(self, name: str) -> dict[str, float]:
        """The values of a family by tenant."""
        return {
            sample.labels["tenant"]: sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == name
        }


def test_a_tenant_of_which_nothing_is_held_has_no_series() -> None:
    shown = Shown()
    shown.metrics.tenants(held={"a": 3, "b": 1}, in_flight={"a": 1}, paused=["b"])
    assert shown.of("memstream_tenant_held") == {"a": 3, "b": 1}
    assert shown.of("memstream_tenant_in_flight") == {"a": 1}
    assert shown.of("memstream_tenant_paused") == {"b": 1}
    shown.metrics.tenants(held={"b": 2}, in_flight={}, paused=[])
    assert shown.of("memstream_tenant_held") == {"b": 2}
    assert shown.of("memstream_tenant_in_flight") == {}
    assert shown.of("memstream_tenant_paused") == {}


def test_beyond_the_named_tenants_they_are_added_up() -> None:
    shown = Shown()
    tenants = {f"t{n}": 2 for n in range(TENANT_LABELS + 7)}
    shown.metrics.tenants(held=tenants, in_flight={}, paused=tenants)
    held = shown.of("memstream_tenant_held")
    assert len(held) == TENANT_LABELS + 1
    assert held[OTHER_TENANTS] == 14
    assert shown.of("memstream_tenant_paused")[OTHER_TENANTS] == 7
    shown.metrics.tenants(held={"t0": 1}, in_flight={}, paused=[])
    assert shown.of("memstream_tenant_held") == {"t0": 1}


def test_refusals_are_counted_by_tenant() -> None:
    shown = Shown()
    for tenant in ("a", "a", "b"):
        shown.metrics.refused_tenant(tenant)
    assert shown.of("memstream_tenant_refusals_total") == {"a": 2, "b": 1}


def test_a_key_that_is_no_tenant_names_no_series() -> None:
    shown = Shown()
    shown.metrics.tenants(held={"x" * 300: 1}, in_flight={}, paused=[])
    assert shown.of("memstream_tenant_held") == {OTHER_TENANTS: 1}
