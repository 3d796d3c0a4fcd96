"""How a worker waits for its servers at the start."""

from __future__ import annotations

import asyncio
import time

import pytest

from memstream.cli.errors import CommandFailed, Exit
from memstream.cli.process.startup_retry import WORKER_SECONDS, StartupRetry
from memstream.schemas.errors import Fatal, Transient


def away() -> Transient:
    return Transient("store", "nobody answers", remedy="set MEMSTREAM_QDRANT")


def test_a_worker_waits_a_minute() -> None:
    assert WORKER_SECONDS == 60.0


async def test_a_server_that_comes_is_waited_for() -> None:
    tries: list[int] = []

    async def attempt() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise away()
        return "here"

    assert await StartupRetry(5.0, pause=0.01)("Qdrant", attempt) == "here"
    assert len(tries) == 3


async def test_past_the_deadline_it_says_who_and_what_to_do() -> None:
    async def attempt() -> None:
        raise away()

    with pytest.raises(CommandFailed) as caught:
        await StartupRetry(0.05, pause=0.01)("Qdrant", attempt)
    assert caught.value.code is Exit.UNREACHABLE
    assert "Qdrant was not reached" in str(caught.value)
    assert "set MEMSTREAM_QDRANT" in str(caught.value)


async def test_one_deadline_over_all_servers_and_hanging_ones() -> None:
    patience = StartupRetry(0.2, pause=0.01)
    began = time.monotonic()
    with pytest.raises(CommandFailed):
        await patience("the log", asyncio.Event().wait)
    with pytest.raises(CommandFailed):
        await patience("Qdrant", asyncio.Event().wait)
    assert time.monotonic() - began < 2.0


async def test_what_is_broken_is_not_waited_for() -> None:
    async def attempt() -> None:
        raise Fatal("another embedder")

    with pytest.raises(Fatal):
        await StartupRetry(5.0)("Qdrant", attempt)
