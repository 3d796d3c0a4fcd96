"""Every public read, asked by two tenants and by users of one tenant who have the same texts under the same ids: nobody
is told anything of another. Through the real engine, by its holder and over the loopback.

`READS` (tests/support/isolation_reads.py) has a row for each: a public coroutine of `recall/`, a route of the HTTP
interface, or a way to the changes of facts that has none fails `test_every_public_read_has_a_row`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memstream.client.updates
import memstream.recall
from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.api.edit_routes import EDIT_ROUTES
from memstream.memory.policies.recall import RankingProfile
from memstream.recall.record_filters import RecordSelection
from memstream.recall.record_reader import RecordReader
from memstream.schemas.topics import catalogue
from memstream.schemas.turns import Owner, Sensitivity
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import app_over
from tests.support.isolation_reads import READS
from tests.support.isolation_world import (
    CONTENTS,
    SESSIONS,
    TENANTS,
    USERS,
    Asked,
    Told,
    Who,
    World,
)
from tests.support.stored_memory import NOW

INNER = {
    "CollectionCache.has": "whether a collection was ever made",
    "CollectionCache.of": "whether collections were ever made",
    "TierFilter.recall": "RecallService's",
    "TenantRecall.recall": "RecallService's",
    "BoundedLogReads.of_key": "of one key that FactTracer has checked",
    "BoundedLogReads.newest_of_key": "of one key that TurnTracer has checked",
    "FormerCounts.before": "partition counts alone",
    "FactLog.after": "MemoryExporter's",
    "FactLog.ends": "offsets alone",
    "FactLog.pages": "MemoryExporter's",
    "FactsAtMoment.returned": "returns what it is given",
    "LlmReranker.close": "no read",
    "LlmReranker.rerank": "orders what it is given",
    "LlmReranker.select": "chooses from what it is given",
    "RecordReader.is_outdated": "of the owner of a digest that was read",
    "RecordReader.joined_groups": "ids of groups that the caller has named",
    "RecallReports.latest": "of the owner of a fact that was read",
    "RecallService.shortlist": "ModelChoice's",
    "DeadlineReads.ask": "asks what it is given",
    "MemoryExporter.begin": "a time and offsets alone",
    "MemoryExporter.totals": "numbers alone",
    "MemorySearch.run": "RecallService's",
    "PublishingRecall.recall": "RecallService's",
    "TurnFinder.page": "turns of RecordReader.log with outcomes of TurnTracer.trace_page",
    "VerbatimReader.may_be_shown": "of a row that its caller has",
}
NO_READS = {"GET /livez", "GET /readyz", "GET /metrics", "POST /v1/turns", "POST /v1/reflect", "GET /v1/tools",
            "GET /v1/audit",  # tests/unit/tools/test_audit_topic.py: the trail of the own tenant
            "POST /v1/facts/{fact_id}/approve", "POST /v1/facts/{fact_id}/reject",
            "POST /v1/import",  # tests/integration/test_import.py: it needs memory:admin of the tenant
            "POST /v1/dead-letters/{topic}/{partition}/{offset}/redrive",  # console/test_console_letters.py
            "POST /v1/erasures", "GET /v1/erasures/{erasure_id}"}  # fmt: skip
EDITS = {f"{route.method} {route.path}" for route in EDIT_ROUTES}
"""They tell nothing but what the caller wrote. tests/unit/api/test_edits.py has who may write what."""


# ------------------------------------------------------------------------------------------------ asked of all
@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """One loop for the module: the stores live as long."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def world(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("isolation")
    identity = HashingEmbedder().identity
    with FolderLock(folder=folder / "store") as lock:
        assert lock.try_acquire()
        address = f"embedded://{folder / 'store'}"
        store = run(open_store(address, embedder=identity, holds_folder=True, serve_loopback=True))
        run(store.ensure())
        log = EmbeddedLog(folder=folder / "log")
        run(log.start())
        run(log.create([TopicSpec(topic.name, 1, 1, {}) for topic in catalogue()]))
        world = World(store, log)
        run(world.remember())
        yield world
        run(log.close())
        run(store.close())


@pytest.fixture(scope="module")
def stores(run: Any, world: World) -> Iterator[list[VectorStore]]:
    """The holder's, and one that reaches it over the loopback."""
    folder = world.log._folder.parent  # type: ignore[attr-defined]
    attached = run(open_store(f"embedded://{folder / 'store'}", embedder=HashingEmbedder().identity))
    yield [world.store, attached]
    run(attached.close())


