"""Hostile input on each topic that a stage reads: a dead letter or taken, and the next good one takes effect."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pytest
import pytest_asyncio

from memstream.schemas import ids
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION, EPISODES_RECORDED, OBSERVATIONS, RESULTS, TURNS
from tests.support.conversation import KNOWN
from tests.support.hostile_records import (
    AttackedTopic,
    Hostile,
    encoded,
    framed_turns,
    invalid_commands,
    invalid_ids,
    invalid_observations,
    invalid_recorded_turns,
    invalid_turns,
    nested,
    undecodable_turns,
    undecodable_values,
    unusual_observations,
    unusual_turns,
    with_field,
)
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, Pipeline, turn
from tests.support.pipeline_places import Place, place_for
from tests.support.whole_worker import parsed, whole

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


HOSTILE = pytest.mark.fault(
    broken="1 MB turns, emoji, zero-width, lone surrogates, invalid UTF-8, null, wrong keys; on every topic",
    holds="taken, or a dead letter with its reason; nobody dies, the next of the key has its effect; I5 I8",
)
ON_BOTH = [pytest.param("kafka", marks=[pytest.mark.kafka, HOSTILE]), pytest.param("embedded")]


@pytest.fixture(scope="module", params=ON_BOTH)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with whole(place, model, held_to=("I5", "I8")) as running:
        yield running


def nobody_died(pipeline: Pipeline) -> None:
    """No worker ended, and no record was counted as one that kills."""
    (worker,) = pipeline.workers
    assert worker.poll() is None
    assert [str(path) for path in pipeline.folder.rglob("attempts/*.json")] == []


async def attack(
    topic: AttackedTopic,
    made: Callable[[str], list[Hostile]],
    *,
    key: Callable[[str], str],
    good: Callable[[str], list[bytes]],
) -> dict[str, Hostile]:
    """Each hostile record, and right behind it good ones of the same key: a user for each. By user."""
    name = f"{topic.stage}-%s-{'x' * 100}"
    nobody = name % "@@@"  # made once: some are large
    attackers: dict[str, Hostile] = {}
    for n, hostile in enumerate(made(nobody)):
        user = name % f"{n:03}"
        value = hostile.value and hostile.value.replace(nobody.encode(), user.encode())
        attackers[user] = replace(hostile, value=value)

    async def one(user: str, hostile: Hostile) -> None:
        await topic.send(hostile, key=key(user).encode())
        for value in good(user):
            await topic.good(value, key=key(user).encode())

    todo = iter(attackers.items())
    while some := list(islice(todo, 16)):
        await asyncio.gather(*(one(user, hostile) for user, hostile in some))
    return attackers


def by_name(attackers: dict[str, Hostile], found: dict[str, object]) -> dict[str, object]:
    """For messages that tell which case it is."""
    return {hostile.name: found.get(user) for user, hostile in attackers.items()}


@pytest.mark.long
async def test_turns(pipeline: Pipeline) -> None:
    topic = await AttackedTopic(pipeline, TURNS.name, "observer").begin()
    tenant = pipeline.tenant
    given_ids = ("tenant_id", "user_id", "session_id", "turn_id", "agent_id", "org_id", "group_id")

    def made(user: str) -> list[Hostile]:
        given = turn("I like green tea.", 1, user=user, tenant_id=tenant)
        return [
            *undecodable_turns(given),
            *framed_turns(given),
            *invalid_ids(given, *given_ids),
            *invalid_turns(given),
            *unusual_turns(given),
        ]

    attackers = await attack(
        topic,
        made,
        key=lambda user: ids.session_key(tenant, user, "s1"),
        good=lambda user: [encoded(turn("I work at Google.", 2, user=user, tenant_id=tenant))],
    )
    await pipeline.settled()
    await topic.refused_exactly()
    nobody_died(pipeline)
    rows = pipeline.shown("facts", "turns")[tenant]
    facts = {user: sorted(row["content"] for row in rows["facts"] if row["owner"]["id"] == user) for user in attackers}
    assert by_name(attackers, dict(facts)) == {
        hostile.name: ["Works at Google"] if hostile.reason else ["Likes green tea", "Works at Google"]
        for hostile in attackers.values()
    }
    recorded = {(row["user_id"], row["turn_id"]) for row in rows["turns"]}
    taken = [user for user, hostile in attackers.items() if hostile.reason is None]
    assert recorded == {(user, "t2") for user in attackers} | {(user, "t1") for user in taken}


def observed(tenant: str, user: str, session: str, content: str) -> Json:
    """A record of memory.observations: one statement, which becomes a fact."""
    observation = ids.observation_id(ids.session_key(tenant, user, session), "t1", "user", content)
    statement = {
        "observation_id": observation, "entry_id": observation, "subject": "user", "content": content,
        "importance": 0.8, "durability": "persistent", "category": "preference", "evidence": content,
    }  # fmt: skip
    return {
        "tenant_id": tenant, "owner": {"scope": "user", "id": user}, "user_id": user, "session_id": session,
        "turn_id": "t1", "turn_number": 1, "occurred_at": "2026-11-20T10:00:00Z", "observations": [statement],
    }  # fmt: skip


@pytest.mark.long
async def test_observations(pipeline: Pipeline) -> None:
    topic = await AttackedTopic(pipeline, OBSERVATIONS.name, "reflector").begin()
    tenant = pipeline.tenant

    def made(user: str) -> list[Hostile]:
        given = observed(tenant, user, "hostile", "Likes green tea")
        return [
            *undecodable_values(given),
            *invalid_ids(given, "tenant_id", "user_id", "session_id", "turn_id", "agent_id"),
            *invalid_observations(given),
            *unusual_observations(given),
        ]

    attackers = await attack(
        topic,
        made,
        key=lambda user: ids.owner_key(tenant, "user", user),
        good=lambda user: [encoded(observed(tenant, user, "good", "Works at Google"))],
    )
    await pipeline.settled()
    await topic.refused_exactly()
    nobody_died(pipeline)
    facts = await pipeline.consistent()
    contents = {
        user: sorted(fact["content"] for fact in facts.values() if fact["owner"]["id"] == user) for user in attackers
    }
    counts: dict[str, object] = {user: ("Works at Google" in of, len(of)) for user, of in contents.items()}
    assert by_name(attackers, counts) == {
        hostile.name: (True, 1 if hostile.reason else 2) for hostile in attackers.values()
    }


def command(tenant: str, kind: str, **fields: object) -> Json:
    return {
        "command_id": str(uuid.uuid4()), "kind": kind, "tenant_id": tenant, "args": {}, "issued_by": "test",
        "issued_at": "2026-11-20T10:00:00Z",
    } | fields  # fmt: skip


async def results(pipeline: Pipeline) -> dict[str, Json]:
    """By command id; each came once, or again the same."""
    found: dict[str, Json] = {}
    for record in await pipeline.records(RESULTS.name):
        result = parsed(record.value)
        assert found.setdefault(result["command_id"], result) == result
    return found


async def answered(
    pipeline: Pipeline, attackers: Mapping[str, Hostile], good: Sequence[str], odd: Mapping[str, str]
) -> None:
    """The good commands were applied, and the odd ones have the status that they are to have, by name."""
    found = await results(pipeline)
    assert {found.get(each, {}).get("status") for each in good} == {"applied"}
    statuses = {
        hostile.name: found.get(parsed(hostile.value)["command_id"], {}).get("status")
        for hostile in attackers.values()
        if hostile.name in odd
    }
    assert statuses == odd


async def test_commands(pipeline: Pipeline) -> None:
    """Two stages read them: what cannot be decoded is one dead letter, the reflector's."""
    topic = await AttackedTopic(pipeline, COMMANDS.name, "reflector").begin()
    tenant = pipeline.tenant
    nobody = ids.fact_id("nobody", "x")
    change = {"action": "reinforce", "target_fact_id": nobody}
    apply = {"run_id": ids.run_id("x", "y"), "changes": [change]}
    good_ones: list[str] = []

    def odd(user: str) -> list[tuple[str, str, Json]]:
        owner = {"scope": "user", "id": user}
        forged = [
            {"x": nested(100)},
            {**apply, "run_id": 5},
            *({**apply, "changes": changes} for changes in ([], [change] * 21, "x", [{"action": "merge"}])),
            *(
                {**apply, "changes": [{**change, **wrong}]}
                for wrong in (
                    {"confidence": 1e400},
                    {"action": "explode"},
                    {"expected_version": 0},
                    {"content": "x" * 2001},
                    {"content": "\0"},
                )
            ),
        ]
        strange: list[Json] = [
            {"target_fact_id": "'; DROP\0"},
            {"expected_version": 10**18},
            {"action": "merge", "source_fact_ids": ["a", "b"], "content": "a\0"},
            {"action": "update", "content": "!!!", "source_episode_ids": ["x", nobody]},
            {"tenant_id": "other", "x": nested(100)},
        ]
        changed = [{**apply, "changes": [{**change, **each}]} for each in strange]

        def applied(args: object) -> Json:
            return command(tenant, "facts.apply", owner=owner, args=args)

        return [
            ("unknown-kind", "refused", command(tenant, "explode\0\u2028", owner=owner)),
            ("prune", "applied", command(tenant, "prune", owner=owner)),
            ("expired", "expired", command(tenant, "consolidate", owner=owner, expires_at="0001-01-01T00:00:00Z")),
            ("far", "applied", command(tenant, "consolidate", owner=owner, expires_at="9999-12-31T23:59:59Z")),
            ("odd-id", "applied", command(tenant, "consolidate", owner=owner, command_id=f"\0/%{user}😀"[:128])),
            *((f"forged-{n}", "refused", applied(args)) for n, args in enumerate(forged)),
            *((f"strange-{n}", "applied", applied(args)) for n, args in enumerate(changed)),
        ]

    def made(user: str) -> list[Hostile]:
        given = command(tenant, "consolidate", owner={"scope": "user", "id": user})
        return [
            *undecodable_values(given),
            *invalid_ids(given, "tenant_id"),
            *invalid_commands(given, addressed="owner"),
            *(Hostile(name, encoded(fields), None) for name, _, fields in odd(user)),
        ]

    def good(user: str) -> list[bytes]:
        owner = {"scope": "user", "id": user}
        both = command(tenant, "facts.apply", owner=owner, args=apply), command(tenant, "consolidate", owner=owner)
        good_ones.extend(str(each["command_id"]) for each in both)
        return [encoded(each) for each in both]

    attackers = await attack(topic, made, key=lambda user: ids.owner_key(tenant, "user", user), good=good)
    await pipeline.settled()
    await topic.refused_exactly()
    nobody_died(pipeline)
    await answered(pipeline, attackers, good_ones, {name: status for name, status, _ in odd("")})


