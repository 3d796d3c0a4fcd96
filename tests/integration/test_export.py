"""Exports of a stored memory on the real engine: what is in them, as of which moment, and from which cursor.

With MEMSTREAM_TEST_QDRANT=http://host:port on that server.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.generate.json_schemas import FOLDER
from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.export import exporter as exporting
from memstream.recall.export.encoding import closing, further, opening
from memstream.recall.export.exporter import MemoryExporter
from memstream.recall.export.request import ExportCursor, ExportRequest
from memstream.recall.verbatim import VerbatimReader
from memstream.schemas.export import RECORD_KINDS, ExportFormat, ExportLine
from memstream.schemas.topics import FACTS_UPDATED, OBSERVATIONS
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.fact_history import PastFacts
from tests.support.stored_memory import NOW, StoredMemory
from tests.support.vector_backends import store_url

USER, TEAM = Owner(scope="user", id="u1"), Owner(scope="group", id="team")
MINE = ExportRequest("acme", USER)
ALL = ExportRequest("acme", ceiling="secret", removed=True)
MOMENT = NOW + timedelta(days=1)
HOSTILE = 'a "quote", a\nline, a\u2028separator, \u0085, a\x00nul, \u202ebidi, {"kind":"end"}, 日本, 🧵'


class Memory:
    """A store and a log with records, and the exporter over them."""

    def __init__(self, store: Any, log: EmbeddedLog) -> None:
        self.store, self.log = store, log
        self.memory = StoredMemory(store)
        self.past = PastFacts(store, log)
        verbatim = VerbatimReader(store=store, log=log, policies=TenantPolicies(MemoryPolicy()))
        self.exporter = MemoryExporter(
            store=store, log=log, embedder="hashing", may_show=verbatim.may_be_shown, now=lambda: MOMENT
        )

    async def lines(self, request: ExportRequest, cursor: ExportCursor | None = None) -> list[ExportLine]:
        at = cursor or await self.exporter.begin(request)
        lines = [self.exporter.header(request, at)]
        async for page in self.exporter.pages(request, at):
            lines += page.lines
            at = ExportCursor.read(page.cursor.token(request), request)
        return [*lines, self.exporter.end(at)]

    async def of_kind(self, kind: str, request: ExportRequest = MINE) -> list[Any]:
        return [line.record for line in await self.lines(request) if line.kind == kind]

    async def text(self, request: ExportRequest, form: ExportFormat) -> str:
        at = await self.exporter.begin(request)
        text = opening(form, self.exporter.header(request, at))
        async for page in self.exporter.pages(request, at):
            text += further(form, page.lines)
            at = page.cursor
        return (text + closing(form, self.exporter.end(at))).decode()

    async def everything(self) -> None:
        """Write a record of every kind."""
        fact = await self.past.fact("Works at Stripe", 3)
        episode = await self.memory.episode("Signed the lease", tags=("home",))
        await self.memory.compressed("Signed the lease of the new office in a long sentence")
        await self.memory.digest("Works at Stripe.")
        await self.memory.procedure("Deploy")
        await self.memory.block("Notes", value=HOSTILE)
        await self.memory.task("Call Ana")
        await self.memory.links([fact.fact_id, episode])
        await self.memory.group("team", members=[USER])
        await self.memory.entry("Plan the trip", metadata={"source": "crm"})
        await self.memory.holdings(blocks=["of the session"])
        await self.memory.message("I work at Stripe", turn="t1", message_index=0)
        await self.memory.message("Noted", turn="t1", message_index=1, role="assistant")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    with store_url(tmp_path) as url:
        store = await open_store(url, embedder=HashingEmbedder().identity, holds_folder=True)
        await store.ensure()
        log = EmbeddedLog(folder=tmp_path / "log")
        await log.start()
        await log.create([TopicSpec(topic.name, 3, 1, {}) for topic in (FACTS_UPDATED, OBSERVATIONS)])
        yield Memory(store, log)
        await log.close()
        await store.close()


# ------------------------------------------------------------------------------------------------ content
async def test_every_kind_of_record_is_in_the_export_in_the_order_of_kinds(memory: Memory) -> None:
    await memory.everything()
    lines = await memory.lines(ALL)
    kinds = [line.kind for line in lines]
    assert kinds[0] == "export"
    assert kinds[-1] == "end"
    assert list(dict.fromkeys(kinds[1:-1])) == list(RECORD_KINDS)
    end: Any = lines[-1].record
    assert end.counts == Counter(kinds[1:-1])
    assert set(end.left_out.values()) == {0}


async def test_the_lines_fit_the_schema_and_are_read_as_they_were_written(memory: Memory) -> None:
    await memory.everything()
    ndjson = await memory.text(replace(ALL, embeddings=True), "ndjson")
    lines = ndjson.splitlines()  # splits also at Unicode's line separators
    for name in ("export_line.json", "strict/export_line.json"):
        validator = Draft202012Validator(json.loads((FOLDER / name).read_text()))
        for line in lines:
            assert [error.message for error in validator.iter_errors(json.loads(line))] == []
    assert [ExportLine.read(line).to_line() for line in lines] == lines
    assert json.loads(await memory.text(replace(ALL, embeddings=True), "json")) == [json.loads(line) for line in lines]
    block = next(ExportLine.read(line).record for line in lines if '"kind":"block"' in line)
    assert getattr(block, "value", None) == HOSTILE


async def test_a_fact_has_each_change_with_its_decision_and_both_times(memory: Memory) -> None:
    stored = await memory.past.fact("Works at Stripe", 3, closed_at=NOW, state="superseded", valid_to=NOW)
    [fact] = await memory.of_kind("fact")
    assert fact.fact_id == stored.fact_id
    assert (fact.closed_at, fact.valid_to, fact.recorded_at, fact.evidence) == (NOW, NOW, NOW, stored.evidence)
    changes = await memory.of_kind("fact_change")
    assert [(each.fact.version, each.action) for each in changes] == [
        (1, "new"), (2, "reinforced"), (3, "reinforced")
    ]  # fmt: skip
    assert changes[0].before is None


async def test_a_repeated_event_is_exported_once(memory: Memory) -> None:
    fact = await memory.past.fact("Works at Stripe", 2)
    await memory.past.event(fact, None, "o", NOW)
    assert [each.fact.version for each in await memory.of_kind("fact_change")] == [1, 2]


async def test_embeddings_are_exported_on_request(memory: Memory) -> None:
    await memory.everything()
    [expected] = await memory.memory.embedder.embed(["Works at Stripe"], tenant_id="acme")
    for wanted in (False, True):
        lines = await memory.lines(replace(MINE, embeddings=wanted))
        header: Any = lines[0].record
        assert header.embedder == ("hashing" if wanted else None)
        records: dict[str, Any] = {line.kind: line.record for line in lines}
        for vector in (
            records["fact"].embedding, records["episode"].embedding, records["turn"].messages[0].embedding
        ):  # fmt: skip
            assert (vector is not None) == wanted
    assert records["fact"].embedding == pytest.approx(expected, abs=1e-6)


async def test_conversations_can_be_left_out(memory: Memory) -> None:
    await memory.everything()
    request = replace(MINE, conversations=False)
    assert await memory.of_kind("turn", request) == []
    assert len(await memory.of_kind("fact", request)) == 1


async def test_a_turn_has_all_its_messages_in_order(memory: Memory) -> None:
    for turn in range(60):
        for index in (2, 0, 1):
            await memory.memory.message(f"{turn} {index}", turn=f"t{turn}", message_index=index)
    turns = await memory.of_kind("turn")
    assert sorted(each.turn_id for each in turns) == sorted(f"t{turn}" for turn in range(60))
    for each in turns:
        assert [message.content for message in each.messages] == [f"{each.turn_id[1:]} {index}" for index in range(3)]


async def test_an_empty_memory_is_an_empty_export(memory: Memory) -> None:
    lines = await memory.lines(ExportRequest("nobody"))
    assert [line.kind for line in lines] == ["export", "end"]


async def test_a_store_and_a_log_without_anything_are_an_empty_export(tmp_path: Path) -> None:
    store = await open_store(f"embedded://{tmp_path / 's'}", embedder=HashingEmbedder().identity, holds_folder=True)
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    assert [line.kind for line in await Memory(store, log).lines(MINE)] == ["export", "end"]
    await log.close()
    await store.close()


# ------------------------------------------------------------------------------------------------ whose
async def test_an_owners_export_has_what_belongs_to_the_owner(memory: Memory) -> None:
    await memory.everything()
    for other in (TEAM, Owner(scope="user", id="u2")):
        await memory.past.fact(f"of {other.id}", owner=other, user="u2")
        await memory.memory.episode(f"of {other.id}", owner=other)
    await memory.memory.message("of u2", user="u2")
    lines = await memory.lines(MINE)
    assert "of u2" not in "".join(line.to_line() for line in lines)
    kinds = {line.kind for line in lines}
    assert kinds == {"export", *RECORD_KINDS, "end"} - {"group"}, "a group belongs to no user"
    team = {line.kind for line in await memory.lines(ExportRequest("acme", TEAM))}
    assert team == {"export", "fact", "fact_change", "episode", "group", "end"}


async def test_what_the_caller_may_not_see_is_counted(memory: Memory) -> None:
    await memory.past.fact("Works at Stripe")
    await memory.past.fact("Has the PIN 4711", sensitivity="secret")
    await memory.memory.episode("The PIN is 4711", sensitivity="secret")
    await memory.memory.entry("PIN 4711", sensitivity="secret")
    await memory.memory.block("Pin", value="4711", sensitivity="secret")
    await memory.memory.task("Change the PIN 4711", sensitivity="secret")
    await memory.memory.digest("PIN 4711", sensitivity="secret")
    await memory.memory.message("My PIN is 4711", turn="t1", sensitivity="secret")
    await memory.memory.message("I keep it", turn="t1", message_index=1)
    lines = await memory.lines(MINE)
    text = "".join(line.to_line() for line in lines)
    assert "4711" not in text
    assert "I keep it" in text
    end: Any = lines[-1].record
    assert {kind: count for kind, count in end.left_out.items() if count} == {
        "fact": 1, "fact_change": 1, "episode": 1, "working": 1, "block": 1, "task": 1, "digest": 1, "turn": 1
    }  # fmt: skip
    end = (await memory.lines(replace(MINE, ceiling="secret")))[-1].record
    assert set(end.left_out.values()) == {0}


async def test_secret_blocks_of_a_session_are_counted(memory: Memory) -> None:
    await memory.memory.holdings(blocks=["4711", "plain"])
    found = await memory.store.select("holdings", tenant_id="acme")
    blocks: Any = found[0].payload["blocks"]
    blocks[0]["sensitivity"] = "secret"
    await memory.store.set_payload("holdings", tenant_id="acme", ids=[found[0].id], fields={"blocks": blocks})
    lines = await memory.lines(MINE)
    held: Any = next(line.record for line in lines if line.kind == "holdings")
    end: Any = lines[-1].record
    assert [each.value for each in held.blocks] == ["plain"]
    assert (end.counts["holdings"], end.left_out["block"]) == (1, 1)


async def test_removed_records_need_their_right(memory: Memory) -> None:
    await memory.memory.episode("Removed words", deleted_at=NOW)
    gone = await memory.memory.compressed("Removed words of an archived episode")
    await memory.store.set_payload(
        "episodes", tenant_id="acme", ids=[gone], fields={"deleted_at": "2026-11-20T10:00:00Z"}
    )
    procedure = await memory.memory.procedure("Removed")
    await memory.store.set_payload(
        "procedures", tenant_id="acme", ids=[procedure], fields={"removed_at": "2026-11-20T10:00:00Z"}
    )
    lines = await memory.lines(MINE)
    end: Any = lines[-1].record
    assert [line.kind for line in lines] == ["export", "end"]
    assert (end.left_out["episode"], end.left_out["archive"], end.left_out["procedure"]) == (2, 1, 1)
    kinds = Counter(line.kind for line in await memory.lines(replace(MINE, removed=True)))
    assert (kinds["episode"], kinds["archive"], kinds["procedure"]) == (2, 1, 1)


async def test_archived_words_of_a_forgotten_fact_need_the_right(memory: Memory) -> None:
    words = "The office is in the old mill by the river"
    await memory.memory.compressed(words)
    [archived] = await memory.of_kind("archive")
    evidence = {
        "turn_id": "t1", "session_id": "s1", "observation_id": archived.observation_id,
        "occurred_at": "2026-11-20T10:00:00Z", "quote": words,
    }  # fmt: skip
    await memory.memory.fact(words, state="forgotten", evidence=(evidence,))
    assert await memory.of_kind("archive") == []
    assert len(await memory.of_kind("archive", replace(MINE, removed=True))) == 1


# ------------------------------------------------------------------------------------------------ one moment
async def test_facts_are_as_of_the_moment_whatever_changes_later(memory: Memory) -> None:
    old = await memory.past.fact("Works at Google", 2)
    start = await memory.exporter.begin(MINE)
    later = MOMENT + timedelta(minutes=1)
    closed = old.model_copy(
        update={"state": "superseded", "version": 3, "closed_at": later, "superseded_by": "x", "valid_to": later}
    )
    await memory.past.put(closed)
    await memory.past.event(closed, old.public(), "o", later)
    await memory.past.fact("Works at Stripe")
    lines = await memory.lines(MINE, start)
    facts: list[Any] = [line.record for line in lines if line.kind == "fact"]
    assert [(each.content, each.state, each.version, each.closed_at) for each in facts] == [
        ("Works at Google", "active", 2, None)
    ]
    changes: list[Any] = [line.record for line in lines if line.kind == "fact_change"]
    assert [each.fact.version for each in changes] == [1, 2]


async def test_a_change_between_two_pages_is_undone(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both before the page that has the fact and after it."""
    monkeypatch.setattr(exporting, "PAGE", 1)
    facts = sorted([await memory.past.fact(f"Likes tea {n}") for n in range(4)], key=lambda each: each.fact_id)
    start = await memory.exporter.begin(MINE)
    contents: list[tuple[str, int]] = []
    async for page in memory.exporter.pages(MINE, start):
        for line in page.lines:
            record: Any = line.record
            if line.kind == "fact":
                contents.append((record.content, record.version))
        if len(contents) == 2 and page.cursor.kind == "fact":
            for fact in (facts[0], facts[3]):
                changed = fact.model_copy(update={"content": "changed", "version": 2})
                await memory.past.put(changed)
                await memory.past.event(changed, fact.public(), "o", MOMENT + timedelta(minutes=1))
    assert contents == [(each.content, 1) for each in facts]


