"""What the client makes of a server's answers: tries again what is away, refuses what is refused, keeps what is new."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream import client
from memstream.client import (
    Api,
    ClientError,
    InvalidTurn,
    Misconfigured,
    PositionLost,
    Refused,
    TooLarge,
    Unavailable,
    connect,
    errors,
)
from memstream.client.sse_updates import Block, parse_blocks
from memstream.streams.log.port import Position
from tests.support.record_builders import stored_fact

TURN = {
    "tenant_id": "acme",
    "user_id": "u1",
    "session_id": "s1",
    "turn_id": "t1",
    "messages": [{"role": "user", "content": "hello"}],
    "mood": "fine",
}
WRITTEN = {"topic": "memory.turns", "partition": 3, "offset": 7, "turn_id": "t1", "later": True}
Answering = Callable[[httpx.Request], httpx.Response]


def api(answering: Answering, *, timeout: float = 5.0) -> Api:
    http = httpx.AsyncClient(transport=httpx.MockTransport(answering), base_url="http://memory")
    return Api(http=http, timeout=timeout)


def problem(status: int, detail: str = "told why", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"type": "urn:x", "detail": detail, "status": status}, headers=headers)


REDIRECTS = {
    "https": (
        301,
        "https://memory/v1/recall",
        "http://memory/v1/recall answers 301 Moved Permanently, a redirect to https://memory/v1/recall: "
        "connect to https://memory",
    ),
    "another host and a prefix": (
        308,
        "https://new.example/memory/v1/recall?token=mst_s3cret#x",
        "connect to https://new.example/memory",
    ),
    "a page to log in": (
        302,
        "/login?next=%2Fv1%2Frecall",
        "a redirect to http://memory/login: connect to the address of memstream itself",
    ),
    "a user in it": (307, "https://u:p@new.example/v1/recall", "connect to https://new.example"),
}


@pytest.mark.parametrize("case", REDIRECTS)
async def test_a_redirect_is_named_and_not_followed(case: str) -> None:
    status, location, said = REDIRECTS[case]
    calls: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(str(request.url))
        return httpx.Response(status, headers={"Location": location}, text="<html>moved</html>")

    with pytest.raises(Misconfigured) as caught:
        await api(answer).recall("work")
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert ":p@" not in str(caught.value)
    assert calls == ["http://memory/v1/recall"]


async def test_a_turn_goes_out_as_it_was_given() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(202, json=WRITTEN)

    assert await api(answer).produce(TURN) == Position("memory.turns", 3, 7)
    assert (asked[0].url.path, json.loads(asked[0].content)) == ("/v1/turns", TURN)


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        ({**TURN, "messages": []}, InvalidTurn),
        ({**TURN, "user_id": ""}, InvalidTurn),
        ({**TURN, "mood": {1, 2}}, InvalidTurn),
        ({**TURN, "user_id": "\ud800"}, InvalidTurn),
        ({**TURN, "mood": float("nan")}, InvalidTurn),
        ({**TURN, "mood": "x" * 300_000}, TooLarge),
    ],
)
async def test_what_breaks_the_contract_is_not_sent(turn: dict[str, Any], error: type[ClientError]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError("sent")

    with pytest.raises(error):
        await api(answer).produce(turn)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_what_is_away_is_asked_again(status: int) -> None:
    answers = iter([problem(status), problem(status), httpx.Response(202, json=WRITTEN)])
    assert (await api(lambda _: next(answers)).produce(TURN)).offset == 7


async def test_a_connection_that_breaks_is_made_again() -> None:
    tries = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise httpx.ReadError("reset", request=request)
        return httpx.Response(200, json={"items": [], "missing": []})

    assert (await api(answer).recall("tea")).items == ()


async def test_what_stays_away_is_told_within_its_time() -> None:
    with pytest.raises(Unavailable, match="the log is away"):
        await api(lambda _: problem(503, "the log is away"), timeout=0.3).recall("tea")
    with pytest.raises(Unavailable, match="memstream serve"):
        async with connect("http://127.0.0.1:9", timeout=0.3) as memory:
            await memory.produce(TURN)


async def test_a_server_may_ask_for_time() -> None:
    answers = iter([problem(503, **{"retry-after": "1"}), httpx.Response(202, json=WRITTEN)])
    began = asyncio.get_running_loop().time()
    await api(lambda _: next(answers)).produce(TURN)
    assert asyncio.get_running_loop().time() - began >= 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, Misconfigured) for status in (401, 403, 404)),
        (410, PositionLost),
        (413, TooLarge),
        *((status, Refused) for status in (400, 422, 500)),
    ],
)
async def test_a_refusal_is_told_once_with_its_reason(status: int, error: type[ClientError]) -> None:
    tries: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        tries.append(request)
        return problem(status)

    with pytest.raises(error, match="told why"):
        await api(answer).recall("tea")
    assert len(tries) == 1


@pytest.mark.parametrize(
    "address", ["", "memory:8000", "htp://memory", "http://", "http://[::1", "http://memory:99999", "embedded://x"]
)
async def test_an_address_that_is_none_is_told_at_once(address: str) -> None:
    with pytest.raises(Misconfigured, match=re.escape(repr(address))) as told:
        async with connect(address):
            raise AssertionError("connected")
    assert "http://" in str(told.value) or address.startswith("embedded://"), "what would be one is told"


@pytest.mark.parametrize("api", ["memory:8000", "kafka://memory:9092"])
async def test_what_is_read_is_read_from_a_server(api: str) -> None:
    with pytest.raises(Misconfigured, match=re.escape(repr(api))):
        async with connect("kafka://127.0.0.1:1", api=api):
            raise AssertionError("connected")


@pytest.mark.parametrize("token", ["", "mst_x\n", "mst x", "mst_\u00fc", "mst_\x00"])
async def test_a_token_that_no_request_can_carry_is_told_at_once_and_not_repeated(token: str) -> None:
    with pytest.raises(Misconfigured, match="token") as told:
        async with connect("http://127.0.0.1:1", token=token):
            raise AssertionError("connected")
    assert "mst" not in str(told.value)


def test_every_error_can_be_named_by_who_catches_it() -> None:
    named = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, ClientError)}
    assert named <= set(client.__all__)


async def test_the_problem_itself_can_be_looked_at() -> None:
    with pytest.raises(Refused) as refused:
        await api(lambda _: problem(422)).recall("tea")
    assert (refused.value.status, refused.value.problem["type"]) == (422, "urn:x")
    with pytest.raises(InvalidTurn):
        await api(lambda _: problem(422)).produce(TURN)
    with pytest.raises(Refused, match="500"):
        await api(lambda _: httpx.Response(500, text="<html>")).recall("tea")


async def test_an_answer_of_something_else_is_no_answer() -> None:
    with pytest.raises(Misconfigured, match="does not answer as memstream"):
        await api(lambda _: httpx.Response(200, text="<html>welcome</html>")).recall("tea")


async def test_recall_keeps_what_a_later_server_tells() -> None:
    item = {"tier": "semantic", "id": "f1", "content": "Likes tea", "score": 0.5, "subject": "user"}
    item |= {"category": None, "parts": {"match": 0.5}, "match": 1.0, "colour": "teal"}
    asked: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json={"items": [item], "missing": [{"part": "embedder", "why": "away"}]})

    recalled = await api(answer).recall("tea", tenant_id="acme", user="u1", limit=3)
    assert asked == [{"cue": "tea", "tenant_id": "acme", "user_id": "u1", "limit": 3}]
    assert recalled.items[0].content == "Likes tea"
    assert recalled.items[0].model_extra == {"match": 1.0, "colour": "teal"}
    assert [each.part for each in recalled.missing] == ["embedder"]


async def test_a_digest_is_read_and_until_there_is_one_it_is_none() -> None:
    digest = {
        "digest_id": "d1", "tenant_id": "acme", "owner": {"scope": "user", "id": "u1"}, "text": "Works at Stripe.",
        "at": "2026-11-20T10:00:00Z", "basis": {"facts": 1}, "colour": "teal",
    }  # fmt: skip
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        if request.url.params["user_id"] == "u1":
            return httpx.Response(200, json=digest)
        return httpx.Response(404, json={"type": "urn:memstream:problem:not-found", "detail": "there is no digest yet"})

    found = await api(answer).digest(tenant="acme", user="u1")
    assert found is not None
    assert (found.text, found.basis.facts, found.model_extra) == ("Works at Stripe.", 1, {"colour": "teal"})
    assert (asked[0].path, dict(asked[0].params)) == ("/v1/digest", {"tenant_id": "acme", "user_id": "u1"})
    assert await api(answer).digest(tenant="acme", user="u2") is None
    with pytest.raises(Misconfigured, match="told why"):
        await api(lambda _: problem(404)).digest(tenant="acme", user="u1")


async def test_the_words_behind_a_gist_are_asked_for_by_id_and_what_is_nothing_is_told_why() -> None:
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        gone = {"episode_id": "a/b", "verbatim_content": None, "nothing": "gone", "colour": "teal"}
        words = {"episode_id": "e1", "verbatim_content": "Ran in Oslo.", "sha256": "0" * 64, "nothing": None}
        return httpx.Response(200, json=words if request.url.path.startswith("/v1/episodes/e1") else gone)

    found = await api(answer).rehydrate("e1", tenant="acme")
    assert (found.verbatim_content, found.nothing) == ("Ran in Oslo.", None)
    assert (asked[0].path, dict(asked[0].params)) == ("/v1/episodes/e1/verbatim", {"tenant_id": "acme"})
    gone = await api(answer).rehydrate("a/b")
    assert (gone.verbatim_content, gone.nothing, gone.model_extra) == (None, "gone", {"colour": "teal"})
    assert asked[1].raw_path == b"/v1/episodes/a%2Fb/verbatim"


async def test_facts_are_read_page_by_page() -> None:
    facts = [stored_fact(name).public().to_payload() for name in ("tea", "job", "dog")]
    pages = {None: (facts[:2], "c1"), "c1": (facts[2:], None)}

    def answer(request: httpx.Request) -> httpx.Response:
        items, following = pages[request.url.params.get("cursor")]
        assert request.url.params["state"] == "all"
        return httpx.Response(200, json={"items": items, "next": following})

    assert [fact.content async for fact in api(answer).facts(state="all")] == ["tea", "job", "dog"]


# ---------------------------------------------------------------------------------------------------------- events
TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=20)


@given(texts=st.lists(TEXT, max_size=5), size=st.integers(1, 7), end=st.sampled_from(["\n", "\r\n"]))
def test_blocks_are_read_whatever_the_pieces_are(texts: list[str], size: int, end: str) -> None:
    """Also with line ends of Unicode within the text, which are no line ends of a stream."""
    lines = [f": hi{end}id: p{n}{end}event: fact.updated{end}data: {text}{end}{end}" for n, text in enumerate(texts)]
    raw = ("".join(lines) + f"id: cut{end}data: cut").encode()

    async def chunks() -> Any:
        for begin in range(0, len(raw), size):
            yield raw[begin : begin + size]

    async def read() -> list[Block]:
        return [block async for block in parse_blocks(chunks())]

    assert asyncio.run(read()) == [Block(f"p{n}", "fact.updated", text) for n, text in enumerate(texts)]


async def test_a_short_name_beside_its_long_one_is_refused() -> None:
    with pytest.raises(TypeError, match="tenant is short for tenant_id"):
        await api(lambda _: problem(404)).context("tea", tenant="acme", tenant_id="acme")
