"""Shares of the pools: whatever one tenant does, another one gets its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.api.credentials import ANYONE, Caller
from memstream.api.shares import EVERYBODY, Party, PoolSize, SharedPool, party_of
from memstream.schemas.errors import NoShare
from tests.support.polling import wait_for

SIZE = PoolSize(total=8, tenant=4, token=3)
BAD, WORSE, GOOD = Party("bad", "b1"), Party("worse", "w1"), Party("good", "g1")


def pool(size: PoolSize = SIZE, *, patience: float = 30.0) -> SharedPool:
    return SharedPool("places", size, patience=patience, retry_after=2)


async def take_all(
    stack: AsyncExitStack, places: SharedPool, party: Party, leave: Callable[[], None] | None = None
) -> int:
    """Take places until the first refusal that is the party's own."""
    for taken in range(100):
        try:
            await stack.enter_async_context(places.place(party, leave=leave))
        except NoShare as refused:
            return taken if (refused.own, refused.retry_after) == (True, 2) else -1
    raise AssertionError("there is no limit")


async def test_a_token_and_a_tenant_have_limits_of_their_own() -> None:
    async with AsyncExitStack() as stack:
        places = pool()
        assert await take_all(stack, places, BAD) == SIZE.token
        assert await take_all(stack, places, Party("bad", "b2")) == SIZE.tenant - SIZE.token
        assert await take_all(stack, places, GOOD) == SIZE.token, "another tenant has all of its own"
    async with AsyncExitStack() as stack:
        assert await take_all(stack, places, BAD) == SIZE.token, "everything was given back"


async def test_in_a_full_pool_the_next_place_is_of_the_tenant_with_fewest() -> None:
    size = PoolSize(total=4, tenant=4, token=4)
    async with AsyncExitStack() as stack:
        places = pool(size)
        gives_back = [await stack.enter_async_context(places.place(party)) for party in (BAD, BAD, BAD, WORSE)]
        order: list[str] = []

        async def waits(party: Party) -> None:
            async with places.place(party):
                order.append(party.tenant)

        waiting = [asyncio.create_task(waits(party)) for party in (WORSE, GOOD)]
        await asyncio.sleep(0)
        with pytest.raises(NoShare, match="its maximum") as refused:
            async with places.place(BAD):
                pass
        assert refused.value.own, "it has more than its share while others wait"
        gives_back[0]()
        await asyncio.gather(*waiting)
        assert order == ["good", "worse"]


async def test_work_that_can_end_makes_room_for_a_tenant_with_less() -> None:
    size = PoolSize(total=4, tenant=4, token=4)
    async with AsyncExitStack() as stack:
        places = pool(size)
        ended: list[int] = []
        gives_back: list[Callable[[], None]] = []
        for n in range(4):

            def leave(n: int = n) -> None:
                ended.append(n)
                asyncio.get_running_loop().call_soon(gives_back[n])

            gives_back.append(await stack.enter_async_context(places.place(BAD, leave=leave)))
        async with asyncio.timeout(10), places.place(GOOD), places.place(GOOD):
            assert ended == [3, 2], "the newest of the tenant with the most"
            with pytest.raises(NoShare):
                async with places.place(BAD):
                    pass
        assert ended == [3, 2]


async def test_who_waits_too_long_is_told_and_leaves_nothing() -> None:
    places = pool(PoolSize(total=1, tenant=1, token=1), patience=0.01)
    async with places.place(BAD):
        with pytest.raises(NoShare) as refused:
            async with places.place(GOOD):
                pass
        assert not refused.value.own
    async with places.place(GOOD):
        pass


async def test_a_cancelled_wait_leaves_nothing() -> None:
    places = pool(PoolSize(total=1, tenant=1, token=1))

    async def waits() -> None:
        async with places.place(GOOD):
            raise AssertionError("it got the place")

    async with places.place(BAD):
        waiting = asyncio.create_task(waits())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert waiting.cancelled()
    async with places.place(GOOD), asyncio.timeout(1):
        pass


async def test_without_tokens_the_whole_pool_is_everybodys() -> None:
    assert party_of(ANYONE) is EVERYBODY
    async with AsyncExitStack() as stack:
        places = pool()
        for _ in range(SIZE.total):
            await stack.enter_async_context(places.place(EVERYBODY))
        with pytest.raises(NoShare) as refused:
            async with places.place(EVERYBODY):
                pass
        assert not refused.value.own


def test_a_token_of_several_tenants_is_a_party_of_its_own_until_the_tenant_is_known() -> None:
    caller = Caller("chat", frozenset(), frozenset({"acme", "rival"}))
    assert party_of(caller).tenant not in ("acme", "rival")
    assert party_of(caller, "rival") == Party("rival", "chat")
    assert party_of(Caller("one", frozenset(), frozenset({"acme"}))) == Party("acme", "one")


STEPS = st.lists(st.tuples(st.sampled_from(("take", "give")), st.integers(0, 5)), max_size=60)


@given(steps=STEPS)
async def test_no_history_of_hostile_tenants_keeps_the_last_one_out(steps: list[tuple[str, int]]) -> None:
    """Work that can be ended: after any history a tenant without a place gets one, and no limit is passed."""
    places = pool(PoolSize(total=6, tenant=3, token=2))
    held: list[tuple[Party, asyncio.Task[None], asyncio.Event]] = []

    async def work(party: Party, over: asyncio.Event, begun: asyncio.Event) -> None:
        async with places.place(party, leave=over.set):
            begun.set()
            await over.wait()

    async def take(party: Party) -> bool:
        over, begun = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(work(party, over, begun))
        started = asyncio.create_task(begun.wait())
        async with asyncio.timeout(5):
            await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if not begun.is_set():
            assert isinstance(task.exception(), NoShare)
            return False
        held.append((party, task, over))
        return True

    try:
        for step, n in steps:
            if step == "take":
                await take(Party(f"t{n % 3}", f"k{n}"))
            elif held:
                held.pop(n % len(held))[2].set()
            at_work = [party for party, task, over in held if not task.done() and not over.is_set()]
            assert len(at_work) <= 6
            assert all(sum(each.tenant == f"t{t}" for each in at_work) <= 3 for t in range(3))
            assert all(at_work.count(party) <= 2 for party in at_work)
        assert await take(GOOD)
    finally:
        for _, _, over in held:
            over.set()
        await wait_for(lambda: all(task.done() for _, task, _ in held), "the work to end")
