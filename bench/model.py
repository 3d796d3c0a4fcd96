"""A scripted model for bench programs, fast enough for a thousand answers per second: `python -m bench.model`.

Every observed turn gets one observation with a unique fact, if its text names one (bench/turns.py). It supports only
the HTTP/1.1 of the OpenAI client: requests with a content length, one after the other on a connection. Tests use
tests/support/model_server.py, which is slower and scripted per test.

`POST /set {"latency": seconds}` resets the counts. `GET /stats` returns calls and tokens since then; `GET /calls`
returns each call as [turn ids, arrival in seconds since 1970, duration in seconds].
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.environment import model_settings
from tests.support.openai_bodies import CHARACTERS_A_TOKEN, OBSERVATION, completion

TURN = re.compile(r"^\[(t\d+)\]$", re.MULTILINE)
SAID = re.compile(r"I have a cat named Cat([\w-]+)\.")
DIMENSION = 64
STOP_SECONDS = 10.0


@dataclass(slots=True)
class Counts:
    """Counts since the last `POST /set`."""

    calls: list[tuple[list[str], float, float]] = field(default_factory=list)
    by_task: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0
    in_hand: int = 0
    most_in_hand: int = 0


def observations(content: str) -> tuple[list[str], dict[str, Any]]:
    """Return the ids in the texts of the last user message's turns, and the answer to them."""
    parts = TURN.split(content)
    marks, items = [], []
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        said = SAID.search(text)
        if said is None:
            continue
        marks.append(said.group(1))
        items.append(
            {**OBSERVATION, "turn": name, "content": f"Has a cat named Cat{said.group(1)}", "evidence": said.group(0)}
        )
    return marks, {"observations": items}


def vector(text: str) -> list[float]:
    seed = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return [(seed[n % 32] + n) / 512 for n in range(DIMENSION)]


class Server(asyncio.Protocol):
    """One connection."""

    counts = Counts()
    latency = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        self._answer(head.split(b" ", 2)[1].decode(), rest[:length])

    def _answer(self, path: str, body: bytes) -> None:
        if path.endswith("/chat/completions"):
            self._chat(body)
        elif path.endswith("/embeddings"):
            self._embed(json.loads(body))
        elif path == "/set":
            Server.latency, Server.counts = float(json.loads(body)["latency"]), Counts(in_hand=Server.counts.in_hand)
            self._send({})
        elif path == "/calls":
            self._send(Server.counts.calls)
        else:
            counts = Server.counts
            self._send(
                {
                    "calls": dict(counts.by_task),
                    "tokens_in": counts.tokens_in,
                    "tokens_out": counts.tokens_out,
                    "in_hand": counts.in_hand,
                    "most_in_hand": counts.most_in_hand,
                }
            )

    def _chat(self, raw: bytes) -> None:
        began, counts = time.time(), Server.counts
        body = json.loads(raw)
        schema = (body.get("response_format") or {}).get("json_schema") or {}
        task = schema.get("name", "text")
        messages = body["messages"]
        marks: list[str] = []
        if task == "observations":
            marks, answer = observations(messages[-1]["content"])
        elif schema:
            answer = {"facts": []}
        else:  # mem0 asks without a schema, the new message last
            said = SAID.findall(messages[-1]["content"])
            answer = {"memory": [{"id": "0", "text": f"Has a cat named Cat{mark}"} for mark in said[-1:]]}
        content = json.dumps(answer)
        shown = sum(len(str(message["content"])) for message in messages)
        tokens_in = (shown + (len(json.dumps(schema)) if schema else 0)) // CHARACTERS_A_TOKEN
        tokens_out = len(content) // CHARACTERS_A_TOKEN
        counts.by_task[task] += 1
        counts.tokens_in += tokens_in
        counts.tokens_out += tokens_out
        counts.in_hand += 1
        counts.most_in_hand = max(counts.most_in_hand, counts.in_hand)
        reply = completion(content, model=body["model"], tokens_in=tokens_in, tokens_out=tokens_out)
        packed = json.dumps(reply).encode()

        def send() -> None:
            counts.in_hand -= 1
            counts.calls.append((marks, began, time.time() - began))
            self._write(packed)

        asyncio.get_running_loop().call_later(Server.latency, send)

    def _embed(self, body: dict[str, Any]) -> None:
        given = body["input"]
        texts = given if isinstance(given, list) else [given]
        data = [{"object": "embedding", "index": n, "embedding": vector(str(text))} for n, text in enumerate(texts)]
        Server.counts.by_task["embeddings"] += 1
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        self._send({"object": "list", "model": body["model"], "data": data, "usage": usage})

    def _send(self, reply: Any) -> None:
        self._write(json.dumps(reply).encode())

    def _write(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent process ends


@dataclass(slots=True)
class Calls:
    """Calls since the last `reset`."""

    chats: int
    observing: int
    """Number of the observer's calls among them."""
    tokens: int
    most_in_hand: int
    embeddings: int
    """Embedder calls; they are not chats."""


class Model:
    """The model's process and its counts."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.model"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self._client = httpx.AsyncClient(base_url=self._url, timeout=30)

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings of a worker that uses this model."""
        return model_settings(f"{self._url}/v1")

    async def reset(self, *, latency: float) -> None:
        """Set the duration of each answer to `latency` seconds, and reset the counts."""
        (await self._client.post("/set", json={"latency": latency})).raise_for_status()

    async def calls(self) -> Calls:
        told = (await self._client.get("/stats")).json()
        chats = sum(count for task, count in told["calls"].items() if task != "embeddings")
        observing = told["calls"].get("observations", 0)
        tokens = told["tokens_in"] + told["tokens_out"]
        return Calls(chats, observing, tokens, told["most_in_hand"], told["calls"].get("embeddings", 0))

    async def each_call(self) -> list[tuple[list[str], float, float]]:
        """Return each call as turn ids, arrival (seconds since 1970) and duration (seconds)."""
        return [(marks, began, took) for marks, began, took in (await self._client.get("/calls")).json()]

    async def close(self) -> None:
        await self._client.aclose()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


if __name__ == "__main__":
    asyncio.run(serve())
