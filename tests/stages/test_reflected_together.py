"""Observed turns of one owner that the reflector decides together: they have the effects that they have one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from qdrant_client import models

from memstream.agents.reflector import turn_group
from memstream.agents.reflector.fact_overlay import FEW, FactLook, FactOverlay
from memstream.agents.reflector.rows import LedgerRow
from memstream.agents.reflector.stage import Reflector
from memstream.memory.facts.transitions import Stamp, forget
from memstream.memory.policies import MemoryPolicy, RoutingPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.schemas import ids
from memstream.schemas.base import Contract
from memstream.schemas.episodes import EpisodesRecorded
from memstream.schemas.facts import Decision, Fact, FactUpdated, StoredFact
from memstream.schemas.observations import AppliedPolicy, Observation
from memstream.schemas.topics import EPISODES_RECORDED, FACTS, FACTS_UPDATED, OBSERVATIONS
from memstream.schemas.turns import Owner
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record
from tests.support.embedded_stage import PARTITIONS, Bench, open_bench
from tests.support.record_builders import NOW, observation, observed, statement
from tests.support.reflector_world import MODEL, Talk, command, reflector
from tests.support.stage_harness import Kill, StageHarness, Topics

SAID = ("Works at Google", "Works at Stripe", "Works at Shopify", "Likes tea", "Likes green tea", "Lives in Berlin")


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Bench, Bench]]:
    """Two benches with the same time."""
    benches = [await open_bench(tmp_path / name, "reflector") for name in ("alone", "together")]
    for bench in benches:
        bench.now = lambda: NOW + timedelta(days=1)  # type: ignore[assignment]
        bench.stage = reflector(bench)
    yield benches[0], benches[1]
    for bench in benches:
        await bench.store.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


@dataclass
class Sessions:
    """Observed turns of a user's sessions."""

    user: str
    tenant: str = "acme"
    numbers: dict[str, int] = field(default_factory=dict)

    def says(self, session: str, content: str, **fields: Any) -> Observation:
        named = ids.session_key(self.tenant, self.user, session)
        return observation(content, turn=f"t{self.numbers.get(session, 0) + 1}", session=named, **fields)

    def turn(self, session: str, *said: Observation, **fields: Any) -> Contract:
        n = self.numbers[session] = self.numbers.get(session, 0) + 1
        owner = Owner(scope="user", id=self.user)
        named = {"turn": f"t{n}", "number": n, "cause": MODEL, "user_id": self.user, "session_id": session}
        return observed(*said, **(named | {"tenant_id": self.tenant, "owner": owner} | fields))


def some_turns(user: str, seed: int) -> list[Contract]:
    """Return turns of two sessions: new values, repetitions, corrections, retractions, tasks, late and empty ones."""
    random, talk = Random(seed), Sessions(user)
    made: list[Contract] = []
    known: list[str] = []
    for n in range(random.randrange(2, 8)):
        session = random.choice(("s1", "s1", "s2"))
        said = []
        for content in random.sample(SAID, random.choice((0, 1, 1, 2))):
            fields: dict[str, Any] = {}
            if known and random.random() < 0.4:
                fields["replaces_observation_id"] = random.choice(known)
                fields["is_correction"] = random.random() < 0.3
            elif random.random() < 0.15:
                fields["retracts"] = True
            said.append(talk.says(session, content, **fields))
        if random.random() < 0.3:
            due = NOW + timedelta(days=30 + n)
            said.append(talk.says(session, f"Call {n}", category="task", due_at=due, durability="transient"))
        known += [each.observation_id for each in said]
        late = {"occurred_at": NOW - timedelta(days=9)} if random.random() < 0.2 else {}
        made.append(talk.turn(session, *said, **late))
    if random.random() < 0.4:
        made.insert(random.randrange(1, len(made) + 1), made[0])  # comes twice
    return made


def delivered(bench: Bench, turns: Sequence[Any]) -> list[Record]:
    return [bench.record(OBSERVATIONS.name, each.owner.key(each.tenant_id), each) for each in turns]


async def effects(bench: Bench, user: str) -> dict[str, Any]:
    """Return all effects of the turns of a user."""
    key = Owner(scope="user", id=user).key("acme")
    rows = {name: value for name, value in bench.rows.rows.items() if key in name}
    ledger = json.loads(rows.pop(key))
    del ledger["last"]
    found: dict[str, Any] = {"ledger": ledger, "rows": rows}
    for collection in ("facts", "episodes", "tasks"):
        points = await bench.store.select(collection, tenant_id="acme")
        found[collection] = {each.id: each.payload for each in points if each.payload["owner_key"] == key}
    for topic in (FACTS_UPDATED.name, EPISODES_RECORDED.name):
        found[topic] = [(record.key, record.value, record.headers) for record in bench.sent if record.topic == topic]
    found[FACTS.name] = {record.key: record.value for record in bench.sent if record.topic == FACTS.name}
    return found


