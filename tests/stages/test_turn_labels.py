"""A label that the model gave reaches the message in the session log, whoever of recorder and observer is first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from qdrant_client import models

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import DenseRanking, LexicalRanking
from memstream.adapters.vectors.conditions import equals
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.agents.recorder.stage import Recorder
from memstream.memory.policies import RoutingPolicy, SessionLogPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas.collections import LABELS, TURNS, WORKING
from memstream.schemas.working_set import StoredMessage
from memstream.streams.log.port import Record
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.stage_harness import Killed, StageHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")
BEFORE = {"role": "user", "content": "How is the garden?"}
TOLD = {"role": "user", "content": "I was told that I have sarcoidosis."}
AFTER = {"role": "assistant", "content": "I am sorry to hear that."}
NEXT = {"role": "user", "content": "Let us talk about tulips."}


def model(ask: Ask) -> Answer:
    if "sarcoidosis" not in "".join(ask.turns.values()):
        return {"observations": []}
    secret = {**OBSERVATION, "content": "Has sarcoidosis", "evidence": "I have sarcoidosis", "sensitivity": "secret"}
    return {"observations": [secret]}


class MortalStore:
    """A store whose user dies at the n-th call (from 1)."""

    def __init__(self, store: PeriodStore) -> None:
        self._store = store
        self.calls = 0
        self.dies_at: int | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "writes_together":  # no call of its own
            return method

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.dies_at:
                raise Killed(name)
            return await method(*args, **kwargs)

        return counted


class World:
    """Recorder and observer over one store, each with its own process."""

    def __init__(self, store: PeriodStore, user: str) -> None:
        self.store = store
        self.session = ("acme", user, "s1")
        self.of_recorder, self.of_observer = MortalStore(store), MortalStore(store)
        self.observer = ObserverWorld(model, store=self.of_observer)
        self._recorder = StageHarness(name="recorder", make=self._make)
        self.turns: dict[str, Record] = {
            turn_id: self.observer.turn(messages, turn_id, session=self.session)
            for turn_id, messages in (("t1", [BEFORE]), ("t2", [TOLD, AFTER]), ("t3", [NEXT]))
        }

    def _make(self, harness: StageHarness) -> Recorder:
        return Recorder(
            store=self.of_recorder,  # type: ignore[arg-type]
            embedder=HashingEmbedder(),
            calls=harness.calls,
            metrics=harness.metrics,
            partitions=1,
            secrets=SecretFilter(),
            routing=RoutingPolicy(),
            session_log=SessionLogPolicy(),
        )

    async def record(self, *turn_ids: str) -> None:
        for each in turn_ids:
            await self._recorder.deliver(self.turns[each])

    async def deliver_to_recorder(self, record: Record) -> None:
        await self._recorder.deliver(record)

    async def observe(self, *turn_ids: str) -> None:
        for each in turn_ids:
            await self.observer.deliver(self.turns[each])

    async def again(self, mortal: MortalStore, deliver: Callable[[], Awaitable[None]], *, at: int) -> bool:
        """Deliver with a death at this call, then once more in a new process. False: it had fewer calls."""
        mortal.calls, mortal.dies_at = 0, at
        try:
            await deliver()
        except Killed:
            mortal.dies_at = None
            return True
        mortal.dies_at = None
        return False

    def restart(self) -> None:
        self._recorder.start()
        self.observer.harness.start()

    async def check(self) -> None:
        """The message is secret, and no reader of other messages finds one by its words."""
        of_user = equals("user_id", self.session[1])
        found = await self.store.select(TURNS, tenant_id="acme", where=models.Filter(must=[of_user]))
        messages = [StoredMessage.from_payload(each.payload) for each in found]
        levels = {(each.turn_id, each.message_index): each.sensitivity for each in messages}
        assert levels.pop(("t2", 0)) == "secret"
        assert set(levels.values()) == {"internal"}
        internal = models.Filter(must=[of_user, equals("sensitivity", "internal")])
        lexical = await self.store.lexical(TURNS, tenant_id="acme", text="sarcoidosis", where=internal, limit=9)
        assert [each.payload["content"] for each in lexical] == []
        (dense,) = await HashingEmbedder().embed(["sarcoidosis"], tenant_id="acme")
        rankings = [DenseRanking(dense, "window"), LexicalRanking("sarcoidosis")]
        windows, _ = await self.store.search(TURNS, tenant_id="acme", rankings=rankings, where=internal, limit=9)
        assert max(each.score for each in windows) < 0.05


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PeriodStore]:
    folder: Path = tmp_path_factory.mktemp("labels")
    store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
    await store.ensure(TURNS, LABELS, WORKING)
    yield store
    await store.close()


async def test_the_recorder_first(store: PeriodStore) -> None:
    world = World(store, "recorder-first")
    await world.record("t1", "t2", "t3")
    await world.observe("t1", "t2", "t3")
    await world.check()


async def test_the_observer_first(store: PeriodStore) -> None:
    world = World(store, "observer-first")
    await world.observe("t1", "t2", "t3")
    await world.record("t1", "t2", "t3")
    await world.check()


async def test_the_label_comes_between_two_turns(store: PeriodStore) -> None:
    world = World(store, "between")
    await world.record("t1", "t2")
    await world.observe("t1", "t2")
    await world.record("t3")
    await world.check()


async def test_the_observer_dies_at_any_call_and_the_recorder_goes_on(store: PeriodStore) -> None:
    for at in range(1, 20):
        world = World(store, f"observer-dies-{at}")
        await world.record("t1")
        await world.observe("t1")
        died = await world.again(world.of_observer, lambda world=world: world.observe("t2"), at=at)  # type: ignore[misc]
        await world.record("t2", "t3")
        world.restart()
        await world.observe("t2", "t3")
        await world.check()
        if not died:
            assert at > 3
            return
    raise AssertionError("it never ended")


async def test_the_recorder_dies_at_any_call_and_the_observer_goes_on(store: PeriodStore) -> None:
    for at in range(1, 20):
        world = World(store, f"recorder-dies-{at}")
        await world.record("t1", "t2")
        died = await world.again(world.of_recorder, lambda world=world: world.record("t3"), at=at)  # type: ignore[misc]
        await world.observe("t1", "t2")
        world.restart()
        await world.record("t3")
        await world.check()
        if not died:
            assert at > 3
            return
    raise AssertionError("it never ended")


async def test_the_neighbours_were_read_before_the_label_was_there(store: PeriodStore) -> None:
    """The recorder reads the messages before a turn, then the observer labels one of them, then the recorder stores."""
    world = World(store, "read-before")
    await world.record("t1", "t2")
    insert = world.of_recorder.insert

    class Between:
        def __getattr__(self, name: str) -> Any:
            if name == "writes_together":
                return store.writes_together

            async def call(*args: Any, **kwargs: Any) -> Any:
                if name == "insert":
                    await world.observe("t1", "t2")
                    return await insert(*args, **kwargs)
                return await getattr(store, name)(*args, **kwargs)

            return call

    world.of_recorder = Between()  # type: ignore[assignment]
    world.restart()
    await world.record("t3")
    await world.check()
