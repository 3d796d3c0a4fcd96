"""The history checker over a running pipeline: what `memstream verify` reports, and what only a test knows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from pydantic import ValidationError

from memstream.adapters.completions.offline import NAME as OFFLINE_MODEL
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.ports import EmbedderIdentity
from memstream.adapters.vectors.factory import embedded_store_folder, open_store
from memstream.adapters.vectors.store import QdrantStore
from memstream.cli.wiring.settings import load
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.topics import STAGES, StageName, catalogue
from memstream.schemas.turns import Turn
from memstream.streams.log.port import Log
from memstream.verification import Expected, HistoryScope, read_history, verify
from memstream.verification.history import Offsets
from memstream.verification.rows import TurnName

SIGNS_OF_WORK = ("moved while it was read", "records behind")
"""Said by the check of a memory that works on something."""


def still_works(said: Collection[str]) -> bool:
    """Whether these violations tell of work under way: a reminder came when it was due. Then wait for lag 0 again."""
    return any(sign in line for line in said for sign in SIGNS_OF_WORK)


async def ends_of(log: Log) -> Offsets:
    """Return where every topic ends now. On a shared broker, all records before belong to others."""
    topics = [topic.name for topic in catalogue()]
    return {name: dict(enumerate(await log.ends(name))) for name in topics if await log.partitions(name) is not None}


def name_of(value: bytes) -> TurnName | None:
    """Return the name of a valid turn; None for anything else."""
    try:
        turn = Turn.read(value)
    except ValidationError:
        return None
    return turn.session_key, turn.turn_id


@contextlib.asynccontextmanager
async def store_of(environment: Mapping[str, str]) -> AsyncIterator[QdrantStore]:
    """Yield the pipeline's store: the server, the worker's engine, or the folder if no worker holds it."""
    url = environment["MEMSTREAM_QDRANT"]
    async with AsyncExitStack() as stack:
        folder = embedded_store_folder(url)
        held = False
        if folder is not None:
            lock = FolderLock(folder=folder, purpose="verifying")
            held = lock.try_acquire()
            stack.callback(lock.release)
        store = await open_store(
            url,
            embedder=EmbedderIdentity(name="hashing", dimension=0),
            api_key=environment.get("QDRANT_API_KEY"),
            holds_folder=held,
        )
        stack.push_async_callback(store.close)
        yield store


async def violations(
    *,
    log: Log,
    environment: Mapping[str, str],
    config: Path,
    tenant: str | None,
    since: Offsets,
    stages: Collection[StageName],
    acknowledged: Collection[TurnName],
    refused_by_model: Collection[TurnName] | None,
    invariants: Collection[str] | None = None,
) -> list[str]:
    """Return one line for each violation of these invariants (default: all), with the records that show it."""
    policy = load(config=config)[1] if config.is_file() else MemoryPolicy()
    async with store_of(environment) as store:
        history = await read_history(
            log=log, store=store, scope=HistoryScope(tenant=tenant, since=since, policy=policy)
        )
    expected = Expected(
        stages=frozenset(stages or STAGES),
        policy=policy,
        tier=environment.get("MEMSTREAM_TIER", "free"),
        free_models=frozenset((OFFLINE_MODEL,)),
        acknowledged=frozenset(acknowledged),
        refused_by_model=None if refused_by_model is None else frozenset(refused_by_model),
    )
    verdicts = verify(history, expected)
    return [
        json.dumps([verdict.invariant, each.what, each.records], ensure_ascii=False)
        for verdict in verdicts
        for each in verdict.violations
        if invariants is None or verdict.invariant in invariants
    ]