MOMENTS = st.none() | st.integers(-2, 3).map(lambda minutes: NOW + timedelta(minutes=minutes))
ASKED = st.builds(
    Asked,
    who=st.builds(Who, st.sampled_from(TENANTS), st.sampled_from(USERS)),
    by_owner=st.booleans(),
    session=st.none() | st.sampled_from((*SESSIONS, "s3")),
    cue=st.none() | st.sampled_from((*CONTENTS, "stripe rival u2", "I say: tea")),
    limit=st.integers(1, 60),
    state=st.none() | st.sampled_from(("all", "active", "superseded")),
    subject=st.none() | st.sampled_from(("user", "u1")),
    as_of=MOMENTS,
    known_at=MOMENTS,
    ceiling=st.sampled_from(get_args(Sensitivity)),
    groups=st.sampled_from(((), ("team",), ("u1", "u2"))),
    profile=st.sampled_from(get_args(RankingProfile)),
    fact=st.integers(0, 15),
)


def assert_own(told: Told, asked: Asked) -> None:
    """Of the tenant; where a user asks for theirs, of this user or a group that was named."""
    assert {tenant for tenant, _ in told} <= {asked.who.tenant}
    if asked.by_owner:
        groups = {Owner(scope="group", id=group).key(asked.who.tenant) for group in asked.groups}
        assert {owner for _, owner in told} <= {asked.who.owner.key(asked.who.tenant), *groups}


@pytest.mark.parametrize("name", READS)
@settings(
    max_examples=settings.default.max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(asked=ASKED, over_loopback=st.booleans())
def test_nobody_is_told_anything_of_another(
    run: Any, world: World, stores: list[VectorStore], name: str, asked: Asked, over_loopback: bool
) -> None:
    if "recall" in name or "ontext" in name:
        asked = replace(asked, by_owner=True)  # an owner is always named
    assert_own(run(READS[name](world, stores[over_loopback], asked)), asked)


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("over_loopback", [False, True])
def test_everybody_is_told_what_is_theirs(
    run: Any, world: World, stores: list[VectorStore], name: str, over_loopback: bool
) -> None:
    """So that the test above is about something: of the facts somebody's is the third tenant's, too."""
    for tenant in TENANTS:
        for user in USERS:
            who = Who(tenant, user)
            key = (tenant, who.owner.key(tenant))
            own = next(n for n, ref in enumerate(world.facts) if world.memory.whose[ref.fact_id] == key)
            told = run(READS[name](world, stores[over_loopback], Asked(who, fact=own, cue="Works at Stripe")))
            assert set(told) == {key}


def test_links_are_read_of_those_who_are_asked_for_alone(run: Any, world: World, stores: list[VectorStore]) -> None:
    """So that no lift, above, is about something: here the group's links are asked for, which are of the user's."""
    for store in stores:
        asked = Asked(Who("acme", "u1"), cue="Works at Stripe", groups=("team",), profile="composite")
        answer = run(world.recall(store, asked.profile).recall(asked.recall, now=NOW))
        assert {each.item.tier for each in answer.items if each.item.parts["links"]} == {"semantic", "episodic"}


@pytest.mark.parametrize(
    "name", ["RecordReader.facts", "RecordReader.episodes", "RecordReader.working", "RecordReader.log"]
)
def test_another_ones_cursor_leads_to_ones_own(run: Any, world: World, name: str) -> None:
    method = getattr(RecordReader(store=world.store), name.partition(".")[2])
    for one in TENANTS:
        for other in TENANTS:
            cursor = run(method(RecordSelection(one, state="all"), limit=1)).next
            asked = Asked(Who(other, "u1"), by_owner=False, cursor=cursor)
            assert_own(run(READS[name](world, world.store, asked)), asked)


# ------------------------------------------------------------------------------------------------ none is forgotten
def public_coroutines(*modules: Any) -> Iterator[str]:
    for module in modules:
        for name, cls in inspect.getmembers(module, inspect.isclass):
            public = not name.startswith("_") and not getattr(cls, "_is_protocol", False)
            if cls.__module__ == module.__name__ and public:
                for method, function in inspect.getmembers(cls, inspect.isfunction):
                    if not method.startswith("_") and (
                        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
                    ):
                        yield f"{name}.{method}"


def test_every_public_read_has_a_row() -> None:
    rooms = [
        importlib.import_module(each.name)
        for each in pkgutil.walk_packages(memstream.recall.__path__, "memstream.recall.")
    ]
    readers = set(public_coroutines(*rooms, memstream.client.updates))
    routes = {
        f"{method.upper()} {path}" for path, methods in app_over().openapi()["paths"].items() for method in methods
    }
    assert len(routes) > 40
    known = set(READS) | set(INNER) | NO_READS | EDITS
    assert readers | routes <= known, "give it a row in READS, or say why it needs none"
    assert routes >= EDITS
    assert set(INNER) <= readers
