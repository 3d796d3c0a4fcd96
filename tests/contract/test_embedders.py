"""The contract of `Embedder`, and the requests of the OpenAI client."""

from __future__ import annotations

import asyncio
import builtins
import math
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from memstream.adapters.batching.embedder import LOCAL, REMOTE, BatchingEmbedder
from memstream.adapters.embedders.factory import create_embedder
from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.embedders.openai import BATCH, OpenAIEmbedder
from memstream.adapters.ports import Embedder
from memstream.schemas.errors import Fatal, Poison, Transient
from tests.support.completion_requests import Ledger
from tests.support.model_server import Json, ModelServer, Reply, content_filtered, error, rate_limited


def make(name: str, *, base_url: str | None = None, sink: Ledger | None = None, timeout: float = 10.0) -> Embedder:
    return create_embedder(name, api_key=None, base_url=base_url, timeout=timeout, sink=sink or Ledger())


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def minilm(minilm_folder: str) -> str:
    return f"fastembed:{minilm_folder}"


BATCHED = "batched "


@pytest.fixture(
    params=[
        "hashing",
        "openai",
        pytest.param("fastembed", marks=pytest.mark.semantic),
        f"{BATCHED}hashing",
        f"{BATCHED}openai",
        pytest.param(f"{BATCHED}fastembed", marks=pytest.mark.semantic),
    ]
)
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    kind = request.param.removeprefix(BATCHED)
    match kind:
        case "fastembed":
            made = make(request.getfixturevalue("minilm"))
        case "openai":
            made = make("openai:words", base_url=request.getfixturevalue("server").base_url)
        case _:
            made = make("hashing")
    if request.param.startswith(BATCHED):
        made = BatchingEmbedder(embedder=made, policy=REMOTE if kind == "openai" else LOCAL)
    yield made
    await made.close()


# ------------------------------------------------------------------------------------------------ every embedder
HOSTILE = [
    "",
    "   ",
    "\n\t",
    "\u200b",
    "🙂",
    "🙂🙃",
    "\ud800",
    "a\x00b",
    "Привет, мир",
    "日本語のテキスト",
    "…!?",
    "x" * 100_000,
]


