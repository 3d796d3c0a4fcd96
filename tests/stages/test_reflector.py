"""The reflector over the real engine: the effects of turns and commands, and of events that come twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memstream.memory.policies import MemoryPolicy, RoutingPolicy
from memstream.schemas import ids
from memstream.schemas.episodes import EpisodesRecorded, StoredEpisode
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.observations import Evicted
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.topics import COMMANDS, EPISODES_RECORDED, FACTS, FACTS_UPDATED, OBSERVATIONS, RESULTS
from memstream.schemas.turns import Owner
from memstream.streams.engine.crash_points import Step
from memstream.streams.engine.error_boundary import exception_of
from memstream.streams.log.port import Record
from tests.support.embedded_stage import PARTITIONS, Bench, open_bench
from tests.support.record_builders import NOW, OWNER
from tests.support.reflector_world import Talk, command, reflector


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


# ------------------------------------------------------------------------------------------------ publish
async def test_a_log_that_is_away_opens_no_breaker_of_the_store(bench: Bench) -> None:
    away = [Transient("broker", "away") for _ in range(6)]

    async def send(record: OutRecord) -> None:
        assert bench.calls.away() == {}
        if away:
            raise away.pop()
        bench.sent.append(record)

    bench.send_durably = send  # type: ignore[method-assign]
    bench.stage = reflector(bench)
    talk = Talk(bench)
    turn = talk.turn(talk.says("Works at Stripe"))
    while (failure := await exception_of(bench.run(turn))) is not None:
        assert str(failure) == "away"
        assert not bench.calls.breaker_open("store")
    assert bench.calls.away() == {}
    assert [record.topic for record in bench.sent if record.topic == FACTS.name] == [FACTS.name]


# ------------------------------------------------------------------------------------------------ turns
async def test_a_turn_becomes_an_episode_and_a_fact(bench: Bench) -> None:
    said = await Talk(bench).tell("Works at Stripe")
    (event,) = bench.events()
    assert event.fact.fact_id == ids.fact_id(OWNER.key("acme"), said.observation_id)
    assert event.event_id == ids.event_id(event.fact.fact_id, 1)
    assert (event.action, event.before, event.fact.confidence) == ("new", None, 0.8)
    assert event.cause.model == "scripted"
    assert event.cause.observation_ids == (said.observation_id,)
    assert event.decision is not None
    assert (event.decision.stage, event.decision.zone) == ("admit", "COLD")
    (found,) = await bench.store.select("episodes", tenant_id="acme")
    episode = StoredEpisode.from_payload(found.payload)
    assert episode.episode_id == ids.episode_id(said.observation_id)
    assert event.fact.source_episode_ids == (episode.episode_id,)
    (raw,) = bench.values(EPISODES_RECORDED.name)
    recorded = EpisodesRecorded.read(raw)
    assert [each.episode_id for each in recorded.episodes] == [episode.episode_id]
    assert recorded.fact_ids == (event.fact.fact_id,)
    assert recorded.notes_tokens == 4  # fifteen bytes
    header = dict(next(record.headers for record in bench.sent if record.topic == FACTS_UPDATED.name))
    assert header["ce_id"] == event.event_id.encode()
    assert header["ce_subject"] == b"acme/user/u1"
    await bench.agree()


async def test_an_empty_turn_is_told_on_too(bench: Bench) -> None:
    talk = Talk(bench)
    gone = Evicted(entry_id="e", observation_id="o", durability="permanent")
    await bench.run(talk.turn(evicted=(gone,)))
    recorded = EpisodesRecorded.read(bench.values(EPISODES_RECORDED.name)[0])
    assert (recorded.turn_number, recorded.episodes, recorded.evicted_persistent) == (1, (), 1)
    assert bench.events() == []


async def test_a_new_job_replaces_the_old_one(bench: Bench) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    await talk.tell("Works at Stripe", replaces_observation_id=google.observation_id)
    assert bench.actions() == [
        ("new", "Works at Google"),
        ("superseded", "Works at Google"),
        ("new", "Works at Stripe"),
    ]
    rows = await bench.facts()
    old, new = rows["Works at Google"], rows["Works at Stripe"]
    assert (old.state, old.superseded_by, new.supersedes) == ("superseded", new.fact_id, old.fact_id)
    assert old.valid_to == new.valid_from == NOW + timedelta(minutes=2)
    await bench.agree()


async def test_a_correction_was_never_true(bench: Bench) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    await talk.tell("Works at Stripe", replaces_observation_id=google.observation_id, is_correction=True)
    rows = await bench.facts()
    assert rows["Works at Google"].state == "invalidated"
    assert rows["Works at Stripe"].valid_from == rows["Works at Google"].valid_from
    await bench.agree()


async def test_a_retraction_closes_a_fact_and_makes_none(bench: Bench) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    await talk.tell("Left Google", category="event", importance=0.1, replaces_observation_id=google.observation_id)
    (fact,) = (await bench.facts()).values()
    assert (fact.state, fact.superseded_by) == ("superseded", None)
    await bench.agree()


async def test_what_the_user_asks_to_forget_is_forgotten_and_makes_no_episode(bench: Bench) -> None:
    talk = Talk(bench)
    said = await talk.tell("Works at Google")
    await talk.tell("Likes tea")
    before = [point.id for point in await bench.store.select("episodes", tenant_id="acme")]
    await talk.tell("Works at Google", retracts=True, replaces_observation_id=said.observation_id)
    facts = await bench.facts()
    assert {content: fact.state for content, fact in facts.items()} == {
        "Works at Google": "forgotten",
        "Likes tea": "active",
    }
    assert [point.id for point in await bench.store.select("episodes", tenant_id="acme")] == before
    await bench.agree()


async def test_without_the_entry_a_retraction_finds_the_fact_by_its_words(bench: Bench) -> None:
    talk = Talk(bench)
    await talk.tell("Works at Google")
    await talk.tell("Works at Google", retracts=True)
    assert [fact.state for fact in (await bench.facts()).values()] == ["forgotten"]


async def test_a_later_entry_that_only_reinforced_still_leads_to_its_fact(bench: Bench) -> None:
    talk = Talk(bench)
    await talk.tell("Works at Google")
    again = await talk.tell("works at  GOOGLE")
    assert bench.actions()[-1] == ("reinforced", "Works at Google")
    await talk.tell("Works at Stripe", replaces_observation_id=again.observation_id)
    rows = await bench.facts()
    assert rows["Works at Google"].state == "superseded"
    assert (rows["Works at Google"].reinforcement_count, rows["Works at Google"].confidence) == (1, 0.85)
    await bench.agree()


async def test_an_entry_that_became_no_fact_leaves_the_pipeline_alone(bench: Bench) -> None:
    await Talk(bench).tell("Works at Stripe", replaces_observation_id="unknown")
    assert bench.actions() == [("new", "Works at Stripe")]


async def test_a_late_turn_becomes_history(bench: Bench) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    said = talk.says("Works at Stripe", replaces_observation_id=google.observation_id)
    await bench.run(talk.turn(said, occurred_at=NOW - timedelta(days=1)))
    assert bench.actions()[1:] == [("superseded", "Works at Stripe")]
    rows = await bench.facts()
    assert rows["Works at Google"].state == "active"
    late = rows["Works at Stripe"]
    assert (late.state, late.version, late.superseded_by) == ("superseded", 1, None)
    assert late.valid_to == rows["Works at Google"].valid_from
    await bench.agree()


async def test_several_changes_of_one_fact_in_one_turn_are_written_once(bench: Bench) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    again = talk.says("Works at Google")
    stripe = talk.says("Works at Stripe", replaces_observation_id=google.observation_id)
    shopify = talk.says("Works at Shopify", replaces_observation_id=stripe.observation_id)
    await bench.run(talk.turn(again, stripe, shopify))
    assert bench.actions()[1:] == [
        ("reinforced", "Works at Google"),
        ("superseded", "Works at Google"),
        ("new", "Works at Stripe"),
        ("superseded", "Works at Stripe"),
        ("new", "Works at Shopify"),
    ]
    rows = await bench.facts()
    assert (rows["Works at Google"].version, rows["Works at Stripe"].version) == (3, 2)
    assert rows["Works at Shopify"].state == "active"
    await bench.agree()


async def test_saying_it_twice_in_one_turn_is_saying_it_once(bench: Bench) -> None:
    talk = Talk(bench)
    await bench.run(talk.turn(talk.says("Likes tea"), talk.says("likes TEA")))
    assert bench.actions() == [("new", "Likes tea")]


async def test_the_owners_user_is_named_where_no_user_owns(bench: Bench) -> None:
    owner = Owner(scope="org", id="fixpoint")
    for user in ("u1", "u2"):
        await Talk(bench, owner=owner, user_id=user).tell("Likes tea")
    rows = await bench.store.select("facts", tenant_id="acme")
    assert {row.payload["subject"] for row in rows} == {"u1", "u2"}
    episodes = await bench.store.select("episodes", tenant_id="acme")
    assert {row.payload["subject"] for row in episodes} == {"user"}


async def test_two_tenants_and_two_users_never_meet(bench: Bench) -> None:
    people = [
        {"tenant_id": tenant, "user_id": user, "owner": Owner(scope="user", id=user)}
        for tenant in ("acme", "other")
        for user in ("u1", "u2")
    ]
    talks = [Talk(bench, **person) for person in people]
    said = [await talk.tell("Works at Google") for talk in talks]
    await talks[0].tell("Works at Stripe", replaces_observation_id=said[0].observation_id)
    await talks[3].tell("Speaks Dutch", replaces_observation_id=said[0].observation_id)  # another's entry
    for tenant, active in (("acme", 2), ("other", 3)):
        rows = await bench.store.select("facts", tenant_id=tenant)
        assert sum(row.payload["state"] == "active" for row in rows) == active
        await bench.agree(tenant)


@pytest.mark.parametrize("field", ["consolidated_at", "deleted_at"])
async def test_beyond_their_share_the_oldest_episodes_go_that_nobody_needs(bench: Bench, field: str) -> None:
    bench.stage = reflector(bench, MemoryPolicy(routing=RoutingPolicy(episodes_kept=2)))
    talk = Talk(bench)
    said = [await talk.tell(f"Likes tea {n}") for n in range(2)]
    await talk.tell("Likes tea 2")
    assert await bench.store.count("episodes", tenant_id="acme") == 3  # none is consolidated: none goes
    await bench.store.set_payload(
        "episodes",
        tenant_id="acme",
        ids=[ids.episode_id(each.observation_id) for each in said],
        fields={field: "2026-11-21T00:00:00Z"},
    )
    await talk.tell("Likes tea 3")
    left = {row.payload["content"] for row in await bench.store.select("episodes", tenant_id="acme")}
    assert left == {"Likes tea 2", "Likes tea 3"}


# ------------------------------------------------------------------------------------------------ again
@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_killed_and_handed_in_again_it_has_one_effect(bench: Bench, step: Step) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    record = talk.turn(talk.says("Works at Stripe", replaces_observation_id=google.observation_id))
    await bench.killed(record, step)
    await bench.run(record)
    events = {event.event_id: event for event in bench.events()}
    assert sorted((event.action, event.fact.content) for event in events.values()) == [
        ("new", "Works at Google"),
        ("new", "Works at Stripe"),
        ("superseded", "Works at Google"),
    ]
    values: dict[str, set[bytes]] = {}
    for sent in bench.sent:
        if sent.topic in (FACTS_UPDATED.name, EPISODES_RECORDED.name):
            values.setdefault(dict(sent.headers)["ce_id"].decode(), set()).add(sent.value or b"")
    assert all(len(same) == 1 for same in values.values())  # equal in every byte
    rows = await bench.facts()
    assert (rows["Works at Google"].version, rows["Works at Stripe"].version) == (2, 1)


async def test_an_older_event_that_comes_again_is_passed_over(bench: Bench) -> None:
    talk = Talk(bench)
    first = talk.turn(talk.says("Works at Google"))
    await bench.run(first)
    await talk.tell("Likes tea")
    sent, rows = len(bench.sent), dict(bench.rows.rows)
    await bench.run(first)
    copy = Record(first.position.__class__(first.position.topic, first.position.partition, 999), first.key, first.value)
    await bench.run(copy)
    assert len(bench.sent) == sent
    assert bench.rows.rows == rows


class TestPutBack:
    """Turn 2 became a dead letter, turn 3 was reflected, and the letter of turn 2 comes back."""

    async def put_back(self, bench: Bench) -> Record:
        talk = Talk(bench)
        await talk.tell("Likes tea")
        second = talk.turn(talk.says("Works at Stripe"))
        await talk.tell("Likes jazz")
        return bench.record(OBSERVATIONS.name, OWNER.key("acme"), second.value or b"", timestamp=second.timestamp)

    async def test_it_is_reflected_once(self, bench: Bench) -> None:
        letter = await self.put_back(bench)
        await bench.run(letter)
        assert bench.actions() == [("new", "Likes tea"), ("new", "Likes jazz"), ("new", "Works at Stripe")]
        recorded = [EpisodesRecorded.read(value).turn_number for value in bench.values(EPISODES_RECORDED.name)]
        assert recorded == [1, 3, 2]
        sent = len(bench.sent)
        again = bench.record(OBSERVATIONS.name, OWNER.key("acme"), letter.value or b"")
        await bench.run(again)
        assert len(bench.sent) == sent
        await bench.agree()

    @pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
    async def test_killed_it_is_reflected_once(self, bench: Bench, step: Step) -> None:
        letter = await self.put_back(bench)
        await bench.killed(letter, step)
        await bench.run(letter)
        assert {fact.version for fact in (await bench.facts()).values()} == {1}
        assert set(await bench.facts()) == {"Likes tea", "Likes jazz", "Works at Stripe"}
        values = set(bench.values(EPISODES_RECORDED.name))
        assert sorted(EpisodesRecorded.read(raw).turn_number for raw in values) == [1, 2, 3]
        await bench.agree()

    async def test_what_was_said_later_stays(self, bench: Bench) -> None:
        talk = Talk(bench)
        await talk.tell("Works at Google")
        second = talk.turn(talk.says("Works at Stripe"))
        await talk.tell("Works at Shopify")
        await bench.run(bench.record(OBSERVATIONS.name, OWNER.key("acme"), second.value or b""))
        states = {content: fact.state for content, fact in (await bench.facts()).items()}
        assert states["Works at Shopify"] == "active"
        assert states.get("Works at Stripe") != "active"
        await bench.agree()


async def test_a_command_that_comes_twice_is_applied_once(bench: Bench) -> None:
    change = {"action": "new", "subject": "user", "content": "Likes tea", "category": "preference"}
    record = command(bench, change)
    await bench.killed(record, "store")
    await bench.run(command(bench, change))
    assert [event.fact.version for event in {e.event_id: e for e in bench.events()}.values()] == [1]
    assert len(set(bench.values(RESULTS.name))) == 1
    await Talk(bench).tell("Works at Stripe")
    sent = len(bench.sent)
    await bench.run(record)
    assert len(bench.sent) == sent


# ------------------------------------------------------------------------------------------------ commands
async def test_facts_apply_gives_one_verdict_per_change(bench: Bench) -> None:
    talk = Talk(bench)
    google, tea = await talk.tell("Works at Google"), await talk.tell("Likes tea", category="preference")
    cat, dog = (
        await talk.tell("Has a cat", category="attribute"),
        await talk.tell("Lives with a cat", category="attribute"),
    )
    episodes = [ids.episode_id(each.observation_id) for each in (google, tea)]
    fact = {each.content: ids.fact_id(OWNER.key("acme"), each.observation_id) for each in (google, tea, cat, dog)}
    await bench.run(
        command(
            bench,
            {
                "action": "new",
                "subject": "user",
                "content": "Drinks tea at Google",
                "category": "pattern",
                "confidence": 0.5,
                "source_episode_ids": episodes,
            },
            {"action": "reinforce", "target_fact_id": fact["Likes tea"], "source_episode_ids": episodes[1:]},
            {"action": "reinforce", "target_fact_id": fact["Likes tea"], "source_episode_ids": episodes[:1]},
            {
                "action": "update",
                "target_fact_id": fact["Likes tea"],
                "content": "Likes green tea",
                "expected_version": 2,
            },
            {"action": "invalidate", "target_fact_id": fact["Works at Google"], "expected_version": 9},
            {"action": "invalidate", "target_fact_id": fact["Works at Google"]},
            {"action": "prune", "target_fact_id": "nobody"},
            {
                "action": "merge",
                "source_fact_ids": [fact["Has a cat"], fact["Lives with a cat"]],
                "content": "Has one cat",
            },
            {"action": "prune", "target_fact_id": fact["Has a cat"], "expected_version": 1},
            {
                "action": "new",
                "subject": "user",
                "content": "x",
                "category": "pattern",
                "source_episode_ids": ["nobody"],
            },
        )
    )
    assert [change["verdict"] for change in bench.changes()] == [
        "applied",
        "duplicate",
        "applied",
        "applied",
        "applied",
        "stale",
        "unknown",
        "applied",
        "refused",
        "unknown",
    ]
    rows = await bench.facts()
    new = rows["Drinks tea at Google"]
    assert [piece.turn_id for piece in new.evidence] == ["t1", "t2"]
    assert (new.confidence, new.fact_id) == (0.5, ids.fact_id(OWNER.key("acme"), "c1/0"))
    assert rows["Likes green tea"].version == 3
    assert rows["Works at Google"].state == "invalidated"
    assert rows["Lives with a cat"].superseded_by == rows["Has one cat"].fact_id
    event = bench.events()[-1]
    assert (event.cause.command_id, event.cause.run_id, event.cause.model) == ("c1", "r1", "big")
    (found,) = await bench.store.nearest(
        "facts", tenant_id="acme", dense=(await bench.embedder.embed(["Likes green tea"], tenant_id="acme"))[0], limit=1
    )
    assert found.payload["content"] == "Likes green tea"  # a changed text has its own vector
    assert found.score == pytest.approx(1, abs=1e-3)
    await bench.agree()


async def test_other_kinds_are_passed_over_refused_or_dead_letters(bench: Bench) -> None:
    for kind in ("consolidate", "prune", "digest", "hygiene"):
        await bench.run(command(bench, kind=kind, command_id=kind))
    assert bench.sent == []
    await bench.run(command(bench, kind="dance", command_id="c2"))
    await bench.run(command(bench, args={"run_id": "r1", "changes": [{"action": "new"}]}, command_id="c3"))
    assert [(each.command_id, each.status) for each in bench.results()] == [("c2", "refused"), ("c3", "refused")]
    assert bench.results()[1].error is not None
    assert "new needs subject" in bench.results()[1].error.message
    await bench.run(bench.record(COMMANDS.name, "acme/user/u1", b"{"))
    await bench.run(bench.record(COMMANDS.name, "acme/user/u1", b'{"kind": "facts.apply"}'))
    session = {"owner": None, "session": {"user_id": "u1", "session_id": "s1"}}
    await bench.run(command(bench, **session))
    wrong = (command(bench).position.partition + 1) % PARTITIONS
    await bench.run(bench.record(COMMANDS.name, "acme/user/u1", command(bench).value or b"", partition=wrong))
    await bench.run(bench.record(OBSERVATIONS.name, "acme/user/u1", b"\xff"))
    assert bench.refused == ["undecodable", "invalid", "invalid", "invalid", "undecodable"]


async def test_another_owners_facts_are_unknown_to_a_command(bench: Bench) -> None:
    said = await Talk(bench, user_id="u2", owner=Owner(scope="user", id="u2")).tell("Likes tea")
    fact = ids.fact_id("acme/user/u2", said.observation_id)
    await bench.run(command(bench, {"action": "invalidate", "target_fact_id": fact}))
    assert bench.changes()[0]["verdict"] == "unknown"


async def test_what_was_replaced_is_not_proposed_back(bench: Bench) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    await talk.tell("Works at Stripe", replaces_observation_id=google.observation_id)
    stale = {
        "action": "new",
        "subject": "user",
        "content": "works at google",
        "category": "profession",
        "source_episode_ids": [ids.episode_id(google.observation_id)],
    }
    await bench.run(command(bench, stale))
    assert bench.changes()[0]["verdict"] == "stale"
    again = await talk.tell("Works at Google")
    assert again.observation_id != google.observation_id
    assert bench.actions()[-1] == ("new", "Works at Google")  # said anew, an old fact becomes true again
    await bench.agree()


async def test_changes_that_no_outcome_can_hold_are_refused_with_advice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("stage", "turn_group"):
        monkeypatch.setattr(f"memstream.agents.reflector.{module}.MAX_VALUE", 5_000)
    change = {"action": "new", "subject": "user", "category": "pattern"}
    await bench.run(command(bench, *({**change, "content": f"Likes tea {n}"} for n in range(3))))
    result = bench.results()[-1]
    assert result.error is not None
    assert (result.status, result.error.code) == ("refused", "too_large")
    assert await bench.facts() == {}
    talk = Talk(bench)
    with pytest.raises(Poison, match="at most 5000 fit"):
        await bench.run(talk.turn(talk.says("Likes tea"), talk.says("Likes milk")))
