"""A model that is away: turns wait, others go on, and everything is observed afterwards without a further turn."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from memstream.schemas import ids
from memstream.schemas.topics import OBSERVATIONS, STAGES, TURNS
from memstream.streams.log.port import Position
from tests.support.model_server import (
    OBSERVATION,
    Answer,
    Ask,
    ModelServer,
    error,
    garbage,
    hang,
    nothing,
    rate_limited,
)
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for
from tests.support.polling import wait_for
from tests.support.whole_worker import parsed, whole

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
ON_KAFKA = pytest.mark.parametrize("place", BROKERS[:1], indirect=True, scope="module")
"""What does not depend on the log is not told twice: each of these takes ten seconds."""
PATIENCE = 1.5
POLICY = f"[memory.observe]\npatience = {PATIENCE}\n"
SAID = re.compile(r"\((\w+)\) I like thing (\d+)\.")


class Model:
    """Knows what people like; for some it is away, or of no use."""

    def __init__(self) -> None:
        self.behaviours: dict[str, Callable[[Ask], Answer | None]] = {}
        """By who speaks; None: as always."""
        self.asked: list[tuple[float, str, tuple[str, ...]]] = []
        """When, by whom, and the things in its turns."""

    def __call__(self, ask: Ask) -> Answer:
        if ask.task != "observations":
            return nothing(ask)
        said = {name: SAID.findall(text) for name, text in ask.turns.items()}
        who = next((who for found in said.values() for who, _ in found), "")
        self.asked.append((time.monotonic(), who, tuple(thing for found in said.values() for _, thing in found)))
        behaviour = self.behaviours.get(who)
        answer = None if behaviour is None else behaviour(ask)
        if answer is not None:
            return answer
        observations: list[Any] = [
            {**OBSERVATION, "turn": name, "content": f"Likes thing {thing}", "category": "preference",
             "evidence": f"({who}) I like thing {thing}."}
            for name, found in said.items()
            for who, thing in found
        ]  # fmt: skip
        return {"observations": observations}

    def asked_of(self, who: str, *, since: float = 0.0) -> list[tuple[float, tuple[str, ...]]]:
        return [(at, things) for at, by, things in self.asked if by == who and at >= since]


@pytest.fixture(scope="module")
def mind() -> Model:
    return Model()


@pytest.fixture(scope="module")
def model(mind: Model) -> Iterator[ModelServer]:
    with ModelServer(mind) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    env = {"MEMSTREAM_MODEL_TIMEOUT": str(PATIENCE), "MEMSTREAM_SESSION_TIMEOUT": "6"}
    async with whole(place, model, policy=POLICY, env=env) as running:
        yield running


class Session:
    """One session of a tenant of its own; breakers are a tenant's."""

    def __init__(self, pipeline: Pipeline, tenant: str, who: str) -> None:
        self._pipeline = pipeline
        self.tenant = pipeline.tenant + tenant
        self.who = who
        self.key = ids.session_key(self.tenant, who, "s1")

    def value(self, n: int, **fields: Any) -> bytes:
        given = turn(f"({self.who}) I like thing {n}.", n, user=self.who, tenant_id=self.tenant, **fields)
        return json.dumps(given).encode()

    async def say(self, n: int, **fields: Any) -> Position:
        value = self.value(n, **fields)
        return await self._pipeline.log.append(TURNS.name, key=self.key.encode(), value=value)

    async def observed(self) -> list[Json]:
        """Its records on memory.observations, in order; one that came twice once."""
        found: dict[str, Json] = {}
        for record in await self._pipeline.records(OBSERVATIONS.name):
            fields = parsed(record.value)
            if (fields.get("tenant_id"), fields.get("user_id")) == (self.tenant, self.who):
                assert found.setdefault(fields["turn_id"], fields) == fields
        return list(found.values())

    async def all_observed(self, count: int, deadline: float = 40.0) -> list[Json]:
        found = await wait_for(
            self.observed,
            f"{count} observations of {self.who}",
            until=lambda found: len(found) >= count,
            deadline=deadline,
            pause=0.1,
            detail=self._pipeline.logs,
        )
        assert [each["turn_number"] for each in found] == list(range(1, count + 1))
        return found

    async def facts(self) -> set[str]:
        return {event.fact.content for event in await self._pipeline.updates() if event.owner.id == self.who}


