"""Shards by tenant: the assignment of tenants to a server's shards (docs/adr/0046-large-tenants-have-shards.md).

With sharding by tenant, a request contains two shard keys, the tenant's own key and `FALLBACK`. The server uses the
tenant's own shard when this shard exists and is complete. Otherwise it uses the fallback shard, which has the records
of all small tenants. Therefore this module does not need to know which tenants have a shard, and an operator may give a
tenant its own shard while stages write.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar, runtime_checkable

import structlog
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from ...schemas.collections import Sharding
from ...schemas.errors import Fatal, Transient
from .engine import QdrantEngine
from .errors import COMPONENT

log = structlog.get_logger(__name__)
FALLBACK: Final = "default"
"""Shard key of all tenants without their own shard."""
LOOK_SECONDS: Final = 0.1
READY_LOOKS: Final = 100
"""Maximum number of checks of a shard that another process is creating. After that, the caller must try again."""


class TenantsOwn(Protocol):
    """An item that belongs to one tenant."""

    @property
    def tenant_id(self) -> str: ...


T = TypeVar("T", bound=TenantsOwn)
ShardKeys = models.ShardKeyWithFallback | None


@runtime_checkable
class HasShards(Protocol):
    """An engine whose collections can have several shards: `AsyncQdrantClient`."""

    async def cluster_status(self) -> models.ClusterStatus: ...

    async def create_shard_key(
        self, collection_name: str, shard_key: str, *, placement: list[int] | None = None
    ) -> bool: ...

    async def collection_cluster_info(self, collection_name: str) -> models.CollectionClusterInfo: ...


class Shards:
    """Shard keys for requests. With `auto` there are no keys, and a request may contain several tenants."""

    def __init__(self, sharding: Sharding) -> None:
        self.by_tenant = sharding == "tenant"

    def keys(self, tenant_id: str) -> ShardKeys:
        return models.ShardKeyWithFallback(target=tenant_id, fallback=FALLBACK) if self.by_tenant else None

    async def each(self, items: Sequence[T], send: Callable[[Sequence[T], ShardKeys], Awaitable[None]]) -> None:
        """Send the items in as few requests as the shards allow, concurrently. Raise an error only after all requests
        have ended, because the caller may send the same points again."""
        if not self.by_tenant:
            if items:
                await send(items, None)
            return
        groups: defaultdict[str, list[T]] = defaultdict(list)
        for item in items:
            groups[item.tenant_id].append(item)
        outcomes = await asyncio.gather(
            *(send(group, self.keys(tenant_id)) for tenant_id, group in groups.items()), return_exceptions=True
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome


async def check_cluster(engine: QdrantEngine) -> None:
    """Raise `Fatal` when the server does not support shards by key."""
    assert isinstance(engine, HasShards)  # open_store rejects other engines
    status = (await engine.cluster_status()).status
    if status != "enabled":
        raise Fatal(
            f"MEMSTREAM_QDRANT_SHARDING=tenant needs a Qdrant in cluster mode, and this one says: {status}. Start it "
            "with QDRANT__CLUSTER__ENABLED=true and --uri, or leave the setting out."
        )


async def check_method(engine: QdrantEngine, collection: str, *, by_tenant: bool) -> None:
    """Raise `Fatal` when a collection has another sharding method than the setting. The method of a collection never
    changes."""
    method = (await engine.get_collection(collection)).config.params.sharding_method or models.ShardingMethod.AUTO
    if (method == models.ShardingMethod.CUSTOM) == by_tenant:
        return
    theirs, ours = ("auto", "tenant") if by_tenant else ("tenant", "auto")
    raise Fatal(
        f"The collection {collection} has the sharding `{method.value}`, and MEMSTREAM_QDRANT_SHARDING={ours} needs "
        f"another: the sharding of a collection cannot be changed. Set MEMSTREAM_QDRANT_SHARDING={theirs} in every "
        "process to keep the stored memory, or point MEMSTREAM_QDRANT at an empty Qdrant to start fresh."
    )


async def create_fallback(engine: QdrantEngine, collection: str) -> None:
    """Create the fallback shard of a new collection. If another process is creating it, wait until it is active."""
    assert isinstance(engine, HasShards)
    await _create(engine, collection, FALLBACK, placement=None)


async def copy_shards(engine: QdrantEngine, collection: str, *, model: str) -> None:
    """Create in a new collection the same tenant shards as in the collection `model`, on the same nodes.

    No process may write to the new collection before this call ends: a shard that is created later hides the records of
    its tenant that are already in the fallback. An incomplete shard of `model` is left out, because the fallback of
    `model` still has the tenant's records. A shard that the server refuses is left out and logged; its tenant starts in
    the fallback of the new collection.
    """
    assert isinstance(engine, HasShards)
    active = models.ReplicaState.ACTIVE
    found = [(key, peer) for key, peer, state in await _replicas(engine, model) if state == active and key != FALLBACK]
    peers: defaultdict[str, list[int]] = defaultdict(list)
    for key, peer in found:
        peers[key].append(peer)
    for key in sorted(peers):
        try:
            await _create(engine, collection, key, placement=sorted(set(peers[key])))
        except UnexpectedResponse as refused:
            if not 400 <= (refused.status_code or 0) < 500:
                raise  # the shard may be created nevertheless
            log.warning("tenant_shard_left_out", collection=collection, tenant_id=key, error=str(refused))


async def _create(engine: HasShards, collection: str, key: str, *, placement: list[int] | None) -> None:
    """Create a shard, and return when it is active. Raise `Transient` when it does not become active in time."""
    if not await _states(engine, collection, key):
        try:
            await engine.create_shard_key(collection, key, placement=placement)
        except UnexpectedResponse:
            if not await _states(engine, collection, key):
                raise
    for _ in range(READY_LOOKS):
        if models.ReplicaState.ACTIVE in await _states(engine, collection, key):
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise Transient(COMPONENT, f"the shard {key!r} of {collection} is not active yet")


async def _states(engine: HasShards, collection: str, key: str) -> list[models.ReplicaState]:
    """Return the state of each replica of a shard; empty when the shard does not exist."""
    return [state for each, _, state in await _replicas(engine, collection) if each == key]


async def _replicas(engine: HasShards, collection: str) -> list[tuple[str, int, models.ReplicaState]]:
    """Return key, node and state of each replica in a collection. Replicas without a text as shard key are left out."""
    info = await engine.collection_cluster_info(collection)
    found = [(each.shard_key, info.peer_id, each.state) for each in info.local_shards]
    found += [(each.shard_key, each.peer_id, each.state) for each in info.remote_shards]
    return [(key, peer, state) for key, peer, state in found if isinstance(key, str)]
