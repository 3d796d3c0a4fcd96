"""`produce(..., wait=…)`: the client asks until memory has observed or reflected the turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from memstream.client import Api, Memory, Misconfigured, TurnRefused, Unavailable
from memstream.client.turn_wait import wait_for_turn

TURN = {
    "tenant_id": "acme",
    "user_id": "u1",
    "session_id": "s/1",
    "turn_id": "t/1",
    "messages": [{"role": "user", "content": "hello"}],
}
GONE = httpx.Response(404, json={"type": "urn:memstream:problem:not-found", "detail": "no turn"})


def report(stage: str, why: str | None = None) -> httpx.Response:
    return httpx.Response(200, json={"items": [{"turn_id": "t/1", "stage": stage, "why": why, "statements": []}]})


def asking(*answers: httpx.Response | Callable[[httpx.Request], httpx.Response]) -> tuple[Api, list[httpx.Request]]:
    """Return an API that gives these answers in order, the last one for ever, and the list of requests."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        given = answers[min(len(asked), len(answers)) - 1]
        return given(request) if callable(given) else given

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://memory")
    return Api(http=http, timeout=5), asked


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstream.client.turn_wait._FIRST", 0.001)


async def test_it_asks_until_the_stage_is_reached() -> None:
    api, asked = asking(GONE, report("unread"), report("observed"), report("reflected"))
    assert (await wait_for_turn(api, TURN, "observed", seconds=5)).stage == "observed"
    assert len(asked) == 3
    assert asked[0].url.raw_path.startswith(b"/v1/turns/t%2F1?")
    assert dict(asked[0].url.params) == {
        "tenant_id": "acme", "user_id": "u1", "session_id": "s/1", "ceiling": "public",
    }, "no time: the clocks of client, server and log differ"  # fmt: skip
    assert (await wait_for_turn(api, TURN, "reflected", seconds=5)).stage == "reflected"


async def test_a_dead_letter_ends_the_wait() -> None:
    api, _ = asking(report("refused", "it is a dead letter, refused_by_model: no"))
    with pytest.raises(TurnRefused, match="refused_by_model"):
        await wait_for_turn(api, TURN, "observed", seconds=5)


async def test_the_end_of_the_time_names_the_state() -> None:
    api, _ = asking(report("waiting", "its budget is spent"))
    with pytest.raises(Unavailable, match=r"not observed within 0\.05 s; it is waiting: its budget"):
        await wait_for_turn(api, TURN, "observed", seconds=0.05)


async def test_a_produced_turn_waits_only_when_it_is_asked_to() -> None:
    written = httpx.Response(202, json={"topic": "memory.turns", "partition": 1, "offset": 2, "turn_id": "t/1"})

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            assert json.loads(request.content)["turn_id"] == "t/1"
            return written
        return report("reflected")

    api, asked = asking(answer)
    memory = Memory(turns=api, updates=unused(), groups=unused(), api=api)
    assert (await memory.produce(TURN)).offset == 2
    assert [each.method for each in asked] == ["POST"]
    assert (await memory.produce(TURN, wait="reflected")).offset == 2
    assert [each.method for each in asked] == ["POST", "POST", "GET"]


async def test_a_wait_needs_a_server() -> None:
    api, asked = asking(report("reflected"))
    memory = Memory(turns=api, updates=unused(), groups=unused(), api=None)
    with pytest.raises(Misconfigured, match="server address"):
        await memory.produce(TURN, wait="observed")
    assert asked == [], "the turn is not sent when nobody can wait for it"


def unused() -> Any:
    return None
