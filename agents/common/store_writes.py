"""Idempotent writes of an outcome to the vector store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ...adapters.ports import NewWindow, Point, StoredPoint, VectorStore
from ...schemas.collections import FACTS
from ...schemas.errors import Fatal
from ...schemas.outcomes import (
    ApplyLabels,
    DeletePoints,
    InsertPoints,
    NewWindows,
    OutPoint,
    PutPoints,
    SetFields,
    SwapPoint,
    Write,
)
from .turn_labels import apply_labels


def point(out: OutPoint) -> Point:
    return Point(
        id=out.id,
        payload=dict(out.payload),
        dense=out.dense,
        text=out.text,
        nearby=out.nearby,
        window=out.window,
    )


async def with_vectors(
    writes: Sequence[Write], embed: Callable[[Sequence[str]], Awaitable[Mapping[str, Sequence[float]]]]
) -> tuple[Write, ...]:
    """Return an outcome's writes with the vectors that its stored row leaves out.

    `embed` is called only for points without a vector. An outcome that was just decided has all vectors.
    """
    points = [point for write in writes for point in _points(write) if point.reembed and point.text is not None]
    if not points:
        return tuple(writes)
    vectors = await embed(list(dict.fromkeys(point.text for point in points if point.text is not None)))

    def whole(point: OutPoint) -> OutPoint:
        if not point.reembed or point.text is None:
            return point
        return point.model_copy(update={"dense": vectors[point.text], "reembed": False})

    return tuple(_with_points(write, whole) for write in writes)


def _points(write: Write) -> tuple[OutPoint, ...]:
    if isinstance(write, SwapPoint):
        return (write.point,)
    return write.points if isinstance(write, InsertPoints | PutPoints) else ()


def _with_points(write: Write, change: Callable[[OutPoint], OutPoint]) -> Write:
    if isinstance(write, SwapPoint):
        return write.model_copy(update={"point": change(write.point)})
    if isinstance(write, InsertPoints | PutPoints):
        return write.model_copy(update={"points": tuple(map(change, write.points))})
    return write


async def apply_writes(store: VectorStore, writes: Iterable[Write]) -> None:
    """Apply writes in order. Adjacent compare-and-sets run concurrently, so that the store can batch them.

    All writes are durable when this returns. After a crash any subset of them may be applied.

    Raises Fatal when a compare-and-set finds neither the expected version nor its own cause, because a second writer
    has changed the row. All started writes have ended before the error is raised.
    """
    async with store.writes_together():
        for is_swap, run in groupby(writes, lambda write: isinstance(write, SwapPoint)):
            if is_swap:
                await _all_done(_apply(store, write) for write in run)
            else:
                for write in run:
                    await _apply(store, write)


async def _all_done(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run calls concurrently and wait for all of them. Raises the first error in the order of the calls."""
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def _apply(store: VectorStore, write: Write) -> None:
    if isinstance(write, InsertPoints):
        await store.insert(write.collection, [point(out) for out in write.points])
    elif isinstance(write, PutPoints):
        await store.put(write.collection, [point(out) for out in write.points])
    elif isinstance(write, SetFields):
        await store.set_payload(write.collection, tenant_id=write.tenant_id, ids=write.ids, fields=dict(write.fields))
    elif isinstance(write, NewWindows):
        changed = [NewWindow(each.id, each.text, each.window, each.nearby) for each in write.points]
        await store.rewindow(write.collection, tenant_id=write.tenant_id, points=changed)
    elif isinstance(write, ApplyLabels):
        await apply_labels(store, tenant_id=write.tenant_id, label_ids=write.ids)
    elif isinstance(write, DeletePoints):
        await store.delete(write.collection, tenant_id=write.tenant_id, ids=write.ids)
    else:
        await _swap(store, write)


REBUILT = "rebuilt/"


def rebuilt_mark(version: int) -> str:
    """Return the entry in `applied` that marks a row as rebuilt from memory.facts.

    The earlier causes of a rebuilt row are unknown.
    """
    return f"{REBUILT}{version}"


async def _swap(store: VectorStore, write: SwapPoint) -> None:
    result = await store.compare_and_set(
        write.collection, point(write.point), expected_version=write.expected_version, cause=write.cause
    )
    if result == "applied":
        return
    tenant_id = str(write.point.payload["tenant_id"])
    found = (await store.get(write.collection, tenant_id=tenant_id, ids=[write.point.id])).get(write.point.id)
    if not _rebuilt(found, write):
        raise Fatal(
            f"{write.collection}/{write.point.id}: it has neither the expected version {write.expected_version} nor "
            f"the cause {write.cause} in `applied`: {_why_conflict(found, write)}"
        )


def _why_conflict(found: StoredPoint | None, write: SwapPoint) -> str:
    version = 0 if found is None else found.payload.get("version")
    if write.collection == FACTS and isinstance(version, int) and version < (write.expected_version or 0):
        return (
            f"it has version {version}. An older snapshot was restored while workers ran: stop all workers and run "
            "`memstream rebuild facts`"
        )
    return "another writer is active. Look for a second deployment on this Qdrant, or for a worker of an older version"


def _rebuilt(found: StoredPoint | None, write: SwapPoint) -> bool:
    """Return whether the row was rebuilt from a state that already includes this write."""
    applied = found.payload.get("applied") if found is not None else None
    marks = [str(each) for each in applied if str(each).startswith(REBUILT)] if isinstance(applied, list) else []
    wanted = write.point.payload.get("version")
    return isinstance(wanted, int) and any(int(mark.removeprefix(REBUILT)) >= wanted for mark in marks)
