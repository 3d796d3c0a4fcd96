"""The stage of a turn and the outcomes of its statements, from a real log, and over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from memstream.adapters.ports import StoredPoint, VectorStore
from memstream.api.credentials import Credentials
from memstream.memory.policies import MemoryPolicy
from memstream.recall.bounded_log_reads import LogPolicy
from memstream.recall.turn_trace import TurnOutcome, TurnRef, TurnTracer
from memstream.schemas import ids
from memstream.schemas.collections import FACTS, LABELS
from memstream.schemas.errors import Poison
from memstream.schemas.facts import StoredFact
from memstream.schemas.labels import TurnLabel
from memstream.schemas.observations import Observation, ObservedBy, RefusedStatement, RefusedStatements
from memstream.schemas.topics import FACTS_UPDATED, OBSERVATIONS, TURNS, dead_letters_of, group_of
from memstream.streams.engine.dead_letters import dead_letter
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Record, TopicSpec
from tests.support.api_server import app_over, called, entry
from tests.support.record_builders import NOW, observation, observed, stored_fact

LETTERS = dead_letters_of(TURNS)
SESSION = ids.session_key("acme", "u1", "s1")
WEAK = RefusedStatement(subject="user", content="Likes tea", why="weak_evidence")
REFUSED = RefusedStatements(statements=2, listed=(WEAK,))


class FactsOnly:
    """A store with facts and without messages."""

    def __init__(self) -> None:
        self.facts: list[StoredFact] = []
        self.labels: dict[str, TurnLabel] = {}

    async def exists(self, collection: str) -> bool:
        return collection in (FACTS, LABELS)

    async def get(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> dict[str, StoredPoint]:
        return {each: StoredPoint(each, self.labels[each].to_payload()) for each in ids if each in self.labels}

    async def select(self, collection: str, **asked: Any) -> list[StoredPoint]:
        return [StoredPoint(each.fact_id, each.to_payload()) for each in self.facts]


class World:
    """A log and the facts of one tenant."""

    def __init__(self, facts: FactsOnly, log: EmbeddedLog) -> None:
        self.facts, self.log = facts, log
        self.store = cast(VectorStore, facts)

    async def sent(self, turn_id: str = "t1") -> Record:
        value = json.dumps({"tenant_id": "acme", "turn_id": turn_id}).encode()
        position = await self.log.append(TURNS.name, key=SESSION.encode(), value=value)
        return Record(position, SESSION.encode(), value)

    async def refused(self, record: Record) -> None:
        letter = dead_letter(record, stage="observer", reason="refused_by_model", error=Poison("x", "no"), attempts=1)
        await self.log.append(LETTERS.name, key=letter.key, value=letter.value, headers=letter.headers)

    async def observed(
        self, *said: Observation, turn: str = "t1", cause: ObservedBy | None = None, at: datetime | None = None
    ) -> None:
        record = observed(*said, turn=turn, cause=cause or ObservedBy())
        key, millis = record.owner.key("acme").encode(), None if at is None else int(at.timestamp() * 1000)
        await self.log.append(OBSERVATIONS.name, key=key, value=record.to_bytes(), timestamp=millis)

    async def handled(self, stage: str, topic: str, until: int) -> None:
        await self.log.commit(group_of(stage), topic, {0: until})

    def tracer(self, **policy: Any) -> TurnTracer:
        return TurnTracer(store=self.store, log=self.log, deployment=MemoryPolicy(), policy=LogPolicy(**policy))

    async def turn(self, turn_id: str = "t1", *, records: int = 200_000, **more: Any) -> TurnOutcome | None:
        ref = TurnRef("acme", turn_id, **({"user_id": "u1", "session_id": "s1"} | more))
        found = await self.tracer(records=records).trace(ref)
        assert found.missing == ()
        return found.turns[0] if found.turns else None

    async def stage(self, turn_id: str = "t1", **more: Any) -> str | None:
        found = await self.turn(turn_id, **more)
        return None if found is None else found.stage


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    topics = (TURNS, LETTERS, OBSERVATIONS, FACTS_UPDATED)
    await log.create([TopicSpec(topic.name, 1, 1, {}) for topic in topics])
    yield World(FactsOnly(), log)
    await log.close()


async def test_the_stages_of_a_turn(world: World) -> None:
    assert await world.stage() is None
    await world.sent()
    assert await world.stage() == "unread"
    await world.handled("observer", TURNS.name, 1)
    assert await world.stage() == "waiting"
    await world.observed(observation())
    assert await world.stage() == "observed"
    await world.handled("reflector", OBSERVATIONS.name, 1)
    assert await world.stage() == "reflected"


async def test_a_turn_that_was_taken_back_is_retracted(world: World) -> None:
    await world.sent()
    await world.observed(observation())
    label_id = ids.label_id(ids.session_key("acme", "u1", "s1"), "t1")
    label = TurnLabel(
        label_id=label_id,
        tenant_id="acme",
        user_id="u1",
        session_id="s1",
        turn_id="t1",
        messages=(0,),
        sensitivity="secret",
        at=NOW,
    )
    world.facts.labels[label_id] = label
    assert await world.stage() == "observed", "a label of a secret"
    world.facts.labels[label_id] = label.model_copy(update={"retracted": True})
    found = await world.turn()
    assert found is not None
    assert (found.stage, found.messages) == ("retracted", ())
    assert found.why.startswith("the turn was taken back at ")
    assert "Stripe" not in repr(found)


async def test_a_dead_letter_is_refused_until_the_turn_is_sent_again(world: World) -> None:
    record = await world.sent()
    await world.refused(record)
    found = await world.turn()
    assert found is not None
    assert (found.stage, found.why) == ("refused", "it is a dead letter, refused_by_model: no")
    await world.sent()
    assert await world.stage() == "unread"


async def test_a_session_and_a_user_are_told_apart(world: World) -> None:
    await world.observed(observation())
    assert await world.stage(session_id="s2") is None
    assert await world.stage(user_id="u2") is None
    assert await world.stage(session_id=None) == "observed"


async def test_since_leaves_out_older_records(world: World) -> None:
    await world.observed(observation())
    (record,) = [record async for record in world.log.read(OBSERVATIONS.name)]
    written = record.written_at
    assert written is not None
    assert await world.stage(since=written) == "observed"
    await world.observed(observation(), turn="t2", at=written + timedelta(minutes=30))
    assert await world.stage(since=written + timedelta(minutes=80)) is None


async def test_a_time_after_every_record_leaves_out_nothing(world: World) -> None:
    """The caller's clock is ahead of the clocks that wrote the log."""
    await world.observed(observation())
    assert await world.stage(since=datetime.now(UTC) + timedelta(days=400)) == "observed"


