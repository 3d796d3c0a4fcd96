"""The watch over the event loop: when it ends the process, and what the next process learns."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.errors import Poison
from memstream.streams.engine import hangs
from memstream.streams.engine.error_boundary import CRASHES_MAX, CrashCounter, ErrorBoundary
from memstream.streams.engine.hangs import HangWatch, StillLoop
from memstream.streams.engine.process_exit import BROKEN, DONE
from memstream.streams.engine.steps import EventStep, StepScheduler
from memstream.streams.faust.worker import run_watched
from memstream.streams.log.port import Position
from tests.support.polling import wait_for

HERE = Position("memory.turns", 3, 17)


@given(st.lists(st.booleans(), max_size=100), st.integers(1, 10))
def test_only_ticks_without_a_beat_between_them_count(beats: list[bool], most: int) -> None:
    """A process that was stopped has one late tick, whatever its length: a tick has no length."""
    loop, count, still = StillLoop(most=most), 0, 0
    loop.tick(0)
    for beat in beats:
        count += beat
        still = 0 if beat else still + 1
        assert loop.tick(count) == (still >= most)


async def test_a_loop_that_blocks_ends_the_process_and_names_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hangs, "BEAT_SECONDS", 0.02)
    ended = threading.Event()
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    steps = StepScheduler()
    watch = HangWatch(tmp_path / "attempts", still=5, exit_process=end)
    with watch.over([steps]), ThreadPoolExecutor(12) as others:
        for _ in range(12):  # in the dump of all threads they come first
            others.submit(ended.wait, 20)
        await asyncio.sleep(0)
        with steps.within(EventStep("observer", HERE)):
            assert ended.wait(20)
            (note, stack) = ((tmp_path / "attempts" / name).read_bytes() for name in ("step", "hang"))
    assert codes == [BROKEN]
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "step").write_bytes(note)
    (tmp_path / "next" / "hang").write_bytes(stack)
    after = HangWatch(tmp_path / "next")
    hang = after.last()
    assert hang is not None
    assert (hang.stage, hang.position) == ("observer", HERE)
    assert "test_hangs.py" in hang.where
    after.forget()
    assert after.last() is None


async def test_a_blocked_process_ends_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "BEAT_SECONDS", 0.02)
    (tmp_path / "hang").symlink_to("/dev/full")
    ended = threading.Event()
    watch = HangWatch(tmp_path, still=5, exit_process=lambda code: ended.set())
    with watch.over([StepScheduler()]):
        await asyncio.sleep(0)
        assert ended.wait(20)


async def test_a_loop_that_moves_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "BEAT_SECONDS", 0.02)
    codes: list[int] = []
    watch = HangWatch(tmp_path, still=25, exit_process=codes.append)
    with watch.over([StepScheduler()]):
        began = time.monotonic()
        await wait_for(lambda: watch._beats > 50, "fifty beats", deadline=30)
        assert time.monotonic() > began
    assert codes == []
    assert watch.last() is None


def test_a_process_that_was_killed_in_a_step_has_not_hung(tmp_path: Path) -> None:
    (tmp_path / "step").write_bytes(b'["observer", "memory.turns", 3, 17]\n\n')
    assert HangWatch(tmp_path).last() is None
    (tmp_path / "hang").write_text("")
    assert HangWatch(tmp_path).last() is None
    (tmp_path / "hang").write_text("Stack (most recent call first):")
    assert HangWatch(tmp_path).last() is not None
    for damaged in (b"", b"\n", b"{}\n", b'["observer"]\n', b"\x00" * 100, b'["o", "t", "x", 1]\n'):
        (tmp_path / "step").write_bytes(damaged)
        assert HangWatch(tmp_path).last() is None


async def test_the_third_hang_refuses_the_record_without_a_look_at_it(tmp_path: Path) -> None:
    refused: list[tuple[Poison, int]] = []
    handled: list[Position] = []

    async def handle() -> None:
        handled.append(HERE)

    async def refuse(poison: Poison, attempts: int) -> None:
        refused.append((poison, attempts))

    for deaths in range(CRASHES_MAX):
        boundary = ErrorBoundary(crashes=CrashCounter(tmp_path))
        assert boundary.deaths_by_hang(HERE) == deaths
        await boundary.run(HERE, handle, refuse)
        boundary.count_hang(HERE, f"{hangs.HUNG} 30 s in one step", "a stack")
    boundary = ErrorBoundary(crashes=CrashCounter(tmp_path))
    await boundary.run(HERE, handle, refuse)
    assert len(handled) == CRASHES_MAX
    ((poison, attempts),) = refused
    assert (poison.reason, attempts) == ("fatal", CRASHES_MAX)


def test_deaths_by_exceptions_are_no_hangs(tmp_path: Path) -> None:
    crashes = CrashCounter(tmp_path)
    for _ in range(CRASHES_MAX):
        crashes.add(HERE, "RuntimeError: odd")
    assert ErrorBoundary(crashes=crashes).deaths_by_hang(HERE) == 0


async def test_a_hang_is_told_before_the_worker_joins_its_group(tmp_path: Path) -> None:
    (tmp_path / "step").write_bytes(b'["observer", "memory.turns", 3, 17]\n')
    (tmp_path / "hang").write_text("Stack (most recent call first):")
    done: list[str] = []
    stopping = asyncio.Event()
    stopping.set()

    class Runner:
        def __init__(self, name: str) -> None:
            self.name, self.steps, self.app = name, StepScheduler(), self
            self.crash_reason = None
            self._crashed, self._stopped = asyncio.Event(), asyncio.Event()

        def note_hang(self, hang: hangs.Hang) -> None:
            assert hang.position == HERE
            done.append(f"{self.name} counts")

        async def tell_hangs(self) -> None:
            assert (tmp_path / "hang").exists(), "it is counted again after a crash here"
            done.append(f"{self.name} tells")

        def prepare(self) -> None:
            done.append(f"{self.name} runs")

        async def start(self) -> None: ...

        async def stop(self) -> None: ...

    runners = cast(Any, [Runner("recorder"), Runner("observer")])
    watch = HangWatch(tmp_path)
    assert await run_watched(runners, stopping=stopping, watch=watch) == DONE
    assert done == ["observer counts", "observer tells", "recorder runs", "observer runs"]
    assert watch.last() is None
