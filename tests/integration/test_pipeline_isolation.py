"""Users and tenants with the same session ids, turn ids and texts never see each other's memory.

On Kafka and one Qdrant for all: whose a row is does not depend on the log.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from memstream.schemas import ids
from memstream.schemas.topics import EPISODES_RECORDED, FACTS, FACTS_UPDATED, OBSERVATIONS
from tests.support.conversation import (
    CONSOLIDATED,
    CONVERSATION,
    KNOWN,
    PERSISTENT,
    STATES,
    consolidated,
    conversation,
)
from tests.support.model_server import Answer, Ask, ModelServer, observing
from tests.support.pipeline import Json, Pipeline, turn, wait_for
from tests.support.pipeline_places import BROKERS, Place, place_for
from tests.support.whole_worker import parsed, told, whole

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
KINDS = ("facts", "episodes", "working", "turns")


@dataclass(frozen=True)
class Who:
    """One party with a memory of its own. `tenant` is added to the test's own."""

    tenant: str
    user: str
    session: str
    canary: str
    agent: str | None = None
    """Then the agent owns what is learnt."""

    def turn(self, given: Json, base: str, session: str = "") -> Json:
        fields = {"tenant_id": base + self.tenant, "user_id": self.user, "session_id": session + self.session}
        return given | fields | ({"scope": "agent", "agent_id": self.agent} if self.agent else {})

    @property
    def owner(self) -> tuple[str, str]:
        return ("agent", self.agent) if self.agent else ("user", self.user)


PARTIES = [
    Who("", "u1", "s1", "aldebaran"),
    Who("", "u2", "s1", "betelgeuse"),  # another user
    Who("-2", "u1", "s1", "capella"),  # another tenant
    Who("", "v/w", "s1", "deneb"),  # one string, if ids were just joined
    Who("", "v", "w/s1", "electra"),
    Who("", "v%2Fw", "s1", "fomalhaut"),
    Who("", "u3", "s1", "gacrux", agent="u1"),  # another scope
]
CANARIES = [who.canary for who in PARTIES]
CODEWORDS: Mapping[str, list[Json]] = {
    f"my codeword is {canary}": [{"content": f"Codeword is {canary}", "category": "attribute", **PERSISTENT}]
    for canary in CANARIES
}


def script(ask: Ask) -> Answer:
    if ask.task == "consolidation":
        fact = consolidated(ask)["facts"][0]
        return {"facts": [fact | {"content": CONSOLIDATED}]}
    return observing({**KNOWN, **CODEWORDS})(ask)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(script) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS[:1])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    alone = {"MEMSTREAM_OBSERVE_TOGETHER": "1"}  # each turn has a prompt of its own, however fast they come
    async with whole(place, model, env=alone) as running:
        yield running


def row_of(who: Who, base: str) -> Any:
    """Whether a row of `show` is of this party."""

    def is_mine(row: Json) -> bool:
        if row["tenant_id"] != base + who.tenant:
            return False
        if "owner" in row:
            return (row["owner"]["scope"], row["owner"]["id"]) == who.owner
        return bool(row["user_id"] == who.user and row["session_id"].endswith(who.session))

    return is_mine


def shown(pipeline: Pipeline) -> dict[str, list[Json]]:
    """All rows of both tenants."""
    tenants = sorted({pipeline.tenant + who.tenant for who in PARTIES})
    found = pipeline.shown(*KINDS, tenants=tenants)
    for tenant, rows in found.items():
        assert {row["tenant_id"] for kind in KINDS for row in rows[kind]} == {tenant}
    return {kind: [row for rows in found.values() for row in rows[kind]] for kind in KINDS}


def observations_asked(model: ModelServer) -> list[Ask]:
    return [ask for ask in model.asks if ask.task == "observations"]