class TestEveryEmbedder:
    async def test_one_vector_per_text_in_order(self, embedder: Embedder) -> None:
        texts = [f"sentence number {number} about {topic}" for number in range(BATCH + 5) for topic in ("tea", "cars")]
        vectors = await embedder.embed(texts, tenant_id="acme")
        assert len(vectors) == len(texts)
        for place in (0, 1, BATCH, BATCH + 1, len(texts) - 1):
            [alone] = await embedder.embed([texts[place]], tenant_id="acme")
            assert dot(alone, vectors[place]) > 0.97  # an int8 model rounds differently in another batch

    async def test_dimension_is_that_of_the_identity_and_the_length_is_one(self, embedder: Embedder) -> None:
        for vector in await embedder.embed(["Works at Google", "tea"], tenant_id="acme"):
            assert len(vector) == embedder.identity.dimension
            assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-6)

    async def test_equal_texts_give_equal_vectors(self, embedder: Embedder) -> None:
        assert await embedder.embed(["Lives in Berlin"], tenant_id="a") == await embedder.embed(
            ["Lives in Berlin"], tenant_id="b"
        )

    async def test_common_words_are_nearer_than_none(self, embedder: Embedder) -> None:
        tea, teas, car = await embedder.embed(
            ["Drinks green tea", "Drinks black tea", "Owns an old Volvo"], tenant_id="acme"
        )
        assert dot(tea, teas) > dot(tea, car) + 0.2

    async def test_no_texts_give_no_vectors(self, embedder: Embedder) -> None:
        assert await embedder.embed([], tenant_id="acme") == []

    async def test_hostile_text_has_a_vector_too(self, embedder: Embedder) -> None:
        failed = []
        for text in HOSTILE:
            [vector] = await embedder.embed([text], tenant_id="acme")
            if not all(map(math.isfinite, vector)) or math.hypot(*vector) != pytest.approx(1.0, abs=1e-6):
                failed.append(ascii(text)[:80])
        assert failed == []

    async def test_slug_fits_a_collection_name(self, embedder: Embedder) -> None:
        assert set(embedder.identity.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


# ------------------------------------------------------------------------------------------------ single ones
async def test_hashing_is_the_same_on_every_machine() -> None:
    """Collections outlive processes: these dimensions and signs may never change without a new version."""
    [vector] = await HashingEmbedder().embed(["Works at Google"], tenant_id="acme")
    assert {place: round(x, 4) for place, x in enumerate(vector) if x} == EXPECTED_PLACES


EXPECTED_PLACES = {267: 0.5774, 1133: 0.5774, 2047: 0.5774}


class TestOpenAIEmbedder:
    async def test_the_dimension_is_found_by_a_call(self, server: ModelServer) -> None:
        server.dimension = 17
        embedder = make("openai:words", base_url=server.base_url)
        assert embedder.identity.dimension == 17
        assert embedder.identity.name == "openai:words"
        assert len(server.embedding_calls) == 1
        await embedder.embed(["x"], tenant_id="acme")
        assert len(server.embedding_calls) == 2
        await embedder.close()

    async def test_another_dimension_later_is_fatal(self, server: ModelServer) -> None:
        embedder = make("openai:words", base_url=server.base_url)
        await embedder.embed(["x"], tenant_id="acme")
        server.dimension = 5
        with pytest.raises(Fatal, match="MEMSTREAM_EMBEDDER"):
            await embedder.embed(["x"], tenant_id="acme")
        await embedder.close()

    async def test_calls_are_batched_and_counted(self, server: ModelServer) -> None:
        ledger = Ledger()
        embedder = make("openai:words", base_url=server.base_url, sink=ledger)
        await embedder.embed(["some text"] * (2 * BATCH + 1), tenant_id="acme")
        assert [len(call["input"]) for call in server.embedding_calls] == [BATCH, BATCH, 1]  # type: ignore[arg-type]
        assert {entry[:3] for entry in ledger.entries} == {("acme", "embedding", "words")}
        assert sum(entry[3].input_tokens for entry in ledger.entries) > 0
        await embedder.close()

    async def test_one_text_too_long_does_not_spoil_its_batch(self, server: ModelServer) -> None:
        def script(body: Json) -> Reply | None:
            return error(400, "too long") if any(len(str(text)) > 5_000 for text in body["input"]) else None  # type: ignore[union-attr]

        server.embedding_script = script
        embedder = make("openai:words", base_url=server.base_url)
        assert len(await embedder.embed(["short", "word " * 10_000, "also short"], tenant_id="acme")) == 3
        await embedder.close()

    @pytest.mark.parametrize(
        ("reply", "named"),
        [
            (error(401), "OPENAI_API_KEY"),
            (error(404), "MEMSTREAM_EMBEDDER"),
            (error(500), ""),
            (Reply(raw=b"<html>"), "OPENAI_BASE_URL"),
            (Reply(raw=b'{"data": []}'), ""),
            (Reply(raw=b'{"data": [{"index": 0, "embedding": [0, 0]}]}'), ""),
        ],
    )
    async def test_servers_in_trouble_are_transient(self, server: ModelServer, reply: Reply, named: str) -> None:
        server.embedding_script = lambda body: reply
        embedder = make("openai:words", base_url=server.base_url)
        with pytest.raises(Transient) as caught:
            await embedder.embed(["x"], tenant_id="acme")
        assert caught.value.component == "embedder"
        assert named in caught.value.remedy
        await embedder.close()

    async def test_identity_of_a_server_that_is_away_is_transient(self) -> None:
        with ModelServer() as gone:
            url = gone.base_url
        with pytest.raises(Transient):
            _ = make("openai:words", base_url=url).identity

    async def test_identity_from_a_server_that_refuses_the_model_names_the_setting(self, server: ModelServer) -> None:
        server.embedding_script = lambda body: error(400, "not an embedding model")
        with pytest.raises(Transient) as caught:
            _ = make("openai:words", base_url=server.base_url).identity
        assert "MEMSTREAM_EMBEDDER" in caught.value.remedy

    async def test_a_text_that_a_content_filter_refuses_alone_is_asked_for_once(self, server: ModelServer) -> None:
        embedder = make("openai:words", base_url=server.base_url)
        server.embedding_script = lambda body: content_filtered() if "vile" in str(body["input"]) else None
        with pytest.raises(Poison, match="content management policy"):
            await embedder.embed(["vile"], tenant_id="acme")
        assert len(server.embedding_calls) == 1
        with pytest.raises(Poison, match="content management policy"):
            await embedder.embed(["fine", "vile"], tenant_id="acme")
        assert [call["input"] for call in server.embedding_calls[1:]] == [["fine", "vile"], ["fine"], ["vile"]]
        await embedder.close()

    async def test_retry_after_and_refusals(self, server: ModelServer) -> None:
        embedder = make("openai:words", base_url=server.base_url)
        server.embedding_script = lambda body: rate_limited(7)
        with pytest.raises(Transient) as caught:
            await embedder.embed(["x"], tenant_id="acme")
        assert caught.value.retry_after == 7
        server.embedding_script = lambda body: error(400, "will not")
        with pytest.raises(Poison, match="will not"):
            await embedder.embed(["x"], tenant_id="acme")
        await embedder.close()


class TestBatchingOverOpenAI:
    @pytest.fixture
    async def shared(self, server: ModelServer) -> AsyncIterator[Embedder]:
        made = BatchingEmbedder(embedder=make("openai:words", base_url=server.base_url), policy=REMOTE)
        await made.embed(["warm"], tenant_id="acme")
        yield made
        await made.close()

    async def test_concurrent_callers_of_a_tenant_share_calls_and_keep_their_order(
        self, server: ModelServer, shared: Embedder
    ) -> None:
        texts = [[f"text {n} {place}" for place in range(n % 4)] for n in range(40)]
        before = len(server.embedding_calls)
        answers = await asyncio.gather(*(shared.embed(each, tenant_id="acme") for each in texts))
        assert len(server.embedding_calls) - before == -(-60 // BATCH)
        for each, vectors in zip(texts, answers, strict=True):
            alone = await shared.embed(each, tenant_id="acme")
            assert vectors == alone

    async def test_tenants_never_share_a_call_and_pay_for_their_own(self, server: ModelServer) -> None:
        ledger = Ledger()
        inner = make("openai:words", base_url=server.base_url, sink=ledger)
        shared = BatchingEmbedder(embedder=inner, policy=REMOTE)
        tenants = [f"tenant{n % 3}" for n in range(9)]
        await asyncio.gather(*(shared.embed([f"secret of {each}"], tenant_id=each) for each in tenants))
        assert sorted(len({str(text)[-7:] for text in call["input"]}) for call in server.embedding_calls) == [1, 1, 1]  # type: ignore[union-attr]
        assert sorted(entry[0] for entry in ledger.entries) == ["tenant0", "tenant1", "tenant2"]
        await shared.close()

    async def test_a_text_that_is_refused_is_its_own_callers_trouble(
        self, server: ModelServer, shared: Embedder
    ) -> None:
        server.embedding_script = lambda body: error(400, "vile") if "vile" in str(body["input"]) else None
        answers = await asyncio.gather(
            *(shared.embed([f"vile {n}" if n == 3 else f"fine {n}"], tenant_id="acme") for n in range(6)),
            return_exceptions=True,
        )
        assert [isinstance(each, Poison) for each in answers] == [n == 3 for n in range(6)]

    async def test_a_server_in_trouble_is_everybodys(self, server: ModelServer, shared: Embedder) -> None:
        server.embedding_script = lambda body: rate_limited(7)
        answers = await asyncio.gather(
            *(shared.embed([f"text {n}"], tenant_id="acme") for n in range(3)), return_exceptions=True
        )
        assert [isinstance(each, Transient) and each.retry_after for each in answers] == [7, 7, 7]

    async def test_a_caller_that_goes_away_leaves_the_others_their_answer(
        self, server: ModelServer, shared: Embedder
    ) -> None:
        tasks = [asyncio.create_task(shared.embed([f"text {n}"], tenant_id="acme")) for n in range(3)]
        for _ in range(3):
            await asyncio.sleep(0)
        tasks[1].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(each, list) for each in answers] == [True, False, True]


@pytest.mark.semantic
class TestFastEmbedder:
    async def test_knows_meanings_and_is_named_by_its_folder(self, minilm: str) -> None:
        embedder = make(minilm)
        assert embedder.identity.name == "fastembed:all-minilm-l6-v2-int8"
        assert embedder.identity.dimension == 384
        loves, likes, car = await embedder.embed(
            ["I love cats", "Kittens are my favourite", "The engine is broken"], tenant_id="acme"
        )
        assert dot(loves, likes) > 0.4 > 0.2 > dot(loves, car)
        await embedder.close()

    async def test_the_loop_goes_on_meanwhile(self, minilm: str) -> None:
        embedder = make(minilm)
        loop_thread, ran_in = threading.get_ident(), set[int]()
        inner = embedder._embed  # type: ignore[attr-defined]
        embedder._embed = lambda texts: (ran_in.add(threading.get_ident()), inner(texts))[1]  # type: ignore[attr-defined]
        await asyncio.gather(*(embedder.embed([f"text {n}"], tenant_id="acme") for n in range(4)))
        assert len(ran_in) == 1
        assert loop_thread not in ran_in
        await embedder.close()

    async def test_the_model_runs_on_one_thread(self, minilm: str) -> None:
        embedder = make(minilm)
        await embedder.embed(["loads the model"], tenant_id="acme")
        session = embedder._model.model.model  # type: ignore[attr-defined]
        assert session.get_session_options().intra_op_num_threads == 1
        await embedder.close()


class TestFactory:
    @pytest.mark.parametrize("name", [None, "", "hashing", " hashing "])
    def test_hashing_is_the_default(self, name: str | None) -> None:
        made = create_embedder(name, api_key=None, base_url=None, timeout=1, sink=Ledger())
        assert made.identity.name == "hashing"

    @pytest.mark.parametrize("name", ["nope", "hashing:x", "openai", "openai:", "fastembed", "fastembed:"])
    def test_a_wrong_name_is_refused_by_name(self, name: str) -> None:
        with pytest.raises(ValueError, match="MEMSTREAM_EMBEDDER"):
            make(name, base_url="http://127.0.0.1:9/v1")

    def test_an_openai_model_without_key_and_server_is_refused(self) -> None:
        with pytest.raises(ValueError, match="OPENAI_API_KEY"):
            make("openai:words")

    @pytest.mark.parametrize("name", ["no/such-model", "."])
    def test_a_wrong_fastembed_model_is_refused(self, name: str) -> None:
        pytest.importorskip("fastembed")
        with pytest.raises(ValueError, match="MEMSTREAM_EMBEDDER"):
            make(f"fastembed:{name}")

    def test_without_the_package_it_says_how_to_install_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def absent(name: str, *args: object, **kwargs: object) -> object:
            relative = len(args) > 3 and args[3] != 0  # our own module has the package's name
            if name.startswith("fastembed") and not relative:
                raise ImportError(name)
            return real(name, *args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(builtins, "__import__", absent)
        with pytest.raises(ValueError, match="pip install"):
            make("fastembed:BAAI/bge-small-en-v1.5")

    def test_openai_embedder_is_one(self, server: ModelServer) -> None:
        assert isinstance(make("openai:words", base_url=server.base_url), OpenAIEmbedder)
