"""The table of who may write and read, against what the stages really write and what a server reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from memstream.adapters.ports import VectorStore
from memstream.api.credentials import Credentials
from memstream.api.scopes import SCOPES
from memstream.cli.process.policy_reader import PolicyReader
from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.recall_events import AnsweredRecall, records_of
from memstream.recall.recall_events import send as send_report
from memstream.schemas import ids
from memstream.schemas.access import accesses
from memstream.schemas.topics import (
    COMMANDS,
    EPISODES_RECORDED,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    TABLES,
    TASKS_DUE,
    TOPICS,
    TURNS,
    catalogue,
    changelog_name,
)
from memstream.streams.log import topic_admin
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.markers import Growth, Marker, marker_entry
from memstream.streams.log.topic_admin import Deployment
from memstream.streams.senders.commands import CommandSender
from memstream.tools.audit_topic import AuditPublisher
from tests.support.api_server import app_over, called, entry
from tests.support.console_world import console_world
from tests.support.conversation import conversation, different_each_time
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.sent_commands import edit, send
from tests.support.stored_memory import NOW
from tests.support.written_letters import refused_turn

pytestmark = [pytest.mark.timeout(240)]
ACCESS = {each.role: each for each in accesses()}
WRITTEN = {
    ("observer", OBSERVATIONS.name),
    ("observer", RESULTS.name),
    ("reflector", EPISODES_RECORDED.name),
    ("reflector", FACTS_UPDATED.name),
    ("reflector", FACTS.name),
    ("reflector", TASKS_DUE.name),
    ("reflector", COMMANDS.name),
    ("reflector", RESULTS.name),
    ("consolidation", RESULTS.name),
}
"""What each run of the test shows at least."""
MEM0 = {"id": "m1", "memory": "Likes tea", "user_id": "u1", "created_at": "2026-11-01T10:00:00+00:00"}


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[Pipeline]:
    with ModelServer(different_each_time) as model:
        env = {"MEMSTREAM_PARTITIONS": "2"}
        async with running(
            Pipeline(folder=tmp_path, broker=f"embedded://{tmp_path / 'log'}", model=model, env=env)
        ) as ready:
            ready.cli("topics", "create")
            yield ready


async def test_stages_write_what_the_table_says(pipeline: Pipeline) -> None:
    due = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    pipeline.spawn("all")
    await pipeline.produce(*conversation())
    for each in (
        edit(pipeline, "working.add", {"content": "The deploy is on Friday"}, session=True),
        edit(pipeline, "facts.remember", {"content": "Works at Stripe"}),
        edit(pipeline, "tasks.add", {"content": "Call Ana", "due_at": due}),
        edit(pipeline, "procedures.define", {"name": "Deploy", "trigger": "now", "steps": ["step"]}),
        edit(pipeline, "hygiene", {"run": "reflect"}),
    ):
        await send(pipeline, each)

    async def written() -> set[tuple[str, str]]:
        found = set()
        for topic in TOPICS:
            for record in await pipeline.records(topic.name):
                source = dict(record.headers).get("ce_source", b"").decode().removeprefix("/memstream/")
                found |= {(source, topic.name)} & {(stage, topic.name) for stage in STAGES}
        return found

    seen = await wait_for(written, "every stage to write", until=lambda found: found >= WRITTEN, deadline=90)
    assert seen <= {(stage, topic.name) for stage in STAGES for topic in ACCESS[stage].produces}


class Asked:
    """A log that notes which right of the broker each call needs."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self.rights: set[tuple[str, str, str]] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._log, name)

        def called(*args: Any, **more: Any) -> Any:
            if name in ("committed", "members", "commit"):
                self.rights.add(("group", args[0], "Read" if name == "commit" else "Describe"))
            elif name == "topics":
                self.rights |= {("topic", topic.name, "DescribeConfigs") for topic in catalogue()}
            else:
                right = {"read": "Read", "append": "Write"}.get(name, "Describe")
                self.rights.add(("topic", args[0], right))
            return method(*args, **more)

        return called


def rights_of(role: str) -> set[tuple[str, str, str]]:
    return {(acl.resource, acl.name, each) for acl in ACCESS[role].acls() for each in acl.operations}


class WithoutCollections:
    """A store before its collections are built from the log."""

    async def exists(self, collection: str) -> bool:
        return False


