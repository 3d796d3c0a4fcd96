"""What the log says of readiness."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from memstream.cli.wiring import worker


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[bool, str]]:
    monkeypatch.setattr(worker, "CHECK_EVERY", 0.0)
    return {"observer": (False, "waiting"), "qdrant": (True, "")}


async def looks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_loss_and_a_return_are_told_once(parts: dict[str, tuple[bool, str]]) -> None:
    with capture_logs() as told:
        telling = asyncio.create_task(worker.log_changes(lambda: parts))
        await looks()
        parts["observer"] = (True, "")
        await looks()
        assert told == [], "a start is no news"
        parts["qdrant"] = (False, "refused (is it up?)")
        await looks()
        parts["qdrant"] = (True, "")
        await looks()
        telling.cancel()
    assert [(line["event"], line["stage"], line.get("why")) for line in told] == [
        ("not_ready", "qdrant", "refused (is it up?)"),
        ("ready_again", "qdrant", None),
    ]


async def test_a_start_that_lasts_is_told(parts: dict[str, tuple[bool, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "START_SECONDS", 0.0)
    with capture_logs() as told:
        telling = asyncio.create_task(worker.log_changes(lambda: parts))
        await looks()
        telling.cancel()
    assert [(line["event"], line["stage"], line["why"]) for line in told] == [("not_ready", "observer", "waiting")]


async def test_another_reason_is_logged_and_another_number_is_not(parts: dict[str, tuple[bool, str]]) -> None:
    reasons = ["no answer for 4 s", "no answer for 5 s", "no answer for 6 s: it refuses the user recorder"]
    with capture_logs() as logged:
        logging = asyncio.create_task(worker.log_changes(lambda: parts))
        await looks()
        for why in reasons:
            parts["qdrant"] = (False, why)
            await looks()
        logging.cancel()
    assert [(line["event"], line["why"]) for line in logged] == [("not_ready", reasons[0]), ("not_ready", reasons[2])]