async def test_session_commands(pipeline: Pipeline) -> None:
    topic = await AttackedTopic(pipeline, COMMANDS_SESSION.name, "observer").begin()
    tenant = pipeline.tenant
    good_ones: list[str] = []

    def session(user: str) -> Json:
        return {"user_id": user, "session_id": "s1"}

    def odd(user: str) -> list[tuple[str, str, Json]]:
        at = session(user)
        return [
            ("unknown-kind", "refused", command(tenant, "facts.apply", session=at)),
            ("expired", "expired", command(tenant, "observe", session=at, expires_at="0001-01-01T00:00:00Z")),
            ("far", "applied", command(tenant, "observe", session=at, expires_at="9999-12-31T23:59:59Z")),
            ("odd-id", "applied", command(tenant, "observe", session=at, command_id=f"\0/%{user}😀"[:128])),
            ("odd-args", "applied", command(tenant, "observe", session=at, args={"x": nested(100), "y": 10**400})),
        ]

    def made(user: str) -> list[Hostile]:
        given = command(tenant, "observe", session=session(user))
        return [
            *undecodable_values(given),
            *invalid_ids(given, "tenant_id"),
            *invalid_commands(given, addressed="session"),
            *(Hostile(name, encoded(fields), None) for name, _, fields in odd(user)),
        ]

    def good(user: str) -> list[bytes]:
        each = command(tenant, "observe", session=session(user))
        good_ones.append(str(each["command_id"]))
        return [encoded(each)]

    attackers = await attack(topic, made, key=lambda user: ids.session_key(tenant, user, "s1"), good=good)
    await pipeline.settled()
    await topic.refused_exactly()
    nobody_died(pipeline)
    await answered(pipeline, attackers, good_ones, {name: status for name, status, _ in odd("")})