@pytest.mark.long
async def test_the_same_conversation_again_is_new_to_each_party(pipeline: Pipeline, model: ModelServer) -> None:
    """One after the other says the same, under the same ids: whoever saw anything of another would reinforce, replace
    or be shown something. The prompts are equal in every byte."""
    prompts: dict[Who, list[object]] = {}
    for who in PARTIES:
        asked = len(observations_asked(model))
        await pipeline.produce(*[who.turn(given, pipeline.tenant) for given in conversation()])
        await wait_for(lambda at=asked: len(observations_asked(model)) - at == 8, "its prompts", deadline=60)  # type: ignore[misc]
        prompts[who] = [ask.messages for ask in observations_asked(model)[asked:]]
    await pipeline.settled()
    first = PARTIES[0]
    assert len(prompts[first]) == len(conversation())
    for who in PARTIES:
        assert prompts[who] == prompts[first], who

    rows = shown(pipeline)
    everything: dict[Who, Any] = {}
    for who in PARTIES:
        mine = {kind: [row for row in rows[kind] if row_of(who, pipeline.tenant)(row)] for kind in KINDS}
        states = {fact["content"]: fact["state"] for fact in mine["facts"]}
        assert states == STATES | {CONSOLIDATED: "active"}, who
        names = {"TENANT": pipeline.tenant + who.tenant, "USER": who.user, "SESSION": who.session}
        names["OWNER"] = ids.owner_key(names["TENANT"], *who.owner)
        # Which episodes a run of consolidation saw depends on when it looked.
        mine["facts"] = [fact for fact in mine["facts"] if fact["content"] != CONSOLIDATED]
        everything[who] = {
            kind: sorted((told(row, **names) for row in found), key=lambda row: json.dumps(row, sort_keys=True))
            for kind, found in mine.items()
        }
    for who in PARTIES:
        if who.agent is None:  # facts of an agent name their subject by its id
            assert everything[who] == everything[first], who
    for kind, id_name in (("facts", "fact_id"), ("episodes", "episode_id"), ("working", "entry_id")):
        found_ids = [row[id_name] for row in rows[kind]]
        assert len(set(found_ids)) == len(found_ids) == len(PARTIES) * len(
            [row for row in rows[kind] if row_of(first, pipeline.tenant)(row)]
        ), kind  # fmt: skip
    own_facts = {fact["fact_id"]: fact for fact in rows["facts"]}
    for fact in rows["facts"]:
        for other in (fact["supersedes"], fact["superseded_by"]):
            assert other is None or own_facts[other]["owner"] == fact["owner"]
            assert other is None or own_facts[other]["tenant_id"] == fact["tenant_id"]
    foreign = next(fact for fact in rows["facts"] if fact["tenant_id"] != pipeline.tenant)
    assert foreign["content"] not in pipeline.cli(
        "trace", foreign["fact_id"], "--tenant", pipeline.tenant, "--json", expect=1
    )


@pytest.mark.long
async def test_what_one_party_says_is_in_nothing_that_another_sees(pipeline: Pipeline, model: ModelServer) -> None:
    """All at once, each with a word of its own, in a second session that has the same id for all."""
    asked = len(model.asks)
    for n in range(1, 9):
        for who in PARTIES:
            text = f"By the way, my codeword is {who.canary}." if n in (1, 5) else CONVERSATION[n - 1]
            await pipeline.produce(who.turn(turn(text, n), pipeline.tenant, session="second/"))
    await pipeline.settled()

    shown_with: dict[str, set[str]] = {canary: set() for canary in CANARIES}
    for ask in model.asks[asked:]:
        text = "\n".join(content for _, content in ask.messages)
        found = canaries_in(text)
        assert len(found) <= 1, f"{ask.task}: {found} in one prompt"
        for canary in found:
            shown_with[canary].add(ask.task)
    tasks = {frozenset(each - {"summary"}) for each in shown_with.values()}  # of turns that the log has by then
    assert tasks == {frozenset(("observations", "consolidation", "procedures"))}, shown_with

    rows = shown(pipeline)
    for who in PARTIES:
        is_mine = row_of(who, pipeline.tenant)
        for kind in KINDS:
            with_canary = [row for row in rows[kind] if who.canary in json.dumps(row)]
            assert with_canary, (who, kind)
            assert all(is_mine(row) for row in with_canary), (who, kind)
        (fact,) = [fact for fact in rows["facts"] if fact["content"] == f"Codeword is {who.canary}"]
        assert (fact["state"], fact["reinforcement_count"]) == ("active", 1)

    for topic in (OBSERVATIONS, EPISODES_RECORDED, FACTS_UPDATED, FACTS):
        await keys_name_the_owner(pipeline, topic.name)
    user, agent = pipeline.several(
        ["show", "facts", "--tenant", pipeline.tenant, "--user", "u1"],
        ["show", "facts", "--tenant", pipeline.tenant, "--scope", "agent", "--id", "u1"],
    )
    assert canaries_in(user) == ["aldebaran"]
    assert canaries_in(agent) == ["gacrux"]


def canaries_in(rows: object) -> list[str]:
    return [canary for canary in CANARIES if canary in json.dumps(rows)]


async def keys_name_the_owner(pipeline: Pipeline, topic: str) -> None:
    for record in await pipeline.records(topic):
        fields = parsed(record.value)
        if not str(fields.get("tenant_id", "")).startswith(pipeline.tenant):
            continue
        owner = fields["owner"]
        key = ids.owner_key(fields["tenant_id"], owner["scope"], owner["id"])
        if topic == FACTS.name:
            key = ids.fact_key(fields["tenant_id"], fields["fact_id"])
        assert record.key == key.encode(), topic
        owner_is = fields["tenant_id"], (owner["scope"], owner["id"])
        whose = [who.canary for who in PARTIES if (pipeline.tenant + who.tenant, who.owner) == owner_is]
        assert set(canaries_in(fields)) <= set(whose), topic