@pytest.mark.parametrize("asks_singly", [False, True])
async def test_together_and_one_by_one_they_have_the_same_effects(
    two: tuple[Bench, Bench], monkeypatch: pytest.MonkeyPatch, asks_singly: bool
) -> None:
    """`asks_singly`: one by one the store is asked about each statement, when it is needed, and not once for all."""
    alone, together = two
    actions: set[str] = set()
    for seed in range(40):
        user = f"user{seed}"
        turns = some_turns(user, seed)
        for bench in two:
            bench.sent.clear()
            bench.covered.clear()
        with monkeypatch.context() as changed:
            if asks_singly:
                changed.setattr(FactOverlay, "look", lambda *_, **__: asyncio.sleep(0))
            for record in delivered(alone, turns):
                await alone.run(record)
        await together.run_together(delivered(together, turns))
        assert len(together.covered) == len(turns) - 1
        found = await effects(together, user)
        assert found == await effects(alone, user), f"seed {seed}"
        actions |= {FactUpdated.read(value).action for _, value, _ in found[FACTS_UPDATED.name]}
    assert actions >= {"new", "reinforced", "superseded", "invalidated", "forgotten", "updated"}


async def test_each_changed_row_is_written_once_and_has_the_cause_of_each_turn(bench: Bench) -> None:
    talk = Talk(bench)
    turns = [talk.turn(talk.says("Works at Stripe")) for _ in range(3)]
    swaps = []
    swap = bench.store.compare_and_set

    async def counted(collection: str, point: Any, *, expected_version: int | None, cause: str) -> Any:
        swaps.append((expected_version, cause))
        return await swap(collection, point, expected_version=expected_version, cause=cause)

    bench.store.compare_and_set = counted  # type: ignore[method-assign]
    await bench.run_together(turns)
    (fact,) = (await bench.facts()).values()
    session = ids.session_key("acme", "u1", "s1")
    causes = [ids.observed_id(session, f"t{n}") for n in (1, 2, 3)]
    assert (fact.version, list(fact.applied)) == (3, causes)
    assert swaps == [(None, causes[-1])]
    assert [event.fact.version for event in bench.events()] == [1, 2, 3]
    await bench.agree()


async def test_a_row_that_an_earlier_turn_changed_last_has_its_cause(bench: Bench) -> None:
    talk = Talk(bench)
    await bench.run_together([talk.turn(talk.says("Likes tea")), talk.turn(talk.says("Lives in Berlin"))])
    session = ids.session_key("acme", "u1", "s1")
    applied = {content: fact.applied for content, fact in (await bench.facts()).items()}
    assert applied == {
        "Likes tea": (ids.observed_id(session, "t1"),),
        "Lives in Berlin": (ids.observed_id(session, "t2"),),
    }


async def test_the_store_is_asked_once(bench: Bench) -> None:
    """An owner without facts is asked for some; one that has facts for all that matters, and the nearest."""
    asked: list[list[models.QueryRequest]] = []
    query = bench.store._engine.query_batch_points

    async def counted(collection: str, requests: list[models.QueryRequest], **fields: Any) -> Any:
        asked.append(requests)
        return await query(collection, requests, **fields)

    bench.store._engine.query_batch_points = counted  # type: ignore[method-assign]
    talk = Talk(bench)
    google = talk.says("Works at Google")
    first = [talk.turn(google), talk.turn(talk.says("Likes tea")), talk.turn(talk.says("Lives in Berlin"))]
    await bench.run_together(first)
    assert [[request.query is None for request in each] for each in asked] == [[True]]
    asked.clear()
    later = [
        talk.turn(talk.says("Works at Stripe", replaces_observation_id=google.observation_id)),
        talk.turn(talk.says("Lives in Rome"), talk.says("Likes tea")),
    ]
    await bench.run_together(later)
    assert [[request.query is None for request in each] for each in asked] == [[True, False, False, False]]
    assert ("superseded", "Works at Google") in bench.actions()
    assert ("reinforced", "Likes tea") in bench.actions()