async def test_recorded_episodes(pipeline: Pipeline) -> None:
    """Four good turns, of which the last tells that something lasting was evicted, are a run of consolidation."""
    topic = await AttackedTopic(pipeline, EPISODES_RECORDED.name, "consolidation").begin()
    tenant = pipeline.tenant

    def recorded(user: str, n: int, session: str, **fields: object) -> Json:
        return {
            "tenant_id": tenant, "owner": {"scope": "user", "id": user}, "user_id": user, "session_id": session,
            "turn_id": f"t{n}", "turn_number": n, "occurred_at": "2026-11-20T10:00:00Z",
        } | fields  # fmt: skip

    def made(user: str) -> list[Hostile]:
        given = recorded(user, 1, "hostile")
        episode = {"episode_id": "e", "importance": 0.5, "category": "event"}
        return [
            *undecodable_values(given),
            *invalid_ids(given, "tenant_id", "user_id", "session_id", "turn_id"),
            *invalid_recorded_turns(given),
            Hostile("episodes-of-nobody", with_field(given, "episodes", [episode] * 4), None),
            Hostile("year-1", with_field(given, "occurred_at", "0001-01-01T00:00:00Z"), None),
            Hostile("year-9999", with_field(given, "occurred_at", "9999-12-31T23:59:59Z"), None),
            Hostile("number-of-turns", with_field(given, "turn_number", 10**18), None),
            Hostile("evicted", with_field(given, "evicted_persistent", 10**18), None),
            Hostile("ids-of-nobody", with_field(given, "fact_ids", ["\0'; DROP"]), None),
        ]

    def good(user: str) -> list[bytes]:
        return [encoded(recorded(user, n, "good", evicted_persistent=n // 4)) for n in range(1, 5)]

    attackers = await attack(topic, made, key=lambda user: ids.owner_key(tenant, "user", user), good=good)
    await pipeline.settled()
    await topic.refused_exactly()
    nobody_died(pipeline)
    runs = {entry["run_id"]: entry["status"] for entry in logged(pipeline, "consolidation_run")}
    statuses: dict[str, object] = {}
    for user in attackers:
        cause = [ids.turn_cause(ids.session_key(tenant, user, "good"), f"t{n}") for n in (3, 4)]
        owner = ids.owner_key(tenant, "user", user)
        statuses[user] = [runs[run] for each in cause if (run := ids.run_id(owner, each)) in runs]
    assert by_name(attackers, statuses) == {hostile.name: ["nothing"] for hostile in attackers.values()}


def logged(pipeline: Pipeline, event: str) -> Iterator[Json]:
    for path in pipeline.folder.glob("worker-*.log"):
        for line in path.read_text(errors="replace").splitlines():
            if f'"event": "{event}"' in line:
                yield json.loads(line)
