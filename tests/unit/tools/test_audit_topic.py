"""The audit trail on memory.audit: nothing waits for it, an outage loses nothing, and its reader selects."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.api.credentials import Credentials
from memstream.schemas.audit import AuditRecord
from memstream.schemas.errors import Transient
from memstream.schemas.topics import AUDIT_TRAIL, TURNS
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from memstream.tools import audit_topic
from memstream.tools.audit import AUDIT, audit, line_of
from memstream.tools.audit_topic import AuditPublisher, AuditQuery, AuditReader
from tests.support.api_server import NoLog, app_over, bearer, called, entry
from tests.support.polling import wait_for

ANA = Owner(scope="user", id="ana")


@pytest.fixture(autouse=True)
def lines() -> Iterator[list[dict[str, Any]]]:
    """Lines of the logger, which exist whatever the topic does."""
    found: list[dict[str, Any]] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(record.getMessage()))

    before = (AUDIT.handlers[:], AUDIT.level, AUDIT.propagate)
    AUDIT.handlers[:] = [Lines()]
    yield found
    AUDIT.handlers[:], AUDIT.level, AUDIT.propagate = before


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path)
    await made.start()
    await made.create([TopicSpec(topic.name, 1, 1, {}) for topic in (AUDIT_TRAIL, TURNS)])
    yield made
    await made.close()


def act(number: int = 0, **more: Any) -> None:
    given = {"who": "chat", "tenant_id": "acme", "owner": ANA, "result": "applied", "fact_id": f"f{number}"} | more
    audit("facts.forget", **given)


def publisher(log: Any, **more: Any) -> AuditPublisher:
    return AuditPublisher(log=log, pause=0.01, **more)


def dropped(made: AuditPublisher) -> float:
    return made.metrics.dropped._value.get()


async def test_a_record_is_a_line_and_a_record_of_the_topic(log: EmbeddedLog, lines: list[dict[str, Any]]) -> None:
    async with publisher(log).running():
        act(1)
        audit("GET /v1/facts", who="unknown", tenant_id=None, owner=None, result="denied")
    act(2)
    found = [record async for record in log.read(AUDIT_TRAIL.name)]
    assert [record.key for record in found] == [b"acme", None]
    records = [AuditRecord.read(record.value or b"") for record in found]
    assert [json.loads(line_of(record)) for record in records] == lines
    assert lines[0] | {"at": "", "audit_id": ""} == {
        "audit_id": "",
        "at": "",
        "who": "chat",
        "action": "facts.forget",
        "tenant_id": "acme",
        "owner": {"scope": "user", "id": "ana"},
        "result": "applied",
        "fact_id": "f1",
    }
    assert dict(found[0].headers)["ce_id"].decode() == lines[0]["audit_id"]


async def test_records_wait_while_the_log_is_away(lines: list[dict[str, Any]]) -> None:
    log = NoLog()
    log.away = Transient("broker", "it is away")
    made = publisher(log, waiting_max=100)
    async with made.running():
        for number in range(150):
            act(number)
        assert len(lines) == 150, "an action never waits"
        await asyncio.sleep(0)
        log.away = None
        await wait_for(lambda: len(log.appended), "the records", until=lambda count: count == 100)
    assert [AuditRecord.read(value or b"").fact_id for _, _, value, _ in log.appended] == [f"f{n}" for n in range(100)]
    assert dropped(made) == 50


async def test_what_waits_at_the_end_is_counted(lines: list[dict[str, Any]]) -> None:
    log = NoLog()
    log.away = Transient("broker", "it is away")
    made = publisher(log, close_seconds=0.05)
    async with made.running():
        act()
    assert (dropped(made), len(lines)) == (1, 1)


async def test_a_denial_reaches_the_line_and_no_read_waits(lines: list[dict[str, Any]]) -> None:
    """The log hangs: requests are answered, and the denial is in the trail's lines."""
    log = NoLog()
    log.hold.clear()
    tokens = Credentials([entry("mst_r", scopes=("memory:read",))])
    async with publisher(log, close_seconds=0.05).running(), called(app_over(log=log, credentials=tokens)) as api:
        async with asyncio.timeout(10):
            denied = await api.post("/v1/facts?user_id=ana", json={"content": "x"}, headers=bearer("mst_r"))
            read = await api.get("/v1/recall?user_id=ana&cue=x", headers=bearer("mst_r"))
    assert (denied.status_code, read.status_code) == (403, 200)
    assert [(line["who"], line["tenant_id"], line["result"]) for line in lines] == [("mst_r", "acme", "denied")]


