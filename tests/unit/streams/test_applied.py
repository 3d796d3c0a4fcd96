"""Was it applied? Any crash, redelivery, deletion and reset of offsets gives each event's effects, in their order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.schemas.outcomes import Source
from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS
from memstream.streams.engine.applied import AppliedOutcomes
from memstream.streams.log.port import Position, Record
from tests.support.counting_stage import Counting
from tests.support.stage_harness import Killed, StageHarness

TOPICS = (TURNS.name, COMMANDS_SESSION.name)
TP = (TURNS.name, 0)


@dataclass(frozen=True)
class Produce:
    topic: int
    key: str


@dataclass(frozen=True)
class Deliver:
    """Deliver the next record of a topic. `die_at`: the worker dies after so many steps, 0: it does not."""

    topic: int
    die_at: int = 0
    commit: bool = True


@dataclass(frozen=True)
class Delete:
    """Delete the oldest records of a topic, as retention does."""

    topic: int
    records: int


@dataclass(frozen=True)
class Restart:
    """Start a new process. `reset`: the group's offsets are lost."""

    reset: bool = False


@dataclass(frozen=True)
class PassHole:
    """Commit up to the end of a topic that has no record left, as the runner does."""

    topic: int


Step = Produce | Deliver | Delete | Restart | PassHole
TOPIC = st.integers(0, 1)
STEPS = st.lists(
    st.one_of(
        st.builds(Produce, TOPIC, st.sampled_from("kl")),
        st.builds(Produce, TOPIC, st.sampled_from("kl")),
        st.builds(Deliver, TOPIC, st.sampled_from((0, 0, *range(1, 16))), st.booleans()),
        st.builds(Deliver, TOPIC, st.sampled_from((0, 0, *range(1, 16))), st.booleans()),
        st.builds(Delete, TOPIC, st.integers(1, 3)),
        st.builds(Restart, st.booleans()),
        st.builds(PassHole, TOPIC),
    ),
    max_size=40,
)


class World:
    """A log of two topics, a consumer group, and one worker after the other."""

    def __init__(self) -> None:
        self.log: dict[str, list[Record]] = {topic: [] for topic in TOPICS}
        self.start = dict.fromkeys(TOPICS, 0)
        self.committed: dict[str, int] = {}
        self.passed_over: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        """As the changelog's marker has it."""
        self.harness = StageHarness(name="observer", make=lambda harness: Counting())
        self._begin()

    def _begin(self) -> None:
        self.harness.start()
        handler = self.harness.handler
        handler._committed = lambda topic, partition: self.committed.get(topic)
        handler.applied.begin({(topic, 0): offset for topic, offset in self.committed.items()}, self.passed_over)
        self._next = {topic: max(self.committed.get(topic, 0), self.start[topic]) for topic in TOPICS}
        self._done = dict(self._next)

    async def do(self, step: Step) -> None:
        match step:
            case Produce(topic, key):
                records = self.log[TOPICS[topic]]
                name = f"{TOPICS[topic]}/{len(records)}"
                value = json.dumps({"id": name, "value": "x"}).encode()
                records.append(Record(Position(TOPICS[topic], 0, len(records)), key.encode(), value))
            case Deliver(topic, die_at, commit):
                await self._deliver(TOPICS[topic], die_at, commit=commit)
            case Delete(topic, records):
                end = len(self.log[TOPICS[topic]])
                self.start[TOPICS[topic]] = min(end, self.start[TOPICS[topic]] + records)
            case Restart(reset):
                if reset:
                    self.committed.clear()
                self._begin()
            case PassHole(topic):
                name = TOPICS[topic]
                if self._next[name] == self._done[name] and self.start[name] == len(self.log[name]):
                    hole = self.harness.handler.applied.hole_before(name, 0, len(self.log[name]))
                    if hole is not None:
                        self._pass_over(name, hole)
                    self.committed[name] = self._next[name] = self._done[name] = len(self.log[name])

    async def _deliver(self, topic: str, die_at: int, *, commit: bool) -> None:
        offset = max(self._next[topic], self.start[topic])
        if offset >= len(self.log[topic]):
            return
        record = self.log[topic][offset]
        self._next[topic] = offset + 1
        if (hole := self.harness.handler.applied.receive(topic, 0, offset)) is not None:
            self._pass_over(topic, hole)
        self.harness._kill_at = len(self.harness.steps) + die_at if die_at else None
        try:
            await self.harness.deliver(record)
        except Killed:
            self._begin()
            return
        self._done[topic] = offset + 1
        if commit:
            self.committed[topic] = self._done[topic]

    def _pass_over(self, topic: str, hole: tuple[int, int]) -> None:
        self.harness.handler.applied.pass_over(topic, 0, hole)
        self.passed_over[topic, 0].append(hole)

    async def finish(self) -> None:
        """Start once more, read what is left, and touch each key."""
        self._begin()
        for topic in range(2):
            await self.do(Produce(topic, "k"))
            await self.do(Produce(topic, "l"))
        for topic in range(2):
            while max(self._next[TOPICS[topic]], self.start[TOPICS[topic]]) < len(self.log[TOPICS[topic]]):
                await self.do(Deliver(topic))

    def sent(self) -> list[str]:
        return [json.loads(record.value or b"{}")["id"] for record in self.harness.on(OBSERVATIONS.name)]

    def decided(self) -> list[str]:
        rows = [json.loads(self.harness.rows.changelog.get(key, b'{"seen": []}')) for key in "kl"]
        return [id for row in rows for id in row["seen"]]


