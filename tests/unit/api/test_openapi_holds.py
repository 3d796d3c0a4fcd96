"""Schemathesis over the OpenAPI document. Every answer must be one that the document describes, and a request that
breaks a rule must be refused. The run is bounded and seeded. Behind the server are a real log and a real engine on a
folder, with the memory of two tenants."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from schemathesis.checks import CHECKS, load_all_checks

from docs.generate.openapi import FILE
from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.vectors.factory import open_store
from memstream.api.credentials import Credentials
from memstream.memory.policies import RecallPolicy
from memstream.recall.service import RecallService
from memstream.schemas.topics import FACTS_UPDATED, TURNS
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import app_over, bearer, entry, served
from tests.support.stored_memory import StoredMemory

pytestmark = pytest.mark.slow
EXAMPLES = 10
SEED = 5
TOKEN = "of-acme"
SCOPES = ("turns:write", "memory:read", "memory:read-secret", "memory:write")
STREAM = "/v1/facts/updates"
OPEN_BODIES = {"Turn", "TurnMessage", "ContentPart"}
"""Objects in which a service may send its own fields."""
LINE_MAX = 8_190
"""Bytes of a request line that the server reads. It answers a longer one with 431 and closes, and the client may see
the end of the connection first."""

load_all_checks()
ALL = CHECKS.get_all()
"""Every check of schemathesis."""
LEFT_OUT = {"use_after_free", "ensure_resource_availability", "positive_data_acceptance"}
"""Checks that do not apply. Nothing is created and deleted here. A request that fits the schema may still be refused,
because a schema does not say that scope and id go together, which user a token allows, what a cursor contains, or the
other rules of a turn."""


async def serve(folder: Path, address: queue.Queue[str | None], stopping: threading.Event) -> None:
    """Run the server with all its services on one loop, as in a process of its own."""
    embedder = HashingEmbedder()
    log = EmbeddedLog(folder=folder)
    await log.start()
    await log.create([TopicSpec(TURNS.name, 1, 1, {}), TopicSpec(FACTS_UPDATED.name, 1, 1, {})])
    store = await open_store(f"embedded://{folder}", embedder=embedder.identity, holds_folder=True)
    await store.ensure()
    memory = StoredMemory(store)
    for tenant in ("acme", "rival"):
        await memory.fact("Works at Stripe", tenant=tenant)
        await memory.episode("Signed the contract", tenant=tenant)
        await memory.message("My badge says Stripe", tenant=tenant)
        await memory.entry("Prepares a talk", tenant=tenant)
    recall = RecallService(store=store, embedder=embedder, policy=RecallPolicy())
    app = app_over(log=log, store=store, recall=recall, credentials=Credentials([entry(TOKEN, scopes=SCOPES)]))
    async with served(app) as url:
        address.put(url)
        await asyncio.to_thread(stopping.wait)
    await store.close()
    await log.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("api")
    addresses: queue.Queue[str | None] = queue.Queue()
    stopping = threading.Event()

    def run() -> None:
        try:
            asyncio.run(serve(folder, addresses, stopping))
        finally:
            addresses.put(None)

    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        server = threading.Thread(target=run)
        server.start()
        try:
            url = addresses.get(timeout=60)
            assert url is not None
            yield url
        finally:
            stopping.set()
            server.join(60)


def with_closed_answers() -> dict[str, Any]:
    """Return the document with answers that allow no unknown field. Clients accept further fields, but the server sends
    none."""
    document: dict[str, Any] = json.loads(FILE.read_text())
    for name, each in document["components"]["schemas"].items():
        if name not in OPEN_BODIES and each.get("additionalProperties") is True:
            each["additionalProperties"] = False
    return document


REFUSALS = "400 401 403 404 405 406 409 413 415 422 428 429 431"
"""Answers to a request that breaks the schema: those that schemathesis expects, and those of too large a request."""

config = schemathesis.Config.from_dict(
    {"seed": SEED, "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS.split()}}}
)
schema = schemathesis.openapi.from_dict(with_closed_answers(), config=config).exclude(path=STREAM)


@pytest.mark.long
@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_the_document_holds(case: Any, address: str) -> None:
    excluded = [check for check in ALL if check.__name__ in LEFT_OUT]
    try:
        answer = case.call_and_validate(base_url=address, headers=bearer(TOKEN), excluded_checks=excluded)
    except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError):
        line = requests.Request("GET", address, params=case.query).prepare().path_url
        assert len(line) > LINE_MAX, "only a request line that is not read to its end may end the connection"
        return
    assert answer.status_code != 422 or answer.json()["errors"], "who is refused is told the field"
