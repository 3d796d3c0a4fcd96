"""How the writes of an outcome reach the store: compare and sets together, everything else in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memstream.adapters.ports import CasResult, Point, StoredPoint
from memstream.agents.common.store_writes import apply_writes
from memstream.schemas.errors import Fatal
from memstream.schemas.outcomes import InsertPoints, OutPoint, SwapPoint


class Store:
    """Answers a compare and set when `together` of them have been asked. Those of `rivals` meet another writer."""

    def __init__(self, *, together: int, rivals: Sequence[str] = (), version: int = 0) -> None:
        self.calls: list[str] = []
        self.ended: list[str] = []
        self._together = together
        self._rivals = rivals
        self._version = version
        self._all_asked = asyncio.Event()

    @asynccontextmanager
    async def writes_together(self) -> AsyncIterator[None]:
        yield

    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        self.calls += [f"insert {each.id}" for each in points]

    async def compare_and_set(self, collection: str, point: Point, **_: Any) -> CasResult:
        self.calls.append(f"swap {point.id}")
        if sum(call.startswith("swap") for call in self.calls) == self._together:
            self._all_asked.set()
        if point.id in self._rivals:
            return "conflict"
        await self._all_asked.wait()
        for _ in range(9):  # longer than a rival takes
            await asyncio.sleep(0)
        self.ended.append(point.id)
        return "applied"

    async def get(self, *_: Any, ids: Sequence[str], **__: Any) -> dict[str, Any]:
        payload = {"version": self._version, "applied": ["another"]}
        return {each: StoredPoint(id=each, payload=payload) for each in ids} if self._version else {}  # type: ignore[dict-item]


def swap(name: str) -> SwapPoint:
    point = OutPoint(id=name, payload={"tenant_id": "acme", "version": 2})
    return SwapPoint(collection="facts", point=point, expected_version=1, cause="c")


def insert(name: str) -> InsertPoints:
    return InsertPoints(collection="episodes", points=(OutPoint(id=name, payload={}),))


async def apply(store: Store, *writes: Any) -> None:
    await asyncio.wait_for(apply_writes(store, writes), 10)  # type: ignore[arg-type]


async def test_compare_and_sets_that_follow_each_other_are_asked_together() -> None:
    store = Store(together=3)
    await apply(store, insert("a"), insert("b"), swap("c"), swap("d"), swap("e"), insert("f"))
    assert store.calls == ["insert a", "insert b", "swap c", "swap d", "swap e", "insert f"]


async def test_another_writer_is_told_when_the_others_have_ended() -> None:
    store = Store(together=3, rivals=["c", "e"])
    with pytest.raises(Fatal, match="facts/c: it has neither the expected version 1"):
        await apply(store, swap("c"), swap("d"), swap("e"), insert("f"))
    assert store.ended == ["d"]
    assert "insert f" not in store.calls


@pytest.mark.parametrize(
    ("version", "why"),
    [(0, "memstream rebuild facts"), (2, "memstream rebuild facts"), (4, "another writer is active")],
    ids=["gone", "older", "newer"],
)
async def test_a_row_that_went_back_is_told_from_another_writer(version: int, why: str) -> None:
    point = OutPoint(id="c", payload={"tenant_id": "acme", "version": 4})
    with pytest.raises(Fatal, match=why):
        await apply(
            Store(together=1, rivals=["c"], version=version),
            SwapPoint(collection="facts", point=point, expected_version=3, cause="c"),
        )
