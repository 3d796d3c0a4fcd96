"""Counts of recalls over the real engine: each recall once, only on the owner's records, with links between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from memstream.adapters.ports import Completions, Point
from memstream.agents.common.tier_spending import TierSpending
from memstream.agents.consolidation.recall_counts import recall_row, recall_row_key
from memstream.agents.consolidation.stage import Consolidation
from memstream.cli.wiring.worker import COLLECTIONS_OF
from memstream.memory.policies import HygienePolicy, MemoryPolicy, RecallPolicy
from memstream.memory.policies.budget import TIERS
from memstream.memory.recall.links import Links
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallService
from memstream.schemas import ids
from memstream.schemas.collections import LINKS
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import StoredFact
from memstream.schemas.links import StoredLinks
from memstream.schemas.recall import RecalledRef, RecallReport, Tier
from memstream.schemas.topics import RECALLED
from memstream.schemas.turns import Owner
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.support.consolidation_world import Scripted
from tests.support.embedded_stage import PARTITIONS, Bench, open_bench
from tests.support.record_builders import NOW, OWNER, episode, stored_fact

KEY = OWNER.key("acme")


class Recalled:
    """Consolidation on the bench, with two records that recalls name."""

    def __init__(self, bench: Bench, **hygiene: Any) -> None:
        self.bench = bench
        self.number = 0
        bench.stage = Consolidation(
            store=bench.store,
            embedder=bench.embedder,
            completions=cast(Completions, Scripted()),
            calls=bench.calls,
            metrics=bench.metrics,
            send_durably=bench.send_durably,
            policies=TenantPolicies(MemoryPolicy(hygiene=HygienePolicy(**hygiene))),
            partitions=PARTITIONS,
            spending=TierSpending(TIERS["standard"], completions_of=lambda task: cast(Completions, Scripted())),
            now=bench.now,
            secrets=SecretFilter(),
        )

    async def fact(self, content: str, **changes: Any) -> StoredFact:
        made = stored_fact(content, turn=content, changes=changes)
        [dense] = await self.bench.embedder.embed([content], tenant_id="acme")
        await self.bench.store.insert("facts", [Point(made.fact_id, made.to_payload(), dense, content)])
        return made

    async def episode(self, content: str, **fields: Any) -> StoredEpisode:
        made = episode(content, turn=content, **fields)
        [dense] = await self.bench.embedder.embed([content], tenant_id="acme")
        await self.bench.store.insert("episodes", [Point(made.episode_id, made.to_payload(), dense, content)])
        return made

    def recall(
        self, *items: tuple[Tier, str], at: datetime = NOW, recall_id: str | None = None, **fields: Any
    ) -> Record:
        self.number += 1
        told = RecallReport(
            recall_id=recall_id or ids.run_id(KEY, str(self.number)),
            tenant_id="acme",
            owner=fields.pop("owner", OWNER),
            at=at,
            items=tuple(RecalledRef(tier=tier, id=identity, rank=n) for n, (tier, identity) in enumerate(items)),
        )
        return self.bench.record(RECALLED.name, told.owner.key("acme"), told, **fields)

    async def fact_now(self, fact: StoredFact) -> StoredFact:
        found = await self.bench.store.get("facts", tenant_id="acme", ids=[fact.fact_id])
        return StoredFact.from_payload(found[fact.fact_id].payload)

    async def episode_now(self, one: StoredEpisode) -> StoredEpisode:
        found = await self.bench.store.get("episodes", tenant_id="acme", ids=[one.episode_id])
        return StoredEpisode.from_payload(found[one.episode_id].payload)

    def weights(self) -> list[float]:
        return [weight for _, _, weight, _ in recall_row(self.bench.rows, KEY).links.unpacked()]

    async def stored(self) -> list[StoredLinks]:
        """Return the links that readers find, of all owners of the tenant."""
        return [
            StoredLinks.from_payload(each.payload) for each in await self.bench.store.select(LINKS, tenant_id="acme")
        ]

    async def read(self, cue: str) -> dict[str, float]:
        """Return what links add to the score in the profile composite, by content."""
        recall = RecallService(
            store=self.bench.store, embedder=self.bench.embedder, policy=RecallPolicy(profile="composite")
        )
        found = await recall.recall(RecallRequest("acme", OWNER, cue=cue), now=NOW)
        assert found.missing == ()
        return {each.item.content: each.item.parts["links"] for each in found.items}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "consolidation")
    await made.store.ensure(*COLLECTIONS_OF["consolidation"])
    yield made
    await made.store.close()


async def test_a_recall_leaves_strength_count_time_and_stability_and_no_version(bench: Bench) -> None:
    it = Recalled(bench)
    fact = await it.fact("Likes tea", strength=0.4, reinforcement_count=3)
    one = await it.episode("Drank tea", strength=0.4)
    await bench.run(it.recall(("semantic", fact.fact_id), ("episodic", one.episode_id)))
    told = await it.fact_now(fact)
    changed = {"strength": 1.0, "retrieval_count": 1, "last_accessed_at": NOW}
    assert told == fact.model_copy(update=changed)
    assert await it.episode_now(one) == one.model_copy(update=changed | {"stability": 21.0})
    assert bench.sent == [], "no event, no version"


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_counts_it_once(bench: Bench, step: Step) -> None:
    it = Recalled(bench)
    fact, one = await it.fact("Likes tea"), await it.episode("Drank tea")
    await bench.killed(it.recall(("semantic", fact.fact_id), ("episodic", one.episode_id)), step)
    [stored] = await it.stored()
    assert stored.packed == recall_row(bench.rows, KEY).links.packed
    await bench.run(it.recall(("semantic", fact.fact_id)))
    assert ((await it.fact_now(fact)).retrieval_count, (await it.episode_now(one)).retrieval_count) == (2, 1)
    assert it.weights() == [0.1]
    assert await it.stored() == [stored]


async def test_the_same_recall_under_another_offset_counts_once(bench: Bench) -> None:
    it = Recalled(bench)
    fact = await it.fact("Likes tea")
    for _ in range(2):
        await bench.run(it.recall(("semantic", fact.fact_id), recall_id=ids.run_id(KEY, "same")))
        await bench.run(it.recall(("semantic", fact.fact_id)))
    assert (await it.fact_now(fact)).retrieval_count == 3


async def test_links_grow_with_each_recall_together_and_count_the_best_alone(bench: Bench) -> None:
    it = Recalled(bench, links_together=2)
    a, b, c = [await it.fact(text) for text in ("Likes tea", "Likes milk", "Likes cake")]
    for _ in range(12):
        await bench.run(it.recall(*[("semantic", each.fact_id) for each in (a, b, c)]))
    assert it.weights() == [1.0]
    assert (await it.fact_now(c)).retrieval_count == 12


async def test_what_was_recalled_together_lifts_each_other_where_the_profile_counts_links(bench: Bench) -> None:
    it = Recalled(bench)
    tea, kettle = await it.fact("Likes green tea"), await it.episode("Bought a kettle in Kyoto")
    await it.fact("Owns an old bicycle")
    assert set((await it.read("green tea")).values()) == {0.0}
    for _ in range(3):
        await bench.run(it.recall(("semantic", tea.fact_id), ("episodic", kettle.episode_id)))
    lifted = await it.read("green tea")
    assert {content for content, part in lifted.items() if part} == {"Likes green tea", "Bought a kettle in Kyoto"}
    assert lifted["Bought a kettle in Kyoto"] == pytest.approx(0.10 * 0.3), "of what is first in every list"


async def test_the_links_of_an_owner_are_one_point_and_are_kept_once_in_the_row(bench: Bench) -> None:
    it = Recalled(bench)
    facts = [("semantic", (await it.fact(text)).fact_id) for text in ("Likes tea", "Likes milk", "Likes cake")]
    for together in (facts[:2], facts):
        await bench.run(it.recall(*cast(list[tuple[Tier, str]], together)))
    [stored] = await it.stored()
    assert (stored.links_id, stored.owner_key) == (ids.links_id(KEY), KEY)
    assert [weight for _, _, weight, _ in Links(packed=stored.packed).unpacked()] == it.weights() == [0.2, 0.1, 0.1]
    assert bench.rows.rows[recall_row_key(KEY)].count(stored.packed[:60].encode()) == 1


async def test_links_that_do_not_change_are_not_written_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    it = Recalled(bench, link_step=0.5)
    a, b = await it.fact("Likes tea"), await it.fact("Likes milk")
    written: list[str] = []
    put = bench.store.put

    async def noted(collection: str, points: Sequence[Point]) -> None:
        written.append(collection)
        await put(collection, points)

    monkeypatch.setattr(bench.store, "put", noted)
    both = [("semantic", each.fact_id) for each in (a, b)]
    for together, times in ((both[:1], 0), (both, 1), (both, 2), (both, 2), (both[1:], 2)):
        at = NOW + timedelta(minutes=it.number)
        await bench.run(it.recall(*cast(list[tuple[Tier, str]], together), at=at))
        assert written == [LINKS] * times
    assert it.weights() == [1.0]
    same = it.recall(*cast(list[tuple[Tier, str]], both))
    for _ in range(2):
        await bench.run(same)
    assert written == [LINKS] * 2


async def test_where_no_links_are_to_be_kept_any_more_readers_find_none(bench: Bench) -> None:
    it = Recalled(bench)
    both = [("semantic", (await it.fact(text)).fact_id) for text in ("Likes tea", "Likes milk")]
    await bench.run(it.recall(*cast(list[tuple[Tier, str]], both)))
    number, it = it.number, Recalled(bench, links_kept=0)
    it.number = number
    await bench.run(it.recall(*cast(list[tuple[Tier, str]], both)))
    assert [each.packed for each in await it.stored()] == [""]


async def test_whatever_the_record_names_only_the_owners_own_records_change(bench: Bench) -> None:
    it = Recalled(bench)
    other = Owner(scope="user", id="u2")
    theirs = await it.fact("Likes tea", owner=other, owner_key=other.key("acme"))
    mine = await it.fact("Likes cake")
    await bench.run(
        it.recall(("semantic", theirs.fact_id), ("semantic", mine.fact_id), ("turns", ids.message_id("s", "t", 0)))
    )
    await bench.run(it.recall(("semantic", "no id of ours")))
    assert (await it.fact_now(theirs)) == theirs
    assert (await it.fact_now(mine)).retrieval_count == 1
    assert it.weights() == []
    assert await it.stored() == []


async def test_a_readers_clock_that_runs_ahead_makes_nothing_fresher_than_now_and_one_behind_nothing_older(
    bench: Bench,
) -> None:
    it = Recalled(bench)
    fact = await it.fact("Likes tea")
    await bench.run(it.recall(("semantic", fact.fact_id), at=NOW + timedelta(days=300)))
    ahead = (await it.fact_now(fact)).last_accessed_at
    assert ahead is not None
    assert ahead <= bench.now()
    await bench.run(it.recall(("semantic", fact.fact_id), at=NOW - timedelta(days=300)))
    assert (await it.fact_now(fact)).last_accessed_at == ahead


async def test_with_hygiene_off_nothing_is_kept_of_recalls(bench: Bench) -> None:
    it = Recalled(bench, enabled=False)
    fact = await it.fact("Likes tea")
    await bench.run(it.recall(("semantic", fact.fact_id)))
    assert await it.fact_now(fact) == fact
    assert bench.rows.rows == {}


async def test_what_is_no_recall_is_a_dead_letter(bench: Bench) -> None:
    it = Recalled(bench)
    await bench.run(bench.record(RECALLED.name, KEY, b"{}"))
    misplaced = it.recall(
        ("semantic", ids.fact_id(KEY, "x")), partition=(bench.record("x", KEY, b"").position.partition + 1) % PARTITIONS
    )
    await bench.run(misplaced)
    assert bench.refused == ["invalid", "invalid"]
    assert bench.stage.writes_dead_letters(RECALLED.name)
