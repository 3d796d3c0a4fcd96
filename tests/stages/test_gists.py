"""Gists over the real engine: the janitor makes them, and the archive keeps the text, returns it and deletes it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import Point
from memstream.memory.policies import GistPolicy, HygienePolicy, MemoryPolicy
from memstream.memory.policies.budget import Tier
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.record_filters import RecordSelection, episodes_filter
from memstream.recall.verbatim import EpisodeRef, VerbatimReader, VerbatimResult
from memstream.schemas import ids
from memstream.schemas.archive import ArchivedText
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.errors import Transient
from memstream.schemas.recall import RecalledRef, RecallReport, RecallReportKind
from memstream.schemas.topics import RECALLED
from memstream.schemas.turns import Owner
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.support.api_server import NoLog
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW, OWNER, episode, stored_fact

LONG = "Ran a marathon in Oslo with Jennifer. " + "The weather was cold and the hills were steep that day. " * 5
GIST = "Ran a marathon in Oslo with Jennifer. The weather was cold and the hills were steep that day. " + (
    "The weather was cold and the hills were steep that day."
)


def days(number: float) -> datetime:
    """Return a time before the bench's now."""
    return NOW + timedelta(days=1) - timedelta(days=number)


class World(Consolidating):
    async def one(self, content: str = LONG, **fields: Any) -> StoredEpisode:
        defaults: dict[str, Any] = {"occurred_at": days(40), "consolidated_at": days(39), "durability": "permanent"}
        made = episode(content, turn=content[:64], **(defaults | fields))
        [dense] = await self.bench.embedder.embed([content], tenant_id="acme")
        await self.bench.store.insert("episodes", [Point(made.episode_id, made.to_payload(), dense, content)])
        return made

    async def now(self, one: StoredEpisode) -> StoredEpisode:
        found = await self.bench.store.get("episodes", tenant_id="acme", ids=[one.episode_id])
        return StoredEpisode.from_payload(found[one.episode_id].payload)

    async def archive(self) -> list[ArchivedText]:
        found = await self.bench.store.select("archive", tenant_id="acme")
        return [ArchivedText.from_payload(each.payload) for each in found]

    async def visit(self, command_id: str = "c1") -> dict[str, Any]:
        """Let the janitor visit; return its counts."""
        await self.bench.run(self.command("hygiene", command_id))
        told = self.bench.results()[-1].result
        assert told is not None
        return {name: told[name] for name in ("compressed", "archive_over")}

    async def rehydrate(self, one: StoredEpisode, *, log: NoLog | None = None, **ref: Any) -> VerbatimResult | None:
        asked = EpisodeRef(**({"tenant_id": "acme", "episode_id": one.episode_id, "ceiling": "secret"} | ref))
        service = VerbatimReader(
            store=self.bench.store,
            log=log or NoLog(),  # type: ignore[arg-type]
            policies=TenantPolicies(MemoryPolicy()),
        )
        return await service.rehydrate(asked, now=NOW)

    def access(
        self, one: StoredEpisode, at: datetime, *, kind: RecallReportKind = "rehydrated", owner: Owner = OWNER
    ) -> Record:
        told = RecallReport(
            recall_id=str(uuid.uuid4()),
            tenant_id="acme",
            owner=owner,
            at=at,
            items=(RecalledRef(tier="episodic", id=one.episode_id, rank=0),),
            kind=kind,
        )
        return self.bench.record(RECALLED.name, told.owner.key("acme"), told)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield World(bench)
    await bench.store.close()


# ------------------------------------------------------------------------------------------------ compressed
async def test_an_old_episode_keeps_a_gist_and_its_words_are_in_the_archive(it: World) -> None:
    old, young = await it.one(), await it.one(LONG + "Slept.", occurred_at=days(20))
    short = await it.one("Swam")
    assert await it.visit() == {"compressed": 1, "archive_over": 0}
    gist = await it.now(old)
    assert gist.content == GIST
    assert gist.archived_at is not None
    assert gist.model_copy(update={"content": LONG, "archived_at": None}) == old, "nothing else of it changed"
    [row] = await it.archive()
    assert (row.content, row.archive_id, row.owner_key) == (LONG, ids.archive_id(old.episode_id), old.owner_key)
    assert (row.sha256, row.archived_at, row.accessed_at) == (ids.text_hash(LONG), gist.archived_at, gist.archived_at)
    assert [await it.now(each) for each in (young, short)] == [young, short]
    where = episodes_filter(RecordSelection("acme", OWNER))
    read = await it.bench.store.select("episodes", tenant_id="acme", where=where)
    assert {each.payload["content"] for each in read} == {GIST, young.content, "Swam"}, "readers have the gist"
    assert await it.visit("c2") == {"compressed": 0, "archive_over": 0}
    assert (await it.now(old), await it.archive()) == (gist, [row])