# ------------------------------------------------------------------------------------------------ reading
async def written(log: EmbeddedLog, *records: dict[str, Any]) -> None:
    async with publisher(log).running():
        for number, record in enumerate(records):
            act(number, **record)


async def test_the_reader_selects(log: EmbeddedLog) -> None:
    await written(
        log,
        {},
        {"tenant_id": "rival"},
        {"who": "other"},
        {"owner": Owner(scope="user", id="bob")},
        {"owner": Owner(scope="org", id="ana")},
        {"result": "denied"},
        {"tenant_id": None, "owner": None},
    )
    reader = AuditReader(log)

    async def found(**query: Any) -> list[str | None]:
        return [each.fact_id for each in (await reader.page(AuditQuery(**query), limit=500)).items]

    assert len(await found()) == 7
    assert await found(tenant_id="acme", who="chat", user_id="ana", result="applied") == ["f0"]
    assert await found(tenant_id="rival") == ["f1"]
    assert await found(user_id="bob") == ["f3"]
    assert await found(action="facts.merge") == []
    now = datetime.now(UTC)
    assert len(await found(since=now - timedelta(minutes=1))) == 7
    assert await found(since=now + timedelta(hours=1)) == []
    assert await found(until=now - timedelta(minutes=1)) == []


async def test_pages_continue_and_end(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    await written(log, *({"tenant_id": "acme" if n % 10 else "rival"} for n in range(30)))
    await log.append(AUDIT_TRAIL.name, key=b"acme", value=b"no record")
    monkeypatch.setattr(audit_topic, "SCAN_MAX", 7)
    reader, cursor, found, pages = AuditReader(log), None, list[str | None](), 0
    while True:
        page = await reader.page(AuditQuery(tenant_id="rival"), limit=2, cursor=cursor)
        found += [each.fact_id for each in page.items]
        pages, cursor = pages + 1, page.next
        if cursor is None:
            break
    assert (found, pages) == (["f0", "f10", "f20"], 5)
    with pytest.raises(ValueError, match="position token"):
        await reader.page(AuditQuery(), limit=1, cursor="x")


async def test_a_tenant_reads_its_own_trail_over_http(log: EmbeddedLog, lines: list[dict[str, Any]]) -> None:
    await written(log, {}, {"tenant_id": "rival"}, {"tenant_id": None, "owner": None})
    lines.clear()
    scopes: Any = ("memory:audit", "memory:read", "memory:read-secret")
    tokens = Credentials([entry("mst_a", scopes=scopes), entry("mst_u", scopes=scopes, users=["ana"]), entry("mst_r")])
    async with called(app_over(log=log, credentials=tokens)) as api:
        AUDIT.setLevel(logging.INFO)
        page = (await api.get("/v1/audit", headers=bearer("mst_a"))).json()
        assert ([each["tenant_id"] for each in page["items"]], page["next"]) == (["acme"], None)
        for token, query, status in (
            ("mst_a", "tenant=rival", 403),
            ("mst_u", "", 403),
            ("mst_r", "", 403),
            ("mst_a", "cursor=x", 422),
            ("mst_a", "since=yesterday", 422),
            ("mst_a", "limit=501", 422),
        ):
            answer = await api.get(f"/v1/audit?{query}", headers=bearer(token))
            assert answer.status_code == status, (token, query, answer.text)
        lines.clear()
        await api.get("/v1/recall?user_id=ana&cue=x&ceiling=secret", headers=bearer("mst_a"))
        await api.get("/v1/recall?user_id=ana&cue=x", headers=bearer("mst_a"))
    (read,) = lines
    assert (read["action"], read["ceiling"], read["result"]) == ("GET /v1/recall", "secret", "allowed")
    assert (read["who"], read["tenant_id"], read["owner"]) == ("mst_a", "acme", {"scope": "user", "id": "ana"})