async def test_the_newest_records_are_read_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstream.recall.bounded_log_reads.NEWEST", 2)
    for place in range(40):
        await world.sent(f"old{place}")
        await world.observed(observation(), turn=f"old{place}")
    await world.handled("observer", TURNS.name, 40)
    await world.sent()
    few = {"records": 8}
    assert await world.stage(**few) == "unread", "the older observations are not read for a turn that nobody has read"
    await world.observed(observation())
    assert await world.stage(**few) == "observed"
    assert await world.stage("old0", records=50) == "observed", "41 turns are not read for it"
    assert await world.stage("old0") == "observed", "what is not among the newest is found in the older records"
    await world.handled("observer", TURNS.name, 41)
    await world.sent("late")
    await world.handled("observer", TURNS.name, 42)
    assert await world.stage("late") == "waiting"


async def test_over_http(world: World) -> None:
    world.facts.facts = [stored_fact("Works at Stripe")]
    await world.observed(observation("Works at Stripe"), cause=ObservedBy(refused=REFUSED))
    await world.handled("reflector", OBSERVATIONS.name, 1)
    tokens = Credentials(
        [
            entry("acme", tenants=["acme"], scopes=["memory:read"]),
            entry("u2", tenants=["acme"], scopes=["memory:read"], users=["u2"]),
        ]
    )
    app = app_over(log=world.log, store=world.store, credentials=tokens)
    async with called(app, token="acme") as client:
        answer = await client.get("/v1/turns/t1", params={"user": "u1", "session": "s1"})
        assert answer.status_code == 200, answer.text
        (item,) = answer.json()["items"]
        assert (item["stage"], item["unlisted"]) == ("reflected", 1)
        assert [(each["content"], each["status"], each["why"]) for each in item["statements"]] == [
            ("Works at Stripe", "learnt", "it is believed"),
            ("Likes tea", "refused", "its quote does not support it"),
        ]
        assert (await client.get("/v1/turns/t2", params={"user": "u1", "session": "s1"})).status_code == 404
        assert (await client.get("/v1/turns/t1", params={"session": "s1"})).status_code == 422
        secret = await client.get("/v1/turns/t1", params={"user": "u1", "ceiling": "secret"})
        assert secret.status_code == 403
    async with called(app, token="u2") as client:
        assert (await client.get("/v1/turns/t1", params={"session": "s1"})).status_code == 404
        assert (await client.get("/v1/turns/t1", params={"user": "u1", "session": "s1"})).status_code == 403
