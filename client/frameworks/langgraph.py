"""LangGraph store whose items are facts in memory. Needs `memstream[langgraph]`.

    with connect_blocking("http://localhost:8000") as memory:
        graph = builder.compile(store=MemstreamStore(memory, tenant_id="acme"))

A namespace begins with an owner: ("users", "u1"), ("agents", "a1"), ("orgs", "o1") or ("groups", "g1"). An item is a
fact of this owner: the fact's metadata has the item's value, and recall and contexts use the item's text. Facts that
memory learnt from conversations are items of the owner's own namespace, with the fact id as key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from pydantic import JsonValue

from ...schemas.facts import Fact, Trust
from ...schemas.turns import Sensitivity
from ..blocking import BlockingMemory
from ..edits import Accepted
from ..errors import NotFound, Unavailable
from ..http_client import Api
from ..memory import Memory
from . import framework
from .langgraph_items import (
    ITEM,
    OWNER,
    Namespace,
    item_id,
    item_metadata,
    item_of,
    matches_condition,
    matches_filter,
    owner_of,
    plain_value,
    prefix_of,
    statements_of,
)

with framework("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        validate_op_namespace,
    )

RANKED_MAX = 100
"""Maximum number of ranked facts that a search with a query reads."""
AT_ONCE = 10
"""Number of facts that are read concurrently."""
R = TypeVar("R")


class MemstreamStore(BaseStore):
    """LangGraph store whose items are facts in memory. A blocking client works in `invoke` and `ainvoke`, an async
    client only in `ainvoke`.

    Args:
        memory: open client that reaches `memstream serve`.
        within: namespace that no call may leave, such as ("users", "u1"). Empty: every owner that the token allows.
        trust: source of the items' statements. With `assistant`, an item closes no fact that the user stated.
        ceiling: highest sensitivity of the items to read.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        tenant_id: str,
        within: Namespace = (),
        trust: Trust = "assistant",
        ceiling: Sensitivity = "internal",
    ) -> None:
        self._memory = memory
        self._within = within
        self._options = _Options(tenant_id, trust, ceiling)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations. Raises TypeError with an async client: use the methods that begin with `a`."""
        if not isinstance(self._memory, BlockingMemory):
            raise TypeError("this store has an async client: call aget, aput, asearch …, or give it connect_blocking")
        checked = self._checked(ops)
        return self._memory.submit(lambda memory: _StoreCalls(memory.api, self._options).run(checked)).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: reads first, then writes in order. Only the last write of a key is executed."""
        checked = self._checked(ops)
        if isinstance(self._memory, BlockingMemory):
            call = self._memory.submit(lambda memory: _StoreCalls(memory.api, self._options).run(checked))
            return await asyncio.wrap_future(call)
        return await _StoreCalls(self._memory.api, self._options).run(checked)

    def _checked(self, ops: Iterable[Op]) -> list[Op]:
        """Return the operations. Raises ValueError for a namespace without an owner or outside `within`."""
        checked = list(ops)
        for op in checked:
            validate_op_namespace(op)
            if isinstance(op, ListNamespacesOp):
                namespace = prefix_of(op)
            else:
                namespace = op.namespace_prefix if isinstance(op, SearchOp) else op.namespace
            owner_of(namespace)
            if namespace[: len(self._within)] != self._within:
                raise ValueError(f"the namespace {namespace} is not within {self._within}")
        return checked


@dataclass(frozen=True, slots=True)
class _Options:
    tenant_id: str
    trust: Trust
    ceiling: Sensitivity


