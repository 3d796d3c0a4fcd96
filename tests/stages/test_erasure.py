"""Erasure of a user in each stage, killed after each step: nothing of the user is left, and nobody else loses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.agents.consolidation.rows import ProgressRow
from memstream.agents.reflector.fact_state_topic import check_facts_present
from memstream.agents.reflector.rows import LedgerRow
from memstream.agents.reflector.stage import Reflector
from memstream.memory.erasures import ErasedUsers
from memstream.memory.facts.erasures import ERASED_TEXT
from memstream.memory.policies import MemoryPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.schemas import ids
from memstream.schemas.command_kinds import ERASE_OWNER, ERASE_UPKEEP
from memstream.schemas.commands import Command
from memstream.schemas.erasures import ErasureMarker, OwnerErase
from memstream.schemas.facts import StoredFact
from memstream.schemas.topics import COMMANDS, FACTS, RESULTS
from memstream.schemas.turns import Owner
from memstream.streams.engine.crash_points import Step
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Record, TopicSpec
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import PARTITIONS, Bench, open_bench
from tests.support.record_builders import NOW
from tests.support.reflector_world import Talk

ANA, BOB = (Owner(scope="user", id=each) for each in ("ana", "bob"))
TEAM = Owner(scope="group", id="team")
STEPS: tuple[Step, ...] = ("decide", "table", "store", "publish")


def markers(state: str = "open") -> ErasedUsers:
    erased = ErasedUsers()
    marker = {"erasure_id": "e1", "state": state, "at": NOW}
    erased.set(ids.user_hash("acme", "ana"), ErasureMarker.from_payload(marker))
    return erased


def reflector(bench: Bench, erased: ErasedUsers) -> Reflector:
    return Reflector(
        store=bench.store,
        embedder=bench.embedder,
        calls=bench.calls,
        metrics=bench.metrics,
        send_durably=bench.send_durably,
        policies=TenantPolicies(MemoryPolicy()),
        partitions=PARTITIONS,
        now=bench.now,
        secrets=SecretFilter(),
        committed=bench.committed,
        erased=erased,
    )


def erase(bench: Bench, owner: Owner, *, kind: str = ERASE_OWNER, **args: Any) -> Record:
    """Return the next command that erases Ana from the memory of an owner, with the rows that name her."""
    rows = [key for key in bench.rows.rows if "/ana" in key and (owner == ANA or key != owner.key("acme"))]
    command = Command(
        command_id=f"{kind}/{owner.id}",
        kind=kind,
        tenant_id="acme",
        owner=owner,
        args=OwnerErase(erasure_id="e1", user_id="ana", row_keys=tuple(rows), **args).to_payload(),
        issued_at=NOW,
    )
    return bench.record(COMMANDS.name, command.key, command)


def says(bench: Bench, owner: Owner, user: str) -> Talk:
    return Talk(bench, owner=owner, user_id=user)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made, markers())
    yield made
    await made.store.close()


async def contents(bench: Bench, collection: str) -> set[str]:
    return {str(each.payload["content"]) for each in await bench.store.select(collection, tenant_id="acme")}


@pytest.mark.parametrize("step", STEPS)
async def test_a_user_is_erased_however_often_the_reflector_dies(bench: Bench, step: Step) -> None:
    await says(bench, ANA, "ana").tell("Works at Stripe")
    await says(bench, BOB, "bob").tell("Works at Google")
    ana = (await bench.facts())["Works at Stripe"]
    sent = len(bench.sent)

    await bench.killed(erase(bench, ANA), step)

    assert await contents(bench, "facts") == {"Works at Google"}
    assert await contents(bench, "episodes") == {"Works at Google"}
    assert not [key for key in bench.rows.rows if "ana" in key]
    later = bench.sent[sent:]
    assert {each.key for each in later if each.topic == FACTS.name and each.value is None} == {
        ids.fact_key("acme", ana.fact_id).encode()
    }
    told = {event.event_id: event for event in bench.events()[1:] if event.fact.fact_id == ana.fact_id}
    [event] = told.values()
    assert (event.action, event.fact.version, event.before) == ("erased", 2, None)
    assert "Stripe" not in event.model_dump_json()
    assert not any(b"Stripe" in (each.value or b"") for each in later)
    assert {(result.status, (result.result or {})["facts"]) for result in bench.results()} == {("applied", 1)}


@pytest.mark.parametrize("step", STEPS)
async def test_a_shared_fact_loses_the_users_evidence_and_stays_if_another_said_it(bench: Bench, step: Step) -> None:
    for user in ("ana", "bob"):
        talk = Talk(bench, owner=TEAM, user_id=user, session_id=f"of-{user}")
        await talk.tell("The release is on Friday", subject="release", evidence=f"{user} says Friday")
    await Talk(bench, owner=TEAM, user_id="ana", session_id="s2").tell("The door code is on the fridge")
    shared = (await bench.facts())["The release is on Friday"]
    assert {each.user_id for each in shared.evidence} == {"ana", "bob"}
    sent = len(bench.sent)

    await bench.killed(erase(bench, TEAM), step)

    facts = await bench.facts()
    assert set(facts) == {"The release is on Friday"}
    assert {(result.result or {})["facts"] for result in bench.results()} == {2}
    kept = facts["The release is on Friday"]
    assert [each.user_id for each in kept.evidence] == ["bob"]
    assert kept.version == shared.version + 1
    assert {each.payload["user_id"] for each in await bench.store.select("episodes", tenant_id="acme")} == {"bob"}
    assert not [key for key in bench.rows.rows if "/ana/" in key]
    assert not any(b"ana says" in (each.value or b"") for each in bench.sent[sent:])
    state = [each for each in bench.sent[sent:] if each.topic == FACTS.name and each.value is not None]
    assert StoredFact.from_payload(kept.to_payload()).public().to_bytes() == state[-1].value


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("owner", [ANA, TEAM], ids=["own", "shared"])
async def test_a_worker_starts_after_each_crash_of_an_erasure(
    bench: Bench, tmp_path: Path, owner: Owner, step: Step
) -> None:
    """The check at the start does not take a fact for lost whose row is deleted and whose tombstone is not sent."""
    talk = says(bench, owner, "ana")
    for content in ("Works at Stripe", "Likes tea"):
        await talk.tell(content)
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    await log.create([TopicSpec(FACTS.name, 2, 1, {"cleanup.policy": "compact"})])

    async def check() -> None:
        for sent in bench.sent:
            if sent.topic == FACTS.name:
                await log.append(FACTS.name, key=sent.key, value=sent.value)
        bench.sent.clear()
        await check_facts_present(store=bench.store, log=log)
        [vector] = await bench.embedder.embed([ERASED_TEXT], tenant_id="acme")
        erased = [each.fact_id for each in (await bench.facts()).values() if each.content == ERASED_TEXT]
        for each in (await bench.store.get("facts", tenant_id="acme", ids=erased, with_dense=True)).values():
            assert each.dense == pytest.approx(vector), "the vector of the text is gone, too"

    await check()
    deaths = 0
    async for _ in bench.deaths(erase(bench, owner), step):
        await check()
        bench.stage = reflector(bench, markers())
        deaths += 1
    await check()
    assert deaths > 1
    assert await bench.facts() == {}
    assert [each.key async for each in log.read(FACTS.name) if each.value is None]
    await log.close()


async def test_requests_of_the_user_leave_the_row_of_a_group(bench: Bench) -> None:
    for user in ("ana", "bob"):
        await says(bench, TEAM, user).tell(f"Meets {user} on Mondays", retracts=True)
    await bench.run(erase(bench, TEAM))
    kept = LedgerRow.load(bench.rows, TEAM.key("acme")).requests
    assert [each.content for each in kept] == ["Meets bob on Mondays"]


async def test_evidence_of_an_earlier_version_is_found_by_its_session(bench: Bench) -> None:
    await says(bench, TEAM, "ana").tell("The release is on Friday")
    old = (await bench.facts())["The release is on Friday"]
    evidence = [each.model_copy(update={"user_id": None}).to_payload() for each in old.evidence]
    await bench.store.set_payload("facts", tenant_id="acme", ids=[old.fact_id], fields={"evidence": evidence})

    await bench.run(erase(bench, TEAM, session_ids=("another",)))
    assert set(await bench.facts()) == {"The release is on Friday"}
    await bench.run(erase(bench, TEAM, session_ids=("s1",)))
    assert await bench.facts() == {}


async def test_an_own_fact_of_another_user_with_the_same_session_id_stays(bench: Bench) -> None:
    await says(bench, BOB, "bob").tell("Works at Google")
    await bench.run(erase(bench, BOB, session_ids=("s1",)))
    assert set(await bench.facts()) == {"Works at Google"}


async def test_without_the_open_marker_nothing_is_erased(bench: Bench) -> None:
    for erased in (ErasedUsers(), markers("closed")):
        bench.stage = reflector(bench, erased)
        await says(bench, ANA, "ana").tell("Works at Stripe")
        await bench.run(erase(bench, ANA))
        result = bench.results()[-1]
        assert (result.status, result.error and result.error.code) == ("refused", "no_marker")
        assert set(await bench.facts()) == {"Works at Stripe"}


async def test_an_owner_without_memory_gets_no_row(bench: Bench) -> None:
    await bench.run(erase(bench, Owner(scope="user", id="nobody")))
    assert bench.rows.rows == {}
    assert bench.results()[-1].status == "applied"


@pytest.mark.parametrize("step", STEPS)
async def test_consolidation_forgets_a_user_and_a_members_turns(tmp_path: Path, step: Step) -> None:
    made = await open_bench(tmp_path, "consolidation")
    world = Consolidating(made)
    world.stage._erased = markers()
    for owner, user in ((ANA, "ana"), (TEAM, "ana"), (TEAM, "bob")):
        for n in range(2):
            await made.run(world.turn(1, turn_id=f"{user}-{n}", owner=owner, user_id=user))
    assert [key for key in made.rows.rows if "/ana" in key]

    await made.killed(erase(made, ANA, kind=ERASE_UPKEEP), step)
    await made.killed(erase(made, TEAM, kind=ERASE_UPKEEP), step)

    assert not [key for key in made.rows.rows if "/ana" in key]
    row = ProgressRow.load(made.rows, TEAM.key("acme"))
    assert {each.session for each in row.recent} == {"acme/bob/s1"}
    assert {each.user_id for each in row.unsummarised} == {"bob"}
    assert row.counters.turns == 4
    assert len({record.key for record in made.sent if record.topic == RESULTS.name}) == 2
    await made.store.close()
