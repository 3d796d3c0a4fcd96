"""A memory for the pages of the console: rows in a real store and records in a real log, as the stages write them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.vectors.factory import open_store
from memstream.api.credentials import Credentials
from memstream.schemas import ids
from memstream.schemas.facts import Decision, Evidence, Fact, FactCause, FactUpdated, StoredFact
from memstream.schemas.topics import FACTS, FACTS_UPDATED, OBSERVATIONS, RECALLED, TURNS, Topic, dead_letters_of
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import NoCommands, app_over, entry
from tests.support.fact_history import PastFacts
from tests.support.record_builders import observation, observed, stored_fact
from tests.support.stored_memory import NOW, StoredMemory

Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine on the loop of a module."""
ALL_RIGHTS = entry("all", tenants=("acme", "rival"),
                   scopes=("memory:read", "memory:read-secret", "memory:write", "memory:review"))  # fmt: skip
READ_ONLY = entry("reader", scopes=("memory:read",))
BOUND = entry("bound", scopes=("memory:read", "memory:write", "memory:review"), users=("u2",))
TOKENS = Credentials((ALL_RIGHTS, READ_ONLY, BOUND))
TOPICS_READ = (TURNS, dead_letters_of(TURNS), FACTS, FACTS_UPDATED, OBSERVATIONS, RECALLED)
MINUTE = timedelta(minutes=1)


class ConsoleWorld:
    def __init__(self, past: PastFacts, memory: StoredMemory, commands: NoCommands, app: FastAPI) -> None:
        self.past = past
        self.memory = memory
        self.commands = commands
        self.app = app

    async def learnt(
        self,
        content: str = "Works at Stripe",
        *,
        tenant: str = "acme",
        user: str = "u1",
        turn: str = "t1",
        said: str | None = None,
        quote: str | None = None,
        seen: dict[str, Any] | None = None,
        event: dict[str, Any] | None = None,
        message: dict[str, Any] | None = None,
        record: dict[str, Any] | None = None,
        **changes: Any,
    ) -> StoredFact:
        """Write a message, the observation made from it, and the fact with its first event."""
        owner = Owner(scope="user", id=user)
        key = owner.key(tenant)
        session = ids.session_key(tenant, user, "s1")
        made = observation(content, turn=turn, session=session, evidence=quote or content, **(seen or {}))
        evidence = Evidence(turn_id=turn, session_id="s1", observation_id=made.observation_id, occurred_at=NOW,
                            quote=quote or content)  # fmt: skip
        whose = {"tenant_id": tenant, "owner": owner, "owner_key": key, "evidence": (evidence,),
                 "fact_id": ids.fact_id(key, made.observation_id)}  # fmt: skip
        fact = StoredFact.model_validate({**dict(stored_fact(content)), **whose, **changes})
        await self.memory.message(said or content, tenant=tenant, user=user, turn=turn, **(message or {}))
        written = observed(made, turn=turn, tenant_id=tenant, owner=owner, user_id=user, **(record or {}))
        await self.past.append(OBSERVATIONS.name, fact, written.to_bytes(), NOW)
        await self.past.put(fact)
        cause = FactCause(turn_ids=(turn,), observation_ids=(made.observation_id,), model="small-model",
                          prompt="observe/v2:sha256abc")  # fmt: skip
        await self.changed(fact, None, **({"action": "new", "cause": cause} | (event or {})))
        return fact

    async def changed(self, fact: StoredFact, before: Fact | None, **fields: Any) -> None:
        """Write an event of a fact."""
        defaults: dict[str, Any] = {
            "event_id": ids.event_id(fact.fact_id, fact.version),
            "action": "updated",
            "at": NOW + fact.version * MINUTE,
            "tenant_id": fact.tenant_id,
            "owner": fact.owner,
            "fact": fact.public(),
            "before": before,
            "decision": Decision(stage="admit"),
        }
        made = FactUpdated(**(defaults | fields))
        await self.past.append(FACTS_UPDATED.name, fact, made.to_bytes(), NOW)


@asynccontextmanager
async def console_world(
    folder: Path,
    credentials: Credentials = TOKENS,
    *,
    topics: Sequence[Topic] = TOPICS_READ,
    partitions: int = 1,
    **more: Any,
) -> AsyncIterator[ConsoleWorld]:
    with FolderLock(folder=folder / "store") as lock:
        assert lock.try_acquire()
        identity = HashingEmbedder().identity
        store = await open_store(f"embedded://{folder / 'store'}", embedder=identity, holds_folder=True)
        await store.ensure()
        log = EmbeddedLog(folder=folder / "log")
        await log.start()
        await log.create([TopicSpec(each.name, partitions, 1, {}) for each in topics])
        commands = NoCommands()
        app = app_over(log=log, store=store, commands=commands, credentials=credentials, **more)
        try:
            yield ConsoleWorld(PastFacts(store, log), StoredMemory(store), commands, app)
        finally:
            await log.close()
            await store.close()