@dataclass(frozen=True, slots=True)
class _StoreCalls:
    """Executor of the operations of one batch."""

    api: Api
    options: _Options

    async def run(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = [None] * len(ops)
        reads = [n for n, op in enumerate(ops) if not isinstance(op, PutOp)]
        for n, found in zip(reads, await asyncio.gather(*(self._read(ops[n]) for n in reads)), strict=True):
            results[n] = found
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for op in puts.values():
            await (self._delete(op) if op.value is None else self._put(op, op.value))
        return results

    async def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = await self._facts(op.namespace, op.key)
            return item_of(found[0], op.namespace[:OWNER]) if found else None
        if isinstance(op, SearchOp):
            return await self._search(op)
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(op)
        raise TypeError(f"unknown operation {type(op).__name__}")

    # ------------------------------------------------------------------------------------------------ reads
    async def _facts(self, namespace: Namespace, key: str) -> list[Fact]:
        """Return the facts of an item, newest first. There are several facts only if a put was interrupted."""
        found = [fact async for fact in self._owned(namespace, metadata=f"{ITEM}:{item_id(namespace, key)}")]
        if not found and len(namespace) == OWNER:
            fact = await self._fact(key)
            if fact is not None and fact.owner == owner_of(namespace) and ITEM not in fact.metadata:
                return [fact]
        return found

    async def _fact(self, fact_id: str) -> Fact | None:
        """Return the active fact with this id, or None."""
        try:
            fact = await self.api.fact(fact_id, tenant_id=self.options.tenant_id, ceiling=self.options.ceiling)
        except NotFound:
            return None
        return fact if fact.state == "active" else None

    async def _owned(self, namespace: Namespace, **fields: JsonValue) -> AsyncGenerator[Fact]:
        owner = owner_of(namespace)
        whose = {"tenant_id": self.options.tenant_id, "scope": owner.scope, "id": owner.id}
        async with aclosing(self.api.facts(**whose, ceiling=self.options.ceiling, **fields)) as facts:
            async for fact in facts:
                yield fact

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found: dict[tuple[Namespace, str], SearchItem] = {}
        prefix, wanted = op.namespace_prefix, op.offset + op.limit
        async with aclosing(self._ranked(op) if op.query else self._listed(op)) as facts:
            async for fact, score in facts:
                item = item_of(fact, prefix[:OWNER], score)
                if item.namespace[: len(prefix)] == prefix and matches_filter(item.value, op.filter):
                    found.setdefault((item.namespace, item.key), item)
                if len(found) >= wanted:
                    break
        return list(found.values())[op.offset : wanted]

    async def _listed(self, op: SearchOp) -> AsyncGenerator[tuple[Fact, float | None]]:
        async for fact in self._owned(op.namespace_prefix):
            yield fact, None

    async def _ranked(self, op: SearchOp) -> AsyncGenerator[tuple[Fact, float | None]]:
        owner = owner_of(op.namespace_prefix)
        recalled = await self.api.recall(
            op.query,
            tenant_id=self.options.tenant_id,
            scope=owner.scope,
            id=owner.id,
            ceiling=self.options.ceiling,
            tiers=["semantic"],
            limit=RANKED_MAX,
        )
        ranked = iter(recalled.items)
        while hits := list(islice(ranked, AT_ONCE)):
            facts = await asyncio.gather(*(self._fact(hit.id) for hit in hits))
            for hit, fact in zip(hits, facts, strict=True):
                if fact is not None and fact.owner == owner:
                    yield fact, hit.score

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        prefix = prefix_of(op)
        found: dict[Namespace, None] = {}
        async for fact in self._owned(prefix):
            namespace = item_of(fact, prefix[:OWNER]).namespace
            if all(matches_condition(namespace, each) for each in op.match_conditions or ()):
                found[namespace[: op.max_depth]] = None
        return sorted(found)[op.offset : op.offset + op.limit]

    # ------------------------------------------------------------------------------------------------ writes
    async def _put(self, op: PutOp, given: Mapping[str, Any]) -> None:
        """Write an item: first add the new fact, then forget the old one.

        An interrupted put leaves both facts. Reads then use the newest fact.
        """
        if op.ttl is not None:
            raise NotImplementedError("MemstreamStore has no TTL: memory fades by its own policy")
        value, now = plain_value(given), datetime.now(UTC)
        old = await self._facts(op.namespace, op.key)
        if old and ITEM not in old[0].metadata:
            raise ValueError(f"{op.key} is a fact that memory learnt, not an item: choose another key")
        last = item_of(old[0], op.namespace[:OWNER]) if old else None
        if last is not None and last.value == value:
            return
        metadata = item_metadata(op, value, created_at=last.created_at if last else now, now=now)
        if old and old[0].content in statements_of(op, value):
            kept = await self._update(old[0].fact_id, metadata)
        else:
            kept = await self._add(op, value, metadata)
        await self._forget([fact for fact in old if fact.fact_id != kept])

    async def _add(self, op: PutOp, value: Mapping[str, Any], metadata: dict[str, JsonValue]) -> str:
        """Add the fact of an item, and return the fact's id. If another fact already has the same text, add the item's
        name to the text."""
        owner = owner_of(op.namespace)
        for text in statements_of(op, value):
            remembered = _applied(
                await self.api.remember(
                    text,
                    as_it_is=True,
                    tenant_id=self.options.tenant_id,
                    scope=owner.scope,
                    id=owner.id,
                    trust=self.options.trust,
                    metadata=metadata,
                )
            )
            if remembered.decision in ("pending", "quarantined"):
                raise ValueError(
                    f"memory holds the item {op.key} back ({remembered.decision}): its text reads like an instruction "
                    "to the assistant. With index=False the text is not stored as a statement"
                )
            if remembered.decision != "dedup":
                return remembered.fact_id
        fact = await self._fact(remembered.fact_id)
        if fact is None or fact.metadata.get(ITEM) != item_id(op.namespace, op.key):
            raise ValueError(f"another item has the same text and name as {op.key}: choose another key")
        return await self._update(fact.fact_id, metadata)

    async def _update(self, fact_id: str, metadata: dict[str, JsonValue]) -> str:
        done = await self.api.update_fact(
            fact_id, tenant_id=self.options.tenant_id, metadata=metadata, trust=self.options.trust
        )
        return _applied(done).fact_id

    async def _delete(self, op: PutOp) -> None:
        await self._forget(await self._facts(op.namespace, op.key))

    async def _forget(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            _applied(await self.api.forget_fact(fact.fact_id, tenant_id=self.options.tenant_id, reason="LangGraph"))


def _applied(done: R | Accepted) -> R:
    """Return the result of an edit. Raises Unavailable if the edit is not applied yet: it waits in the log."""
    if isinstance(done, Accepted):
        raise Unavailable(f"memory has accepted the item but not applied it yet (command {done.command_id})")
    return done
