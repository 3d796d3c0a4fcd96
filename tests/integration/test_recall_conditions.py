"""Filters of recall and context, and times of the user's own events, from a turn to the read: the whole pipeline, on
Kafka and in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.context import PRESETS, ContextRequest, ContextService, recalled_switches
from memstream.recall.record_conditions import MetadataCondition, RecordConditions
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallService
from memstream.schemas.turns import Owner
from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
LIKES: dict[str, Any] = {"category": "preference", **PERSISTENT, "importance": 0.9}
FRUITS = ("apples", "pears", "plums")
KNOWN: dict[str, list[dict[str, Any]]] = {
    f"I really like {fruit}": [{**LIKES, "content": f"Likes {fruit}"}] for fruit in FRUITS
}
MOVED: dict[str, Any] = {"category": "identity", **PERSISTENT, "slot": "residence", "value": "Porto"}
KNOWN["I moved to Porto"] = [{**MOVED, "content": "Lives in Porto", "valid_from": "2026-06-01T00:00:00Z"}]
COOKED: dict[str, dict[str, Any]] = {
    "I cooked a pot of lentil soup.": {"occurred_at": "2026-03-08T18:00:00Z"},
    "I cooked a pot of fish stew.": {"occurred_at": "2026-10-11T18:00:00Z"},
    "I moved to Porto in June.": {},
}
TAGGED: list[dict[str, Any]] = [
    {
        "tags": ["shop", "web"],
        "metadata": {"source": "crm", "price": 3, "vip": True, "approved": True},
        "agent_id": "a1",
    },
    {"tags": ["shop"], "metadata": {"source": "mail", "price": 7.5, "labels": ["x", "y"]}, "agent_id": "a2"},
    {"session": "s2"},
]
U1 = Owner(scope="user", id="u1")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline(model, env={"MEMSTREAM_EMBEDDER": "hashing"})) as ready:
        ready.spawn("all")
        said = zip(FRUITS, TAGGED, strict=True)
        turns = [turn(f"I really like {fruit}.", n, **more) for n, (fruit, more) in enumerate(said, start=1)]
        turns += [
            turn(said, n, user="u2", session="k1", **more) for n, (said, more) in enumerate(COOKED.items(), start=1)
        ]
        await ready.produce(*turns)
        await ready.settled()
        yield ready


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(pipeline: Pipeline) -> AsyncIterator[VectorStore]:
    env = pipeline.environment()
    made = await open_store(
        env["MEMSTREAM_QDRANT"], embedder=HashingEmbedder().identity, api_key=env.get("QDRANT_API_KEY")
    )
    yield made
    await made.close()


def day(minute: int) -> datetime:
    return datetime(2026, 11, 20, 10, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("conditions", "fruits"),
    [
        ({}, "apples pears plums"),
        ({"tags": ("shop",)}, "apples pears"),
        ({"tags": ("shop", "web")}, "apples"),
        ({"tags": ("none",)}, ""),
        ({"metadata": (MetadataCondition("source", ("crm",)),)}, "apples"),
        ({"metadata": (MetadataCondition("source", ("crm", "mail")),)}, "apples pears"),
        ({"metadata": (MetadataCondition("labels", ("y",)),)}, "pears"),
        ({"metadata": (MetadataCondition("price", (3,)),)}, "apples"),
        ({"metadata": (MetadataCondition("price", gte=3, lt=7.5),)}, "apples"),
        ({"metadata": (MetadataCondition("price", gt=3),)}, "pears"),
        ({"metadata": (MetadataCondition("source", exists=True),)}, "apples pears"),
        ({"metadata": (MetadataCondition("source", exists=False),)}, "plums"),
        ({"agent_id": "a2"}, "pears"),
        ({"session_id": "s2"}, "plums"),
        ({"trust": ("user",)}, "apples pears plums"),
        ({"trust": ("assistant", "tool")}, ""),
        ({"since": day(2)}, "pears plums"),
        ({"since": day(2), "until": day(2)}, "pears"),
        ({"until": day(1)}, "apples"),
        ({"tags": ("shop",), "since": day(2)}, "pears"),
    ],
)
async def test_every_tier_is_filtered(
    pipeline: Pipeline, store: VectorStore, conditions: dict[str, Any], fruits: str
) -> None:
    recall = RecallService(store=store, embedder=HashingEmbedder(), policy=RecallPolicy(patience=20.0))
    for tier in ("semantic", "episodic", "turns"):
        request = RecallRequest(
            pipeline.tenant,
            U1,
            cue="fruits that I really like",
            tiers=(tier,),
            conditions=RecordConditions(**conditions),
        )
        found = await recall.recall(request, now=datetime.now(UTC))
        assert found.missing == ()
        assert {each.item.content.split()[-1].strip(".") for each in found.items} == set(fruits.split()), tier
        if tier == "semantic":
            assert not any(each.approved for each in found.items), "a turn cannot approve an instruction"


async def test_a_context_has_only_such_records(pipeline: Pipeline, store: VectorStore) -> None:
    recall = RecallService(store=store, embedder=HashingEmbedder(), policy=RecallPolicy(patience=20.0))
    request = ContextRequest(
        pipeline.tenant,
        U1,
        cue="fruits that I like",
        switches=recalled_switches(PRESETS["full"]),
        conditions=RecordConditions(tags=("web",)),
    )
    context = await ContextService(recall=recall, store=store).context(request, now=datetime.now(UTC))
    assert "apples" in context.text
    assert "pears" not in context.text
    assert "plums" not in context.text


async def test_the_command_filters(pipeline: Pipeline) -> None:
    asked = ("recall", "--tenant", pipeline.tenant, "--user", "u1", "--cue", "fruits that I like")
    shown = pipeline.several(
        [*asked, "--tag", "shop", "--metadata", "source:mail"], [*asked, "--of-agent", "a1", "--category", "preference"]
    )
    assert [{each["content"].split()[-1].strip(".") for each in part} for part in shown] == [{"pears"}, {"apples"}]


async def test_an_event_of_the_user_is_a_time(pipeline: Pipeline, store: VectorStore) -> None:
    recall = RecallService(store=store, embedder=HashingEmbedder(), policy=RecallPolicy(patience=20.0), locale="en, de")
    soup, stew, _ = COOKED
    for cue, said, other in (
        ("What did I cook before I moved?", soup, stew),
        ("What did I cook after my move to Porto?", stew, soup),
        ("Was war vor meinem Umzug, I cooked?", soup, stew),
        ("Was war seit dem Umzug, I cooked?", stew, soup),
    ):
        request = RecallRequest(pipeline.tenant, Owner(scope="user", id="u2"), cue=cue, tiers=("turns",))
        found = await recall.recall(request, now=datetime.now(UTC))
        assert found.missing == ()
        when = {each.item.content: each.item.parts["when"] for each in found.items}
        assert when[said] == 0 > when[other], cue
        assert [each for each in when if each in (said, other)] == [said, other], cue