async def test_an_event_that_comes_after_its_write_to_the_store_is_waited_for(memory: Memory) -> None:
    old = await memory.past.fact("Works at Google")
    start = await memory.exporter.begin(MINE)
    closed = old.model_copy(update={"state": "superseded", "version": 2, "closed_at": MOMENT + timedelta(seconds=1)})
    await memory.past.put(closed)

    async def publish() -> None:
        await asyncio.sleep(0.2)
        await memory.past.event(closed, old.public(), "o", MOMENT + timedelta(seconds=1))

    publishing = asyncio.create_task(publish())
    facts: list[Any] = [line.record for line in await memory.lines(MINE, start) if line.kind == "fact"]
    await publishing
    assert [(each.state, each.version) for each in facts] == [("active", 1)]


async def test_records_that_began_after_the_moment_are_absent(memory: Memory) -> None:
    later = MOMENT + timedelta(seconds=1)
    await memory.memory.episode("later", recorded_at=later)
    await memory.memory.task("later", created_at=later)
    await memory.memory.block("later", updated_at=later)
    await memory.memory.block("changed", updated_at=later, version=2)
    await memory.memory.message("earlier", turn="t1")
    await memory.memory.message("later", turn="t1", message_index=1, occurred_at=later)
    lines = await memory.lines(MINE)
    assert [getattr(line.record, "name", "") for line in lines[1:-1]] == ["changed"]
    end: Any = lines[-1].record
    assert set(end.left_out.values()) == {0}


