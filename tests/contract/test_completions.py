"""The contract of `Completions`, and the requests of the OpenAI client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from memstream.adapters.completions.factory import create_completions
from memstream.adapters.completions.offline import OfflineCompletions
from memstream.adapters.completions.openai import OpenAICompletions
from memstream.adapters.ports import CompletionRequest, Completions, Message, Usage
from memstream.schemas.errors import Poison, Transient
from tests.support.completion_requests import Ledger, consolidate, observe
from tests.support.model_server import (
    Answer,
    Ask,
    Gate,
    ModelServer,
    Reply,
    content_filtered,
    error,
    garbage,
    hang,
    held,
    in_turn,
    nothing,
    observing,
    rate_limited,
    refusal,
    truncated,
    unauthorized,
)

OBSERVED = observing({"I work at Google.": [{"content": "Works at Google", "category": "profession"}]})


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(OBSERVED) as running:
        yield running


@pytest.fixture
async def client(server: ModelServer, ledger: Ledger) -> AsyncIterator[OpenAICompletions]:
    made = OpenAICompletions(
        model="gpt-test", api_key="k", base_url=server.base_url, timeout=10, concurrency=4, sink=ledger
    )
    yield made
    await made.close()


# ------------------------------------------------------------------------------------------------ every completions
@pytest.fixture(params=["openai", "offline"])
async def completions(request: pytest.FixtureRequest, client: OpenAICompletions, ledger: Ledger) -> Completions:
    return client if request.param == "openai" else OfflineCompletions(sink=ledger)


class TestEveryCompletions:
    async def test_answers_the_typed_value_and_names_its_model(self, completions: Completions) -> None:
        answer = await completions.complete(observe("user: I work at Google."))
        assert [(item["subject"], item["content"], item["turn"]) for item in answer.value] == [
            ("user", "Works at Google", "t1")
        ]
        assert answer.model == completions.model

    async def test_counts_usage_per_tenant_and_task(self, completions: Completions, ledger: Ledger) -> None:
        answer = await completions.complete(observe("user: I work at Google.", tenant_id="umbrella"))
        assert [entry[:3] for entry in ledger.entries] == [("umbrella", "observations", completions.model)]
        assert answer.usage.calls == 1
        assert (answer.usage.input_tokens > 0) is completions.costs_money

    async def test_a_parser_that_refuses_the_outer_shape_is_poison(self, completions: Completions) -> None:
        def refuse(_value: object) -> str:
            raise ValueError("no list at all")

        request = CompletionRequest(
            task="observations",
            tenant_id="acme",
            messages=(Message("user", "[t1]\nuser: I work at Google."),),
            json_schema={"type": "object"},
            parse=refuse,
        )
        with pytest.raises(Poison, match="no list at all") as caught:
            await completions.complete(request)
        assert caught.value.reason == "refused_by_model"

    @pytest.mark.parametrize(
        "text", ["", "user: ", "user: 🙂\u200b\u0000 \ud800", "user: " + "a" * 100_000, "\\[t9]\n[w1", "nobody: x"]
    )
    async def test_hostile_turns_are_only_text(self, completions: Completions, text: str) -> None:
        assert (await completions.complete(observe(text))).value == []

    async def test_several_at_once(self, completions: Completions) -> None:
        answers = await asyncio.gather(*(completions.complete(observe("user: I work at Google.")) for _ in range(20)))
        assert all(len(answer.value) == 1 for answer in answers)


# ------------------------------------------------------------------------------------------------ the wire
class TestFormats:
    async def test_asks_with_a_strict_schema_named_after_the_task(
        self, client: OpenAICompletions, server: ModelServer
    ) -> None:
        await client.complete(observe("user: hi"))
        [ask] = server.asks
        assert ask.body["response_format"] == {
            "type": "json_schema",
            "json_schema": {
                "name": "observations",
                "strict": True,
                "schema": dict(observe("").json_schema),
            },
        }
        assert ask.headers["Authorization"] == "Bearer k"

    async def test_an_address_without_a_path_is_asked_as_it_stands(self, server: ModelServer, ledger: Ledger) -> None:
        """What many forget: the remedy names the end that is missing."""
        address = server.base_url.removesuffix("/v1")
        for base in (address, f"{address}/"):
            client = OpenAICompletions(model="gpt-test", api_key="k", base_url=base, timeout=10, sink=ledger)
            with pytest.raises(Transient) as caught:
                await client.complete(observe("user: hi"))
            await client.close()
            assert "it usually ends with /v1" in caught.value.remedy

    @pytest.mark.parametrize("base", ["", "/"])
    async def test_is_configured_as_the_openai_client_is(
        self, server: ModelServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, base: str
    ) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "an-organization")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "a-project")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url + base)
        client = OpenAICompletions(model="gpt-test", api_key="k", timeout=10, concurrency=4, sink=ledger)
        await client.complete(observe("user: hi"))
        await client.close()
        [ask] = server.asks
        headers = {name.lower(): value for name, value in ask.headers.items()}
        told = [headers[name] for name in ("openai-organization", "openai-project", "authorization", "content-type")]
        assert told == ["an-organization", "a-project", "Bearer k", "application/json"]

    async def test_a_proxy_that_the_environment_names_is_asked(
        self, server: ModelServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
        client = OpenAICompletions(model="m", base_url="http://models.invalid/v1", sink=ledger)
        await client.complete(observe("user: hi"))
        await client.close()
        assert len(server.asks) == 1

    @pytest.mark.parametrize(
        ("refused", "seen"),
        [
            (["json_schema"], ["json_schema", "json_object", "json_object"]),
            (["json_schema", "json_object"], ["json_schema", "json_object", "text", "text"]),
        ],
    )
    async def test_falls_back_and_remembers_what_worked(
        self, client: OpenAICompletions, server: ModelServer, ledger: Ledger, refused: list[str], seen: list[str]
    ) -> None:
        server.refuse_formats = frozenset(refused)
        for _ in range(2):
            assert (await client.complete(observe("user: I work at Google."))).value
        assert [ask.response_format for ask in server.asks] == seen
        assert server.asks[-1].task == "observations", "the schema stands in the prompt"
        assert ledger.calls == 2

    async def test_a_refusal_after_success_is_about_the_request(
        self, client: OpenAICompletions, server: ModelServer
    ) -> None:
        server.script = in_turn(OBSERVED, error(400), OBSERVED, then=OBSERVED)
        for _ in range(3):
            await client.complete(observe("user: I work at Google."))
        assert [ask.response_format for ask in server.asks] == [
            "json_schema", "json_schema", "json_object", "json_schema",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "content",
        [
            '```json\n{"observations": []}\n```',
            'Here it is:\n{"observations": []}\nAnything else?',
            '<think>{"a": 1}</think>{"observations": []}',
        ],
    )
    async def test_tolerates_what_models_put_around_json(
        self, client: OpenAICompletions, server: ModelServer, content: str
    ) -> None:
        server.script = lambda ask: content
        assert (await client.complete(observe("user: hi"))).value == []
        assert len(server.asks) == 1


class TestRepair:
    @pytest.mark.parametrize(
        "bad",
        [
            garbage(),
            truncated(),
            truncated('{"observations": []}'),
            refusal(),
            Reply(content='{"observations": []}', finish_reason="content_filter"),
            Reply(content=""),
            Reply(content='{"notes": []}'),
            Reply(content="[1, 2]"),
            Reply(content='{"observations": [NaN]}'),
            Reply(content="[" * 50_000),
            Reply(raw=b'{"choices": []}', headers={"content-type": "application/json"}),
        ],
        ids=lambda reply: f"{reply.finish_reason}-{(reply.content or '')[:12]}",
    )
    async def test_one_repair_then_poison(
        self, client: OpenAICompletions, server: ModelServer, ledger: Ledger, bad: Reply
    ) -> None:
        server.script = lambda ask: bad
        with pytest.raises(Poison) as caught:
            await client.complete(observe("user: I work at Google."))
        assert caught.value.reason == "refused_by_model"
        first, repair = server.asks
        assert repair.last_user_message == first.last_user_message
        assert "could not be used" not in str(first.messages)
        assert "could not be used" in str(repair.messages[:-1])
        assert ledger.calls == 2, "an unusable answer was paid for all the same"

    async def test_a_repaired_answer_counts_both_calls(self, client: OpenAICompletions, server: ModelServer) -> None:
        server.script = in_turn(garbage(), then=OBSERVED)
        answer = await client.complete(observe("user: I work at Google."))
        assert len(answer.value) == 1
        assert answer.usage.calls == 2

    @pytest.mark.parametrize("status", [400, 413, 422])
    async def test_a_server_that_refuses_every_format_is_asked_once_more(
        self, client: OpenAICompletions, server: ModelServer, status: int
    ) -> None:
        server.script = lambda ask: error(status, "invalid content")
        with pytest.raises(Poison, match="invalid content"):
            await client.complete(observe("user: I work at Google."))
        assert [ask.response_format for ask in server.asks] == ["json_schema", "json_object", "text", "text"]

    @pytest.mark.parametrize(
        "reply", [content_filtered(), error(400, code="content_policy_violation")], ids=["filtered", "refused"]
    )
    async def test_a_content_filter_is_poison_after_one_call(
        self, client: OpenAICompletions, server: ModelServer, ledger: Ledger, reply: Reply
    ) -> None:
        server.script = in_turn(reply, then=OBSERVED)
        with pytest.raises(Poison, match="content filter or policy of gpt-test refused") as caught:
            await client.complete(observe("user: I work at Google."))
        assert caught.value.reason == "refused_by_model"
        assert caught.value.__cause__ is None, "the dead letter would tell the cause alone"
        assert len(server.asks) == 1
        assert ledger.calls == 0
        await client.complete(observe("user: I work at Google."))
        assert server.asks[-1].response_format == "json_schema", "the format is not to blame"

    async def test_a_content_filter_that_repeats_a_turn_is_known_and_the_turn_is_left_out(
        self, client: OpenAICompletions, server: ModelServer
    ) -> None:
        said = "my secret plan is to buy a very large boat"
        server.script = lambda ask: content_filtered(said)
        with pytest.raises(Poison) as caught:
            await client.complete(observe(f"user: {said}"))
        assert "boat" not in str(caught.value)
        assert len(server.asks) == 1

    async def test_a_turn_that_speaks_of_content_filters_is_refused_by_none(
        self, client: OpenAICompletions, server: ModelServer
    ) -> None:
        said = "our content filter has a content management policy"
        server.script = in_turn(error(400, f"cannot read: {said}"), then=OBSERVED)
        await client.complete(observe(f"user: {said}"))
        assert len(server.asks) == 2, "the next format"

    async def test_lone_surrogates_in_an_answer_become_storable(
        self, client: OpenAICompletions, server: ModelServer
    ) -> None:
        server.script = lambda ask: '{"observations": [{"content": "\\ud800 x"}]}'
        [item] = (await client.complete(observe("user: hi"))).value
        assert str(item["content"]).encode() == "\ufffd x".encode()


class TestErrors:
    @pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
    async def test_busy_or_failing_servers_are_transient_and_not_retried_here(
        self, client: OpenAICompletions, server: ModelServer, status: int
    ) -> None:
        server.script = lambda ask: error(status)
        with pytest.raises(Transient) as caught:
            await client.complete(observe("user: hi"))
        assert caught.value.component == "model"
        assert len(server.asks) == 1

    @pytest.mark.parametrize("as_date", [False, True])
    async def test_retry_after_is_honoured(self, client: OpenAICompletions, server: ModelServer, as_date: bool) -> None:
        server.script = lambda ask: rate_limited(30, as_date=as_date)
        with pytest.raises(Transient) as caught:
            await client.complete(observe("user: hi"))
        assert caught.value.retry_after == pytest.approx(30, abs=3)

    @pytest.mark.parametrize(
        ("reply", "named"),
        [
            (unauthorized(), "OPENAI_API_KEY"),
            (error(403), "OPENAI_API_KEY"),
            (error(404, code="model_not_found"), "MEMSTREAM_MODEL"),
            (error(404), "OPENAI_BASE_URL"),
            (error(405), "OPENAI_BASE_URL"),
            (error(400, code="invalid_api_key"), "OPENAI_API_KEY"),
            (error(429, code="insufficient_quota"), "OPENAI_API_KEY"),
            (Reply(raw=b"<html>Welcome</html>", headers={"content-type": "text/html"}), "OPENAI_BASE_URL"),
        ],
    )
    async def test_wrong_settings_are_transient_and_named(
        self, client: OpenAICompletions, server: ModelServer, reply: Reply, named: str
    ) -> None:
        server.script = lambda ask: reply
        with pytest.raises(Transient) as caught:
            await client.complete(observe("user: hi"))
        assert named in caught.value.remedy

    async def test_a_body_cut_off_is_transient(self, client: OpenAICompletions, server: ModelServer) -> None:
        server.script = lambda ask: Reply(content='{"observations": []}', cut_body=True)
        with pytest.raises(Transient):
            await client.complete(observe("user: hi"))

    async def test_a_server_that_hangs_is_a_time_out(self, server: ModelServer, ledger: Ledger) -> None:
        server.script = lambda ask: hang()
        client = OpenAICompletions(model="m", base_url=server.base_url, timeout=0.3, sink=ledger)
        with pytest.raises(Transient, match="within"):
            await client.complete(observe("user: hi"))
        await client.close()

    async def test_nobody_there_is_transient(self, ledger: Ledger) -> None:
        with ModelServer() as gone:
            url = gone.base_url
        client = OpenAICompletions(model="m", base_url=url, timeout=5, sink=ledger)
        with pytest.raises(Transient) as caught:
            await client.complete(observe("user: hi"))
        assert "OPENAI_BASE_URL" in caught.value.remedy
        await client.close()


class TestLimit:
    async def test_no_more_calls_under_way_than_the_limit(self, client: OpenAICompletions, server: ModelServer) -> None:
        gate = Gate()
        most: list[int] = []

        def script(ask: Ask) -> Answer:
            most.append(server.in_hand)
            return held(gate, nothing(ask))

        server.script = script
        tasks = [asyncio.ensure_future(client.complete(observe("user: hi"))) for _ in range(12)]
        await asyncio.to_thread(server.wait_in_hand, 4)
        gate.open()
        await asyncio.gather(*tasks)
        assert max(most) <= 4
        assert len(server.asks) == 12


# ------------------------------------------------------------------------------------------------ the choice
class TestFactory:
    async def make(self, **changed: object) -> Completions:
        given: dict[str, object] = {
            "model": None, "api_key": None, "base_url": None, "timeout": 5.0, "concurrency": 2, "sink": Ledger(),
        }  # fmt: skip
        return create_completions(**{**given, **changed})  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("given", "model", "costs"),
        [
            ({}, "offline-rules/1", False),
            ({"model": "offline", "api_key": "k"}, "offline-rules/1", False),
            ({"api_key": "k"}, "gpt-5-mini", True),
            ({"model": "a, b", "api_key": "k"}, "a", True),
            ({"model": "llama3", "base_url": "http://127.0.0.1:9/v1"}, "llama3", True),
        ],
    )
    async def test_by_settings(self, given: dict[str, object], model: str, costs: bool) -> None:
        made = await self.make(**given)
        assert (made.model, made.costs_money) == (model, costs)
        await made.close()

    async def test_a_model_without_key_and_server_is_refused_by_name(self) -> None:
        with pytest.raises(ValueError, match="OPENAI_API_KEY"):
            await self.make(model="gpt-5-mini")

    @pytest.mark.parametrize(
        ("setting", "given"),
        [
            ("OPENAI_BASE_URL", {"base_url": "http://models:port/v1"}),
            ("OPENAI_BASE_URL", {"base_url": "http://models\x00/v1"}),
            ("OPENAI_API_KEY", {"api_key": "schlüssel"}),
            ("OPENAI_API_KEY", {"api_key": "two\nlines"}),
        ],
    )
    async def test_what_no_request_can_have_is_refused_at_the_start(
        self, setting: str, given: dict[str, object]
    ) -> None:
        with pytest.raises(ValueError, match=setting):
            await self.make(**{"model": "m", "api_key": "k", **given})


class TestOfflineConsolidation:
    async def test_other_tasks_are_refused_by_name(self, ledger: Ledger) -> None:
        request = consolidate(episodes=[])
        other = CompletionRequest(
            task="judge", tenant_id="a", messages=request.messages, json_schema={}, parse=request.parse
        )
        with pytest.raises(Poison, match="judge"):
            await OfflineCompletions(sink=ledger).complete(other)

    async def test_usage_is_free(self, ledger: Ledger) -> None:
        answer = await OfflineCompletions(sink=ledger).complete(consolidate(episodes=[("user", "Speaks German")]))
        assert answer.usage == Usage(calls=1)
