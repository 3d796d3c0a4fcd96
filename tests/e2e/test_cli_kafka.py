"""The commands on a real broker, as the how-to pages have them: topics, doctor, worker, snippets, watch, the end."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from memstream.schemas.topics import catalogue
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.port import TopicSpec
from tests.support.cli_process import InProcess, Memstream, turn
from tests.support.kafka import Broker

pytestmark = pytest.mark.kafka
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def snippets(page: str) -> dict[str, Any]:
    """The functions that a how-to page defines with aiokafka."""
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(from aiokafka.*?)```", (HOW_TO / page).read_text(), re.DOTALL):
        exec(compile(snippet, page, "exec"), names)
    return names


async def as_the_page_produces(bootstrap: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    await producer.start()
    try:
        said = ("I work at Google.", "Guess what, I left Google. I now work at Stripe.")
        for number, text in enumerate(said):
            messages = [{"role": "user", "content": text}]
            await snippets("produce-turns.md")["remember"](producer, "acme", "ana/1", "s 1", f"t{number}", messages)
    finally:
        await producer.stop()


async def as_the_page_subscribes(bootstrap: str, lines: list[str]) -> None:
    names = snippets("subscribe-to-facts.md")
    names["print"] = lambda *words: lines.append(" ".join(str(word) for word in words))
    following = asyncio.create_task(names["follow"](bootstrap))
    try:
        async with asyncio.timeout(60):
            while len(lines) < 3:
                assert not following.done(), following
                await asyncio.sleep(0.1)
    finally:
        following.cancel()
        await asyncio.wait((following,))


def test_a_deployment_on_kafka(own_kafka: Broker, tmp_path: Path) -> None:
    environment = {
        "MEMSTREAM_BROKER": f"kafka://{own_kafka.bootstrap}",
        "MEMSTREAM_PARTITIONS": "3",
    }
    memstream, command = Memstream(tmp_path, environment), InProcess(tmp_path, environment)

    refused = command("worker", "all")
    assert refused.code == 2
    assert "memstream topics create" in refused.err
    made = command("topics", "create", "--json")
    assert (made.code, len(made.records)) == (0, len(catalogue()))
    checked = command("topics", "check", "--json").records
    assert all(record["ok"] for record in checked)
    assert {record["topic"]: record["detail"] for record in checked}["memory.turns"] == "3 partitions, delete"

    with memstream.worker("all") as worker:
        asyncio.run(as_the_page_produces(own_kafka.bootstrap))
        lines: list[str] = []
        asyncio.run(as_the_page_subscribes(own_kafka.bootstrap, lines))
        assert [line.split(" because")[0] for line in lines] == [
            "new Works at Google",
            "superseded Works at Google",
            "new Works at Stripe",
        ]
        seen = command("watch", "--from-beginning", "--until-idle", "3", "--tenant", "acme", "--json").records
        assert [each["action"] for each in seen] == ["new", "superseded", "new"]
        (fact,) = command("show", "facts", "--tenant", "acme", "--user", "ana/1", "--json").records
        assert fact["content"] == "Works at Stripe"
        traced = command("trace", fact["supersedes"], "--tenant", "acme", "--json")
        assert traced.code == 0, traced.err
        (chain,) = traced.records
        assert [each["action"] for each in chain["decisions"]] == ["new", "superseded"]
        assert len(chain["turns"]) == 2
        answered = command("produce", "-", "--json", input=turn("t9", "I live in Oslo.") + "\nnonsense")
        assert (answered.code, [each["turn_id"] for each in answered.records]) == (1, ["t9"])
        (run,) = command("consolidate", "--tenant", "acme", "--user", "ana/1", "--json").records
        assert run["status"] == "applied"
        doctor = command("doctor", "--json")
        assert doctor.code == 0, doctor.out
        assert worker.stop() == 0


@pytest.mark.long
async def test_topics_that_would_break_are_refused(own_kafka: Broker, tmp_path: Path) -> None:
    environment = {"MEMSTREAM_BROKER": f"kafka://{own_kafka.bootstrap}", "MEMSTREAM_PARTITIONS": "3"}
    log = KafkaLog(servers=[own_kafka.bootstrap])
    await log.start()
    try:
        await log.create(
            [
                TopicSpec("memory.turns", 3, 1, {"cleanup.policy": "compact"}),
                TopicSpec("memory.commands.session", 2, 1, {"cleanup.policy": "delete"}),
                TopicSpec("memory.facts", 3, 1, {"cleanup.policy": "delete"}),
            ]
        )
    finally:
        await log.close()
    memstream = Memstream(tmp_path, environment)
    made = await asyncio.to_thread(memstream, "topics", "create", "--json")
    assert made.code == 1
    wrong = {record["topic"]: record["fix"] for record in made.records if not record["ok"]}
    assert wrong == {
        "memory.turns": f"kafka-configs.sh --bootstrap-server {own_kafka.bootstrap} --alter --entity-type topics "
        "--entity-name memory.turns --add-config cleanup.policy=delete",
        "memory.commands.session": "stop all workers, run `memstream topics grow --partitions 3`",
        "memory.facts": f"kafka-configs.sh --bootstrap-server {own_kafka.bootstrap} --alter --entity-type topics "
        "--entity-name memory.facts --add-config cleanup.policy=compact",
    }
    worker = await asyncio.to_thread(memstream, "worker", "reflector")
    assert worker.code == 2
    for name in wrong:
        assert f"{name}:" in worker.err
    assert json.dumps(wrong["memory.facts"])[1:-1] in worker.err