# ------------------------------------------------------------------------------------------------ cursors
async def test_from_each_cursor_the_export_continues_as_without_an_interruption(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "PAGE", 2)
    monkeypatch.setattr(exporting, "TURNS_PAGE", 2)
    await memory.everything()
    for n in range(5):
        await memory.past.fact(f"Likes tea {n}", 2)
        await memory.memory.episode(f"Drank tea {n}")
        await memory.memory.message(f"tea {n}")
    start = await memory.exporter.begin(ALL)
    pages = [page async for page in memory.exporter.pages(ALL, start)]
    assert len(pages) > 2 * len(RECORD_KINDS)
    lines = [line.to_line() for page in pages for line in page.lines]
    assert len(set(lines)) == len(lines) == sum(pages[-1].cursor.counts.values())
    assert pages[-1].cursor.counts["fact"] == pages[-1].cursor.counts["episode"] - 1 == 6
    for number, page in enumerate(pages):
        cursor = ExportCursor.read(page.cursor.token(ALL), ALL)
        assert cursor == page.cursor
        rest = [again async for again in memory.exporter.pages(ALL, cursor)]
        assert [each.lines for each in rest] == [each.lines for each in pages[number + 1 :]]
        assert (rest[-1].cursor if rest else cursor) == pages[-1].cursor


async def test_a_cursor_of_another_selection_is_refused(memory: Memory) -> None:
    token = (await memory.exporter.begin(MINE)).token(MINE)
    for other in (
        replace(MINE, tenant_id="rival"), replace(MINE, owner=TEAM), replace(MINE, owner=None),
        replace(MINE, ceiling="secret"), replace(MINE, embeddings=True), replace(MINE, removed=True),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="does not belong"):
            ExportCursor.read(token, other)
    for broken in ("", "x", token[:-3], "é" * 8, "W10", token * 900):
        with pytest.raises(ValueError, match="does not belong"):
            ExportCursor.read(broken, MINE)


async def test_totals_count_what_will_be_read(memory: Memory) -> None:
    await memory.everything()
    totals = await memory.exporter.totals(ALL)
    counts = Counter(line.kind for line in await memory.lines(ALL))
    assert totals == {kind: counts[kind] for kind in RECORD_KINDS if kind != "fact_change"}
