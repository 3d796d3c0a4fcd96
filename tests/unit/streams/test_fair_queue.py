"""Fair shares by tenant, compared with their rules over random pushes, pops and releases."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st

from memstream.streams.engine.fair_queue import FairQueue
from memstream.streams.engine.processor_shares import ProcessorShares

TENANTS = "abcde"
steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.sampled_from(TENANTS)),
        st.tuples(st.just("release"), st.integers(0, 100)),
        st.tuples(st.just("remove"), st.sampled_from(TENANTS)),
    ),
    max_size=200,
)


class Model:
    """The places, what waits and since when, and how many turns others had meanwhile."""

    def __init__(self, places: int, costs: list[float] | None = None) -> None:
        """`costs`: processor time of the works, in the order in which they get a place."""
        self.places = places
        self.costs = costs or []
        self.shares = ProcessorShares()
        self.queue: FairQueue[int] = FairQueue(self.shares if costs else None)
        self.used_since: dict[str, Counter[str]] = {}
        """By tenant that waits without a place: what each other one without a place has used since then."""
        self.turns = 0
        self.waiting: dict[str, deque[int]] = {tenant: deque() for tenant in TENANTS}
        self.held: list[str] = []
        self.passed_over: Counter[str] = Counter()
        """By tenant that waits without a place: how many turns others had since then."""
        self.work = 0

    def push(self, tenant: str) -> None:
        self.work += 1
        self.queue.push(tenant, self.work)
        self.waiting[tenant].append(self.work)

    def remove(self, tenant: str) -> None:
        waiting = self.waiting[tenant]
        if waiting:
            assert self.queue.remove(tenant, waiting[-1])
            waiting.pop()
        assert not self.queue.remove(tenant, -1)
        if not waiting:
            del self.passed_over[tenant]

    def release(self, which: int) -> None:
        if self.held:
            tenant = self.held.pop(which % len(self.held))
            self.queue.release(tenant)

    def _use(self, tenant: str, held: Counter[str], candidates: list[str]) -> None:
        """Use the processor, and check that nobody who waits without a place is passed over by one who used more."""
        cost = self.costs[self.turns % len(self.costs)]
        self.turns += 1
        self.used_since.pop(tenant, None)
        for each in candidates:
            if each != tenant and not held[each]:
                used = self.used_since.setdefault(each, Counter())
                assert not used[tenant], "it had a turn, used time, and has another one before who waits"
                used[tenant] += cost  # type: ignore[assignment]
        self.shares.serve(tenant)
        self.shares.charge(tenant, cost)

    def fill(self) -> None:
        """Hand out every free place, and check each turn."""
        while len(self.held) < self.places:
            found = self.queue.pop()
            if found is None:
                assert not any(self.waiting.values()), "a place is free and work waits"
                return
            tenant, work = found
            held = Counter(self.held)
            assert work == self.waiting[tenant].popleft(), "the order within a tenant"
            candidates = [each for each, waiting in self.waiting.items() if waiting or each == tenant]
            assert held[tenant] == min(held[each] for each in candidates), "another tenant held fewer places"
            self.held.append(tenant)
            if self.costs:
                self._use(tenant, held, candidates)
                continue
            del self.passed_over[tenant]
            for each in candidates:
                if each != tenant and not held[each]:
                    self.passed_over[each] += 1
                    assert self.passed_over[each] < len(TENANTS), "a tenant without a place waited for too many turns"
        assert len(self.queue) == sum(map(len, self.waiting.values()))
        assert all(self.queue.in_use(tenant) == Counter(self.held)[tenant] for tenant in TENANTS)


@given(steps=steps, places=st.integers(1, 6))
def test_each_free_place_goes_to_the_tenant_with_the_fewest_and_none_stays_free(
    steps: list[tuple[str, str | int]], places: int
) -> None:
    model = Model(places)
    for what, value in steps:
        if what == "release":
            model.release(int(value))
        elif what == "push":
            model.push(str(value))
        else:
            model.remove(str(value))
        model.fill()


@given(steps=steps, places=st.integers(1, 6), costs=st.lists(st.floats(0.001, 1.0), min_size=1, max_size=20))
def test_with_processor_time_the_places_still_decide_first_and_nobody_starves(
    steps: list[tuple[str, str | int]], places: int, costs: list[float]
) -> None:
    model = Model(places, costs)
    for what, value in steps:
        if what == "release":
            model.release(int(value))
        elif what == "push":
            model.push(str(value))
        model.fill()


def test_among_equals_the_tenant_that_used_least_of_the_processor_goes_first() -> None:
    shares = ProcessorShares()
    queue: FairQueue[str] = FairQueue(shares)
    for tenant in ("heavy", "light", "new"):
        for n in range(2):
            queue.push(tenant, f"{tenant}{n}")
    order = []
    for cost in (5.0, 1.0, 0.0, 0.5, 1.0, 1.0):
        found = queue.pop()
        assert found is not None
        order.append(found[1])
        shares.charge(found[0], cost)
        queue.release(found[0])
    assert order == ["heavy0", "light0", "new0", "new1", "light1", "heavy1"]


def test_what_a_tenant_uses_while_it_waits_counts_at_once() -> None:
    shares = ProcessorShares()
    queue: FairQueue[str] = FairQueue(shares)
    for work in ("a1", "a2", "b1", "b2"):
        queue.push(work[0], work)
    assert [queue.pop(), queue.pop()] == [("a", "a1"), ("b", "b1")]
    shares.charge("a", 5.0)
    assert [queue.pop(), queue.pop()] == [("b", "b2"), ("a", "a2")]


def test_void_entries_do_not_pile_up() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.push("calm", "c")
    for n in range(3):
        queue.push("flood", f"f{n}")
    assert queue.pop() == ("calm", "c")
    for _ in range(10_000):
        queue.pop()
        queue.release("flood")
        queue.push("flood", "f")
    assert queue._entries < 100
    assert sum(map(len, queue._turns.values())) == queue._entries


def test_a_flood_of_one_tenant_costs_another_one_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    for n in range(1_000):
        queue.push("flood", f"f{n}")
    assert [queue.pop() for _ in range(4)] == [("flood", f"f{n}") for n in range(4)]
    queue.push("calm", "c0")
    queue.release("flood")
    assert queue.pop() == ("calm", "c0")


def test_what_is_dropped_gives_no_place_back() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.push("a", "1")
    queue.push("a", "2")
    assert queue.pop() == ("a", "1")
    queue.clear()
    assert (len(queue), queue.pop(), queue.in_use("a")) == (0, None, 1)
    queue.release("a")
    assert queue.in_use("a") == 0
