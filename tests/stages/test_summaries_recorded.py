"""The reflector and summaries: one episode for the same turns, whichever event comes twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.policies import MemoryPolicy, RoutingPolicy
from memstream.schemas import ids
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.topics import EPISODES_RECORDED
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.port import Record
from tests.support.embedded_stage import Bench, Killed, open_bench
from tests.support.record_builders import NOW, OWNER
from tests.support.reflector_world import Talk, command, reflector


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path, "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


def summary(*turns: str, content: str = "Spoke of tea", **fields: Any) -> dict[str, Any]:
    return {
        "user_id": "u1",
        "session_id": "s1",
        "turn_ids": list(turns),
        "content": content,
        "importance": 0.6,
        "began_at": NOW.isoformat(),
        "occurred_at": (NOW + timedelta(minutes=3)).isoformat(),
    } | fields


def record(bench: Bench, *summaries: dict[str, Any], command_id: str = "c1", **fields: Any) -> Record:
    args = {"run_id": "r1", "summaries": list(summaries), "model": "big", "prompt": "summarise/v1"}
    return command(bench, command_id=command_id, kind="episodes.record", args=args, **fields)


async def summaries(bench: Bench) -> list[StoredEpisode]:
    found = await bench.store.select("episodes", tenant_id="acme", order_by="occurred_at")
    episodes = [StoredEpisode.from_payload(each.payload) for each in found]
    return [each for each in episodes if each.is_summary]


def verdicts(bench: Bench, place: int = -1) -> list[str]:
    done: Any = bench.results()[place].result
    return [each["verdict"] for each in done["episodes"]]


async def test_a_summary_is_an_episode_of_its_turns(bench: Bench) -> None:
    await bench.run(record(bench, summary("t1", "t2", sensitivity="public", trust="user")))
    (made,) = await summaries(bench)
    assert (made.category, made.tags, made.turn_ids, made.turn_id) == ("event", ("summary",), ("t1", "t2"), "t2")
    assert made.observation_id == ids.summary_id(OWNER.key("acme"), "acme/u1/s1", "t2")
    assert made.episode_id == ids.episode_id(made.observation_id)
    assert (made.content, made.importance, made.sensitivity, made.trust) == ("Spoke of tea", 0.6, "public", "user")
    assert (made.valid_from, made.occurred_at) == (NOW, NOW + timedelta(minutes=3))
    assert made.consolidated_at == made.recorded_at
    (result,) = bench.results()
    assert (result.command_id, result.status) == ("c1", "applied")
    assert result.result == {"run_id": "r1", "episodes": [{"episode_id": made.episode_id, "verdict": "applied"}]}
    assert bench.values(EPISODES_RECORDED.name) == []  # no turn was reflected
    assert await bench.store.nearest("episodes", tenant_id="acme", dense=(await _vector(bench, "tea")), limit=1)


async def _vector(bench: Bench, text: str) -> list[float]:
    (vector,) = await bench.embedder.embed([text], tenant_id="acme")
    return vector


async def test_no_turn_is_summarised_twice_whoever_proposes_it(bench: Bench) -> None:
    await bench.run(record(bench, summary("t1", "t2"), summary("t2", "t3", content="Spoke of coffee")))
    assert verdicts(bench) == ["applied", "duplicate"]
    other_words = summary("t1", "t2", content="Tea was spoken of")
    await bench.run(record(bench, other_words, summary("t2", content="Of tea"), command_id="c2"))
    assert verdicts(bench) == ["duplicate", "duplicate"]
    await bench.run(record(bench, summary("t3", "t4", content="Spoke of milk"), command_id="c3"))
    elsewhere = [summary("t1", session_id="s2"), summary("t1", user_id="u2")]
    await bench.run(record(bench, *elsewhere, command_id="c4"))
    assert verdicts(bench) == ["applied", "applied"]
    assert sorted((each.session_id, each.user_id, each.turn_ids) for each in await summaries(bench)) == [
        ("s1", "u1", ("t1", "t2")),
        ("s1", "u1", ("t3", "t4")),
        ("s1", "u2", ("t1",)),
        ("s2", "u1", ("t1",)),
    ]


async def test_a_command_that_comes_twice_is_applied_once(bench: Bench) -> None:
    await bench.run(record(bench, summary("t1", "t2")))
    await bench.run(record(bench, summary("t5"), command_id="c1"))
    assert [each.turn_ids for each in await summaries(bench)] == [("t1", "t2")]
    assert len(bench.results()) == 1


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_killed_and_handed_in_again_there_is_one(bench: Bench, step: Step) -> None:
    told = record(bench, summary("t1", "t2"))
    with pytest.raises(Killed):
        await bench.run(told, crash_after=step)
    bench.stage = reflector(bench)
    await bench.run(told)
    assert [each.turn_ids for each in await summaries(bench)] == [("t1", "t2")]
    assert len({each.to_bytes() for each in bench.results()}) == 1
    assert verdicts(bench) == ["applied"]


async def test_a_summary_takes_part_in_the_owners_share_of_episodes(bench: Bench) -> None:
    bench.stage = reflector(bench, MemoryPolicy(routing=RoutingPolicy(episodes_kept=3)))
    talk = Talk(bench)
    for content in ("Drank tea", "Drank milk"):
        await talk.tell(content, category="event")
    await bench.run(record(bench, summary("t1", occurred_at=(NOW - timedelta(days=1)).isoformat())))
    await bench.run(record(bench, summary("t2", occurred_at=NOW.isoformat()), command_id="c2"))
    kept = await bench.store.select("episodes", tenant_id="acme")
    assert len(kept) == 3  # the older summary went: what no run has looked at stays
    assert [each.turn_ids for each in await summaries(bench)] == [("t2",)]


@pytest.mark.parametrize("bad", [{"turn_ids": []}, {"content": ""}, {"importance": 2}, {"began_at": None}])
async def test_what_is_no_summary_is_refused(bench: Bench, bad: dict[str, Any]) -> None:
    await bench.run(record(bench, summary("t1") | bad))
    (result,) = bench.results()
    assert (result.status, result.error and result.error.code) == ("refused", "invalid_args")
    assert await summaries(bench) == []


async def test_owners_are_kept_apart(bench: Bench) -> None:
    await bench.run(record(bench, summary("t1")))
    other = OWNER.model_copy(update={"id": "u9"})
    await bench.run(record(bench, summary("t1"), owner=other))
    assert {(each.owner_key, each.turn_ids) for each in await summaries(bench)} == {
        ("acme/user/u1", ("t1",)),
        ("acme/user/u9", ("t1",)),
    }
