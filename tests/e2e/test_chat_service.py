"""The whole, as a user has it: the chat service of the examples on Kafka and Qdrant, memory over HTTP, subscribers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress

import httpx
import pytest

from memstream.client import BEGINNING, Memory, Update, connect
from tests.support.conversation import CONVERSATION, different_each_time
from tests.support.fact_publisher import PublishedFact
from tests.support.kafka import free_port
from tests.support.model_server import Answer, Ask, ModelServer
from tests.support.pipeline import ROOT, Pipeline, running
from tests.support.pipeline_places import Place
from tests.support.polling import wait_for
from tests.support.supervisor import Supervised

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(300)]
USERS = ("u1", "u2")
DEADLINE = 60.0
STAGES = ("recorder", "observer", "reflector")


def answering(ask: Ask) -> Answer:
    """The one model of both: it observes for memory, and talks to the user."""
    return different_each_time(ask) if ask.task else "Good to know."


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(answering) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline(model)) as ready:
        yield ready


async def answers(url: str) -> bool:
    async with httpx.AsyncClient() as client:
        try:
            return (await client.get(url)).status_code == 200
        except httpx.TransportError:
            return False


async def serving(pipeline: Pipeline) -> str:
    """`memstream serve` beside the workers; its address."""
    port = free_port()
    log = pipeline.folder / "worker-serve.log"
    command = ["serve", "--port", str(port)]
    pipeline.workers.append(Supervised(command, cwd=pipeline.folder, env=pipeline.environment(), log=log))
    url = f"http://127.0.0.1:{port}"
    await wait_for(lambda: answers(f"{url}/readyz"), "the server is ready", deadline=DEADLINE)
    return url


@asynccontextmanager
async def chatting(pipeline: Pipeline, memory: str) -> AsyncIterator[httpx.AsyncClient]:
    """The chat service of the examples, as its README starts it with Kafka."""
    port = free_port()
    env = pipeline.environment(
        CHAT_MEMORY=pipeline.broker, CHAT_MEMORY_API=memory, CHAT_TENANT=pipeline.tenant, CHAT_PORT=str(port)
    )
    with (pipeline.folder / "chat.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "chat_service" / "service.py")],
            cwd=pipeline.folder,
            env=os.environ | env,
            stdout=log,
            stderr=log,
        )
    try:
        await wait_for(lambda: answers(f"http://127.0.0.1:{port}/"), "the chat service answers", deadline=DEADLINE)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield client
    finally:
        process.kill()
        process.wait(10)


class Subscriber:
    """Somebody's service that follows the changes: what it was told, and the position that it keeps."""

    def __init__(self, address: str, tenant: str) -> None:
        self.got: list[PublishedFact] = []
        self.position = BEGINNING
        self._address, self._tenant = address, tenant
        self.start()

    def start(self) -> None:
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _follow(self) -> None:
        async with (
            connect(self._address) as memory,
            aclosing(memory.updates(after=self.position, tenant_id=self._tenant)) as updates,
        ):
            async for update in updates:
                self._handle(update)

    def _handle(self, update: Update) -> None:
        assert update.event is not None
        assert update.event.fact == update.fact
        assert update.position is not None
        self.got.append((update.fact.fact_id, update.fact.version))
        self.position = update.position


async def live(chat: httpx.AsyncClient, seen: list[dict[str, str]]) -> None:
    """What the page shows of u1."""
    async with chat.stream("GET", "/changes", params={"user": "u1"}, timeout=None) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))


def text_of(n: int, user: str) -> str:
    """In words of each user's own: the scripted model takes a text that it has seen for a question asked again."""
    return f"{CONVERSATION[n]} This is {user}."


async def says(chat: httpx.AsyncClient, n: int) -> None:
    """Every user says the n-th thing of the conversation."""
    for user in USERS:
        body = {"user": user, "session": f"s-{user}", "text": text_of(n, user), "id": f"t{n}"}
        answer = (await chat.post("/chat", json=body)).raise_for_status().json()
        assert (answer["answer"], answer["kept"]) == ("Good to know.", True)


