"""A scripted model behind the real OpenAI wire protocol: chat/completions and embeddings.

In a test:

    def script(ask: Ask) -> Answer: ...
    with ModelServer(script) as server:
        ... OPENAI_BASE_URL=server.base_url, any key ...
        server.wait_in_hand(1)

It serves from a thread of its own, so it also answers a test whose event loop is blocked, and processes that the test
started. As a process of its own: `python -m tests.support.model_server --port 18080 --rules rules.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import TracebackType

from aiohttp import web
from pydantic import JsonValue

from tests.support.blind_judge import Judge, always_yes, answers
from tests.support.openai_bodies import CHARACTERS_A_TOKEN, OBSERVATION, completion
from tests.support.prompt_view import PromptView, user_text, view

Json = dict[str, JsonValue]
NAMED = re.compile(r'JSON schema, named "(\w+)"')


# ------------------------------------------------------------------------------------------------ what was asked
@dataclass(frozen=True)
class Ask:
    """One chat completion that a client asks for."""

    number: int
    """Number from 1 over all chat completions of this server."""
    task: str
    """Name of the JSON schema; without a schema in the request, the name in the prompt."""
    model: str
    messages: tuple[tuple[str, str], ...]
    response_format: str
    """json_schema, json_object or text."""
    prompt: PromptView
    seen_before: int
    """Earlier asks with the same last user message (a repair, a retry, a redelivery)."""
    headers: Mapping[str, str]
    body: Json
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def turns(self) -> dict[str, str]:
        return self.prompt.turns

    @property
    def last_user_message(self) -> str:
        return next((content for role, content in reversed(self.messages) if role == "user"), "")


# ------------------------------------------------------------------------------------------------ how it is answered
class Gate:
    """Holds answers until a test opens it. The server opens it when it stops."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()


@dataclass(frozen=True)
class Reply:
    """Any answer of a server. `content` is the message's text; `raw` replaces the whole body."""

    content: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    refusal: str | None = None
    raw: bytes | None = None
    code: str | None = None
    """Error code in the body of an error status."""
    gate: Gate | None = None
    """The server answers when it opens; the request is in hand until then."""
    delay: float = 0.0
    cut_body: bool = False
    """Close the connection in the middle of the body."""


Answer = Json | str | Reply
Script = Callable[[Ask], Answer]


def error(status: int, message: str = "scripted", *, code: str | None = None, **headers: str) -> Reply:
    return Reply(
        status=status, content=message, code=code, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def rate_limited(seconds: float | None = None, *, as_date: bool = False) -> Reply:
    if seconds is None:
        return error(429)
    value = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True) if as_date else f"{seconds:g}"
    return error(429, retry_after=value)


def unauthorized() -> Reply:
    return error(401, "Incorrect API key provided", code="invalid_api_key")


def content_filtered(said: str = "") -> Reply:
    """The refusal of Azure's content filter."""
    problem: Json = {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
        f"Please modify your prompt and retry. {said}",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        },
    }
    return Reply(status=400, raw=json.dumps({"error": problem}).encode(), headers={"content-type": "application/json"})


def garbage() -> Reply:
    return Reply(content="Sure! Here is what I noticed about the user:")


def truncated(content: str = '{"observations": [{"subj') -> Reply:
    return Reply(content=content, finish_reason="length")


def refusal(text: str = "I'm sorry, I can't help with that.") -> Reply:
    return Reply(content=None, refusal=text)


def held(gate: Gate, answer: Answer) -> Reply:
    """Return `answer` once `gate` opens."""
    reply = as_reply(answer)
    return Reply(**{**reply.__dict__, "gate": gate})


def hang() -> Reply:
    """Leave the request unanswered while the server runs."""
    return held(Gate(), {})


def as_reply(answer: Answer) -> Reply:
    if isinstance(answer, Reply):
        return answer
    return Reply(content=answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))


# ------------------------------------------------------------------------------------------------ scripts
def nothing(ask: Ask) -> Answer:
    """Answer that nothing is worth remembering."""
    if ask.task == "observations":
        return {"observations": []}
    return {"facts": []} if ask.task == "consolidation" else {}


def observing(known: Mapping[str, Sequence[Mapping[str, JsonValue]]], *, otherwise: Script = nothing) -> Script:
    """Observe by what the user said: `{"I work at Google": [{"content": "Works at Google"}]}`.

    A turn gets the observations of every key in its user's text. Absent fields have defaults; the evidence is the key.
    `replaces` may be the text of what it replaces: a shown working entry, or an earlier observation of the same answer.
    Text that is not shown becomes null, as a good model would answer.
    """

    def script(ask: Ask) -> Answer:
        if ask.task != "observations":
            return otherwise(ask)
        found: list[Json] = []
        for turn, text in ask.turns.items():
            said = user_text(text)
            for key, items in known.items():
                if key in said:
                    found += [_observation(ask, turn, key, item, found) for item in items]
        return {"observations": list[JsonValue](found)}

    return script


