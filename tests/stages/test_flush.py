"""`flush_important`: what counts of a working set becomes episodes, once, wherever observer and reflector die."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.policies import (
    MemoryPolicy,
    ObservePolicy,
    RoutingPolicy,
    SessionLogPolicy,
    TiersPolicy,
    WorkingSetPolicy,
)
from memstream.schemas.commands import Command, CommandResult, EpisodesKeep
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.topics import COMMANDS, EPISODES_RECORDED, OBSERVATIONS
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.support.embedded_stage import Bench, Killed, open_bench
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import AwayModel, ObserverWorld, deferred, item
from tests.support.openai_bodies import OBSERVATION
from tests.support.record_builders import NOW, observation
from tests.support.reflector_world import Talk, command, reflector
from tests.support.stage_harness import kills

POLICY = MemoryPolicy(
    observe=ObservePolicy(patience=0.001, together=2), working=WorkingSetPolicy(capacity=3, max_pinned=1)
)
ALONE = MemoryPolicy(tiers=TiersPolicy(episodic=False, semantic=False, digest=False))


class Moody:
    """Two statements about every turn, one that counts and one that does not; never the same twice."""

    def __call__(self, ask: Ask) -> Answer:
        return {
            "observations": [
                {
                    **OBSERVATION,
                    "turn": name,
                    "subject": "word",
                    "content": f"Answer {ask.number} about {name}, {importance}",
                    "evidence": "very plain word",
                    "importance": importance,
                    "durability": "session",
                }
                for name in ask.turns
                for importance in (0.3, 0.8)
            ]
        }


def sent(world: ObserverWorld) -> list[Command]:
    """What the observer has the reflector keep, each command once."""
    return [Command.read(value or b"") for value in world.harness.once(COMMANDS.name).values()]


def kept(commands: Sequence[Command]) -> list[tuple[str, str]]:
    """(owner, content)"""
    args = [(each.key, EpisodesKeep.from_payload(each.args)) for each in commands]
    return sorted((key, one.observation.content) for key, each in args for one in each.observations)


def told(result: CommandResult) -> dict[str, Any]:
    assert result.result is not None
    return {name: value for name, value in result.result.items() if name != "command_ids"}


class TestObserver:
    async def test_what_counts_is_sent_to_the_reflector_and_the_result_names_it(self) -> None:
        world = ObserverWorld(Moody(), policy=POLICY)
        await world.deliver(
            world.turn("a very plain word"), world.turn("b very plain word", "t2", scope="agent", agent_id="bot")
        )
        await world.deliver(world.command("c1", "flush_important"))
        commands = sent(world)
        assert kept(commands) == [
            ("acme/agent/bot", "Answer 2 about t1, 0.8"),
            ("acme/user/u1", "Answer 1 about t1, 0.8"),
        ]
        (result,) = world.results()
        assert (result.status, result.error) == ("applied", None)
        assert result.result == {
            "waiting": 0, "entries": 2, "left": 0, "command_ids": [each.command_id for each in commands]
        }  # fmt: skip
        assert [(each.issued_by, each.expires_at) for each in commands] == [("/memstream/observer", None)] * 2
        assert len(world.working()) == len(world.projected()) == 3, "the working set stays"

    @pytest.mark.parametrize(
        ("policy", "args", "entries"),
        [
            (POLICY, {}, 1),
            (POLICY, {"threshold": 0.3}, 2),
            (POLICY, {"threshold": 0.9}, 0),
            (POLICY, {"threshold": None}, 1),
            (MemoryPolicy(session_log=SessionLogPolicy(flush_threshold=0.1)), {}, 2),
        ],
    )
    async def test_the_threshold_is_the_callers_else_the_policys(
        self, policy: MemoryPolicy, args: dict[str, Any], entries: int
    ) -> None:
        world = ObserverWorld(Moody(), policy=policy)
        await world.deliver(world.turn("a very plain word"), world.command("c1", "flush_important", args=args))
        assert (len(kept(sent(world))), told(world.results()[0])["entries"]) == (entries, entries)

    async def test_what_is_unobserved_is_observed_first(self) -> None:
        model = AwayModel([item("t1", "Likes tea"), item("t2", "Likes jazz", importance=0.6)])
        world = await deferred(model, "a very plain word", "b very plain word")
        await world.deliver(world.command("c1", "flush_important"))
        assert [content for _, content in kept(sent(world))] == ["Likes jazz", "Likes tea"]
        assert told(world.results()[0]) == {"waiting": 0, "entries": 2, "left": 0}

    async def test_while_the_model_is_away_what_is_known_is_sent_and_what_waits_is_told(self) -> None:
        model = AwayModel([item("t1", "Likes tea", "a fine word")])
        world = ObserverWorld(model, policy=MemoryPolicy(observe=ObservePolicy(patience=0.001)))
        await world.deliver(world.turn("a fine word", "t0"))
        model.away = {"very plain word"}
        await world.deliver(world.turn("a very plain word"), world.command("c1", "flush_important"))
        assert [content for _, content in kept(sent(world))] == ["Likes tea"]
        assert told(world.results()[0]) == {"waiting": 1, "entries": 1, "left": 0}
        model.away, model.answers = set(), [[item("t1", "Likes jazz")]]
        await world.deliver(world.command("c2", "flush_important"))
        assert told(world.results()[1]) == {"waiting": 0, "entries": 2, "left": 0}

    @pytest.mark.parametrize("threshold", [-0.1, 1.1, "much", []])
    async def test_what_is_no_threshold_is_refused(self, threshold: Any) -> None:
        world = ObserverWorld(Moody(), policy=POLICY)
        await world.deliver(
            world.turn("a very plain word"), world.command("c1", "flush_important", args={"threshold": threshold})
        )
        (result,) = world.results()
        assert (result.status, result.error and result.error.code) == ("refused", "invalid_args")
        assert sent(world) == []

    async def test_where_nobody_keeps_episodes_it_is_refused_with_the_setting(self) -> None:
        world = ObserverWorld(Moody(), policy=ALONE)
        await world.deliver(world.turn("a very plain word"), world.command("c1", "flush_important"))
        (result,) = world.results()
        assert result.error is not None
        assert (result.status, result.error.code) == ("refused", "tier_off")
        assert result.error.message.endswith("memory.tiers.episodic")
        assert sent(world) == []
        world.policy = POLICY  # the tier is on again: of what was said meanwhile nobody was told
        world.harness.start()
        await world.deliver(world.command("c2", "flush_important", args={"threshold": 0}))
        assert told(world.results()[1]) == {"waiting": 0, "entries": 0, "left": len(world.working())}

    async def test_one_that_has_expired_does_nothing(self) -> None:
        world = ObserverWorld(Moody(), policy=POLICY)
        await world.deliver(world.turn("a very plain word"), world.command("c1", "flush_important", expires_at=NOW))
        assert ([each.status for each in world.results()], sent(world)) == (["expired"], [])

    async def test_a_flush_that_comes_twice_is_answered_once_and_two_flushes_twice(self) -> None:
        world = ObserverWorld(Moody(), policy=POLICY)
        await world.deliver(world.turn("a very plain word"), world.command("c1", "flush_important"))
        await world.deliver(world.turn("b very plain word", "t2"), world.command("c1", "flush_important"))
        assert (len(sent(world)), len(world.results())) == (1, 1)
        await world.deliver(world.command("c2", "flush_important"))
        assert (len(sent(world)), len(world.results())) == (2, 2)


def flushing(world: ObserverWorld) -> Sequence[Record]:
    return [
        world.turn("a very plain word"),
        world.turn("b very plain word", "t2", scope="agent", agent_id="bot"),
        world.command("c1", "flush_important"),
        world.turn("c very plain word", "t3"),
        world.command("c1", "flush_important"),  # a duplicate
        world.command("c2", "flush_important"),
    ]


async def reflected(world: ObserverWorld, folder: Path, *, crash_after: Step) -> list[StoredEpisode]:
    """Everything that the observer has sent, also what it has sent twice, in the order of the log; the reflector dies
    once at each command."""
    bench = await open_bench(folder, "reflector")
    try:
        for out in world.harness.sent:
            if out.topic not in (COMMANDS.name, OBSERVATIONS.name):
                continue
            assert out.key is not None
            record = bench.record(out.topic, out.key.decode(), out.value or b"")
            bench.stage = reflector(bench)
            if out.topic == COMMANDS.name:
                try:
                    await bench.run(record, crash_after=crash_after)
                except Killed:
                    bench.stage = reflector(bench)
                    await bench.run(record)
            else:
                await bench.run(record)
        results = {each.command_id: each.to_bytes() for each in bench.results()}
        assert len({each.to_bytes() for each in bench.results()}) == len(results), "one result a command"
        found = await bench.store.select("episodes", tenant_id="acme")
        return [StoredEpisode.from_payload(each.payload) for each in found]
    finally:
        await bench.store.close()


@pytest.mark.slow
@pytest.mark.long
async def test_killed_at_every_step_each_entry_is_one_episode(tmp_path: Path) -> None:
    """With a model that says something else each time. What is kept was told downstream, and nothing is kept twice."""
    calm = ObserverWorld(Moody(), policy=POLICY)
    await calm.run(flushing(calm))
    steps = len(calm.harness.steps)
    assert [told(each)["entries"] for each in calm.results()] == [2, 3]
    crashes: tuple[Step, ...] = ("decide", "table", "store", "publish")
    for place, kill in enumerate(kills(steps)):
        world = ObserverWorld(Moody(), policy=POLICY)
        await world.run(flushing(world), kill=kill)
        assert world.harness.step is not None, kill
        world.harness.check_equal_bytes()
        assert world.harness.rows.local == world.harness.rows.changelog
        assert [told(each)["entries"] for each in world.results()] == [2, 3], (kill, world.harness.step)
        said = {(record.owner.key("acme"), each.content) for record in world.observed() for each in record.observations}
        wanted = set(kept(sent(world)))
        assert len(wanted) == 3
        assert wanted <= said
        if place % 60 == 0:  # the store of each takes its time
            folder = tmp_path / str(place)
            episodes = await reflected(world, folder, crash_after=crashes[place // 60 % len(crashes)])
            assert sorted((each.owner_key, each.content) for each in episodes) == sorted(wanted), (kill, folder)


# ------------------------------------------------------------------------------------------------ the reflector
@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


def keep(bench: Bench, *said: Any, command_id: str = "c1", turn: str = "t1", **fields: Any) -> Record:
    args = {
        "user_id": "u1",
        "session_id": "s1",
        "observations": [
            {"turn_id": turn, "occurred_at": NOW.isoformat(), "observation": each.to_payload()} for each in said
        ],
    }
    return command(bench, command_id=command_id, kind="episodes.keep", **({"args": args} | fields))


async def episodes(bench: Bench) -> list[StoredEpisode]:
    found = await bench.store.select("episodes", tenant_id="acme", order_by="occurred_at")
    return [StoredEpisode.from_payload(each.payload) for each in found]


def verdicts(bench: Bench) -> list[str]:
    done: Any = bench.results()[-1].result
    return [each["verdict"] for each in done["episodes"]]


class TestReflector:
    async def test_an_observation_becomes_the_episode_that_its_turn_would_have_made(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        since = NOW - timedelta(days=3)
        said = observation("Ran in Oslo", category="event", valid_from=since, emotion={"valence": 1.0, "arousal": 0.5})
        await bench.run(keep(bench, said))
        (flushed,) = await episodes(bench)
        (result,) = bench.results()
        assert (result.command_id, result.status) == ("c1", "applied")
        assert result.result == {"episodes": [{"episode_id": flushed.episode_id, "verdict": "applied"}]}
        assert bench.values(EPISODES_RECORDED.name) == []  # no turn was reflected
        other = await open_bench(tmp_path / "other", "reflector")
        other.stage = reflector(other)
        await other.run(Talk(other, occurred_at=NOW).turn(said))
        (ordinary,) = await episodes(other)
        await other.store.close()
        assert flushed.model_copy(update={"recorded_at": ordinary.recorded_at}) == ordinary
        assert (flushed.occurred_at, flushed.valid_from, flushed.emotion) == (NOW, since, said.emotion)
        assert await bench.store.nearest(
            "episodes",
            tenant_id="acme",
            dense=(await bench.embedder.embed([said.content], tenant_id="acme"))[0],
            limit=1,
        )

    async def test_however_short_it_holds(self, bench: Bench) -> None:
        said = observation("Is in a hurry", durability="transient", importance=0.1, category="task")
        await bench.run(keep(bench, said))
        assert [(each.durability, each.consolidated_at) for each in await episodes(bench)] == [("transient", None)]
        assert (await bench.facts(), bench.events()) == ({}, [])

    @pytest.mark.parametrize("first", ["turn", "flush"])
    async def test_what_is_an_episode_already_is_a_duplicate_whichever_came_first(
        self, bench: Bench, first: str
    ) -> None:
        said = observation("Ran in Oslo", category="event")
        turn, flush = Talk(bench).turn(said), keep(bench, said)
        for record in (turn, flush) if first == "turn" else (flush, turn):
            await bench.run(record)
        assert len(await episodes(bench)) == 1
        assert verdicts(bench) == (["duplicate"] if first == "turn" else ["applied"])
        await bench.run(keep(bench, said, said, command_id="c2"))
        assert verdicts(bench) == ["duplicate", "duplicate"]
        assert len(await episodes(bench)) == 1
        other = observation("Was soaked", category="event")
        await bench.run(keep(bench, other, other, command_id="c3"))
        assert verdicts(bench) == ["applied", "duplicate"]

    @pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
    async def test_killed_and_handed_in_again_there_is_one(self, bench: Bench, step: Step) -> None:
        told = keep(bench, observation("Ran in Oslo", category="event"))
        await bench.killed(told, step)
        await bench.run(told)
        assert [each.content for each in await episodes(bench)] == ["Ran in Oslo"]
        assert len({each.to_bytes() for each in bench.results()}) == 1
        assert verdicts(bench) == ["applied"]

    async def test_an_id_is_derived_and_not_believed(self, bench: Bench) -> None:
        victim = observation("Is a doctor", session="acme/u2/s1")
        forged = observation("Is a thief").model_copy(update={"observation_id": victim.observation_id})
        await bench.run(keep(bench, forged))
        assert [each.observation_id for each in await episodes(bench)] == [observation("Is a thief").observation_id]

    async def test_what_is_no_proposal_is_refused_and_so_is_one_without_the_tier(self, bench: Bench) -> None:
        none: dict[str, Any] = {"user_id": "u1", "session_id": "s1", "observations": []}
        for n, args in enumerate(({}, none)):
            await bench.run(keep(bench, command_id=f"c{n}", args=args))
        bench.stage = reflector(bench, ALONE)
        await bench.run(keep(bench, observation("Ran in Oslo"), command_id="c2"))
        told = [(each.status, each.error and each.error.code) for each in bench.results()]
        assert told == [("refused", "invalid_args")] * 2 + [("refused", "tier_off")]

    async def test_it_takes_part_in_the_owners_share_of_episodes(self, bench: Bench) -> None:
        bench.stage = reflector(bench, MemoryPolicy(routing=RoutingPolicy(episodes_kept=2)))
        for n in range(2):
            await bench.run(keep(bench, observation(f"Says {n}", category="event"), command_id=f"c{n}"))
        first, _ = sorted(await episodes(bench), key=lambda each: each.content)
        await bench.store.set_payload(
            "episodes", tenant_id="acme", ids=[first.episode_id], fields={"consolidated_at": NOW.isoformat()}
        )
        await bench.run(keep(bench, observation("Says 2", category="event"), command_id="c2"))
        assert sorted(each.content for each in await episodes(bench)) == ["Says 1", "Says 2"]
