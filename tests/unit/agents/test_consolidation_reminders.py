from __future__ import annotations

from memstream.agents.consolidation.reminders import OwnerReminders
from memstream.agents.consolidation.schedule import ScheduledCommand
from memstream.schemas.turns import Owner
from tests.support.record_builders import NOW

OWNER = Owner(scope="user", id="u1")


def reminder(tenant: str = "acme", command: str = "c1", *, for_model: bool = True) -> ScheduledCommand:
    return ScheduledCommand(command, "consolidate", tenant, OWNER, NOW, for_model)


def test_a_reminder_comes_after_its_time_and_again_until_it_is_done() -> None:
    now = [0.0]
    reminders = OwnerReminders(pause=60, clock=lambda: now[0])
    reminders.wait("a", 0, reminder(), seconds=60)
    assert reminders.take_due(10) == []
    now[0] = 60
    assert reminders.take_due(10) == [reminder()]
    assert reminders.take_due(10) == []
    now[0] = 120
    assert reminders.take_due(10) == [reminder()]
    reminders.done("a")
    now[0] = 180
    assert reminders.take_due(10) == []


def test_an_owner_who_goes_on_speaking_does_not_put_it_off_and_another_one_takes_its_place() -> None:
    now = [0.0]
    reminders = OwnerReminders(pause=60, clock=lambda: now[0])
    reminders.wait("a", 0, reminder(), seconds=60)
    now[0] = 50
    reminders.wait("a", 0, reminder(), seconds=60)
    now[0] = 60
    assert reminders.take_due(10) == [reminder()]
    reminders.wait("a", 0, reminder(command="c2"), seconds=5)
    now[0] = 65
    assert reminders.take_due(10) == [reminder(command="c2")]


def test_the_tenants_model_is_back_and_the_rest_waits_on() -> None:
    reminders = OwnerReminders(pause=60, clock=lambda: 0.0)
    reminders.wait("a", 0, reminder("acme"), seconds=60)
    reminders.wait("b", 0, reminder("other"), seconds=60)
    reminders.wait("c", 0, reminder("acme", for_model=False), seconds=60)
    reminders.wake("acme")
    assert [(each.tenant_id, each.for_model) for each in reminders.take_due(10)] == [("acme", True)]


def test_at_most_so_many_at_once_and_none_of_a_partition_that_is_gone() -> None:
    reminders = OwnerReminders(pause=60, clock=lambda: 0.0)
    for n in range(6):
        reminders.wait(f"o{n}", n % 2, reminder(command=f"c{n}"), seconds=0)
    assert len(reminders.take_due(4)) == 4
    reminders.retain(frozenset({1, 2}))
    assert len(reminders) == 3
    assert [each.command_id for each in reminders.take_due(10)] == ["c5"]