def things_of(observed: list[Json]) -> list[list[str]]:
    return [[item["content"] for item in each["observations"]] for each in observed]


async def acknowledged(pipeline: Pipeline) -> None:
    """Wait until the observer's lag on memory.turns is 0, even if turns wait in its rows."""

    def no_lag(lags: dict[str, int]) -> bool:
        return lags[f"observer:{TURNS.name}"] == 0

    await wait_for(
        lambda: pipeline.lags("observer"),
        "lag 0 of memory.turns",
        until=no_lag,
        deadline=60,
        pause=0.1,
        detail=pipeline.logs,
    )


@pytest.mark.fault(
    broken="the model answers one tenant 503 until its breaker opens, then it is back",
    holds="its turns wait and hold up nobody; then all are observed in their order; I1 I7",
)
@pytest.mark.fault(
    broken="the model answers one tenant with 503 until its breaker opens",
    holds="others go on; what waits is observed in rounds when it is back, the end of the session too",
)
@ON_KAFKA
async def test_turns_of_a_dead_model_wait_and_hold_up_nobody(pipeline: Pipeline, mind: Model) -> None:
    """It answers 503 to one tenant until its breaker opens. Another tenant goes on. When it is back, all that waits is
    observed in rounds of eight, the end of the session too, and the session can go on."""
    dead, other = Session(pipeline, "-dead", "dead"), Session(pipeline, "-other", "other")
    mind.behaviours["dead"] = lambda ask: error(503)
    for n in range(1, 10):
        await dead.say(n)
    await dead.say(10, messages=[], ends_session=True)
    await acknowledged(pipeline)  # its breaker is open now
    for n in range(1, 10):
        await other.say(n)
        await acknowledged(pipeline)  # the next one comes when nothing of this session is unread
    assert await dead.observed() == []
    assert things_of(await other.all_observed(9)) == [[f"Likes thing {n}"] for n in range(1, 10)]
    assert [things for _, things in mind.asked_of("other")] == [(str(n),) for n in range(1, 10)], "some of them waited"
    assert len(mind.asked_of("dead")) < 20  # the breaker spares the server

    back = time.monotonic()
    del mind.behaviours["dead"]
    observed = await dead.all_observed(10)
    assert [each["turn_id"] for each in observed] == [f"t{n}" for n in range(1, 11)]
    assert things_of(observed) == [*([f"Likes thing {n}"] for n in range(1, 10)), []]
    assert [each["occurred_at"] for each in observed] == [f"2026-11-20T10:{n:02d}:00Z" for n in range(1, 11)]
    rounds = [things for _, things in mind.asked_of("dead", since=back)]
    assert rounds == [tuple(str(n) for n in range(1, 9)), ("9",)]
    assert [each["cause"]["usage"] is not None for each in observed] == [n in (1, 9) for n in range(1, 11)]
    await dead.say(11)
    assert things_of(await dead.all_observed(11))[-1] == ["Likes thing 11"]
    await pipeline.settled()
    assert await pipeline.dead_letters() == []


