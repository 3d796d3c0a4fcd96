"""Fair shares of an embedder's calls: no tenant waits for the flood of another, and each text has its own vector."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.adapters.batching.coalescer import CoalescePolicy
from memstream.adapters.batching.embedder import BatchingEmbedder
from memstream.adapters.ports import EmbedderIdentity

TENANTS = "abc"


class Steps:
    """An embedder whose calls end when the test says so. A text is a number, and its vector has it."""

    identity = EmbedderIdentity("steps", 1)

    def __init__(self) -> None:
        self.running: list[tuple[str, asyncio.Event]] = []
        self.begun: list[tuple[str, int]] = []

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        self.begun.append((tenant_id, len(texts)))
        end = asyncio.Event()
        self.running.append((tenant_id, end))
        await end.wait()
        return [[float(text)] for text in texts]

    async def end(self, which: int = 0) -> None:
        """End a call, and let what follows from it happen."""
        self.running.pop(which)[1].set()
        await ticks()

    async def close(self) -> None:
        return None


async def ticks() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def batching(steps: Steps, **policy: float) -> BatchingEmbedder:
    return BatchingEmbedder(
        embedder=steps,
        policy=CoalescePolicy(**{"linger": 3_600.0, **policy}),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("at_once_asked", [True, False], ids=["one ask", "many asks"])
async def test_one_text_among_ten_thousand_of_another_tenant_is_in_the_next_call(at_once_asked: bool) -> None:
    steps = Steps()
    embedder = batching(steps, items=64, at_once=1)
    texts = [str(n) for n in range(10_000)]
    asks = [texts] if at_once_asked else [[text] for text in texts]
    flood = [asyncio.create_task(embedder.embed(each, tenant_id="flood")) for each in asks]
    await ticks()
    calm = asyncio.create_task(embedder.embed(["7"], tenant_id="calm"))
    await ticks()
    assert steps.begun == [("flood", 64)]
    await steps.end()
    assert steps.begun[1:] == [("calm", 1)]
    await steps.end()
    assert await calm == [[7.0]]
    while steps.running:
        await steps.end()
    vectors = [vector for each in flood for vector in await each]
    assert vectors == [[float(n)] for n in range(10_000)]
    assert max(size for _, size in steps.begun) == 64


async def test_cancelled_texts_take_no_call_and_leave_no_place_behind() -> None:
    steps = Steps()
    embedder = batching(steps, items=1, at_once=1)
    first = asyncio.create_task(embedder.embed(["1"], tenant_id="a"))
    await ticks()
    cancelled = [asyncio.create_task(embedder.embed([str(n)], tenant_id=t)) for n, t in enumerate("aabb")]
    last = asyncio.create_task(embedder.embed(["2"], tenant_id="b"))
    await ticks()
    for task in cancelled:
        task.cancel()
    await steps.end()
    assert steps.begun == [("a", 1), ("b", 1)]
    await steps.end()
    assert (await first, await last) == ([[1.0]], [[2.0]])
    again = asyncio.create_task(embedder.embed(["3"], tenant_id="a"))
    await ticks()
    await steps.end()
    assert await again == [[3.0]]


step = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(TENANTS), st.integers(1, 30)),
    st.tuples(st.just("cancel"), st.sampled_from(TENANTS), st.integers(0, 100)),
    st.tuples(st.just("end"), st.just(""), st.integers(0, 100)),
    st.tuples(st.just("end"), st.just(""), st.integers(0, 100)),
)


@settings(deadline=None)
@given(steps=st.lists(step, max_size=40), at_once=st.integers(1, 3), items=st.integers(1, 5))
async def test_a_call_goes_to_the_tenant_with_the_fewest_and_none_stays_free(
    steps: list[tuple[str, str, int]], at_once: int, items: int
) -> None:
    embedder_calls = Steps()
    embedder = batching(embedder_calls, items=items, at_once=at_once, linger=0.0)
    asked: list[tuple[str, int, int, asyncio.Task[list[list[float]]]]] = []
    passed_over: Counter[str] = Counter()
    numbers = 0
    for what, tenant, value in steps:
        begun, running = len(embedder_calls.begun), Counter(who for who, _ in embedder_calls.running)
        waited = {who for who, _, _, task in asked if not task.done()}
        if what == "ask":
            texts = [str(n) for n in range(numbers, numbers + value)]
            asked.append((tenant, numbers, value, asyncio.create_task(embedder.embed(texts, tenant_id=tenant))))
            numbers += value
            await ticks()
        elif what == "cancel":
            mine = [task for who, _, _, task in asked if who == tenant and not task.done()]
            if mine:
                mine[value % len(mine)].cancel()
            await ticks()
            passed_over = +Counter({who: passed_over[who] for who in TENANTS if _waits(who, asked, embedder_calls)})
        elif embedder_calls.running:
            which = value % len(embedder_calls.running)
            running[embedder_calls.running[which][0]] -= 1
            await embedder_calls.end(which)
            for who, _ in embedder_calls.begun[begun:]:
                waiting = {each for each in waited if _waits(each, asked, embedder_calls)} - {who}
                assert all(running[who] <= running[each] for each in waiting), "another tenant has fewer calls"
                running[who] += 1
                passed_over.update(waiting)
                del passed_over[who]
                assert all(turns < len(TENANTS) for turns in passed_over.values()), "a tenant waited for too many turns"
        assert len(embedder_calls.running) <= at_once
        if len(embedder_calls.running) < at_once:
            assert not any(_waits(each, asked, embedder_calls) for each in TENANTS), "a call is free and texts wait"
    while embedder_calls.running:
        await embedder_calls.end()
    for _, first, count, task in asked:
        if not task.cancelled():
            assert await task == [[float(n)] for n in range(first, first + count)]


def _waits(tenant: str, asked: list[tuple[str, int, int, asyncio.Task[list[list[float]]]]], calls: Steps) -> bool:
    """Whether surely some text of the tenant waits: it has asks under way, and no call."""
    under_way = any(who == tenant and not task.done() for who, _, _, task in asked)
    return under_way and all(who != tenant for who, _ in calls.running)
