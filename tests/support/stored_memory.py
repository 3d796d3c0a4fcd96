"""A stored memory for tests of reads: builders that write records into a store as the stages do."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import Point, VectorStore
from memstream.memory.recall.links import Links, strengthen_links
from memstream.memory.upkeep.gist import archive_row
from memstream.schemas import ids
from memstream.schemas.blocks import MemoryBlock, StoredBlock, StoredHoldings
from memstream.schemas.cloudevents import rfc3339
from memstream.schemas.collections import (
    ARCHIVE,
    BLOCKS,
    DIGESTS,
    EPISODES,
    FACTS,
    GROUPS,
    HOLDINGS,
    LINKS,
    PROCEDURES,
    TASKS,
    TURNS,
    WORKING,
)
from memstream.schemas.digests import Basis, StoredDigest
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import Evidence, StoredFact
from memstream.schemas.groups import StoredGroup
from memstream.schemas.links import StoredLinks
from memstream.schemas.procedures import StoredProcedure
from memstream.schemas.prospective import StoredTask
from memstream.schemas.recall import Tier
from memstream.schemas.turns import Owner
from memstream.schemas.working_set import StoredMessage, StoredWorkingEntry

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
COLLECTION: dict[Tier, str] = {"semantic": FACTS, "working": WORKING, "episodic": EPISODES, "turns": TURNS}


class StoredMemory:
    """Writes records of any tenant and user. `whose` maps each record to its owner."""

    def __init__(self, store: VectorStore) -> None:
        self.store = store
        self.embedder = HashingEmbedder()
        self.whose: dict[str, tuple[str, str]] = {}
        """Tenant and owner key by record id."""

    async def fact(self, content: str, *, tenant: str = "acme", owner: Owner | None = None, **fields: Any) -> str:
        owner = owner or Owner(scope="user", id="u1")
        cause = fields.pop("cause", f"{tenant}/{content}")
        observation = str(uuid.uuid5(uuid.NAMESPACE_URL, cause))
        evidence = Evidence(turn_id="t1", session_id="s1", observation_id=observation, occurred_at=NOW, quote=content)
        defaults: dict[str, Any] = {
            "fact_id": ids.fact_id(owner.key(tenant), observation),
            "version": 1,
            "tenant_id": tenant,
            "owner": owner,
            "subject": "user",
            "content": content,
            "category": "profession",
            "confidence": 0.8,
            "state": "active",
            "valid_from": NOW,
            "recorded_at": NOW,
            "embedder": "hashing",
            "content_hash": ids.content_hash(content),
            "evidence": (evidence,),
            "owner_key": owner.key(tenant),
        }
        fact = StoredFact(**(defaults | fields))
        await self._put("semantic", fact.fact_id, fact)
        return fact.fact_id

    async def episode(self, content: str, *, tenant: str = "acme", owner: Owner | None = None, **fields: Any) -> str:
        owner = owner or Owner(scope="user", id="u1")
        observation = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{owner.key(tenant)}/{content}"))
        defaults: dict[str, Any] = {
            "episode_id": ids.episode_id(observation),
            "tenant_id": tenant,
            "owner": owner,
            "session_id": "s1",
            "turn_id": "t1",
            "observation_id": observation,
            "subject": "user",
            "content": content,
            "category": "event",
            "durability": "persistent",
            "importance": 0.7,
            "occurred_at": NOW,
            "valid_from": NOW,
            "recorded_at": NOW,
            "evidence": content,
            "content_hash": ids.content_hash(content),
            "owner_key": owner.key(tenant),
            "user_id": owner.id,
        }
        episode = StoredEpisode(**(defaults | fields))
        await self._put("episodic", episode.episode_id, episode)
        return episode.episode_id

    async def entry(
        self, content: str, *, tenant: str = "acme", user: str = "u1", session: str = "s1", **fields: Any
    ) -> str:
        key = ids.session_key(tenant, user, session)
        entry_id = ids.observation_id(key, "t1", "user", content)
        defaults: dict[str, Any] = {
            "entry_id": entry_id,
            "observation_id": entry_id,
            "content": content,
            "subject": "user",
            "category": "goal",
            "durability": "session",
            "importance": 0.6,
            "salience": 0.5,
            "created_turn": 1,
            "last_access_turn": 1,
            "tenant_id": tenant,
            "owner_key": ids.owner_key(tenant, "user", user),
            "user_id": user,
            "session_id": session,
            "turn_number": 1,
            "updated_at": NOW,
        }
        await self._put("working", entry_id, StoredWorkingEntry(**(defaults | fields)))
        return entry_id

    async def message(
        self, content: str, *, tenant: str = "acme", user: str = "u1", session: str = "s1", **fields: Any
    ) -> str:
        turn = fields.pop("turn", f"turn of {content}"[:128])
        index = fields.pop("message_index", 0)
        message_id = ids.message_id(ids.session_key(tenant, user, session), turn, index)
        defaults: dict[str, Any] = {
            "message_id": message_id,
            "message_index": index,
            "role": "user",
            "content": content,
            "tenant_id": tenant,
            "owner_key": ids.owner_key(tenant, "user", user),
            "user_id": user,
            "session_id": session,
            "turn_id": turn,
            "occurred_at": NOW,
        }
        await self._put("turns", message_id, StoredMessage(**(defaults | fields)))
        return message_id

    async def digest(self, text: str, *, tenant: str = "acme", owner: Owner | None = None, **fields: Any) -> str:
        owner = owner or Owner(scope="user", id="u1")
        digest_id = ids.digest_id(owner.key(tenant))
        defaults: dict[str, Any] = {
            "digest_id": digest_id,
            "tenant_id": tenant,
            "owner": owner,
            "text": text,
            "at": NOW,
            "basis": Basis(facts=1),
            "owner_key": owner.key(tenant),
        }
        digest = StoredDigest(**(defaults | fields))
        self.whose[digest_id] = (tenant, digest.owner_key)
        await self.store.put(DIGESTS, [Point(digest_id, digest.to_payload())])
        return digest_id

    async def procedure(self, name: str, *, tenant: str = "acme", owner: Owner | None = None) -> str:
        owner = owner or Owner(scope="user", id="u1")
        key = owner.key(tenant)
        procedure = StoredProcedure(
            procedure_id=ids.procedure_id(key, name), tenant_id=tenant, owner=owner, name=name, trigger=name,
            steps=(name,), at=NOW, owner_key=key,
        )  # fmt: skip
        self.whose[procedure.procedure_id] = (tenant, key)
        await self.store.put(PROCEDURES, [Point(procedure.procedure_id, procedure.to_payload())])
        return procedure.procedure_id

    async def block(self, name: str, *, tenant: str = "acme", owner: Owner | None = None, **fields: Any) -> str:
        owner = owner or Owner(scope="user", id="u1")
        key = owner.key(tenant)
        defaults: dict[str, Any] = {"name": name, "value": name, "limit": 2_000, "updated_at": NOW}
        block = StoredBlock(
            **(defaults | fields), block_id=ids.block_id(key, name), tenant_id=tenant, owner=owner, owner_key=key
        )
        self.whose[block.block_id] = (tenant, key)
        await self.store.put(BLOCKS, [Point(block.block_id, block.to_payload())])
        return block.block_id

    async def holdings(
        self, *, tenant: str = "acme", user: str = "u1", session: str = "s1", blocks: Sequence[str] = (), **fields: Any
    ) -> None:
        """Write what a session holds. `blocks`: the texts of its own."""
        held = StoredHoldings(
            holdings_id=ids.holdings_id(ids.session_key(tenant, user, session)), tenant_id=tenant, user_id=user,
            session_id=session, updated_at=NOW,
            blocks=tuple(MemoryBlock(name=f"b{n}", value=text, limit=2_000, updated_at=NOW)
                         for n, text in enumerate(blocks)),
            **fields,
        )  # fmt: skip
        await self.store.put(HOLDINGS, [Point(held.holdings_id, held.to_payload())])

    async def group(self, name: str, *, tenant: str = "acme", members: Sequence[Owner] = (), **fields: Any) -> None:
        owner = Owner(scope="group", id=name)
        group = StoredGroup(
            tenant_id=tenant, group_id=name, members=tuple(members), updated_at=NOW, owner_key=owner.key(tenant),
            record_id=ids.group_record_id(owner.key(tenant)), **fields,
            member_keys=tuple(each.key(tenant) for each in members),
        )  # fmt: skip
        await self.store.put(GROUPS, [Point(group.record_id, group.to_payload())])

    async def task(self, content: str, *, tenant: str = "acme", owner: Owner | None = None, **fields: Any) -> str:
        owner = owner or Owner(scope="user", id="u1")
        key = owner.key(tenant)
        defaults: dict[str, Any] = {"subject": "user", "state": "due", "due_at": NOW, "created_at": NOW}
        task = StoredTask(
            **(defaults | fields), task_id=ids.task_id(key, content), tenant_id=tenant, owner=owner, content=content,
            updated_at=NOW, owner_key=key, content_hash=ids.content_hash(content),
        )  # fmt: skip
        self.whose[task.task_id] = (tenant, key)
        await self.store.put(TASKS, [Point(task.task_id, task.to_payload())])
        return task.task_id

    async def compressed(self, content: str, **fields: Any) -> str:
        """Write an episode that was reduced to a gist; its full text is in the archive."""
        episode_id = await self.episode(content, **fields)
        tenant_id, _ = self.whose[episode_id]
        found = await self.store.get(EPISODES, tenant_id=tenant_id, ids=[episode_id])
        row = archive_row(StoredEpisode.from_payload(found[episode_id].payload), at=NOW)
        await self.store.put(ARCHIVE, [Point(row.archive_id, row.to_payload())])
        gist: dict[str, Any] = {"content": f"{content[:8]} …", "archived_at": rfc3339(NOW)}
        await self.store.set_payload(EPISODES, tenant_id=tenant_id, ids=[episode_id], fields=gist)
        return episode_id

    async def links(
        self, *together: Sequence[str], weight: float = 0.5, tenant: str = "acme", owner: Owner | None = None
    ) -> None:
        """Write all links of an owner: within each group, every pair."""
        key = (owner or Owner(scope="user", id="u1")).key(tenant)
        links = Links()
        for each in together:
            links = strengthen_links(links, each, at=NOW, step=weight, keep=4_096)
        stored = StoredLinks(links_id=ids.links_id(key), tenant_id=tenant, owner_key=key, packed=links.packed)
        await self.store.put(LINKS, [Point(stored.links_id, stored.to_payload())])

    async def _put(
        self, tier: Tier, identity: str, record: StoredFact | StoredEpisode | StoredWorkingEntry | StoredMessage
    ) -> None:
        self.whose[identity] = (record.tenant_id, record.owner_key)
        dense, text = None, None
        if tier != "working":
            [dense] = await self.embedder.embed([record.content], tenant_id=record.tenant_id)
            text = record.content
        window = dense if tier == "turns" else None
        point = Point(identity, record.to_payload(), dense=dense, text=text, window=window)
        await self.store.put(COLLECTION[tier], [point])