@pytest.mark.fault(
    broken="the model hangs for one session, and one of its turns is refused for ever",
    holds="other sessions go on; the one turn is a dead letter, the rest is observed; I1 I5",
)
@pytest.mark.fault(
    broken="the model hangs on one session, then 429 with Retry-After, then nonsense to one turn of several",
    holds="other sessions go on; one dead letter, under its own coordinates, which can be put back",
)
@ON_KAFKA
async def test_one_session_hangs_and_one_turn_of_it_is_poison(pipeline: Pipeline, mind: Model) -> None:
    """Other sessions of the same tenant go on meanwhile. Of the turns observed together afterwards the one that no
    answer can be used for is the only dead letter, under its own coordinates; put back it is observed."""
    stuck, fine = Session(pipeline, "-one", "stuck"), Session(pipeline, "-one", "fine")
    mind.behaviours["stuck"] = lambda ask: hang()
    positions = [await stuck.say(n) for n in range(1, 6)]
    said = 0
    while (await pipeline.lags("observer"))[f"observer:{TURNS.name}"] or said < 3:
        said += 1
        await fine.say(said)
        await fine.all_observed(said)
    assert await stuck.observed() == []

    refusals = iter([rate_limited(1)])

    def poisoned(ask: Ask) -> Answer | None:
        if "thing 3." in ask.last_user_message:
            return next(refusals, garbage())
        return None

    back = time.monotonic()
    mind.behaviours["stuck"] = poisoned
    observed = await stuck.all_observed(4)
    assert [each["turn_id"] for each in observed] == ["t1", "t2", "t4", "t5"]
    asked = mind.asked_of("stuck", since=back)
    timed_out = asked[0][1] == ("1",)  # the oldest turn is observed alone if the model's time-out came before patience
    ones = [("1",), ("2",), ("3",), ("3",), ("4",), ("5",)]
    together = ("1", "2", "3", "4", "5")[timed_out:]
    assert [things for _, things in asked] == [*ones[:timed_out], *[together] * 3, *ones[timed_out:]]
    refused = asked[timed_out:]
    assert refused[1][0] - refused[0][0] >= 0.95, "Retry-After was not honoured"
    (letter,) = await pipeline.dead_letters()
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (stuck.key.encode(), stuck.value(3))
    assert int(headers["kafka_dlt-original-partition"]) == positions[2].partition
    assert int(headers["kafka_dlt-original-offset"]) == positions[2].offset
    assert headers["kafka_dlt-original-topic"].decode() == TURNS.name
    assert headers["memstream-reason"] == b"refused_by_model"
    assert headers["memstream-stage"] == b"observer"
    assert headers["memstream-tenant"].decode() == stuck.tenant

    del mind.behaviours["stuck"]
    await pipeline.log.append(TURNS.name, key=letter.key, value=letter.value)
    assert things_of(await stuck.all_observed(5))[-1] == ["Likes thing 3"]
    await pipeline.settled()
    assert len(await pipeline.dead_letters()) == 1


@pytest.mark.fault(
    broken="kill -9 and a lost disk while turns wait for the model",
    holds="they come back from the changelog and are observed once; I1",
    often=True,
)
@pytest.mark.fault(
    broken="kill -9 while turns wait for a model that is away, and the disk lost",
    holds="they come back from the changelog, and are observed once",
)
async def test_a_worker_killed_while_turns_wait_leaves_them_to_the_next(pipeline: Pipeline, mind: Model) -> None:
    """Also when its disk is lost: waiting turns come back from the changelog."""
    left = Session(pipeline, "-left", "left")
    mind.behaviours["left"] = lambda ask: error(503)
    for n in range(1, 4):
        await left.say(n)
    await acknowledged(pipeline)
    pipeline.kill()
    shutil.rmtree(pipeline.folder / "data")
    asked = len(mind.asked_of("left"))
    del mind.behaviours["left"]
    pipeline.spawn(*STAGES)
    observed = await left.all_observed(3, deadline=60)
    assert things_of(observed) == [[f"Likes thing {n}"] for n in range(1, 4)]
    assert [things for _, things in mind.asked_of("left")[asked:]] == [("1", "2", "3")]
    await pipeline.settled()


async def test_the_end_of_a_session_takes_what_waits(in_folder: Place, mind: Model, model: ModelServer) -> None:
    """A policy that lets turns wait until there is enough to read: the session's end observes them at once."""
    policy = "[memory.observe]\nunobserved_tokens = 1_000_000\npatience = 600\n"
    async with running(in_folder.pipeline(model, policy=policy)) as pipeline:
        pipeline.spawn("observer")
        ending = Session(pipeline, "", "ending")
        for n in range(1, 5):
            await ending.say(n)
        await acknowledged(pipeline)
        assert (await ending.observed(), mind.asked_of("ending")) == ([], [])
        await ending.say(5, ends_session=True)
        assert things_of(await ending.all_observed(5)) == [[f"Likes thing {n}"] for n in range(1, 6)]
        assert [things for _, things in mind.asked_of("ending")] == [("1", "2", "3", "4", "5")]
        pipeline.stop()
