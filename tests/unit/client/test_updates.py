"""The subscription's guarantee, on a log in a folder: nothing missing, nothing twice, versions rising."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.client import BEGINNING, NOW, STATE, Misconfigured, PositionLost, Update
from memstream.client.updates import LogUpdates, Seen
from memstream.schemas.errors import Transient
from memstream.schemas.topics import FACTS_UPDATED
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.offsets import Offsets
from tests.support.fact_publisher import FactPublisher, PublishedFact, make_topics
from tests.support.record_builders import stored_fact

DEADLINE = 20.0


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    await make_topics(made, partitions=3)
    yield made
    await made.close()


async def take(log: Any, n: int, *, look_back: int = 100, **asked: Any) -> list[Update]:
    """The first n updates."""
    found: list[Update] = []
    async with asyncio.timeout(DEADLINE), aclosing(LogUpdates(log=log, look_back=look_back).updates(**asked)) as told:
        while len(found) < n:
            found.append(await anext(told))
    return found


def names(updates: list[Update]) -> list[PublishedFact]:
    return [(update.fact.fact_id, update.fact.version) for update in updates]


async def test_now_is_what_comes_next(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    await publisher.change()
    async with asyncio.timeout(DEADLINE), aclosing(LogUpdates(log=log).updates(after=NOW)) as told:
        first = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0)  # it looks for the ends before anything else
        while not first.done():
            await publisher.change()
            await asyncio.sleep(0.01)
        assert (await first).fact.version > 1


async def test_the_beginning_is_all_that_is_still_held_each_change_once(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    for _ in range(3):
        await publisher.change("tea")
        await publisher.again()
    await publisher.again(3)
    await publisher.change("job")
    found = await take(log, 4, after=BEGINNING)
    assert names(found) == publisher.published
    assert [update.event.action for update in found if update.event] == ["new", "reinforced", "reinforced", "new"]


async def test_a_position_goes_on_behind_its_update_and_knows_what_was_told(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    await publisher.change()
    second = await publisher.change()
    (_, update) = await take(log, 2, after=BEGINNING)
    assert names([update]) == [second]
    await publisher.again()  # a worker died and tells its last turn again
    third = await publisher.change()
    assert names(await take(log, 1, after=update.position)) == [third]


async def test_the_state_comes_first_and_what_it_did_not_show_yet_after_it(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    for _ in range(3):
        await publisher.change("tea")
    await publisher.change("job")
    late = await publisher.event("job")  # told, and its state is not on memory.facts yet
    found = await take(log, 5, after=STATE)
    assert all(each.event is None and each.position is None for each in found[:-1])
    assert names(found)[-1] == late
    assert found[-1].position is not None
    assert dict(names(found)) == publisher.states()
    await publisher.state("job")
    following = await publisher.change("tea")
    assert names(await take(log, 1, after=found[-1].position)) == [following]


async def test_a_state_that_is_empty_goes_over_into_what_comes(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    async with asyncio.timeout(DEADLINE), aclosing(LogUpdates(log=log).updates(after=STATE)) as told:
        first = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0)
        change = await publisher.change()
        assert names([await first]) == [change]


async def test_what_the_state_has_shown_is_not_told_again_after_a_restart(log: EmbeddedLog) -> None:
    """A change while the state is read: its event lies behind the place where the reading began."""

    class Meanwhile(EmbeddedLog):
        async def read(self, topic: str, **asked: Any) -> Any:
            if topic == "memory.facts":
                await publisher.change("tea")
            async for record in super().read(topic, **asked):
                yield record

    publisher = FactPublisher(log)
    await publisher.change("tea")
    meanwhile = Meanwhile(folder=log._folder)
    await meanwhile.start()
    try:
        found = await take(meanwhile, 2, after=STATE)
    finally:
        await meanwhile.close()
    assert names(found) == publisher.published
    following = await publisher.change("job")
    assert names(await take(log, 1, after=found[-1].position)) == [following]


async def test_of_memory_facts_the_highest_version_wins(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    await publisher.change()
    low = [record async for record in log.read("memory.facts")][-1]
    await publisher.change()
    await log.append("memory.facts", key=low.key, value=low.value)  # of a worker that was presumed dead
    marker = await publisher.change("job")
    found = names(await take(log, 3, after=STATE))
    assert found == [publisher.published[0], publisher.published[1], marker]


async def test_only_the_asked_tenant_and_owner(log: EmbeddedLog) -> None:
    ours, theirs = FactPublisher(log), FactPublisher(log, tenant="globex")
    await theirs.change()
    await ours.change(user="u2")
    wanted = await ours.change(user="u1")
    for after in (BEGINNING, STATE):
        found = await take(log, 1, after=after, tenant_id="acme", owner=Owner(scope="user", id="u1"))
        assert names(found) == [wanted]
    assert names(await take(log, 2, after=BEGINNING, tenant_id="acme")) == ours.published


async def test_fields_of_a_later_version_are_kept_and_what_cannot_be_read_is_passed_over(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    await publisher.change()
    record = [each async for each in log.read(FACTS_UPDATED.name)][-1]
    event = json.loads(record.value or b"")
    event["fact"] |= {"version": 2, "shade": "teal"}
    await log.append(FACTS_UPDATED.name, key=record.key, value=b"no change at all")
    await log.append(FACTS_UPDATED.name, key=record.key, value=json.dumps(event | {"tide": "high"}).encode())
    (_, later) = await take(log, 2, after=BEGINNING, owner=Owner(scope="user", id="u1"))
    assert later.event is not None
    assert later.event.model_extra == {"tide": "high"}
    assert later.fact.model_extra == {"shade": "teal"}


@pytest.mark.parametrize("position", ["", "1.", "2.MQ", "state ", "1.٣"])
async def test_what_is_no_position_is_refused(log: EmbeddedLog, position: str) -> None:
    with pytest.raises(Misconfigured, match="not a position"):
        await take(log, 1, after=position)


async def test_a_position_beyond_the_end_is_lost(log: EmbeddedLog) -> None:
    with pytest.raises(PositionLost, match="STATE"):
        await take(log, 1, after=Offsets((0, 7, 0)).token())


async def test_a_position_before_what_the_log_holds_is_lost(log: EmbeddedLog) -> None:
    class Shortened(EmbeddedLog):
        async def starts(self, topic: str) -> tuple[int, ...]:
            return tuple(1 for _ in await super().starts(topic))

    await FactPublisher(log).change()
    shortened = Shortened(folder=log._folder)
    await shortened.start()
    try:
        with pytest.raises(PositionLost, match="no longer has the records after"):
            await take(shortened, 1, after=Offsets((0, 0, 0)).token())
    finally:
        await shortened.close()


async def test_without_the_topic_the_command_is_named(tmp_path: Path) -> None:
    log = EmbeddedLog(folder=tmp_path / "empty")
    await log.start()
    with pytest.raises(Misconfigured, match="topics create"):
        await take(log, 1)
    await log.close()


async def test_a_broker_that_goes_away_is_waited_for(log: EmbeddedLog) -> None:
    """The read fails in the middle, twice; it goes on where it was."""

    class Failing(EmbeddedLog):
        left = 2

        async def read(self, topic: str, **asked: Any) -> Any:
            count = 0
            async for record in super().read(topic, **asked):
                if asked.get("follow") and count == 1 and self.left:
                    self.left -= 1
                    raise Transient("broker", "away")
                count += 1
                yield record

    publisher = FactPublisher(log)
    for _ in range(5):
        await publisher.change()
    failing = Failing(folder=log._folder)
    await failing.start()
    try:
        assert names(await take(failing, 5, after=BEGINNING)) == publisher.published
        assert failing.left == 0
    finally:
        await failing.close()


def test_seen_forgets_the_facts_seen_first() -> None:
    seen = Seen(limit=2)
    facts = [stored_fact(changes={"fact_id": name}) for name in "abc"]
    assert [seen.is_new(fact) for fact in (facts[0], facts[1], facts[0])] == [True, True, False]
    assert seen.is_new(facts[2])
    assert len(seen._versions) == 2
    assert seen.is_new(facts[0])


# -------------------------------------------------------------------------------------------------------- property
Step = tuple[str, str, str]
WORDS = st.sampled_from(["tea", "job", "dog"])
USERS = st.sampled_from(["u1", "u2", "u3"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["change", "change", "event", "state", "again", "restart"]), WORDS, USERS),
    min_size=1,
    max_size=40,
)


@given(steps=STEPS, partitions=st.integers(1, 3), after=st.sampled_from([BEGINNING, STATE]), back=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
@pytest.mark.long
def test_whatever_is_told_again_and_whenever_one_restarts_each_change_comes_once(
    steps: list[Step], partitions: int, after: str, back: int
) -> None:
    asyncio.run(_told_once(steps, partitions, after, back))


async def _told_once(steps: list[Step], partitions: int, after: str, back: int) -> None:
    """A subscriber that is restarted at any point, from the position of the last update that it handled."""
    with TemporaryDirectory() as folder:
        log = EmbeddedLog(folder=Path(folder))
        await log.start()
        await make_topics(log, partitions=partitions)
        publisher, got, position = FactPublisher(log), list[PublishedFact](), after
        for kind, word, user in [*steps, ("change", "end", "u1")]:
            known = f"{user}/{word}" in publisher._facts
            if kind == "change" or (kind == "event"):
                await getattr(publisher, kind)(word, user=user)
            elif kind == "state" and known:
                await publisher.state(word, user=user)
            elif kind == "again" and publisher.published:
                await publisher.again(min(back, len(publisher.published)))
            elif kind == "restart":
                position, more = await _up_to_date(log, publisher, position, got)
                got += more
        _, more = await _up_to_date(log, publisher, position, got)
        got += more
        versions: dict[str, list[int]] = {}
        for fact_id, version in got:
            versions.setdefault(fact_id, []).append(version)
        assert dict(got) == publisher.states(), "the last version of each fact was told"
        assert all(seen == sorted(set(seen)) for seen in versions.values()), "rising, none twice"
        if after == BEGINNING:
            assert sorted(got) == sorted(publisher.published), "and no version is missing"
        await log.close()


async def _up_to_date(
    log: EmbeddedLog, publisher: FactPublisher, position: str, got: list[PublishedFact]
) -> tuple[str, list[PublishedFact]]:
    """Read until every fact's last version is known; the position to go on from."""
    found: list[PublishedFact] = []
    held = dict(got)
    async with asyncio.timeout(DEADLINE), aclosing(LogUpdates(log=log, look_back=100).updates(after=position)) as told:
        while held != publisher.states():
            update = await anext(told)
            found.append((update.fact.fact_id, update.fact.version))
            held[update.fact.fact_id] = update.fact.version
            position = update.position or position
    return position, found
