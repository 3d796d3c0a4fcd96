"""Writes of an outcome to the vector store. Each of them changes nothing when it is applied a second time."""

from __future__ import annotations

from collections.abc import Iterable

from ...adapters.ports import NewWindow, Point, VectorStore
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
    unpack_vector,
)
from .turn_labels import apply_labels


def point(out: OutPoint) -> Point:
    return Point(
        id=out.id,
        payload=dict(out.payload),
        dense=_vector(out.dense),
        text=out.text,
        window=_vector(out.window),
    )


def _vector(packed: str | None) -> list[float] | None:
    return None if packed is None else unpack_vector(packed)


async def apply_writes(store: VectorStore, writes: Iterable[Write]) -> None:
    """Apply writes in their order.

    Raises Fatal when a compare and set finds neither the version that was read nor its own cause: there is another
    writer.
    """
    for write in writes:
        if isinstance(write, InsertPoints):
            await store.insert(write.collection, [point(out) for out in write.points])
        elif isinstance(write, PutPoints):
            await store.put(write.collection, [point(out) for out in write.points])
        elif isinstance(write, SetFields):
            await store.set_payload(
                write.collection, tenant_id=write.tenant_id, ids=write.ids, fields=dict(write.fields)
            )
        elif isinstance(write, NewWindows):
            changed = [NewWindow(each.id, each.text, _vector(each.window)) for each in write.points]
            await store.rewindow(write.collection, tenant_id=write.tenant_id, points=changed)
        elif isinstance(write, ApplyLabels):
            await apply_labels(store, tenant_id=write.tenant_id, label_ids=write.ids)
        elif isinstance(write, DeletePoints):
            await store.delete(write.collection, tenant_id=write.tenant_id, ids=write.ids)
        else:
            await _swap(store, write)


REBUILT = "rebuilt/"


def rebuilt_mark(version: int) -> str:
    """Return the entry in `applied` of a row that was rebuilt from memory.facts, where earlier causes are not known."""
    return f"{REBUILT}{version}"


async def _swap(store: VectorStore, write: SwapPoint) -> None:
    result = await store.compare_and_set(
        write.collection, point(write.point), expected_version=write.expected_version, cause=write.cause
    )
    if result == "conflict" and not await _rebuilt(store, write):
        raise Fatal(
            f"{write.collection}/{write.point.id}: expected version {write.expected_version} and found neither it nor "
            f"the cause {write.cause} among those applied: another writer lives. Look for a second deployment on this "
            "Qdrant, or for a worker of an older version"
        )


async def _rebuilt(store: VectorStore, write: SwapPoint) -> bool:
    """Tell whether the row was rebuilt from a state that includes this write."""
    found = (
        await store.get(write.collection, tenant_id=str(write.point.payload["tenant_id"]), ids=[write.point.id])
    ).get(write.point.id)
    applied = found.payload.get("applied") if found is not None else None
    marks = [str(each) for each in applied if str(each).startswith(REBUILT)] if isinstance(applied, list) else []
    wanted = write.point.payload.get("version")
    return isinstance(wanted, int) and any(int(mark.removeprefix(REBUILT)) >= wanted for mark in marks)
