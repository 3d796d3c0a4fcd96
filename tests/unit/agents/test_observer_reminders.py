"""When sessions that wait are asked again."""

from __future__ import annotations

import pytest

from memstream.agents.observer.reminders import SessionReminders


class World:
    def __init__(self) -> None:
        self.now = 100.0
        self.reminders = SessionReminders(pause=60.0, clock=lambda: self.now)

    def wait(
        self,
        key: str,
        *,
        partition: int = 0,
        last: str = "t1",
        due_in: float = 60.0,
        tenant: str = "acme",
        retry_after: float = 0.0,
        batch_wait: bool = False,
    ) -> None:
        self.reminders.wait(
            key,
            partition=partition,
            tenant_id=tenant,
            last_turn_id=last,
            due_in=due_in,
            retry_after=retry_after,
            batch_wait=batch_wait,
        )

    def due(self, at_most: int = 100) -> list[tuple[str, str, int]]:
        return [(key, item.last_turn_id, item.attempt) for key, item in self.reminders.take_due(at_most)]


@pytest.fixture
def world() -> World:
    return World()


def test_a_session_is_due_after_the_pause_and_again_until_it_is_done(world: World) -> None:
    world.wait("a")
    world.now += 59.9
    assert world.due() == []
    world.now += 0.1
    assert world.due() == [("a", "t1", 0)]
    assert world.due() == []
    world.now += 60
    assert world.due() == [("a", "t1", 1)]
    world.reminders.remove("a")
    world.now += 60
    assert world.due() == []


def test_the_pause_begins_with_the_first_deferral_and_the_last_turn_names_it(world: World) -> None:
    world.wait("a", last="t1")
    world.now += 50
    world.wait("a", last="t2")
    world.now += 10
    assert world.due() == [("a", "t2", 0)]


def test_a_server_that_asked_for_more_time_than_the_pause_has_it(world: World) -> None:
    world.wait("a")
    world.now += 30
    world.wait("a", retry_after=300)
    assert world.reminders.held_back("a") == "model_away"
    world.wait("a")  # another turn of the session
    world.reminders.wake("acme")
    world.now += 299.9
    assert world.due() == []
    world.now += 0.1
    assert world.reminders.held_back("a") is None
    assert world.due() == [("a", "t1", 0)]
    world.now += 60
    assert world.due() == [("a", "t1", 1)]


def test_what_one_server_asked_for_a_session_holds_no_other_back(world: World) -> None:
    world.wait("a", retry_after=300)
    world.wait("b")
    assert world.reminders.held_back("b") is None
    world.reminders.remove("a")
    assert world.reminders.held_back("a") is None


def test_a_session_that_is_found_at_assignment_is_due_at_once(world: World) -> None:
    world.wait("a")
    world.wait("a", due_in=0.0)
    assert world.due() == [("a", "t1", 0)]


def test_when_a_model_is_back_only_its_tenants_sessions_are_due(world: World) -> None:
    world.wait("a")
    world.wait("b", tenant="other")
    world.reminders.wake("acme")
    assert world.due() == [("a", "t1", 0)]


def test_nobody_starves_when_there_are_more_than_can_be_sent(world: World) -> None:
    for n in range(10):
        world.wait(f"s{n}", due_in=0.0)
    seen = [key for key, _, _ in world.due(4)]
    world.now += 61  # the first four are due again
    while batch := world.due(4):
        seen += [key for key, _, _ in batch]
    assert seen[:10] == [f"s{n}" for n in range(10)]
    assert len(seen) == 14


def test_sessions_of_partitions_that_are_gone_are_forgotten(world: World) -> None:
    world.wait("a", partition=0, due_in=0)
    world.wait("b", partition=1, due_in=0)
    world.reminders.retain(frozenset((1, 2)))
    assert world.due() == [("b", "t1", 0)]
    assert len(world.reminders) == 1


def test_a_session_that_waits_anew_starts_with_the_first_attempt(world: World) -> None:
    world.wait("a", due_in=0)
    assert world.due() == [("a", "t1", 0)]
    world.reminders.remove("a")
    world.wait("a", last="t9", due_in=0)
    assert world.due() == [("a", "t9", 0)]


def test_a_session_that_was_woken_is_not_asked_twice(world: World) -> None:
    world.wait("a")
    world.now += 10
    world.reminders.wake("acme")
    assert world.due() == [("a", "t1", 0)]
    world.now += 60  # past the old time and the new one
    assert world.due() == [("a", "t1", 1)]


def test_who_waits_for_company_is_due_when_the_partition_is_read_the_longest_waiting_first(world: World) -> None:
    for key in ("b", "a"):
        world.wait(key, due_in=600, batch_wait=True)
        world.now += 1
    world.wait("c", partition=1, due_in=600, batch_wait=True)
    assert (world.reminders.count_batch_waits(0), world.reminders.partitions_with_batch_waits()) == (2, [0, 1])
    world.reminders.caught_up(0)
    assert world.due() == [("b", "t1", 0), ("a", "t1", 0)]
    assert (world.reminders.count_batch_waits(0), world.reminders.partitions_with_batch_waits()) == (0, [1])
    world.now += 600
    assert world.due() == [("b", "t1", 1), ("a", "t1", 1), ("c", "t1", 0)]


def test_a_session_that_is_done_or_gone_waits_for_no_company(world: World) -> None:
    world.wait("a", due_in=600, batch_wait=True)
    world.wait("b", partition=1, due_in=600, batch_wait=True)
    world.reminders.remove("a")
    world.reminders.retain(frozenset((0,)))
    assert (world.reminders.partitions_with_batch_waits(), len(world.reminders)) == ([], 0)


def test_a_session_that_waits_for_something_else_now_is_due_by_that(world: World) -> None:
    world.wait("a", due_in=600, batch_wait=True)
    world.now += 10
    world.wait("a", due_in=60)
    assert world.reminders.partitions_with_batch_waits() == []
    world.now += 50
    assert world.due() == [("a", "t1", 0)]
    world.wait("a", due_in=60)  # the model is still away
    assert world.due() == []


def test_what_is_done_leaves_the_queue(world: World) -> None:
    for n in range(10_000):
        world.wait(f"s{n}", due_in=600, batch_wait=True)
        world.reminders.remove(f"s{n}")
    world.wait("a", due_in=5)
    assert len(world.reminders._queue) < 1_100
    world.now += 5
    assert world.due() == [("a", "t1", 0)]


def test_a_session_counts_as_asked_until_an_event_of_it_comes(world: World) -> None:
    for key in ("a", "b", "c"):
        world.wait(key, due_in=0.0)
    world.due(2)
    assert world.reminders.count_asked() == 2
    world.now += 60
    world.due()
    assert world.reminders.count_asked() == 3, "asked twice is still one command that is awaited"
    world.wait("a", due_in=60.0)  # its event ended with another wait
    world.reminders.remove("b")  # its event ended with nothing waiting
    assert world.reminders.count_asked() == 1
    world.reminders.retain(frozenset({9}))
    assert world.reminders.count_asked() == 0