def _observation(ask: Ask, turn: str, key: str, item: Mapping[str, JsonValue], earlier: Sequence[Json]) -> Json:
    made: Json = {**OBSERVATION, "turn": turn, "evidence": key, **item}
    replaces = item.get("replaces")
    if isinstance(replaces, str) and not re.fullmatch(r"[wo]\d+", replaces):
        own = [f"o{place}" for place, other in enumerate(earlier, 1) if other["content"] == replaces]
        made["replaces"] = own[-1] if own else ask.prompt.id_of(replaces)
    return made


def in_turn(*answers: Answer | Script, then: Script = nothing) -> Script:
    """Give the first answer to the first ask, and so on; `then` answers the rest."""

    def script(ask: Ask) -> Answer:
        if ask.number > len(answers):
            return then(ask)
        answer = answers[ask.number - 1]
        return answer(ask) if callable(answer) else answer

    return script


# ------------------------------------------------------------------------------------------------ the server
class ModelServer:
    """A server that answers with `script` on a loopback port. All methods may be called from any thread."""

    def __init__(
        self,
        script: Script = nothing,
        *,
        port: int = 0,
        dimension: int = 64,
        refuse_formats: Sequence[str] = (),
        latency: float = 0.0,
        judge: Judge | None = always_yes,
    ) -> None:
        self.script = script
        self.judge = judge
        """Answers blind questions about evidence, which are then not in `asks`. None: the script answers them."""
        self.dimension = dimension
        self.refuse_formats = frozenset(refuse_formats)
        """Response formats (json_schema, json_object) that are answered with 400, before the script is asked."""
        self.latency = latency
        self.embedding_script: Callable[[Json], Reply | None] = lambda _body: None
        """May answer an embeddings call with an error; None means the vectors."""
        self._port = port
        self._asks: list[Ask] = []
        self._embedding_calls: list[Json] = []
        self._errors: list[BaseException] = []
        self._last_users: dict[str, int] = {}
        self._in_hand = 0
        self._change = threading.Condition()
        self._closing = threading.Event()
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    # ---- life
    def start(self) -> ModelServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="model-server", daemon=True)
        self._thread.start()
        if not self._started.wait(10) or self._errors:
            raise RuntimeError(f"the model server did not start: {self._errors}")
        return self

    def close(self) -> None:
        self._closing.set()
        if self._loop is not None and self._stop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(10)

    def __enter__(self) -> ModelServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the server; an exception of the script fails the test."""
        self.close()
        if error is None and self._errors:
            raise AssertionError(f"the test's script failed: {self._errors}") from self._errors[0]

    @property
    def base_url(self) -> str:
        """The value for OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    # ---- what happened
    @property
    def asks(self) -> tuple[Ask, ...]:
        with self._change:
            return tuple(self._asks)

    @property
    def embedding_calls(self) -> tuple[Json, ...]:
        with self._change:
            return tuple(self._embedding_calls)

    @property
    def in_hand(self) -> int:
        """Number of received requests without an answer yet."""
        with self._change:
            return self._in_hand

    @property
    def script_errors(self) -> tuple[BaseException, ...]:
        """Exceptions of the script; the client got 500."""
        with self._change:
            return tuple(self._errors)

    def wait_in_hand(self, count: int = 1, *, timeout: float = 30.0) -> None:
        """Wait until `count` requests are in hand at once."""
        self._wait(lambda: self._in_hand >= count, f"{count} requests in hand", timeout)

    def wait_asks(self, count: int, *, timeout: float = 30.0) -> None:
        """Wait until `count` chat completions have been asked for since the start."""
        self._wait(lambda: len(self._asks) >= count, f"{count} asks", timeout)

    def wait_idle(self, *, timeout: float = 30.0) -> None:
        """Wait until no request is in hand: all are answered, or their clients are gone."""
        self._wait(lambda: self._in_hand == 0, "rest", timeout)

    def _wait(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        with self._change:
            if not self._change.wait_for(condition, timeout):
                raise TimeoutError(f"no {what} within {timeout} s: {len(self._asks)} asks, {self._in_hand} in hand")

    # ---- serving
    async def _serve(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_get("/asks", self._list_asks)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        try:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            await site.start()
        except OSError as problem:
            self._errors.append(problem)
            self._started.set()
            return
        self._port = runner.addresses[0][1]
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        last = next((str(each["content"]) for each in body["messages"][-1:]), "")
        if self.judge is not None and last.startswith("Items:\n[s1]\n"):
            blind = Ask(0, "evidence", str(body["model"]), (), "json_schema", view(()), 0, {}, body)
            return await _send(request, as_reply(answers(last, self.judge)), blind)
        ask = self._note(body, dict(request.headers), dict(request.query))
        try:
            if ask.response_format in self.refuse_formats:
                return await _send(request, error(400, f"{ask.response_format} is not supported here"), ask)
            try:
                reply = as_reply(await asyncio.to_thread(self.script, ask))
            except Exception as problem:  # noqa: BLE001 - the test sees it, at its end
                with self._change:
                    self._errors.append(problem)
                return await _send(request, error(500, f"the test's script failed: {problem!r}"), ask)
            await asyncio.sleep(self.latency + reply.delay)
            while reply.gate is not None and not reply.gate.is_open and not self._closing.is_set():
                await asyncio.sleep(0.01)
            return await _send(request, reply, ask)
        finally:
            with self._change:
                self._in_hand -= 1
                self._change.notify_all()

    def _note(self, body: Json, headers: dict[str, str], query: dict[str, str]) -> Ask:
        messages = tuple((str(m["role"]), str(m["content"])) for m in _dicts(body["messages"]))
        wanted = body.get("response_format")
        wanted = wanted if isinstance(wanted, dict) else {}
        schema = wanted.get("json_schema")
        named = NAMED.search("\n".join(content for role, content in messages if role == "system"))
        last_user = next((content for role, content in reversed(messages) if role == "user"), "")
        with self._change:
            ask = Ask(
                number=len(self._asks) + 1,
                task=str(schema["name"]) if isinstance(schema, dict) else named.group(1) if named else "",
                model=str(body["model"]),
                messages=messages,
                response_format=str(wanted.get("type", "text")),
                prompt=view(messages),
                seen_before=self._last_users.get(last_user, 0),
                headers=headers,
                body=body,
                query=query,
            )
            self._last_users[last_user] = ask.seen_before + 1
            self._asks.append(ask)
            self._in_hand += 1
            self._change.notify_all()
        return ask

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        with self._change:
            self._embedding_calls.append(body)
        if (reply := self.embedding_script(body)) is not None:
            return await _send(request, reply, None)
        given = body["input"]
        texts = [str(text) for text in (given if isinstance(given, list) else [given])]
        if not all(texts):
            return await _send(request, error(400, "input cannot be an empty string"), None)
        vectors = [
            {"object": "embedding", "index": place, "embedding": bag_of_words(text, self.dimension)}
            for place, text in enumerate(texts)
        ]
        tokens = sum(len(text) // 4 + 1 for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        vectors.reverse()  # the protocol orders by index, not by place
        return web.json_response({"object": "list", "model": body["model"], "data": vectors, "usage": usage})

    async def _list_asks(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"in_hand": self.in_hand, "asks": [{"task": ask.task, "turns": ask.turns} for ask in self.asks]}
        )


def bag_of_words(text: str, dimension: int) -> list[float]:
    """Return a vector that is near for texts with common words. Its length is not 1 on purpose."""
    vector = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
        vector[int.from_bytes(digest[:4], "big") % dimension] += 1.0 + digest[4] / 256
    assert math.isfinite(sum(vector))
    return vector


async def _send(request: web.Request, reply: Reply, ask: Ask | None) -> web.StreamResponse:
    if reply.raw is not None:
        return web.Response(body=reply.raw, status=reply.status, headers=reply.headers)
    if reply.status != 200:
        problem = {"error": {"message": reply.content, "type": "scripted", "code": reply.code}}
        return web.json_response(problem, status=reply.status, headers=reply.headers)
    assert ask is not None
    body = completion(
        reply.content,
        model=ask.model,
        tokens_in=sum(len(content) for _, content in ask.messages) // CHARACTERS_A_TOKEN + 1,
        tokens_out=len(reply.content or "") // CHARACTERS_A_TOKEN + 1,
        number=ask.number,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
    )
    if not reply.cut_body:
        return web.json_response(body, headers=reply.headers)
    data = json.dumps(body).encode()
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(data))})
    await response.prepare(request)
    await response.write(data[: len(data) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


def _dicts(value: JsonValue) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# ------------------------------------------------------------------------------------------------ as a process
def main() -> None:
    """Serve rules from a file: `{"observations": {"I work at Google": [{"content": "Works at Google"}]}}`.

    Prints `ready <base_url>`; `GET /asks` lists what was asked and how many requests are in hand.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rules", type=Path)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    args = parser.parse_args()
    rules = json.loads(args.rules.read_text(encoding="utf-8")) if args.rules else {}
    script = observing(rules.get("observations", {}))
    with ModelServer(script, port=args.port, latency=args.latency) as server:
        print(f"ready {server.base_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
