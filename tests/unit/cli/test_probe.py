"""A probe goes on whatever it is told: one that ended would tell its last answer for ever."""

from __future__ import annotations

import asyncio

import pytest

from memstream.cli.process import probe
from memstream.cli.process.probe import Probe
from memstream.schemas.errors import Fatal, Transient


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Transient("broker", "gone", remedy="start it"), "gone (start it)"),
        (Fatal("another embedder"), "another embedder"),
        (TimeoutError(), "no answer within"),
    ],
)
async def test_what_is_away_is_told_and_what_is_back_too(
    error: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.01)
    answers: list[Exception] = [error]
    asked = asyncio.Event()

    async def ask() -> None:
        if answers:
            raise answers.pop()
        await asked.wait()

    watched = Probe(ask)
    watching = asyncio.create_task(watched.watch())
    try:
        async with asyncio.timeout(5):
            while watched.reached:
                await asyncio.sleep(0)
            assert why in watched.why
            asked.set()
            while not watched.reached:
                await asyncio.sleep(0)
        assert watched.why == ""
    finally:
        watching.cancel()
