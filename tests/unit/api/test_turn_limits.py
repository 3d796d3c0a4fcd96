"""Limits of turns a minute: exact waits, separate buckets, and a refused caller that pays nothing."""

from __future__ import annotations

from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from memstream.api.credentials import Credentials
from memstream.api.problems import Problem
from memstream.api.turn_limits import BUCKETS_MIN, SECOND, TurnLimitMetrics, TurnLimits
from memstream.memory.policies import LimitsPolicy
from memstream.schemas.errors import Transient
from tests.support.api_server import NoLog, app_over, called, entry

TOKENS = Credentials(
    [entry("acme"), entry("second"), entry("rival", tenants=["rival"]), entry("both", tenants=["acme", "rival"])]
)
METRIC = "memstream_http_turn_limit_refusals_total"


class Server:
    """The limits of one server, with a clock that the test moves."""

    def __init__(self, **limits: LimitsPolicy) -> None:
        self.now = 5 * SECOND
        self.limits = limits
        self.registry = CollectorRegistry()
        self.callers = TurnLimits(
            lambda tenant_id: self.limits.get(tenant_id, LimitsPolicy()),
            TurnLimitMetrics(self.registry),
            clock=lambda: self.now,
        )

    def wait(self, turns: int = 1, *, token: str = "chat", tenant: str = "acme", **others: int) -> int:
        """Send turns. Return 0 if they are accepted, else the seconds in Retry-After."""
        try:
            self.callers.take({tenant: turns, **others}, token)
        except Problem as problem:
            return int(problem.headers["Retry-After"])
        return 0

    def refusals(self, tenant: str, limit: str) -> float:
        return self.registry.get_sample_value(METRIC, {"tenant": tenant, "limit": limit}) or 0.0


def a_minute(turns: int, *, per_token: int = 0) -> LimitsPolicy:
    return LimitsPolicy(turns_per_minute=turns, turns_per_minute_per_token=per_token)


def test_retry_after_is_the_second_in_which_the_turns_are_accepted() -> None:
    server = Server(acme=a_minute(60))
    assert [server.wait() for _ in range(60)] == [0] * 60
    assert (server.wait(), server.wait(7), server.wait(60)) == (1, 7, 60)
    server.now += 7 * SECOND - 1
    assert server.wait(7) == 1
    server.now += 1
    assert server.wait(7) == 0
    assert server.wait() == 1
    server.now += 3_600 * SECOND
    assert [server.wait() for _ in range(61)] == [0] * 60 + [1], "a bucket has one minute's turns after any pause"


@given(
    limit=st.integers(1, 2_000),
    steps=st.lists(st.tuples(st.integers(1, 100), st.integers(0, 90 * SECOND)), max_size=30),
)
def test_whatever_was_sent_the_wait_is_exact_and_the_rate_holds(limit: int, steps: list[tuple[int, int]]) -> None:
    server = Server(acme=a_minute(limit))
    began, accepted, largest = server.now, 0, 0
    for turns, pause in steps:
        server.now += pause
        if wait := server.wait(turns):
            server.now += (wait - 1) * SECOND
            assert wait == 1 or server.wait(turns) == 1
            server.now += SECOND
            assert server.wait(turns) == 0
        accepted += turns
        largest = max(largest, turns)
        rate = limit / 60 / SECOND
        assert accepted <= max(limit, largest) + rate * (server.now - began) * 1.0001


def test_a_refused_caller_pays_nothing() -> None:
    server = Server(acme=a_minute(60, per_token=30), rival=a_minute(10))
    assert server.wait(30, token="a") == 0
    assert {server.wait(token="a") for _ in range(1_000)} == {2}
    assert server.wait(30, token="b") == 0, "the refused turns of a did not count for the tenant"
    assert server.wait(30, token="c") == 30, "the tenant has none left"
    server.now += 30 * SECOND
    assert server.wait(30, token="c") == 0, "the refused turns did not count for the token"
    assert server.wait(1, token="d", rival=10) == 1
    assert server.wait(10, tenant="rival", token="d") == 0, "nor did those of the other tenant in the list"


def test_a_tenant_and_a_token_have_buckets_of_their_own() -> None:
    server = Server(acme=a_minute(10, per_token=6), rival=a_minute(10))
    assert server.wait(6, token="a") == 0
    assert server.wait(1, token="a") == 10
    assert server.wait(4, token="b") == 0
    assert server.wait(1, token="b") == 6
    assert server.wait(1, token="a") == 10, "of two waits the longer one"
    assert server.wait(10, tenant="rival", token="a") == 0
    assert server.wait(100, tenant="without a limit") == 0
    assert [server.refusals("acme", limit) for limit in ("token", "tenant")] == [2, 2]
    assert server.refusals("rival", "tenant") == 0


