"""Sharing through both stages: one user's run proposes, the reflector checks again and writes the group's fact."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.memory.policies import MemoryPolicy
from memstream.recall.record_filters import RecordSelection
from memstream.recall.record_reader import RecordReader
from memstream.schemas.facts import Fact
from memstream.schemas.topics import COMMANDS
from memstream.schemas.turns import Owner
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import Bench, open_bench
from tests.support.reflector_world import reflector
from tests.support.shared_facts import GROUP, OFFICE, POLICY, known_by


class World:
    """Consolidation of users, and the reflector that gets its proposals."""

    def __init__(self, bench: Bench, reflecting: Bench) -> None:
        self.it, self.reflecting = Consolidating(bench), reflecting
        self.it.build(sharing=POLICY)
        self.reflecting.stage = reflector(reflecting, MemoryPolicy(sharing=POLICY))

    async def run(self, command_id: str) -> int:
        """Return how many commands the run sent."""
        before = len(self.it.proposed())
        await self.it.bench.run(self.it.command(command_id=command_id))
        return len(self.it.proposed()) - before

    async def apply(self) -> None:
        for command in self.it.proposed():
            await self.reflecting.run(self.reflecting.record(COMMANDS.name, command.key, command))

    async def of_group(self, tenant: str = "acme") -> list[Fact]:
        return await RecordReader(store=self.it.bench.store).every_fact(
            RecordSelection(tenant, owner=GROUP, state="all")
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield World(bench, Bench(store=bench.store, folder=tmp_path / "deaths", stage_name="reflector"))
    await bench.store.close()


async def test_what_three_users_say_the_group_knows_once_and_nobodys_words(world: World) -> None:
    await world.it.store(known_by("u1"), known_by("bob"), known_by("eva"), known_by("u1", "Office has a cat"))
    assert await world.run("c1") == 1
    [command] = world.it.proposed()
    assert (command.owner, command.key) == (GROUP, GROUP.key("acme")), "the group's own writer"
    await world.apply()
    [fact] = await world.of_group()
    assert (fact.content, fact.subject, fact.state, fact.version) == (OFFICE, "fixpoint-labs", "active", 1)
    assert (fact.reinforcement_count, fact.sensitivity) == (2, "public")
    assert sorted(each.session_id for each in fact.evidence) == [f"session of {user}" for user in ("bob", "eva", "u1")]
    assert {each.quote for each in fact.evidence} == {""}
    [event] = world.reflecting.events()
    assert (event.action, event.owner, event.cause.command_id) == ("new", GROUP, command.command_id)
    for user in ("u1", "bob", "eva"):
        owner = Owner(scope="user", id=user)
        rows = await RecordReader(store=world.it.bench.store).every_fact(RecordSelection("acme", owner=owner))
        assert OFFICE in {each.content for each in rows}, "theirs stay theirs"
        assert all(each.version == 1 for each in rows)
    await world.apply()  # delivered again
    assert await world.of_group() == [fact]
    assert await world.run("c2") == 0, "what the group knows is not proposed again"


async def test_another_tenants_users_do_not_count(world: World) -> None:
    await world.it.store(known_by("u1"), known_by("bob"), known_by("eva", tenant="rival"))
    assert await world.run("c1") == 0


async def test_one_who_has_another_office_meanwhile_is_one_too_few(world: World) -> None:
    *_, eva = await world.it.store(known_by("u1"), known_by("bob"), known_by("eva"))
    assert await world.run("c1") == 1
    await world.it.store(eva.model_copy(update={"state": "superseded", "version": 2}))
    await world.apply()
    assert await world.of_group() == []
    [result] = world.reflecting.results()
    assert result.result is not None
    assert result.result["changes"][0]["verdict"] == "refused"  # type: ignore[index, call-overload]


async def test_off_until_a_group_is_named(world: World) -> None:
    await world.it.store(known_by("u1"), known_by("bob"), known_by("eva"))
    world.it.build()
    assert await world.run("c1") == 0


async def test_a_reflector_that_shares_nothing_refuses_what_would_be_shared(world: World) -> None:
    await world.it.store(known_by("u1"), known_by("bob"), known_by("eva"))
    assert await world.run("c1") == 1
    world.reflecting.stage = reflector(world.reflecting)
    await world.apply()
    assert await world.of_group() == []
