"""The recorder around a change of period: where turns are kept, that old ones find their place, and what is dropped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import LexicalRanking, Point
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.agents.common.turn_labels import apply_labels
from memstream.agents.recorder.stage import Recorder
from memstream.memory.policies import RoutingPolicy, SessionLogPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas import ids
from memstream.schemas.collections import LABELS
from memstream.schemas.collections import TURNS as COLLECTION
from memstream.schemas.errors import Transient
from memstream.schemas.labels import TurnLabel
from memstream.schemas.periods import Period
from memstream.streams.log.port import Record
from tests.stages.test_recorder import PARTITIONS, SESSION, World, texts
from tests.support.stage_harness import StageHarness

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
BEFORE, AFTER = NEW_YEAR - timedelta(seconds=1), NEW_YEAR + timedelta(seconds=1)
Q4, Q1 = Period(2026, 4), Period(2027, 1)


class PeriodWorld(World):
    """A recorder whose clock the test sets."""

    def __init__(self, store: Any) -> None:
        self.clock = AFTER
        self.days = 400.0
        super().__init__(store)

    def _make(self, harness: StageHarness) -> Recorder:
        self.recorder = Recorder(
            store=self.store,
            embedder=self.embedder,
            calls=harness.calls,
            metrics=harness.metrics,
            partitions=PARTITIONS,
            secrets=SecretFilter(),
            routing=RoutingPolicy(),
            session_log=SessionLogPolicy(retention_days=self.days),
            now=lambda: self.clock,
        )
        return self.recorder

    def said(self, text: str, at: datetime, *, turn_id: str, **fields: Any) -> Record:
        record = self.turn(*text.split("/"), turn_id=turn_id, **fields)
        return replace(record, timestamp=int(at.timestamp() * 1000))

    async def places(self) -> dict[str, str | None]:
        """Return the period of each stored message, by its words."""
        every = await self.store.select(COLLECTION, tenant_id="acme")
        found = await self.store.get(COLLECTION, tenant_id="acme", ids=[each.id for each in every])
        assert len(every) == len(found)  # none lies in two
        return {str(each.payload["content"]): each.collection for each in found.values()}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PeriodStore]:
    store = await open_store(f"embedded://{tmp_path}", embedder=HashingEmbedder().identity, holds_folder=True)
    await store.ensure(COLLECTION, LABELS)
    yield store
    await store.close()


@pytest.fixture
def world(store: PeriodStore) -> PeriodWorld:
    return PeriodWorld(store)


async def test_a_session_goes_on_over_a_boundary(world: PeriodWorld) -> None:
    before = world.said("Which soup is your favourite?", BEFORE, turn_id="t1")
    after = world.said("Lentil, with lemon", AFTER, turn_id="t2")
    await world.deliver(before, after)

    assert await world.places() == {
        "Which soup is your favourite?": "turns_2026q4",
        "Lentil, with lemon": "turns_2027q1",
    }
    assert [row.session_place for row in await world.messages()] == [0, 1]
    words = [LexicalRanking("lemon"), LexicalRanking("soup")]
    for found in await world.store.search(COLLECTION, tenant_id="acme", rankings=words, limit=9):
        assert len(found) == 2  # the windows reach over the boundary, forwards and back


async def test_a_turn_that_comes_again_much_later_finds_its_place(world: PeriodWorld) -> None:
    first = world.said("a/b", BEFORE, turn_id="t1")
    await world.deliver(first, world.said("c", AFTER, turn_id="t2"))
    stored = await world.messages()

    await world.deliver(first)
    await world.deliver(world.said("a/b", AFTER, turn_id="t1"))  # sent again by its producer: another record's time
    await world.deliver(world.said("other/words/too", AFTER, turn_id="t1"))

    assert await world.messages() == stored
    assert await world.places() == {"a": "turns_2026q4", "b": "turns_2026q4", "c": "turns_2027q1"}
    assert world.counted("duplicate") == 1


async def test_half_of_a_turn_is_completed_where_it_lies(world: PeriodWorld) -> None:
    first = world.said("a/b", BEFORE, turn_id="t1")
    await world.deliver(first, world.said("c", AFTER, turn_id="t2"))
    lost = ids.message_id(ids.session_key(*SESSION), "t1", 0)
    await world.store.delete(COLLECTION, tenant_id="acme", ids=[lost])

    await world.deliver(world.said("a/b", AFTER, turn_id="t1"))

    assert await world.places() == {"a": "turns_2026q4", "b": "turns_2026q4", "c": "turns_2027q1"}


async def test_what_an_earlier_version_recorded_is_found_and_goes_on(world: PeriodWorld) -> None:
    """Before there were periods all messages lay in one collection."""
    first = world.said("a", BEFORE - timedelta(days=300), turn_id="t1")
    await world.deliver(first)
    assert await world.store.periods(COLLECTION) == (Period(2026, 1), Q1)  # it took over what stood, as of now

    await world.deliver(world.said("b", AFTER, turn_id="t2"))
    assert await world.places() == {"a": "turns_2026q1", "b": "turns_2027q1"}
    assert [row.session_place for row in await world.messages()] == [0, 1]


async def test_a_label_raises_a_message_of_an_earlier_period(world: PeriodWorld) -> None:
    await world.deliver(
        world.said("The cellar has a violin", BEFORE, turn_id="t1"), world.said("Good", AFTER, turn_id="t2")
    )
    session = ids.session_key(*SESSION)
    label_id = ids.label_id(session, "t1")
    label = TurnLabel(
        label_id=label_id,
        tenant_id=SESSION[0],
        user_id=SESSION[1],
        session_id=SESSION[2],
        turn_id="t1",
        messages=(0,),
        sensitivity="secret",
        at=AFTER,
    )
    await world.store.put(LABELS, [Point(id=label_id, payload=label.to_payload())])

    await apply_labels(world.store, tenant_id="acme", label_ids=[label_id])

    assert {row.content: row.sensitivity for row in await world.messages()} == {
        "The cellar has a violin": "secret",
        "Good": "internal",
    }
    [found] = await world.store.search(COLLECTION, tenant_id="acme", rankings=[LexicalRanking("violin")], limit=9)
    assert len(found) == 1  # its words stand in no window of the next period


# ------------------------------------------------------------------------------------------------ the end
async def test_a_period_goes_when_its_time_is_over(world: PeriodWorld) -> None:
    await world.deliver(world.said("old", BEFORE, turn_id="t1"), world.said("new", AFTER, turn_id="t2"))
    over = Q4.ends + timedelta(days=400)
    for moment, left in ((over, ["new", "old"]), (over + timedelta(days=1), ["new"])):
        world.clock = moment
        await world.deliver(world.said("later", moment, turn_id=f"at {moment}", session=("acme", "u2", "s2")))
        await world.recorder.drop_periods()
        assert sorted(await world.places()) == sorted([*left, "later"])
    assert world.counted("periods_dropped") == 1


async def test_a_turn_whose_period_is_over_is_not_recorded_again(world: PeriodWorld) -> None:
    old = world.said("old", BEFORE, turn_id="t1")
    await world.deliver(old)
    world.clock = Q4.ends + timedelta(days=402)
    await world.deliver(world.said("new", world.clock, turn_id="t2"))
    await world.recorder.drop_periods()

    await world.deliver(old)  # the log is read again from its beginning

    assert texts(await world.messages()) == ["new"]
    assert world.counted("expired") == 1


async def test_a_worker_whose_clock_is_ahead_drops_nothing(world: PeriodWorld) -> None:
    world.clock = AFTER + timedelta(days=2_000)
    await world.deliver(world.said("now", AFTER, turn_id="t1"))
    await world.deliver(world.said("and now", AFTER, turn_id="t2"))
    assert await world.recorder.drop_periods() == ()
    assert set(await world.places()) == {"now", "and now"}

    world.clock = AFTER  # it is set
    await world.deliver(world.said("then", AFTER, turn_id="t3"))
    assert await world.recorder.drop_periods() == ()
    assert set((await world.places()).values()) == {"turns_2027q1"}


async def test_a_worker_whose_clock_is_behind_keeps_turns_as_long(world: PeriodWorld) -> None:
    await world.deliver(world.said("a", AFTER, turn_id="t1"))
    world.clock = AFTER - timedelta(days=380)
    await world.deliver(world.said("b", AFTER, turn_id="t2"))
    assert await world.places() == {"a": "turns_2027q1", "b": "turns_2027q1"}


async def test_a_producer_whose_clock_is_ahead_drops_nothing(world: PeriodWorld) -> None:
    await world.deliver(world.said("old", BEFORE - timedelta(days=380), turn_id="t1"))
    await world.deliver(world.said("from 2099", AFTER + timedelta(days=26_000), turn_id="t2"))
    await world.recorder.drop_periods()
    assert await world.places() == {"old": "turns_2025q4", "from 2099": "turns_2027q1"}


async def test_nothing_is_dropped_for_ever(world: PeriodWorld) -> None:
    world.days = 0
    world.harness.start()
    await world.deliver(world.said("old", datetime(2021, 1, 1, tzinfo=UTC), turn_id="t1"))
    assert await world.recorder.drop_periods() == ()


async def test_an_import_of_old_conversations_is_kept_from_when_it_came(world: PeriodWorld) -> None:
    await world.deliver(world.said("long ago", AFTER, turn_id="t1", occurred_at="2019-05-01T00:00:00Z"))
    await world.recorder.drop_periods()
    assert await world.places() == {"long ago": "turns_2027q1"}


async def test_a_store_that_is_away_at_the_visit_stops_nothing(
    world: PeriodWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The visit runs beside the turns: it logs, and tries again."""
    visits: list[str] = []

    async def away(self: Recorder) -> tuple[str, ...]:
        visits.append("visit")
        if len(visits) == 1:
            raise Transient("store", "away")
        raise KeyboardInterrupt

    await world.deliver(world.said("a", AFTER, turn_id="t1"))
    monkeypatch.setattr(Recorder, "drop_periods", away)
    monkeypatch.setattr("memstream.agents.recorder.stage.VISIT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        await world.recorder.background()
    assert len(visits) == 2