def test_a_list_above_the_limit_waits_for_a_full_bucket_and_is_paid_later() -> None:
    server = Server(acme=a_minute(10))
    assert server.wait(1) == 0
    assert server.wait(100) == 6
    server.now += 6 * SECOND
    assert server.wait(100) == 0
    assert server.wait(1) == 9 * 60 + 6


def test_a_changed_limit_applies_to_the_next_request() -> None:
    server = Server(acme=a_minute(10))
    assert (server.wait(10), server.wait(1)) == (0, 6)
    server.limits = {"acme": a_minute(60)}
    assert server.wait(1) == 1
    server.limits = {}
    assert server.wait(1_000) == 0


def test_many_callers_leave_no_buckets_behind() -> None:
    server = Server(acme=a_minute(1_000_000, per_token=600))
    kept = []
    assert server.wait(600, token="busy") == 0
    for n in range(20_000):
        assert server.wait(token=f"t{n}") == 0
        server.now += SECOND // 1_000  # a bucket is full again after 100 ms: 100 callers are not full
        kept.append(len(server.callers._full_at))
    assert max(kept) <= BUCKETS_MIN + 1
    assert server.wait(600, token="busy") == 40, "a bucket that is not full stays"
    server = Server(acme=a_minute(1))
    assert server.wait() == 0
    assert all(server.wait(token=f"t{n}") for n in range(20_000))
    assert len(server.callers._full_at) == 1, "a refused caller has no bucket"


# ------------------------------------------------------------------------------------------------ over HTTP
class Api:
    """The route with limits, and the log behind it."""

    def __init__(self, **limits: LimitsPolicy) -> None:
        self.now = 0
        self.log = NoLog()
        self.app = app_over(
            log=self.log,
            credentials=TOKENS,
            limits_of=lambda tenant_id: limits.get(tenant_id, LimitsPolicy()),
            ticks=lambda: self.now,
        )

    async def send(self, *turn_ids: str, token: str = "acme", **changed: Any) -> httpx.Response:
        sent = [
            {"user_id": "u1", "session_id": "s1", "turn_id": each, "messages": [{"role": "user", "content": "x"}]}
            for each in turn_ids
        ]
        async with called(self.app, token=token) as client:
            return await client.post(
                "/v1/turns", json=[each | changed for each in sent] if len(sent) > 1 else sent[0] | changed
            )


async def test_a_refusal_says_when_and_why_and_writes_nothing() -> None:
    api = Api(acme=a_minute(4, per_token=3))
    assert (await api.send("t1", "t2")).status_code == 202
    api.now = 1
    refused = await api.send("t3", "t4")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "20")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json() == {
        "type": "urn:memstream:problem:too-many-requests",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "the token 'acme' in the tenant 'acme' may send 3 turns a minute, and no turn of this request was "
        "taken; send the request again in 20 s, or let the operator raise limits.turns_per_minute_per_token in the "
        "policy of the tenant",
        "instance": "/v1/turns",
        "errors": [],
        "missing": [],
    }
    assert (await api.send("t5", "t6", token="second")).status_code == 202
    refused = await api.send("t7", token="second")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "15")
    assert refused.json()["detail"].startswith("the tenant 'acme' may send 4 turns a minute")
    assert len(api.log.appended) == 4
    async with called(api.app) as client:
        metrics = (await client.get("/metrics")).text
    for limit in ("token", "tenant"):
        assert f'{METRIC}{{limit="{limit}",tenant="acme"}} 1.0' in metrics
    api.now += 30 * SECOND
    assert (await api.send("t3", "t4")).status_code == 202


async def test_the_turns_of_each_tenant_in_a_list_count_for_it() -> None:
    api = Api(acme=a_minute(2), rival=a_minute(1))
    assert (await api.send("t1", token="both", tenant_id="rival")).status_code == 202
    assert (await api.send("t2", "t3", token="both", tenant_id="acme")).status_code == 202
    for tenant_id, wait in (("acme", "30"), ("rival", "60")):
        refused = await api.send("t4", token="both", tenant_id=tenant_id)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, wait)


async def test_an_invalid_request_counts_nothing_and_a_failed_one_counts() -> None:
    api = Api(acme=a_minute(2))
    assert (await api.send("t1", "t2", mesages=[])).status_code == 422
    assert (await api.send("t1", "t2", tenant_id="rival")).status_code == 403
    api.log.away = Transient("log", "it is away")
    assert (await api.send("t1", "t2")).status_code == 503
    assert (await api.send("t1")).status_code == 429
