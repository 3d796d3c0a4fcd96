"""Signals of a command that runs until one: what ends it after a drain, and what only reopens its log."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.polling import wait_for_blocking

pytestmark = pytest.mark.slow

PROGRAM = """
import asyncio
import logging
import sys
from memstream.cli.output import logs
from memstream.cli.process.signals import until_stopped
import structlog

async def work(running, stopping):
    running.set()
    log = structlog.get_logger("test")
    number = 0
    while not stopping.is_set():
        number += 1
        log.warning(f"line {number}")  # lines of one name are limited
        await asyncio.sleep(0.01)
    log.warning("last")
    open("drained", "w").close()
    return 0

logs.configure(stream=sys.stdout, level=logging.INFO)
sys.exit(asyncio.run(until_stopped(work, name="work")))
"""
DEADLINE = 30.0


@pytest.fixture(autouse=True)
def _no_nohup() -> Iterator[None]:
    """A process inherits what is ignored: a run of the tests may itself ignore hangups."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@contextmanager
def working(folder: Path, *, stdout: int, before: Callable[[], None]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program. `before` runs in its process before it begins."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stdout,
        preexec_fn=before,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE)


def ended_after_a_drain(process: subprocess.Popen[bytes], folder: Path) -> bool:
    return process.wait(DEADLINE) == 0 and (folder / "drained").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_it_lets_it_drain(number: signal.Signals, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab") as out, working(tmp_path, stdout=out.fileno(), before=os.setsid) as process:
        wait_for_blocking(log.read_bytes, "a line", deadline=DEADLINE)
        process.send_signal(number)
        assert ended_after_a_drain(process, tmp_path)


class Rotated:
    """A log file of which rotations are made."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "log"

    def wait_for_a_line(self) -> None:
        size = self.file.stat().st_size if self.file.exists() else 0
        grown = lambda: self.file.exists() and self.file.stat().st_size > size  # noqa: E731
        wait_for_blocking(grown, "a further line", deadline=DEADLINE)

    def move(self) -> Path:
        return self.file.rename(self.file.with_suffix(".1"))


def test_a_hangup_without_a_terminal_opens_the_log_again(tmp_path: Path) -> None:
    log = Rotated(tmp_path)
    with log.file.open("ab") as out, working(tmp_path, stdout=out.fileno(), before=os.setsid) as process:
        log.wait_for_a_line()
        for _ in range(2):
            moved = log.move()
            process.send_signal(signal.SIGHUP)
            log.wait_for_a_line()
            size = moved.stat().st_size
            log.wait_for_a_line()
            assert moved.stat().st_size == size, "nothing is written to the old file any more"
        assert process.poll() is None
        process.send_signal(signal.SIGHUP)  # and without a rotation nothing changes
        log.wait_for_a_line()
        process.send_signal(signal.SIGTERM)
        assert ended_after_a_drain(process, tmp_path)


def test_a_log_that_cannot_be_opened_again_stays_in_use(tmp_path: Path) -> None:
    log = Rotated(tmp_path)
    with log.file.open("ab") as out, working(tmp_path, stdout=out.fileno(), before=os.setsid) as process:
        log.wait_for_a_line()
        moved = log.move()
        log.file.mkdir()
        process.send_signal(signal.SIGHUP)
        wait_for_blocking(lambda: b"log_not_reopened" in moved.read_bytes(), "a line that says so", deadline=DEADLINE)
        process.send_signal(signal.SIGTERM)
        assert ended_after_a_drain(process, tmp_path)


def test_a_process_that_ignores_hangups_goes_on_ignoring_them(tmp_path: Path) -> None:
    def as_nohup_does() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    log = Rotated(tmp_path)
    with log.file.open("ab") as out, working(tmp_path, stdout=out.fileno(), before=as_nohup_does) as process:
        log.wait_for_a_line()
        process.send_signal(signal.SIGHUP)
        log.wait_for_a_line()
        process.send_signal(signal.SIGTERM)
        assert ended_after_a_drain(process, tmp_path)


@pytest.mark.parametrize("how", ["the terminal goes", "kill -HUP"])
def test_a_hangup_of_its_terminal_lets_it_drain(how: str, tmp_path: Path) -> None:
    ours, its = pty.openpty()

    def with_a_terminal() -> None:
        os.setsid()
        fcntl.ioctl(its, termios.TIOCSCTTY, 0)

    with working(tmp_path, stdout=its, before=with_a_terminal) as process:
        os.close(its)
        try:
            assert select.select([ours], [], [], DEADLINE)[0], "it wrote nothing"
            os.read(ours, 1_000)
            if how == "kill -HUP":
                process.send_signal(signal.SIGHUP)
        finally:
            os.close(ours)
        assert ended_after_a_drain(process, tmp_path), "each line that it logs meanwhile goes nowhere"


def test_a_log_that_nobody_reads_ends_nothing(tmp_path: Path) -> None:
    """The reader of a pipe ends, and then SIGTERM comes."""
    reads, writes = os.pipe()
    with working(tmp_path, stdout=writes, before=os.setsid) as process:
        os.close(writes)
        assert os.read(reads, 100)
        os.close(reads)
        wait_for_blocking(lambda: process.poll() is None, "it to go on", deadline=DEADLINE)
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE)
        assert (tmp_path / "drained").exists()