async def test_a_server_has_the_rights_that_it_uses_and_no_others(tmp_path: Path) -> None:
    """Pages, edits, an import, the audit trail and policies, and then the dead letters. The partition count has changed
    once."""
    turn = {"tenant_id": "acme", "user_id": "u1", "session_id": "s1"}
    async with console_world(tmp_path, topics=catalogue(), partitions=2) as world:
        fact = await world.learnt()
        changelogs = [changelog_name(stage, TABLES[stage]) for stage in ("consolidation", "reflector", "observer")]
        marker = Marker(identity="x", whole_from=0, written_at=0, growths=(Growth(partitions=1, until={}),))
        key, value = marker_entry(marker)
        for changelog in changelogs[:-1]:  # without a marker, so the next changelog is read
            await world.past.log.append(changelog, key=b"row", value=b"{}")
        await world.past.log.append(changelogs[-1], key=key, value=value)
        await world.past.log.append(
            TURNS.name, key=ids.session_key("acme", "u1", "s1").encode(), value=b'{"turn_id": "t2"}'
        )
        published = fact.public().to_bytes()
        await world.past.log.append(FACTS.name, key=ids.fact_key("acme", fact.fact_id).encode(), value=published)
        letter = await refused_turn(world.past.log)
        asked: Any = Asked(world.past.log)
        await topic_admin.check(asked, deployment=Deployment(partitions=2, replication=1))
        await PolicyReader(asked, TenantPolicies(MemoryPolicy())).read_whole()
        recalled = AnsweredRecall("acme", (fact.owner,), None, [("semantic", fact.fact_id)], NOW)
        await send_report(records_of(recalled)[0], to=asked)
        everything = entry("all", scopes=SCOPES)
        app = app_over(
            log=asked,
            store=world.past.store,
            commands=CommandSender(asked, "serve"),
            credentials=Credentials((everything,)),
        )
        one, tenant = f"/v1/facts/{fact.fact_id}", {"tenant_id": "acme"}
        calls: tuple[tuple[str, str, dict[str, Any], Any, int], ...] = (
            ("GET", "/console", {}, None, 200),
            ("GET", "/console/trail", {"tenant_id": "acme", "user_id": "u1"}, None, 200),
            ("GET", "/v1/turns/t1", turn, None, 200),
            ("GET", "/v1/turns/t2", turn, None, 200),
            ("GET", f"/console/facts/{fact.fact_id}", tenant, None, 200),
            ("GET", f"{one}/trace", tenant, None, 200),
            ("GET", f"{one}/history", tenant, None, 200),
            (
                "POST",
                "/v1/turns",
                {},
                {**turn, "turn_id": "t3", "messages": [{"role": "user", "content": "Hello"}]},
                202,
            ),
            ("POST", f"{one}/reinforce", {}, {**tenant, "wait": 0.1}, 202),
            ("POST", "/v1/working", {}, {**turn, "content": "Friday", "wait": 0.1}, 202),
            (
                "POST",
                "/v1/import",
                {**tenant, "user_id": "u1", "format": "mem0", "dry_run": "true"},
                {"results": [MEM0]},
                200,
            ),
            ("GET", "/v1/audit", {}, None, 200),
        )
        async with AuditPublisher(log=asked).running(), called(app, token="all") as client:
            for method, path, query, body, status in calls:
                answer = await client.request(method, path, params=query, json=body)
                assert answer.status_code == status, (path, answer.text)
        unbuilt = app_over(
            log=asked, store=cast(VectorStore, WithoutCollections()), credentials=Credentials((everything,))
        )
        async with called(unbuilt, token="all") as client:
            assert (await client.get(one, params=tenant)).status_code == 200
        assert asked.rights - rights_of("serve") == set()
        implied = {("topic", topic.name, "Describe") for topic in catalogue()}
        assert rights_of("serve") - asked.rights - implied == set()
        async with called(app, token="all") as client:
            assert (await client.get("/console/dead-letters")).status_code == 200
            path = f"/v1/dead-letters/{letter.topic}/{letter.partition}/{letter.offset}/redrive"
            assert (await client.post(path, json={})).json()["action"] == "put_back"
    assert asked.rights - rights_of("serve") != set(), "the dead letters need a role of their own"
    assert asked.rights - rights_of("serve") - rights_of("redriver") == set()