async def test_the_vector_of_a_text_that_is_said_again_is_not_read(bench: Bench) -> None:
    reads: list[Sequence[str]] = []
    get = bench.store.get

    async def counted(collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False) -> Any:
        if with_dense:
            reads.append(ids)
        return await get(collection, tenant_id=tenant_id, ids=ids, with_dense=with_dense)

    talk = Talk(bench)
    await talk.tell("Likes tea")
    (fact,) = (await bench.facts()).values()
    before = (await get("facts", tenant_id="acme", ids=[fact.fact_id], with_dense=True))[fact.fact_id]
    bench.store.get = counted  # type: ignore[method-assign]
    await talk.tell("Likes tea")
    assert reads == []
    after = (await get("facts", tenant_id="acme", ids=[fact.fact_id], with_dense=True))[fact.fact_id]
    assert (after.dense, after.payload["version"]) == (before.dense, 2)
    await talk.tell("Works at Google", replaces_observation_id=fact.evidence[0].observation_id)
    assert reads == [[fact.fact_id]]


async def test_a_nearest_fact_that_is_closed_meanwhile_gives_way_to_the_next(bench: Bench) -> None:
    talk = Talk(bench)
    for content in ("Likes green tea", "Likes tea from Japan", "Likes black tea from India"):
        await talk.tell(content)
    overlay = FactOverlay(store=bench.store, calls=bench.calls, tenant_id="acme", owner_key="acme/user/u1")
    said = statement("Likes green tea a lot")
    [dense] = await bench.embedder.embed([said.content], tenant_id="acme")
    await overlay.look([FactLook(said, dense=dense, limit=1)], may_be_new=False)
    [first] = await overlay.near(said, dense, limit=1)
    assert first.fact.content == "Likes green tea"
    stamp = Stamp(now=NOW, cause="c", embedder="hashing")
    overlay.change(forget(first.fact, stamp, reason="", decision=Decision(stage="admit")), cause="c")
    [second] = await overlay.near(said, dense, limit=1)
    assert second.fact.content == "Likes tea from Japan"


async def test_a_fact_is_found_by_its_observation_although_its_evidence_names_others(bench: Bench) -> None:
    said = await Talk(bench).tell("Likes tea")
    (fact,) = (await bench.facts()).values()
    await bench.store.set_payload("facts", tenant_id="acme", ids=[fact.fact_id], fields={"evidence": []})
    overlay = FactOverlay(store=bench.store, calls=bench.calls, tenant_id="acme", owner_key="acme/user/u1")
    await overlay.look([FactLook(statement("Likes milk"), said.observation_id)], may_be_new=False)
    found = await overlay.of_observation(said.observation_id)
    assert found is not None
    assert found.fact_id == fact.fact_id


async def test_each_of_many_facts_is_found_of_an_owner_that_seems_to_have_none(bench: Bench) -> None:
    """The ledger of the owner is lost: it knows of no change."""
    talk = Talk(bench)
    liked = ("tea", "jazz", "milk", "cats", "rain", "golf", "opera", "cheese", "chess", "tents", "bikes", "poetry")
    said = [await talk.tell(f"Likes {what}") for what in liked]
    assert len(await bench.facts()) == len(said) > FEW
    bench.rows.rows.clear()
    for each in said:
        overlay = FactOverlay(store=bench.store, calls=bench.calls, tenant_id="acme", owner_key="acme/user/u1")
        await overlay.look([FactLook(statement("Lives in Rome"), each.observation_id)], may_be_new=True)
        found = await overlay.of_observation(each.observation_id)
        assert found is not None
        assert found.content == each.content


async def test_all_texts_are_embedded_in_one_call(bench: Bench) -> None:
    calls: list[Sequence[str]] = []
    embed = bench.embedder.embed

    async def counted(texts: Sequence[str], *, tenant_id: str) -> Any:
        calls.append(texts)
        return await embed(texts, tenant_id=tenant_id)

    bench.embedder.embed = counted  # type: ignore[method-assign]
    talk = Talk(bench)
    await bench.run_together([talk.turn(talk.says(content)) for content in (*SAID[:2], SAID[0])])
    assert calls == [list(SAID[:2])]


async def test_a_command_and_a_second_turn_of_one_id_go_by_themselves(bench: Bench) -> None:
    talk = Talk(bench)
    tea, jazz, milk, cats = (talk.turn(talk.says(f"Likes {what}")) for what in ("tea", "jazz", "milk", "cats"))
    await bench.run(tea, ahead=[jazz, command(bench), milk])
    assert bench.covered == [jazz]
    again = talk.turn(talk.says("Likes milk"), turn="t3")
    await bench.run(milk, ahead=[cats, again])
    assert bench.covered == [jazz, cats]


