"""The subscriber of examples/node, with npm eventsource, through restarts of the server behind a proxy. It needs node,
and `npm install` in examples/node."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientResponse, ClientSession, web
from aiohttp.test_utils import TestServer

from memstream.schemas.topics import FACTS_UPDATED, TURNS
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Log, TopicSpec
from tests.integration.test_api_updates import Server, change
from tests.support.polling import wait_for

NODE = Path(__file__).resolve().parents[2] / "examples" / "node"
DEADLINE = 60.0


@pytest.fixture(autouse=True)
def eventsource() -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    found = subprocess.run(
        ["node", "--input-type=module", "--eval", "import 'eventsource'"], cwd=NODE, capture_output=True, check=False
    )
    if found.returncode != 0:
        pytest.skip("npm eventsource is not installed: run `npm install` in examples/node (node 20 or later)")


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    await made.create([TopicSpec(topic.name, 3, 1, {}) for topic in (TURNS, FACTS_UPDATED)])
    yield made
    await made.close()


class Subscriber:
    """The process, and the event ids that it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.seen.append(json.loads(line)["event_id"])

    async def sees(self, *expected: str) -> None:
        await wait_for(
            lambda: self.seen, f"{expected}", until=lambda seen: len(seen) >= len(expected), deadline=DEADLINE
        )
        assert self.seen == list(expected)


@asynccontextmanager
async def subscriber(url: str) -> AsyncIterator[Subscriber]:
    process = await asyncio.create_subprocess_exec(
        "node", "follow.mjs", f"{url}/v1/facts/updates?tenant_id=acme",
        cwd=NODE, env={"PATH": str(Path(shutil.which("node") or "").parent), "MEMSTREAM_TOKEN": "acme"},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    following = Subscriber(process)
    try:
        yield following
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Gateway:
    """A proxy as nginx is one: it passes streams on, and answers 502 while it has no `upstream`."""

    def __init__(self) -> None:
        self.upstream: str | None = None
        self.passed_on = self.refused = 0
        """Pieces of streams, and requests."""
        self._streams: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.upstream is None:
            self.refused += 1
            return web.Response(status=502, text="<html>502 Bad Gateway</html>")
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        async with (
            ClientSession() as session,
            session.get(f"{self.upstream}{request.path_qs}", headers=headers) as given,
        ):
            answer = web.StreamResponse(status=given.status, headers={"Content-Type": given.headers["Content-Type"]})
            await answer.prepare(request)
            task = asyncio.create_task(self._pass_on(given, answer))
            self._streams.add(task)
            with contextlib.suppress(asyncio.CancelledError, ClientError):
                await task
            self._streams.discard(task)
            if task.cancelled() and request.transport is not None:
                request.transport.abort()
        return answer

    async def _pass_on(self, given: ClientResponse, answer: web.StreamResponse) -> None:
        async for piece in given.content.iter_any():
            await answer.write(piece)
            self.passed_on += 1

    def cut_off(self) -> None:
        """Break every stream where it is, as when the server is killed."""
        for task in self._streams:
            task.cancel()


@pytest.mark.parametrize("changes_before", [0, 2])
@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_subscriber_misses_nothing_while_the_proxy_answers_502(log: Log, how: str, changes_before: int) -> None:
    """Without a change before the restart its position is known from the events `position` and `end` alone."""
    gateway = Gateway()
    app = web.Application()
    app.router.add_get("/{path:.*}", gateway.handle)
    first, second = Server(log), Server(log)
    async with TestServer(app) as front, contextlib.AsyncExitStack() as running:
        gateway.upstream = await running.enter_async_context(first)
        following = await running.enter_async_context(subscriber(str(front.make_url("")).rstrip("/")))
        await wait_for(lambda: gateway.passed_on, "the stream", deadline=DEADLINE)
        before = [await change(log, n) for n in range(changes_before)]
        await following.sees(*before)

        gateway.upstream = None
        if how == "killed":
            gateway.cut_off()
        else:
            first.followers.close()
        missed = [await change(log, 10 + n) for n in range(2)]
        await wait_for(lambda: gateway.refused >= 2, "a second try after the first 502", deadline=DEADLINE)
        await following.sees(*before)

        gateway.upstream = await running.enter_async_context(second)
        await following.sees(*before, *missed)
        await following.sees(*before, *missed, await change(log, 20))
