"""Ids that are none of ours: Qdrant answers 400 to what is no UUID, so nothing may ask it for one.

With MEMSTREAM_TEST_QDRANT=http://host:port the store is that server, else the embedded engine, which is lenient.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.provenance import FactRef, FactTracer
from memstream.recall.record_reader import RecordReader
from memstream.recall.verbatim import EpisodeRef, VerbatimReader
from memstream.schemas.topics import FACTS_UPDATED, OBSERVATIONS, RECALLED
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import Bench, open_bench
from tests.support.record_builders import NOW
from tests.support.reflector_world import command, reflector
from tests.support.vector_backends import store_url

ABSENT = "6c36cbe0-4c5b-4e8e-9a5e-5d1c3ffb1e07"
UNKNOWN = (
    "x",
    "0",
    "mt_x",
    ABSENT,
    ABSENT.upper(),
    ABSENT.replace("-", ""),
    f"urn:uuid:{ABSENT}",
    "\x00",
    "ä/../%2e",
    "x" * 64,
)
MALFORMED = ("", "x" * 65, "x" * 100_000, None, 7, ["x"], {"a": 1})
Edit = tuple[str, str, dict[str, Any]]
"""Kind, field of the id (`[]`: a list of it, `[2]`: with another one), further arguments."""
REFLECTED: tuple[Edit, ...] = (
    ("tasks.done", "task_id", {}),
    ("tasks.cancel", "task_id", {}),
    ("tasks.due", "task_id", {"due_at": "2026-05-01T00:00:00Z"}),
    ("groups.attach", "fact_ids[]", {}),
    ("groups.attach", "procedure_ids[]", {}),
    ("facts.update", "fact_id", {"content": "Likes tea"}),
    ("facts.reinforce", "fact_id", {}),
    ("facts.pin", "fact_id", {}),
    ("facts.unpin", "fact_id", {}),
    ("facts.supersede", "fact_id", {"content": "Likes tea"}),
    ("facts.merge", "fact_ids[2]", {}),
    ("facts.forget", "fact_id", {}),
    ("facts.approve", "fact_id", {}),
    ("facts.reject", "fact_id", {}),
)
CONSOLIDATED: tuple[Edit, ...] = (
    ("episodes.update", "episode_id", {"content": "Had tea"}),
    ("episodes.forget", "episode_id", {}),
    ("episodes.merge", "episode_ids[2]", {}),
    ("episodes.mark_consolidated", "episode_ids[]", {}),
)


@pytest.fixture
async def reflecting(tmp_path: Path) -> AsyncIterator[Bench]:
    with store_url(tmp_path / "store") as url:
        made = await open_bench(tmp_path, "reflector", url=url)
        await made.store.ensure()
        made.stage = reflector(made)
        yield made
        await made.store.close()


@pytest.fixture
async def consolidating(tmp_path: Path) -> AsyncIterator[Bench]:
    with store_url(tmp_path / "store") as url:
        made = await open_bench(tmp_path, "consolidation", url=url)
        await made.store.ensure()
        Consolidating(made)
        yield made
        await made.store.close()


async def code(bench: Bench, edit: Edit, given: object) -> str:
    """Send an edit with this id, and return the code of its refusal."""
    kind, field, args = edit
    name, many, _ = field.partition("[")
    value = given if not many else [given, ABSENT[:-1] + "8"] if field.endswith("[2]") else [given]
    owner = {"scope": "group", "id": "team"} if kind.startswith("groups") else {"scope": "user", "id": "u1"}
    number = len(bench.results())
    await bench.run(command(bench, command_id=f"c{number}", kind=kind, args={name: value} | args, owner=owner))
    error = bench.results()[number].error
    assert error is not None
    return error.code


async def test_the_reflector_refuses_an_id_that_is_none_of_ours(reflecting: Bench) -> None:
    for edit in REFLECTED:
        assert [await code(reflecting, edit, given) for given in UNKNOWN] == ["unknown"] * len(UNKNOWN)
        assert [await code(reflecting, edit, given) for given in MALFORMED] == ["invalid_args"] * len(MALFORMED)


async def test_consolidation_refuses_an_id_that_is_none_of_ours(consolidating: Bench) -> None:
    for edit in CONSOLIDATED:
        assert [await code(consolidating, edit, given) for given in UNKNOWN] == ["unknown"] * len(UNKNOWN)
        assert [await code(consolidating, edit, given) for given in MALFORMED] == ["invalid_args"] * len(MALFORMED)


async def test_a_proposal_about_an_id_that_is_none_of_ours_changes_nothing(reflecting: Bench) -> None:
    for given in UNKNOWN:
        change = {
            "action": "prune",
            "target_fact_id": given,
            "source_fact_ids": [given],
            "source_episode_ids": [given],
            "expected_version": 1,
        }
        await reflecting.run(command(reflecting, change, command_id=f"p{given}"))
        assert [each["verdict"] for each in reflecting.changes()] == ["unknown"]
    assert reflecting.actions() == []


async def test_every_read_by_id_finds_nothing(reflecting: Bench, tmp_path: Path) -> None:
    store = reflecting.store
    reader = RecordReader(store=store)
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    await log.create([TopicSpec(topic.name, 1, 1, {}) for topic in (FACTS_UPDATED, OBSERVATIONS, RECALLED)])
    tracer = FactTracer(store=store, log=log)
    verbatim = VerbatimReader(store=store, log=log, policies=TenantPolicies(MemoryPolicy()))
    for given in (*UNKNOWN, "", "x" * 100_000):
        assert await reader.fact("acme", given) is None
        assert await reader.facts_by_id("acme", [given]) == {}
        assert await reader.episode("acme", given) is None
        assert await reader.procedure_by_id("acme", given) is None
        assert await reader.task("acme", given) is None
        assert await tracer.trace(FactRef("acme", given)) is None
        assert await verbatim.rehydrate(EpisodeRef("acme", given), now=NOW) is None
    await log.close()
