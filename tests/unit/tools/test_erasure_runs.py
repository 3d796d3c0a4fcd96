"""Runs of erasures: killed between receipt and marker, two at a time, refused by workers, and failing in new ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas import ids
from memstream.schemas.commands import NO_MARKER, Command, CommandResult, ResultError
from memstream.schemas.erasures import RECEIPT_PREFIX, USER_PREFIX, ErasedPlace, ErasureMarker, ErasureReceipt
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION, ERASURES, RESULTS, catalogue
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from memstream.streams.senders.commands import result_record
from memstream.tools.erasure import eraser as erasing
from memstream.tools.erasure.eraser import ErasureStalled, UserEraser, read_marker, read_receipt
from memstream.tools.erasure.runs import TOGETHER, ErasureRuns
from memstream.tools.erasure.scan import UserRecords
from tests.support.polling import wait_for

NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEY = USER_PREFIX + ids.user_hash("acme", "ana")
Answer = Callable[[Command], ResultError | None]


class NoStore:
    async def exists(self, collection: str) -> bool:
        return False


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handled(self: UserEraser) -> None:
        """No stage runs here."""

    monkeypatch.setattr(UserEraser, "_handled", handled)
    monkeypatch.setattr(erasing, "RESEND", 0.01)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path)
    await made.start()
    await made.create([TopicSpec(topic.name, 1, 1, {}) for topic in catalogue()])
    yield made
    await made.close()


def eraser(log: Any, **more: Any) -> UserEraser:
    given: dict[str, Any] = {"store": NoStore(), "log": log, "now": lambda: NOW, "patience": 5.0, "issued_by": "test"}
    return UserEraser(**given | {"tenant_id": "acme", "user_id": "ana"} | more)


@asynccontextmanager
async def worker(log: EmbeddedLog, answer: Answer = lambda command: None) -> AsyncIterator[list[Command]]:
    """Answer every command: applied, or refused with the error."""
    seen: list[Command] = []

    async def work(topic: str) -> None:
        async with aclosing(log.read(topic, follow=True)) as records:
            async for record in records:
                command = Command.read(record.value or b"")
                seen.append(command)
                error = answer(command)
                status: Any = "applied" if error is None else "refused"
                result = CommandResult(command_id=command.command_id, status=status, error=error, at=NOW)
                out = result_record(result, of=command, source="/test")
                await log.append(RESULTS.name, key=out.key, value=out.value)

    tasks = [asyncio.create_task(work(topic.name)) for topic in (COMMANDS, COMMANDS_SESSION)]
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def append(log: EmbeddedLog, key: str, value: ErasureMarker | ErasureReceipt) -> None:
    await log.append(ERASURES.name, key=key.encode(), value=value.to_bytes())


def receipt_of(marker: ErasureMarker, removed: int) -> ErasureReceipt:
    return ErasureReceipt(
        erasure_id=marker.erasure_id,
        tenant_id="acme",
        user_hash=ids.user_hash("acme", "ana"),
        began_at=NOW,
        ended_at=NOW,
        rounds=1,
        places=(ErasedPlace(place="memory.facts", removed=removed),),
        texts=0,
        logs=(),
    )


async def test_runs_that_begin_together_share_the_erasure(log: EmbeddedLog) -> None:
    read = erasing._latest
    both = asyncio.Barrier(2)

    async def reads_before_the_other_writes(*args: Any) -> dict[str, bytes]:
        found = await read(*args)
        await both.wait()
        return found

    erasing._latest = reads_before_the_other_writes  # type: ignore[assignment]
    try:
        one, two = await asyncio.gather(eraser(log).begin(), eraser(log).begin())
    finally:
        erasing._latest = read
    assert one.erasure_id == two.erasure_id
    closed = ErasureMarker(erasure_id=one.erasure_id, state="closed", at=NOW)
    await append(log, KEY, closed)
    assert (await eraser(log).begin()).erasure_id != one.erasure_id, "a user who returned is erased anew"


async def test_a_run_whose_erasure_another_run_ends_returns_its_receipt(log: EmbeddedLog) -> None:
    run = eraser(log)
    marker = await run.begin()
    written = receipt_of(marker, removed=7)

    async def other_run_ends() -> None:
        await append(log, RECEIPT_PREFIX + marker.erasure_id, written)
        await append(log, KEY, ErasureMarker(erasure_id=marker.erasure_id, state="closed", at=NOW))

    await other_run_ends()
    refused = ResultError(code=NO_MARKER, message="no marker")
    async with worker(log, lambda command: refused), asyncio.timeout(20):
        assert await run.finish(marker) == written
    async with worker(log), asyncio.timeout(20):  # the workers had applied all, before the other run ended
        assert await eraser(log, now=lambda: NOW + timedelta(days=1)).finish(marker) == written
    now = await read_marker(log, marker.erasure_id)
    assert now is not None
    assert now.at == NOW, "the end of the erasure does not move"


async def test_a_run_that_was_killed_before_it_closed_the_marker_keeps_its_numbers(log: EmbeddedLog) -> None:
    run = eraser(log)
    marker = await run.begin()
    await append(log, RECEIPT_PREFIX + marker.erasure_id, receipt_of(marker, removed=7))
    async with worker(log), asyncio.timeout(20):
        receipt = await eraser(log).run()
    assert {each.place: each.removed for each in receipt.places}["memory.facts"] == 7
    assert await read_receipt(log, marker.erasure_id) == receipt


@pytest.mark.parametrize(("code", "said"), [(NO_MARKER, "do not know the marker"), ("invalid_args", "same version")])
async def test_a_worker_that_always_refuses_stalls_the_run(log: EmbeddedLog, code: str, said: str) -> None:
    error = ResultError(code=code, message="no")
    async with worker(log, lambda command: error), asyncio.timeout(20):
        with pytest.raises(ErasureStalled, match=said):
            await eraser(log, patience=0.3).run()


async def test_results_of_others_are_no_progress(log: EmbeddedLog) -> None:
    async def others() -> None:
        while True:
            result = CommandResult(command_id="other", status="applied", at=NOW)
            await log.append(RESULTS.name, key=b"other", value=result.to_bytes())
            await asyncio.sleep(0.02)

    task = asyncio.create_task(others())
    try:
        async with asyncio.timeout(20):
            with pytest.raises(ErasureStalled, match="had no result"):
                await eraser(log, patience=0.3).run()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_any_failure_is_shown_and_tried_again(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = ErasureRuns(store=NoStore(), log=log, now=lambda: NOW, pause=0.05)  # type: ignore[arg-type]
    fails = True
    finish = UserEraser.finish

    async def sometimes(self: UserEraser, marker: ErasureMarker) -> ErasureReceipt:
        if fails:
            raise RuntimeError("a new kind of failure")
        return await finish(self, marker)

    monkeypatch.setattr(UserEraser, "finish", sometimes)
    async with worker(log), runs.running():
        begun = await runs.begin("acme", "ana", issued_by="test")

        async def why() -> bool:
            state = await runs.state(begun.erasure_id)
            return state is not None and "a new kind of failure" in state.why

        await wait_for(why, "the reason", deadline=20)
        fails = False

        async def closed() -> bool:
            state = await runs.state(begun.erasure_id)
            return state is not None and state.state == "closed" and state.receipt is not None

        await wait_for(closed, "the receipt", deadline=20)


async def test_few_runs_work_at_a_time(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, most, ended = 0, 0, 0

    async def finish(self: UserEraser, marker: ErasureMarker) -> None:
        nonlocal at_work, most, ended
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.01)
        at_work -= 1
        ended += 1

    monkeypatch.setattr(UserEraser, "finish", finish)
    runs = ErasureRuns(store=NoStore(), log=log, now=lambda: NOW)  # type: ignore[arg-type]
    async with runs.running():
        for n in range(8):
            await runs.begin("acme", f"u{n}", issued_by="test")
        await wait_for(lambda: ended == 8, "all runs", deadline=20)
    assert most == TOGETHER


async def test_a_run_that_is_tried_again_counts_each_record_once(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter((10, 4, 4, 0))  # the first attempt removes 6 and fails, the second one removes 4

    async def scan(self: UserEraser) -> UserRecords:
        return UserRecords(places={"facts": ErasedPlace(place="facts", with_ids=next(left))})

    sends = 0

    async def send(self: UserEraser, marker: ErasureMarker, found: UserRecords) -> None:
        nonlocal sends
        sends += 1
        if sends == 2:
            raise ErasureStalled("a worker is away")

    monkeypatch.setattr(UserEraser, "scan", scan)
    monkeypatch.setattr(UserEraser, "_send", send)
    run = eraser(log)
    async with worker(log), asyncio.timeout(20):
        marker = await run.begin()
        with pytest.raises(ErasureStalled):
            await run.finish(marker)
        receipt = await run.finish(marker)
    assert {each.place: each.removed for each in receipt.places} == {"facts": 10}