async def test_it_is_found_by_what_was_said(it: World) -> None:
    old = await it.one("Ran. " + "A " * 120 + "Fjällräven")
    await it.visit()
    assert "Fjällräven" not in (await it.now(old)).content
    found = await it.bench.store.lexical("episodes", tenant_id="acme", text="fjällräven", limit=3)
    assert [each.id for each in found] == [old.episode_id]


async def test_what_is_culled_in_the_same_visit_is_not_compressed(it: World) -> None:
    over = await it.one(occurred_at=days(100), durability="persistent")
    assert await it.visit() == {"compressed": 0, "archive_over": 0}
    assert (await it.now(over)).deleted_at is not None
    assert await it.archive() == []


async def test_a_visit_compresses_a_bounded_number_and_the_next_one_goes_on(it: World) -> None:
    it.build(gist=GistPolicy(at_once=2))
    made = [await it.one(f"{n}. {LONG}") for n in range(3)]
    assert [(await it.visit(f"c{n}"))["compressed"] for n in range(3)] == [2, 1, 0]
    assert {row.episode_id for row in await it.archive()} == {each.episode_id for each in made}


@pytest.mark.parametrize("policy", [{"gist": GistPolicy(enabled=False)}, {"hygiene": HygienePolicy(enabled=False)}])
async def test_where_it_is_off_nothing_is_compressed(it: World, policy: dict[str, Any]) -> None:
    it.build(**policy)
    old = await it.one()
    await it.bench.run(it.command("hygiene"))
    assert await it.now(old) == old
    assert await it.archive() == []


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_loses_no_word(it: World, step: Step) -> None:
    old = await it.one()
    await it.bench.killed(it.command("hygiene"), step)
    assert (await it.now(old)).content == GIST
    assert [row.content for row in await it.archive()] == [LONG]
    told = await it.rehydrate(old)
    assert told is not None
    assert told.content == LONG