async def test_at_most_so_many_are_taken(bench: Bench) -> None:
    talk = Talk(bench)
    turns = [talk.turn(talk.says(f"Likes tea {n}")) for n in range(turn_group.TOGETHER_MAX + 3)]
    await bench.run(turns[0], ahead=turns[1:])
    assert bench.covered == turns[1 : turn_group.TOGETHER_MAX + 1]


async def test_large_turns_are_decided_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is limited by the bytes of its records, so that it need not be decided again with fewer turns."""
    talk, groups = Talk(bench), []
    decide = turn_group.TurnDecider._decide

    async def counted(self: Any, turns: Any, row: Any, rows: Any) -> Any:
        groups.append(len(turns))
        return await decide(self, turns, row, rows)

    monkeypatch.setattr(turn_group.TurnDecider, "_decide", counted)
    turns = []
    for n in range(8):
        texts = [f"Likes tea {n}/{part} " + f"word{n}x{part} " * 100 for part in range(8)]
        said = [talk.says(text, evidence=text[:400]) for text in texts]
        turns.append(talk.turn(*said))
    await bench.run_together(turns)
    assert sum(groups) == len(turns), groups
    assert max(groups) > 1


async def test_an_outcome_that_is_too_large_together_has_fewer_turns(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(bench)
    said = ("Likes tea", "Likes jazz", "Likes milk", "Likes cats", "Likes rain", "Likes golf")
    turns = [talk.turn(talk.says(content)) for content in said]
    await bench.run(turns[0])
    one = len(bench.rows.rows["acme/user/u1"])
    monkeypatch.setattr(turn_group, "TOGETHER_BYTES", int(one * 2.5))
    monkeypatch.setattr(turn_group, "MAX_VALUE", int(one * 2.5))
    await bench.run_together(turns[1:])
    assert bench.covered == [turns[2], turns[5]]
    assert [event.fact.content for event in bench.events()] == list(said)
    rows = LedgerRow.read(bench.rows.rows["acme/user/u1"])
    assert (rows.turns, rows.episodes, rows.changes) == (6, 6, 6)
    counted = bench.metrics._metrics.fact_actions.labels("new")._value.get()
    assert counted == 6  # what was decided and not kept is not counted


async def test_each_turn_keeps_the_policy_that_it_was_observed_by(bench: Bench) -> None:
    talk = Talk(bench)
    higher = AppliedPolicy(settings={"routing.significance": 0.9})
    by_it = MODEL.model_copy(update={"applied": higher})
    turns = [
        talk.turn(talk.says("Likes tea")),
        talk.turn(talk.says("Likes jazz"), cause=by_it),
        talk.turn(talk.says("Likes milk")),
    ]
    await bench.run_together(turns)
    found = await bench.store.select("episodes", tenant_id="acme")
    assert {each.payload["content"] for each in found} == {"Likes tea", "Likes milk"}
    recorded = [EpisodesRecorded.read(value) for value in bench.values(EPISODES_RECORDED.name)]
    assert [(each.turn_number, len(each.episodes)) for each in recorded] == [(1, 1), (2, 0), (3, 1)]


async def test_they_make_room_for_their_episodes(bench: Bench) -> None:
    bench.stage = reflector(bench, MemoryPolicy(routing=RoutingPolicy(episodes_kept=3)))
    talk = Talk(bench)
    await bench.run_together([talk.turn(talk.says(f"Likes tea {n}")) for n in range(3)])
    stored = await bench.store.select("episodes", tenant_id="acme")
    done = {"consolidated_at": "2026-11-21T00:00:00Z"}
    await bench.store.set_payload("episodes", tenant_id="acme", ids=[each.id for each in stored], fields=done)
    await bench.run_together([talk.turn(talk.says(f"Likes tea {n}")) for n in (3, 4)])
    left = {each.payload["content"] for each in await bench.store.select("episodes", tenant_id="acme")}
    assert left == {"Likes tea 2", "Likes tea 3", "Likes tea 4"}


async def test_beyond_the_owners_share_of_tasks_the_last_are_skipped(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memstream.agents.reflector.observed_tasks.TASKS_MAX", 2)
    talk = Talk(bench)

    def task(n: int) -> Record:
        due = NOW + timedelta(days=n + 1)
        return talk.turn(talk.says(f"Call {n}", category="task", due_at=due, durability="transient"))

    await bench.run_together([task(n) for n in range(3)])
    stored = await bench.store.select("tasks", tenant_id="acme")
    assert sorted(each.payload["content"] for each in stored) == ["Call 0", "Call 1"]


# ------------------------------------------------------------------------------------------------ kills
def harness_of(bench: Bench) -> StageHarness:
    def make(harness: StageHarness) -> Reflector:
        return Reflector(
            store=bench.store,
            embedder=bench.embedder,
            calls=harness.calls,
            metrics=harness.metrics,
            send_durably=harness.send_durably,
            policies=TenantPolicies(MemoryPolicy()),
            partitions=PARTITIONS,
            now=bench.now,
            secrets=SecretFilter(),
        )

    return StageHarness(name="reflector", make=make)


def killed_turns(user: str) -> list[Record]:
    """Two sessions, three turns: a fact, its successor, and a repetition of that with something new."""
    topics, talk = Topics(), Sessions(user)
    google = talk.says("s1", "Works at Google")
    turns = [
        talk.turn("s1", google),
        talk.turn("s2", talk.says("s2", "Works at Stripe", replaces_observation_id=google.observation_id)),
        talk.turn("s1", talk.says("s1", "Works at Stripe"), talk.says("s1", "Likes tea")),
    ]
    key = Owner(scope="user", id=user).key("acme").encode()
    partition = partition_for(key, PARTITIONS)
    return [topics.record(OBSERVATIONS.name, key, each.to_bytes(), partition=partition) for each in turns]


async def what_is_there(harness: StageHarness, bench: Bench, user: str) -> dict[str, Any]:
    """Return the state of a user in table, store and topics, each event once."""
    key = Owner(scope="user", id=user).key("acme")
    row = LedgerRow.read(harness.rows.changelog[key])
    stored = [StoredFact.from_payload(each.payload) for each in await bench.store.select("facts", tenant_id="acme")]
    facts = {each.fact_id: each for each in stored if each.owner_key == key}
    states = {record.key: Fact.read(record.value or b"") for record in harness.on(FACTS.name)}
    assert {each.fact_id: each for each in states.values()} == {each.fact_id: each.public() for each in facts.values()}
    events = [FactUpdated.read(value or b"") for value in harness.once(FACTS_UPDATED.name).values()]
    recorded = [EpisodesRecorded.read(value or b"") for value in harness.once(EPISODES_RECORDED.name).values()]
    episodes = await bench.store.select("episodes", tenant_id="acme")
    return {
        "row": (row.turns, row.episodes, row.changes),
        "facts": {each.content: (each.state, each.version, len(each.applied)) for each in facts.values()},
        "events": [(each.action, each.fact.content, each.fact.version) for each in events],
        "recorded": [(each.session_id, each.turn_number, len(each.fact_ids)) for each in recorded],
        "episodes": sorted(each.payload["content"] for each in episodes if each.payload["owner_key"] == key),
        "sessions": sorted(name.rpartition("/")[2] for name in harness.rows.changelog if name.startswith(f"{key}/")),
    }


@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.parametrize("empty_folder", [False, True])
async def test_after_a_kill_at_any_step_all_have_their_effects_once(
    bench: Bench, empty_folder: bool, from_start: bool
) -> None:
    whole = harness_of(bench)
    await whole.run(killed_turns("whole"), together=True)
    assert len(whole.covered) == 2
    expected = await what_is_there(whole, bench, "whole")
    assert expected["facts"] == {
        "Works at Google": ("superseded", 2, 2),
        "Works at Stripe": ("active", 2, 2),
        "Likes tea": ("active", 1, 1),
    }
    assert {"local acme/user/whole", "before store", "state published", "commit"} <= set(whole.steps)
    for at in range(1, len(whole.steps) + 1):
        user, kill = f"user{at}", Kill(at, empty_folder=empty_folder, from_start=from_start)
        harness = harness_of(bench)
        await harness.run(killed_turns(user), kill=kill, together=True)
        assert harness.step is not None
        harness.check_equal_bytes((FACTS_UPDATED.name, EPISODES_RECORDED.name))
        assert await what_is_there(harness, bench, user) == expected, harness.step


async def test_what_was_covered_and_not_committed_is_passed_over(bench: Bench) -> None:
    first, second, third = killed_turns("covered")
    harness = harness_of(bench)
    await harness.deliver(first, ahead=[second, third])
    sent, rows = len(harness.sent), dict(harness.rows.changelog)
    harness.start()
    await harness.deliver(second, ahead=[third])
    await harness.deliver(third)
    assert (len(harness.sent), harness.rows.changelog) == (sent, rows)
