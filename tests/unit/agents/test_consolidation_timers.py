from __future__ import annotations

from memstream.agents.consolidation.rows import Waiting
from memstream.agents.consolidation.timers import Reminders
from memstream.schemas.turns import Owner

OWNER = Owner(scope="user", id="u1")


def waiting(tenant: str = "acme", run: str = "r1") -> Waiting:
    return Waiting(tenant_id=tenant, owner=OWNER, run_id=run)


def test_a_reminder_comes_after_the_pause_and_again_until_it_is_done() -> None:
    now = [0.0]
    reminders = Reminders(pause=60, clock=lambda: now[0])
    reminders.assigned(frozenset({0}))
    reminders.wait("a", 0, waiting())
    assert reminders.take_due(10) == []
    now[0] = 60
    assert reminders.take_due(10) == [waiting()]
    assert reminders.take_due(10) == []
    now[0] = 120
    assert reminders.take_due(10) == [waiting()]
    reminders.done("a")
    now[0] = 180
    assert reminders.take_due(10) == []


def test_the_tenants_model_is_back_and_the_rest_waits_on() -> None:
    reminders = Reminders(pause=60, clock=lambda: 0.0)
    reminders.assigned(frozenset({0}))
    reminders.wait("a", 0, waiting("acme"))
    reminders.wait("b", 0, waiting("other"))
    reminders.wake("acme")
    assert [each.tenant_id for each in reminders.take_due(10)] == ["acme"]


def test_at_most_so_many_at_once_and_none_of_a_partition_that_is_gone() -> None:
    reminders = Reminders(pause=60, clock=lambda: 0.0)
    assert reminders.assigned(frozenset({0, 1})) == {0, 1}
    for n in range(6):
        reminders.wait(f"o{n}", n % 2, waiting(run=f"r{n}"), at_once=True)
    assert len(reminders.take_due(4)) == 4
    assert reminders.assigned(frozenset({1, 2})) == {2}
    assert len(reminders) == 3
    assert [each.run_id for each in reminders.take_due(10)] == ["r5"]
