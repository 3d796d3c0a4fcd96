"""The one handler shape, alone: the counting stage killed at every step, duplicates, poison, odd records, order."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from memstream.schemas.outcomes import OutRecord
from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS
from memstream.streams.engine.error_boundary import CRASHES_MAX
from memstream.streams.engine.failures import DecisionFailed
from memstream.streams.log.port import Record
from tests.support.counting_stage import Counting, CountRow
from tests.support.stage_harness import Kill, StageHarness, Topics, kills


class Run:
    """A harness over the counting stage, and the points that it stored."""

    def __init__(self) -> None:
        self.points: list[tuple[str, dict[str, object]]] = []
        self.harness = StageHarness(name="observer", make=lambda harness: Counting(sink=self._sink))

    def _sink(self, id: str, payload: dict[str, object]) -> None:
        self.points.append((id, payload))
        self.harness.pass_step(f"point {id}")

    def counts(self) -> dict[str, int]:
        rows = self.harness.rows.changelog.items()
        return {key: CountRow.model_validate_json(raw).count for key, raw in rows if "#" not in key}

    def facts(self) -> dict[str, object]:
        """What must be the same whatever died: without what a model would say otherwise the next time."""
        points = {id: (payload["key"], payload["count"]) for id, payload in self.points}
        records = {id: json.loads(value or b"")["count"] for id, value in self.out().items()}
        return {"points": points, "records": records, "counts": self.counts(), "rows": self._small_rows()}

    def _small_rows(self) -> list[dict[str, bytes]]:
        tables = (self.harness.rows.local, self.harness.rows.changelog)
        return [{key: raw for key, raw in table.items() if "#" in key} for table in tables]

    def out(self) -> dict[str, bytes | None]:
        return self.harness.once(OBSERVATIONS.name, id_of)

    def check(self) -> None:
        self.harness.check_equal_bytes(id_of=id_of)
        forms: dict[str, set[str]] = defaultdict(set)
        for id, payload in self.points:
            forms[id].add(json.dumps(payload))
        for id, value in self.out().items():
            forms[id].add((value or b"").decode())
        assert all(len(each) == 1 for each in forms.values()), "a point or a record came in two forms"


def id_of(record: OutRecord) -> str:
    fields = json.loads(record.value or b"")
    return f"{fields['key']}/{fields['id']}"


def turn(topics: Topics, key: str, id: str, value: str = "x", topic: str = TURNS.name) -> Record:
    return topics.record(topic, key.encode(), json.dumps({"id": id, "value": value}).encode())


def conversation() -> list[Record]:
    topics = Topics()
    return [
        turn(topics, "a", "1"),
        turn(topics, "b", "1"),
        turn(topics, "a", "2"),
        turn(topics, "a", "1"),  # a duplicate under another offset
        turn(topics, "a", "3", topic=COMMANDS_SESSION.name),
    ]


async def expected() -> Run:
    run = Run()
    await run.harness.run(conversation())
    return run


async def test_each_record_is_counted_once() -> None:
    run = await expected()
    assert run.counts() == {"a": 3, "b": 1}
    assert list(run.out()) == ["a/1", "b/1", "a/2", "a/3"]
    assert [id for id, _ in run.points] == ["a/1", "b/1", "a/2", "a/3"]
    run.check()


@pytest.mark.slow
async def test_a_kill_at_any_step_shows_nowhere() -> None:
    wanted = await expected()
    steps = wanted.harness.steps
    died: set[str] = set()
    for kill in kills(len(steps)):
        run = Run()
        await run.harness.run(conversation(), kill=kill)
        assert run.harness.step == steps[kill.at - 1]
        died.add(run.harness.step.split()[0])
        run.check()
        assert run.facts() == wanted.facts(), f"{kill} at {run.harness.step}"
    assert died == {"decide", "local", "changelog", "table", "before", "point", "store", "sent", "publish", "commit"}


async def test_what_is_in_the_local_store_only_is_written_to_the_broker_before_its_effects() -> None:
    wanted = await expected()
    at = wanted.harness.steps.index("local a") + 1
    run = Run()
    await run.harness.run(conversation()[:1], kill=Kill(at))
    after = run.harness.steps[at:]
    assert "decide" not in after, "it was decided already"
    rows = ["a#kept", "a#gone", "a", "a#after"]
    assert [step for step in after if step.startswith("changelog")][:4] == [f"changelog {row}" for row in rows]
    assert after.index("changelog a") < after.index("before store")


async def test_effects_come_in_one_order() -> None:
    run = Run()
    await run.harness.run(conversation()[:1])
    assert run.harness.steps == [
        "decide",
        *(f"{part} {row}" for part in ("local", "changelog") for row in ("a#kept", "a#gone", "a", "a#after")),
        "table",
        *("before store", "point a/1", "store"),
        *(f"sent {OBSERVATIONS.name}", "publish"),
        *("local a#gone", "changelog a#gone", "commit"),
    ]


async def test_an_event_that_is_not_the_last_is_passed_over_when_it_comes_again() -> None:
    run = Run()
    records = conversation()
    await run.harness.run(records)
    before = (run.facts(), len(run.points), len(run.harness.sent))
    await run.harness.deliver(records[0])
    assert (run.facts(), len(run.points), len(run.harness.sent)) == before


async def test_the_last_event_that_comes_again_is_applied_again_and_not_decided_again() -> None:
    run = Run()
    await run.harness.run(conversation())
    points, sent, decided = len(run.points), len(run.harness.sent), run.harness.steps.count("decide")
    await run.harness.deliver(conversation()[-1])
    assert (len(run.points), len(run.harness.sent)) == (points, sent)  # the process knows what it has applied
    run.harness.start()
    await run.harness.deliver(conversation()[-1])
    assert (len(run.points), len(run.harness.sent)) == (points + 1, sent + 1)
    assert run.harness.steps.count("decide") == decided
    run.check()


@pytest.mark.parametrize("hostile", [b"\xff", b"", b"{", b"[]", b'{"id": 1}', b"null", None])
async def test_what_cannot_be_decoded_is_a_dead_letter_and_the_next_record_counts(hostile: bytes | None) -> None:
    run = Run()
    topics = Topics()
    bad = topics.record(TURNS.name, b"a", hostile)
    await run.harness.run([bad, turn(topics, "a", "1")])
    (letter,) = run.harness.on("memory.turns.dlq")
    assert (letter.key, letter.value) == (b"a", hostile)
    headers = dict(letter.headers)
    assert headers["memstream-reason"] == b"undecodable"
    assert headers["kafka_dlt-original-offset"] == b"0"
    assert run.counts() == {"a": 1}


async def test_poison_is_a_dead_letter_and_the_next_record_counts() -> None:
    run = Run()
    topics = Topics()
    await run.harness.run([turn(topics, "a", "1"), turn(topics, "a", "2", "poison"), turn(topics, "a", "3")])
    (letter,) = run.harness.on("memory.turns.dlq")
    assert dict(letter.headers)["memstream-reason"] == b"refused_by_model"
    assert list(run.out()) == ["a/1", "a/3"]
    assert [payload["count"] for _, payload in run.points] == [1, 2]


async def test_an_odd_record_stops_the_worker_twice_and_is_a_dead_letter_the_third_time() -> None:
    run = Run()
    topics = Topics()
    odd, next_ = turn(topics, "a", "1", "odd"), turn(topics, "a", "2")
    for _ in range(CRASHES_MAX - 1):
        with pytest.raises(DecisionFailed):
            await run.harness.deliver(odd)
        assert run.harness.sent == []
        run.harness.start()
    await run.harness.run([odd, next_])
    (letter,) = run.harness.on("memory.turns.dlq")
    headers = dict(letter.headers)
    assert (headers["memstream-reason"], headers["memstream-attempts"]) == (b"fatal", b"3")
    assert headers["kafka_dlt-exception-fqcn"] == b"builtins.RuntimeError"
    assert run.counts()["a"] == 1


@pytest.mark.parametrize(("steps", "died"), [(1, "sent memory.turns.dlq"), (2, "commit")])
async def test_an_odd_record_with_a_dead_letter_never_stops_the_worker_again(steps: int, died: str) -> None:
    run = Run()
    odd = turn(Topics(), "a", "1", "odd")
    for _ in range(CRASHES_MAX - 1):
        with pytest.raises(DecisionFailed):
            await run.harness.deliver(odd)
        run.harness.start()
    await run.harness.run([odd], kill=Kill(len(run.harness.steps) + steps))
    assert run.harness.step == died
    assert len(run.harness.on("memory.turns.dlq")) == 2, "at least once"
    assert run.harness.steps[-1] == "commit"


def test_the_harness_kills_where_it_is_told() -> None:
    all_kills: list[Any] = list(kills(2))
    assert len(all_kills) == 8
    assert {kill.at for kill in all_kills} == {1, 2}
