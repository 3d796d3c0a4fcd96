"""`GET /v1/export`, and the client's export over it: rights, cursors, and answers that end early."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.api.credentials import Credentials
from memstream.api.limits import Limits
from memstream.client import Api, Misconfigured, Unavailable
from memstream.recall.export import exporter as exporting
from memstream.schemas.errors import Transient
from memstream.schemas.topics import FACTS_UPDATED
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import app_over, bearer, called, entry
from tests.support.stored_memory import NOW, StoredMemory
from tests.support.vector_backends import store_url

READER = entry("reader")
SECRETS = entry("secrets", scopes=["memory:read", "memory:read-secret"])
ADMIN = entry("admin", scopes=["memory:read", "memory:admin"])
ANA = entry("ana", users=["u1"])
TWO = entry("two", users=["u1", "u2"])
WRITER = entry("writer", scopes=["turns:write"])
TOKENS = [READER, SECRETS, ADMIN, ANA, TWO, WRITER]


class Served:
    def __init__(self, store: Any, log: EmbeddedLog) -> None:
        self.store, self.log = store, log
        self.memory = StoredMemory(store)

    @asynccontextmanager
    async def client(self, token: str = "reader", **more: Any) -> AsyncIterator[httpx.AsyncClient]:
        app = app_over(log=self.log, store=self.store, credentials=Credentials(TOKENS), **more)
        async with called(app, token=token) as client:
            yield client

    async def get(self, token: str = "reader", **params: Any) -> httpx.Response:
        async with self.client(token) as client:
            return await client.get("/v1/export", params=params)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    with store_url(tmp_path) as url:
        store = await open_store(url, embedder=HashingEmbedder().identity, holds_folder=True)
        await store.ensure()
        log = EmbeddedLog(folder=tmp_path / "log")
        await log.start()
        await log.create([TopicSpec(FACTS_UPDATED.name, 1, 1, {})])
        served = Served(store, log)
        for n in range(5):
            await served.memory.fact(f"Likes tea {n}")
        await served.memory.fact("Has the PIN 4711", sensitivity="secret")
        await served.memory.episode("Removed words", deleted_at=NOW)
        await served.memory.message("I like tea")
        yield served
        await log.close()
        await store.close()


def lines_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def kinds_of(lines: list[dict[str, Any]]) -> list[str]:
    return [each["kind"] for each in lines]


# ------------------------------------------------------------------------------------------------ rights
async def test_a_reader_gets_what_it_may_see_and_the_number_of_the_rest(served: Served) -> None:
    answer = await served.get(user="u1")
    lines = lines_of(answer)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert kinds_of(lines) == ["export", *["fact"] * 5, "turn", "end"]
    assert "4711" not in answer.text
    assert "Removed words" not in answer.text
    left_out = {kind: count for kind, count in lines[-1]["record"]["left_out"].items() if count}
    assert left_out == {"fact": 1, "episode": 1}


async def test_secrets_and_removed_records_need_their_scopes(served: Served) -> None:
    assert (await served.get("reader", ceiling="secret")).status_code == 403
    assert kinds_of(lines_of(await served.get("secrets", ceiling="secret"))).count("fact") == 6
    assert kinds_of(lines_of(await served.get("admin"))).count("episode") == 1
    assert (await served.get("writer")).status_code == 403
    assert (await served.get("nobody")).status_code == 401


async def test_a_token_of_users_exports_these_users_alone(served: Served) -> None:
    await served.memory.fact("of u2", owner=Owner(scope="user", id="u2"))
    mine = await served.get("ana")
    assert lines_of(mine)[0]["record"]["owner"] == {"scope": "user", "id": "u1"}
    assert "of u2" not in mine.text
    assert (await served.get("ana", user="u2")).status_code == 403
    assert (await served.get("ana", scope="group", id="team")).status_code == 403
    assert (await served.get("two")).status_code == 422, "several users: one must be named"
    assert "of u2" in (await served.get("two", user="u2")).text
    assert (await served.get("reader", tenant="rival")).status_code == 403


@pytest.mark.parametrize(
    "params",
    [
        {"format": "xml"},
        {"cursor": "x"},
        {"cursor": "x" * 40_000},
        {"format": "json", "cursors": True},
        {"format": "json", "cursor": "x"},
        {"scope": "group"},
        {"user": "u\n1"},
        {"embeddings": "perhaps"},
        {"page": 1},
    ],
)
async def test_bad_parameters_are_422(served: Served, params: dict[str, Any]) -> None:
    answer = await served.get(**params)
    assert answer.status_code == 422
    assert answer.json()["errors"]


# ------------------------------------------------------------------------------------------------ cursors, ends
async def test_json_is_the_same_lines_as_one_list(served: Served) -> None:
    answer = await served.get(format="json", conversations=False)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()[1:] == lines_of(await served.get(conversations=False))[1:]


@pytest.mark.long
async def test_an_export_continues_after_a_cursor(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "PAGE", 2)
    lines = lines_of(await served.get(cursors=True))
    whole = [each for each in lines if each["kind"] != "cursor"]
    places = [number for number, each in enumerate(lines) if each["kind"] == "cursor"]
    assert len(places) > 10
    for place in places:
        rest = lines_of(await served.get(cursor=lines[place]["cursor"]))
        assert rest == [each for each in lines[place:] if each["kind"] != "cursor"]
    assert kinds_of(whole) == kinds_of(lines_of(await served.get()))


async def test_a_cursor_gives_nobody_more_rights(served: Served) -> None:
    lines = lines_of(await served.get("secrets", ceiling="secret", cursors=True))
    cursor = next(each["cursor"] for each in lines if each["kind"] == "cursor")
    assert (await served.get("reader", cursor=cursor)).status_code == 422
    assert (await served.get("reader", ceiling="secret", cursor=cursor)).status_code == 403


class Failing:
    """A store that fails at the n-th select."""

    def __init__(self, store: Any, at: int) -> None:
        self._store, self._left = store, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def select(self, *args: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise Transient("store", "Qdrant is away")
        return await self._store.select(*args, **more)


@pytest.mark.parametrize("form", ["ndjson", "json"])
async def test_an_answer_that_the_store_cuts_off_has_no_end(served: Served, form: str) -> None:
    app = app_over(log=served.log, store=Failing(served.store, 2), credentials=Credentials(TOKENS))
    async with called(app, token="reader") as client:
        answer = await client.get("/v1/export", params={"format": form})
    assert answer.status_code == 200
    assert '"kind":"fact"' in answer.text
    assert '"kind":"end"' not in answer.text
    if form == "json":
        with pytest.raises(ValueError, match="Expecting"):
            answer.json()


async def test_exports_are_limited_like_streams_that_catch_up(served: Served) -> None:
    limits = Limits(catching_up=0, catching_up_per_tenant=0, catching_up_per_token=0, place_seconds=0.01)
    async with served.client(limits=limits) as client:
        answer = await client.get("/v1/export")
    assert answer.status_code in (429, 503)
    assert answer.headers["retry-after"]


# ------------------------------------------------------------------------------------------------ client
async def test_the_client_yields_the_lines_of_an_export(served: Served) -> None:
    async with served.client() as http:
        lines = [json.loads(line) async for line in Api(http=http, timeout=5.0).export(user="u1", conversations=False)]
    assert kinds_of(lines) == ["export", *["fact"] * 5, "end"]


async def test_the_client_continues_after_a_cut_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "PAGE", 2)
    whole = kinds_of(lines_of(await served.get()))
    asked: list[str | None] = []
    async with served.client() as http:

        async def cutting(request: httpx.Request) -> httpx.Response:
            asked.append(request.url.params.get("cursor"))
            answer = await http.get(request.url.raw_path.decode())
            text = answer.content
            return httpx.Response(200, content=text[: len(text) * 2 // 3] if len(asked) < 4 else text)

        cut = httpx.AsyncClient(
            transport=httpx.MockTransport(cutting), base_url="http://memory", headers=bearer("reader")
        )
        lines = [json.loads(line) async for line in Api(http=cut, timeout=5.0).export()]
    assert kinds_of(lines) == whole
    assert len({each["record"].get("fact_id") for each in lines if each["kind"] == "fact"}) == 5
    assert asked[0] is None
    assert len(asked) == 4
    assert len(set(asked)) > 2


async def test_the_client_gives_up_when_nothing_comes(served: Served) -> None:
    away = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(503)), base_url="http://memory")
    with pytest.raises(Unavailable, match="the export stopped"):
        async for _ in Api(http=away, timeout=0.05).export():
            pass


async def test_another_server_is_named(served: Served) -> None:
    other = httpx.AsyncClient(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, content=b"<html>\n")), base_url="http://memory"
    )
    with pytest.raises(Misconfigured, match="does not answer as memstream"):
        async for _ in Api(http=other, timeout=1.0).export():
            pass