async def test_dying_between_the_archive_and_the_gist_leaves_the_words_in_both(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await it.one()
    store = it.bench.store
    real = store.set_payload

    async def dies(*args: Any, **fields: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "set_payload", dies)
    visit = it.command("hygiene")
    with pytest.raises(KeyboardInterrupt):
        await it.bench.run(visit)
    assert (await it.now(old)).content == LONG
    assert [row.content for row in await it.archive()] == [LONG]
    monkeypatch.setattr(store, "set_payload", real)
    await it.bench.run(visit)
    assert (await it.now(old)).content == GIST
    assert [row.content for row in await it.archive()] == [LONG]


# ------------------------------------------------------------------------------------------------ by a model
SHORT = "Ran a marathon in Oslo with Jennifer on a cold day."


def by_model(it: World, text: str, *, tier: Tier = "standard", **gist: Any) -> None:
    it.build(tier=tier, gist=GistPolicy(by="model", **gist))
    it.model.answers["gist"] = lambda shown: {"text": text}


async def test_a_models_gist_is_taken_when_it_says_what_was_said(it: World) -> None:
    by_model(it, f" {SHORT}\n")
    old = await it.one()
    await it.visit()
    assert (await it.now(old)).content == SHORT
    assert [row.content for row in await it.archive()] == [LONG]
    assert it.model.tasks == ["gist"]
    assert LONG.strip() in it.model.asked[0]
    assert (it.row().runs[-1].model, it.row().runs[-1].usage.calls) == ("scripted", 1)


@pytest.mark.parametrize("text", ["", "Ran in 1999.", "Never liked running at all.", SHORT * 5])
async def test_one_that_says_something_else_is_not_and_is_paid_for(it: World, text: str) -> None:
    by_model(it, text)
    old = await it.one()
    await it.visit()
    assert (await it.now(old)).content == GIST
    assert it.row().runs[-1].usage.calls == 1


async def test_a_model_is_asked_so_often_a_visit_and_what_is_secret_it_is_not_shown(it: World) -> None:
    by_model(it, SHORT, calls=1)
    secret = await it.one(LONG + "PIN.", sensitivity="secret", occurred_at=days(60))
    first, second = await it.one(occurred_at=days(50)), await it.one(LONG + "Slept.")
    await it.visit()
    assert [(await it.now(each)).content for each in (secret, first, second)] == [GIST, SHORT, GIST]
    assert len(it.model.asked) == 1


async def test_without_a_model_that_may_be_asked_or_answers_it_is_extracted(it: World) -> None:
    by_model(it, SHORT, tier="free")
    it.model.costs_money = True
    old = await it.one()
    await it.visit()
    assert (await it.now(old)).content == GIST
    assert it.model.asked == []
    by_model(it, SHORT)
    it.model.away = Transient("model", "away")
    for n in range(2):
        await it.one(f"{n}. {LONG}")
    assert await it.visit("c2") == {"compressed": 2, "archive_over": 0}


# ------------------------------------------------------------------------------------------------ given back
async def test_the_words_come_back_and_the_access_is_told_first(it: World) -> None:
    old = await it.one()
    await it.visit()
    log = NoLog()
    told = await it.rehydrate(old, log=log)
    assert told is not None
    assert (told.content, told.sha256, told.nothing) == (LONG, ids.text_hash(LONG), None)
    [(topic, key, value, _)] = log.appended
    access = RecallReport.read(value or b"")
    assert (topic, key, access.kind) == (RECALLED.name, old.owner_key.encode(), "rehydrated")
    assert b"marathon" not in (value or b"")
    log.away = Transient("broker", "away")
    with pytest.raises(Transient):
        await it.rehydrate(old, log=log)


async def test_nothing_comes_back_that_is_not_what_was_put_there(it: World) -> None:
    old = await it.one()
    await it.visit()
    [row] = await it.archive()
    log = NoLog()
    for wrong in ({"content": LONG + "!"}, {"content": "x", "sha256": ids.text_hash("x")}):
        await it.bench.store.set_payload("archive", tenant_id="acme", ids=[row.archive_id], fields=dict(wrong))
        told = await it.rehydrate(old, log=log)
        assert told is not None
        assert (told.content, told.sha256, told.nothing) == (None, None, "damaged")
    assert log.appended == []


async def test_nothing_comes_back_that_is_not_there_or_not_for_who_asks(it: World) -> None:
    old, whole = await it.one(sensitivity="secret"), await it.one("Swam")
    await it.visit()
    told = await it.rehydrate(whole)
    assert told is not None
    assert (told.content, told.nothing) == (None, "whole")
    assert await it.rehydrate(old) is not None
    for ref in (
        {"tenant_id": "rival"},
        {"episode_id": ids.episode_id("another")},
        {"ceiling": "internal"},
        {"sees": lambda owner: owner.id == "u2"},
    ):
        assert await it.rehydrate(old, **ref) is None
    await it.bench.store.set_payload(
        "episodes", tenant_id="acme", ids=[old.episode_id], fields={"deleted_at": "2026-11-20T00:00:00Z"}
    )
    assert await it.rehydrate(old) is None, "culled"


@pytest.mark.parametrize(("state", "given"), [("forgotten", False), ("quarantined", False), ("superseded", True)])
async def test_what_a_forgotten_fact_says_is_not_told_as_an_episode_either(it: World, state: str, given: bool) -> None:
    old = await it.one()
    [fact] = await it.store(stored_fact(LONG, turn=old.turn_id, changes={"state": state}))
    assert fact.evidence[0].observation_id == old.observation_id
    await it.visit()
    assert (await it.rehydrate(old) is not None) is given


# ------------------------------------------------------------------------------------------------ kept and let go
async def test_each_access_is_counted_once_and_keeps_the_words_their_time_anew(it: World) -> None:
    old = await it.one()
    await it.visit()
    access = it.access(old, NOW + timedelta(hours=1))
    await it.bench.killed(access, "table")
    await it.bench.run(it.access(old, NOW + timedelta(hours=1), kind="recalled"))
    await it.bench.run(it.access(old, NOW + timedelta(hours=2), owner=Owner(scope="user", id="u2")))
    [row] = await it.archive()
    assert (row.access_count, row.accessed_at) == (1, max(row.archived_at, NOW + timedelta(hours=1)))
    assert (await it.now(old)).retrieval_count == 2, "a rehydration is a recall of the episode, too"


async def test_words_that_nobody_asked_for_in_their_time_go_and_others_stay(it: World) -> None:
    gone, kept = await it.one(), await it.one(LONG + "Slept.")
    await it.visit()
    for one, at in ((gone, days(366)), (kept, days(364))):
        fields = {"accessed_at": at.isoformat().replace("+00:00", "Z")}
        archive_id = ids.archive_id(one.episode_id)
        await it.bench.store.set_payload("archive", tenant_id="acme", ids=[archive_id], fields=dict(fields))
    assert await it.visit("c2") == {"compressed": 0, "archive_over": 1}
    assert [row.episode_id for row in await it.archive()] == [kept.episode_id]
    told = await it.rehydrate(gone)
    assert told is not None
    assert (told.content, told.nothing) == (None, "gone")