@settings(max_examples=300, deadline=None)
@given(STEPS)
@pytest.mark.slow
async def test_each_event_has_its_effects_whatever_happens(steps: Sequence[Step]) -> None:
    world = World()
    for step in steps:
        await world.do(step)
    await world.finish()
    assert set(world.sent()) == set(world.decided())
    assert len(world.decided()) == len(set(world.decided()))
    rows = [json.loads(world.harness.rows.changelog[key]) for key in "kl"]
    assert sum(row["count"] for row in rows) == len(world.decided())
    world.harness.check_equal_bytes(id_of=lambda record: str(json.loads(record.value or b"")["id"]))


@pytest.mark.parametrize("die_at", range(1, 10))
async def test_a_decision_whose_record_is_gone_has_its_effects(die_at: int) -> None:
    """The same topic's next event has a higher offset, and the group's offset moved past the hole."""
    world = World()
    for step in (Produce(0, "k"), Deliver(0, die_at), Delete(0, 1), PassHole(0), Produce(0, "k"), Deliver(0)):
        await world.do(step)
    assert set(world.sent()) == set(world.decided())


async def test_a_restart_after_a_clean_stop_sends_nothing_again() -> None:
    world = World()
    for n in range(6):
        await world.do(Produce(n % 2, "k"))
        await world.do(Deliver(n % 2))
    await world.do(Restart())
    sent = len(world.sent())
    await world.do(Produce(0, "k"))
    await world.do(Deliver(0))
    assert len(world.sent()) == sent + 1


def facts(committed: dict[tuple[str, int], int]) -> AppliedOutcomes:
    return AppliedOutcomes(lambda topic, partition: committed.get((topic, partition)))


def known(applied: AppliedOutcomes, offset: int, *, moved_below: int | None = None, partition: int = 0) -> bool:
    source = Source(topic=TURNS.name, partition=0, offset=offset, id="t")
    position = Position(TURNS.name, partition, 99)
    return applied.has(source, position, key="k", row=b"row", moved_below=moved_below)


def test_the_committed_offset_of_now_is_no_proof() -> None:
    committed = {TP: 5}
    applied = facts(committed)
    applied.begin(dict(committed))
    committed[TP] = 8
    assert [known(applied, offset) for offset in (4, 5, 7)] == [True, False, False]


def test_what_this_assignment_received_without_a_hole_and_committed_is_applied() -> None:
    committed = {TP: 5}
    applied = facts(committed)
    applied.begin(dict(committed))
    for offset in (5, 6, 9, 10):
        applied.receive(*TP, offset)
    committed[TP] = 10
    assert [known(applied, offset) for offset in (4, 5, 8, 9, 10)] == [True, False, False, True, False]
    applied.begin({TP: 6})
    assert [known(applied, offset) for offset in (5, 9)] == [True, False]


def test_without_a_committed_offset_only_a_row_that_this_process_applied_is_known() -> None:
    """The topic may have been created again: an old outcome may have any offset."""
    committed: dict[tuple[str, int], int] = {}
    applied = facts(committed)
    applied.begin({})
    for offset in range(4):
        applied.receive(*TP, offset)
    committed[TP] = 4
    assert not known(applied, 2)
    applied.remember(0, "k", b"an earlier row")
    assert not known(applied, 2)  # this outcome was interrupted, perhaps
    applied.remember(0, "k", b"row")
    assert known(applied, 2)


def test_the_partition_of_another_worker_is_unknown_and_a_moved_row_is_judged_by_the_growth() -> None:
    committed = {TP: 5}
    applied = facts(committed)
    applied.begin({})
    assert not known(applied, 2)
    applied.begin(dict(committed))
    assert [known(applied, offset, moved_below=3, partition=7) for offset in (2, 3)] == [True, False]
    assert not known(applied, 2, partition=7)