async def recalls(memory: Memory, tenant: str, cue: str) -> dict[str, str]:
    """Content → tier, of u1's memory."""
    recalled = await memory.api.recall(cue, tenant=tenant, user="u1", limit=20)
    assert recalled.missing == ()
    return {item.content: item.tier for item in recalled.items}


@pytest.mark.long
async def test_a_chat_service_remembers_and_its_subscribers_miss_nothing_and_hear_nothing_twice(
    pipeline: Pipeline, model: ModelServer
) -> None:
    """A worker is killed with work in hand, a subscriber restarts from its position, the server in between."""
    tenant = pipeline.tenant
    pipeline.spawn("recorder")
    doomed = pipeline.spawn("observer", "reflector", MEMSTREAM_DATADIR=str(pipeline.folder / "first"))
    server = await serving(pipeline)
    over_kafka, over_http = Subscriber(pipeline.broker, tenant), Subscriber(server, tenant)
    shown: list[dict[str, str]] = []
    async with chatting(pipeline, server) as chat, connect(server) as memory:
        page = asyncio.create_task(live(chat, shown))
        for n in range(4):
            await says(chat, n)

        async def knows_stripe() -> bool:
            return (await recalls(memory, tenant, "where do I work?")).get("Works at Stripe") == "semantic"

        await wait_for(knows_stripe, "the fact is recalled", deadline=DEADLINE)
        found = await recalls(memory, tenant, "I joined Stripe last week!")
        assert found[text_of(3, "u1")] == "turns"
        assert "Works at Google" not in {content for content, tier in found.items() if tier == "semantic"}
        await wait_for(
            lambda: over_kafka.got and over_http.got and shown,
            "both subscribers and the page were told",
            deadline=DEADLINE,
        )
        assert {"action": "new", "content": "Works at Google"} in shown

        model.latency = 0.5
        await says(chat, 4)
        await asyncio.to_thread(model.wait_in_hand)
        doomed.kill()
        await over_kafka.stop()
        told_before = len(over_kafka.got)
        model.latency = 0.0
        for n in range(5, len(CONVERSATION)):
            await says(chat, n)
        pipeline.spawn("observer", "reflector", MEMSTREAM_DATADIR=str(pipeline.folder / "second"))
        over_kafka.start()
        await pipeline.settled(*STAGES)

        told = [(event.fact.fact_id, event.fact.version) for event in await pipeline.updates()]
        once = list(dict.fromkeys(told))
        assert told_before < len(once)
        for subscriber in (over_kafka, over_http):
            await wait_for(lambda got=subscriber.got: len(got) >= len(once), "everything was told", deadline=DEADLINE)
            assert sorted(subscriber.got) == sorted(once), "nothing is missing, nothing twice"
            for fact_id in {fact_id for fact_id, _ in once}:
                versions = [version for each, version in subscriber.got if each == fact_id]
                assert versions == list(range(1, len(versions) + 1))
            await subscriber.stop()
        facts = await pipeline.consistent()
        last = dict(once)
        assert last == {fact_id: fact["version"] for fact_id, fact in facts.items()}

        context = await memory.api.context("work", tenant=tenant, user="u1", session="s-u1", preset="full")
        assert "Works at Stripe" in context.text
        assert "Works at Google" not in context.text
        prompts = [dict(ask.messages).get("system", "") for ask in model.asks if not ask.task]
        assert any("Works at Stripe" in prompt for prompt in prompts), "the chat's model was told what is remembered"
        page.cancel()
    assert len(set(await pipeline.observed())) == len(USERS) * len(CONVERSATION)
    assert await pipeline.dead_letters() == []
    await pipeline.verified(*STAGES)  # type: ignore[arg-type]
