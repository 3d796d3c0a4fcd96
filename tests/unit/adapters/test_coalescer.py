"""The coalescer without a store: which items share a batch, when a batch goes out, and who gets which error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.adapters.batching.coalescer import CoalescePolicy, Coalescer
from memstream.schemas.errors import Fatal, Poison, StageError, Transient

NEVER = 3_600.0


class Calls:
    """A `run` that answers each item doubled, once `opened` is set. `seen` has the batches."""

    def __init__(self, *, opened: bool = True) -> None:
        self.seen: list[list[int]] = []
        self.gate = asyncio.Event()
        self.changed = asyncio.Event()
        if opened:
            self.gate.set()

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.seen.append(list(items))
        self.changed.set()
        await self.gate.wait()
        return [item * 2 for item in items]

    async def wait(self, batches: int) -> None:
        async with asyncio.timeout(10):
            while len(self.seen) < batches:
                self.changed.clear()
                await self.changed.wait()


class OneTenant(Coalescer[int, int]):
    """A queue whose items are of one tenant by default."""

    async def ask(self, item: int, *, tenant: str = "acme", **options: Any) -> int:
        return await super().ask(item, tenant=tenant, **options)


def gatherer(run: Any, **policy: Any) -> OneTenant:
    return OneTenant(run=run, policy=CoalescePolicy(**{"linger": NEVER, **policy}))


def start(*coroutines: Any) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(each) for each in coroutines]


async def ticks(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# ------------------------------------------------------------------------------------------------ when
async def test_what_is_asked_in_one_turn_of_an_idle_loop_goes_out_at_once_and_together() -> None:
    calls = Calls()
    queue = gatherer(calls)
    assert await asyncio.gather(*(queue.ask(n) for n in range(5))) == [0, 2, 4, 6, 8]
    assert calls.seen == [[0, 1, 2, 3, 4]]


async def test_what_arrives_during_a_call_goes_out_together_when_it_ends() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, at_once=4)
    first = start(queue.ask(0))
    await calls.wait(1)
    later = start(*(queue.ask(n) for n in (1, 2, 3)))
    await ticks()
    assert calls.seen == [[0]]
    calls.gate.set()
    assert await asyncio.gather(*first, *later) == [0, 2, 4, 6]
    assert calls.seen == [[0], [1, 2, 3]]


async def test_a_full_batch_does_not_wait_for_the_call_under_way() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, items=3, at_once=2)
    tasks = start(queue.ask(0))
    await calls.wait(1)
    tasks += start(*(queue.ask(n) for n in range(1, 8)))
    await calls.wait(2)
    await ticks()
    assert calls.seen == [[0], [1, 2, 3]], "two calls are the limit, however many wait"
    calls.gate.set()
    await asyncio.gather(*tasks)
    assert calls.seen == [[0], [1, 2, 3], [4, 5, 6], [7]]


async def test_nobody_lingers_longer_than_told_while_another_call_is_under_way() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, linger=0.001)
    tasks = start(queue.ask(0))
    await calls.wait(1)
    tasks += start(queue.ask(1))
    await calls.wait(2)
    calls.gate.set()
    assert await asyncio.gather(*tasks) == [0, 2]


async def test_size_and_weight_close_a_batch_and_what_is_too_large_goes_alone() -> None:
    calls = Calls()
    queue = gatherer(calls, items=4, weight=100, at_once=1)
    sizes = [(1, 0), (3, 0), (1, 0), (9, 0), (1, 60), (1, 60), (1, 900)]
    await asyncio.gather(*(queue.ask(n, size=size, weight=weight) for n, (size, weight) in enumerate(sizes)))
    assert calls.seen == [[0, 1], [2, 4], [3], [5], [6]]


async def test_kinds_do_not_mix() -> None:
    calls = Calls()
    queue = gatherer(calls, at_once=1)
    await asyncio.gather(*(queue.ask(n, kind=n % 2) for n in range(6)))
    assert calls.seen == [[0, 2, 4], [1, 3, 5]]


async def test_what_shares_a_key_goes_one_after_the_other_in_its_order() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, at_once=8, linger=0.0)
    keys = [{"a"}, {"b"}, {"a", "c"}, {"c"}, {"d"}, {"a"}]
    tasks = start(*(queue.ask(n, keys=frozenset(each)) for n, each in enumerate(keys)))
    await calls.wait(1)
    await ticks()
    assert calls.seen == [[0, 1, 4]]
    calls.gate.set()
    await asyncio.gather(*tasks)
    assert calls.seen == [[0, 1, 4], [2], [3, 5]]


# ------------------------------------------------------------------------------------------------ tenants
async def test_a_request_is_in_the_next_batch_whatever_another_tenant_has_queued() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, items=64, at_once=1, tenant_items=16)
    tasks = start(*(queue.ask(n, tenant="flood") for n in range(5_000)))
    await calls.wait(1)
    tasks += start(queue.ask(-1, tenant="calm"))
    await ticks()
    assert len(calls.seen[0]) == 64, "a tenant alone fills its batches"
    calls.gate.set()
    await calls.wait(2)
    assert calls.seen[1] == [-1, *range(64, 80)]
    assert await asyncio.gather(*tasks) == [*(2 * n for n in range(5_000)), -2]
    assert [item for batch in calls.seen for item in batch if item >= 0] == [*range(5_000)]


async def test_a_key_keeps_its_order_between_tenants() -> None:
    calls = Calls()
    queue = gatherer(calls, at_once=8, linger=0.0)
    key = frozenset({"k"})
    await asyncio.gather(
        queue.ask(0, tenant="a", kind="x"),
        queue.ask(1, tenant="a", kind="y", keys=key),
        queue.ask(2, tenant="b", kind="x", keys=key),
        queue.ask(3, tenant="b", kind="x"),
    )
    assert calls.seen == [[0, 3], [1], [2]]
    assert not queue._order


async def test_a_cancelled_item_blocks_no_key() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, at_once=1)
    key = frozenset({"k"})
    tasks = start(queue.ask(0), queue.ask(1, kind="y", keys=key), queue.ask(2, tenant="b", kind="x", keys=key))
    await calls.wait(1)
    tasks[1].cancel()
    await ticks()
    calls.gate.set()
    assert await asyncio.gather(tasks[0], tasks[2]) == [0, 4]
    await ticks()
    assert calls.seen == [[0], [2]]
    assert not queue._order
    assert not queue._lines


async def test_many_tenants_fill_one_batch() -> None:
    calls = Calls()
    queue = gatherer(calls, items=64, at_once=1, tenant_items=16)
    await asyncio.gather(*(queue.ask(n, tenant=f"t{n}") for n in range(64)))
    assert calls.seen == [[*range(64)]]


ASKED = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 9)), min_size=1, max_size=80)


@given(asked=ASKED, items=st.integers(1, 8), of_tenant=st.integers(1, 8))
async def test_an_item_waits_for_at_most_one_batch_of_the_other_tenant(
    asked: list[tuple[str, str, int]], items: int, of_tenant: int
) -> None:
    """Each item of the tenant `a` or `b` has a kind and a key. One call runs at a time."""
    calls = Calls()
    queue = gatherer(calls, items=items, at_once=1, tenant_items=of_tenant)
    await asyncio.gather(
        *(queue.ask(n, tenant=who, kind=kind, keys=frozenset({(who, key)})) for n, (who, kind, key) in enumerate(asked))
    )
    left = {who: [n for n, (each, _, _) in enumerate(asked) if each == who] for who in "ab"}
    without = dict.fromkeys("ab", 0)
    is_shared = len({who for who, _, _ in asked}) > 1
    for batch in calls.seen:
        is_limited = is_shared and sum(map(len, left.values())) > items
        assert len(batch) <= items
        assert len({asked[n][1] for n in batch}) == 1
        assert len({(asked[n][0], asked[n][2]) for n in batch}) == len(batch), "a key twice in one call"
        for who, waiting in left.items():
            mine = [n for n in batch if asked[n][0] == who]
            assert len(mine) <= of_tenant or not is_limited
            without[who] = without[who] + 1 if waiting and not mine else 0
            assert without[who] <= 1, "two batches in a row of the other tenant"
            left[who] = [n for n in waiting if n not in mine]
    for key in {(who, key) for who, _, key in asked}:
        sent = [n for batch in calls.seen for n in batch if (asked[n][0], asked[n][2]) == key]
        assert sent == sorted(sent), "the order of a key"
    assert not any(left.values())


# ------------------------------------------------------------------------------------------------ whose error
async def test_a_refused_member_is_refused_alone() -> None:
    batches: list[list[int]] = []

    async def run(items: Sequence[int]) -> list[int]:
        batches.append(list(items))
        if 5 in items:
            raise Poison("invalid", "no fives")
        return list(items)

    queue = gatherer(run)
    answers = await asyncio.gather(*(queue.ask(n) for n in range(8)), return_exceptions=True)
    assert [each for each in answers if not isinstance(each, Exception)] == [0, 1, 2, 3, 4, 6, 7]
    assert isinstance(answers[5], Poison)
    assert answers[5].reason == "invalid"
    assert len(batches) == 7


@pytest.mark.parametrize(
    "error",
    [
        Transient("store", "away", retry_after=7.0, remedy="look"),
        Poison("refused_by_model", "no"),
        Fatal("broken"),
    ],
)
async def test_each_caller_gets_an_error_of_its_own_with_one_cause(error: StageError) -> None:
    cause = OSError("reset")

    async def run(items: Sequence[int]) -> list[int]:
        raise error from cause

    queue = gatherer(run)
    answers = await asyncio.gather(*(queue.ask(n) for n in range(3)), return_exceptions=True)
    assert len({id(each) for each in answers}) == 3
    for each in answers:
        assert isinstance(each, type(error))
        assert (str(each), vars(each), each.__cause__) == (str(error), vars(error), cause)


async def test_an_unknown_exception_reaches_every_caller_and_the_queue_goes_on() -> None:
    async def run(items: Sequence[int]) -> list[int]:
        return [1 // item for item in items]

    queue = gatherer(run)
    answers = await asyncio.gather(queue.ask(0), queue.ask(1), return_exceptions=True)
    assert [type(each) for each in answers] == [ZeroDivisionError, ZeroDivisionError]
    assert await queue.ask(1) == 1


async def test_too_few_answers_are_fatal_and_nobody_gets_anothers() -> None:
    async def run(items: Sequence[int]) -> list[int]:
        return list(items)[1:]

    queue = gatherer(run)
    answers = await asyncio.gather(queue.ask(0), queue.ask(1), return_exceptions=True)
    assert [type(each) for each in answers] == [Fatal, Fatal]


# ------------------------------------------------------------------------------------------------ who goes away
async def test_a_caller_that_is_cancelled_takes_nobody_with_it() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, at_once=1)
    under_way = start(queue.ask(0), queue.ask(1))
    await calls.wait(1)
    waiting = start(queue.ask(2), queue.ask(3))
    await ticks()
    under_way[0].cancel()
    waiting[0].cancel()
    await ticks()
    calls.gate.set()
    assert await asyncio.gather(under_way[1], waiting[1]) == [2, 6]
    assert calls.seen == [[0, 1], [3]]
    assert under_way[0].cancelled()
    assert waiting[0].cancelled()


async def test_draining_waits_for_what_is_under_way_and_what_waits() -> None:
    calls = Calls(opened=False)
    queue = gatherer(calls, at_once=1)
    tasks = start(queue.ask(0))
    await calls.wait(1)
    tasks += start(queue.ask(1))
    draining = asyncio.create_task(queue.drain())
    await ticks()
    assert not draining.done()
    tasks[1].cancel()
    calls.gate.set()
    async with asyncio.timeout(10):
        await draining
    assert await tasks[0] == 0


@pytest.mark.parametrize("wrong", [{"items": 0}, {"weight": 0}, {"linger": -1.0}, {"at_once": 0}, {"tenant_items": 0}])
def test_a_policy_that_would_never_send_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least"):
        CoalescePolicy(**wrong)
