"""The option `--fast` of `make unit`: only tests that run inside the test process, in memory, without waiting.

Left out are tests marked `slow` and those that need a server, a model folder or `--long`. A test that starts a process
or sleeps fails here, so the loop stays fast: mark it `slow`.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import pytest

LEFT_OUT = ("slow", "kafka", "semantic", "long", "fault")
MODULE_MARK = re.compile(rf"^pytestmark = .*\bmark\.(?:{'|'.join(LEFT_OUT)})\b", re.MULTILINE)
SERVER_FIXTURES = {"kafka_broker", "qdrant", "shared_qdrant", "minilm_folder"}
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
QUICK = {("git",), ("uname",)}
"""Commands that end at once: `git ls-files`, and `uname -p`, which the client of OpenAI runs once per process."""
SLEEP_MAX = 0.02
"""Seconds. A test may let other threads run for a moment."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("fast").addoption("--fast", action="store_true", help="only tests in memory (make unit)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "slow: starts a process, sleeps, or takes longer than a second; --fast leaves it out"
    )
    if config.getoption("fast"):
        config.pluginmanager.register(Guard(), "fast-guard")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module that is left out as a whole."""
    if not config.getoption("fast") or collection_path.suffix != ".py":
        return None
    return MODULE_MARK.search(collection_path.read_text(encoding="utf-8")) is not None or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("fast"):
        return
    left = {item for item in items if is_left_out(item)}
    config.hook.pytest_deselected(items=[*left])
    items[:] = [item for item in items if item not in left]


def is_left_out(item: pytest.Item) -> bool:
    """Return whether the fast loop leaves this test out."""
    return any(item.get_closest_marker(name) for name in LEFT_OUT) or not SERVER_FIXTURES.isdisjoint(
        getattr(item, "fixturenames", ())
    )


class Guard:
    """Plugin that fails a test which starts a process or sleeps."""

    def __init__(self) -> None:
        self.test: str | None = None
        sys.addaudithook(self.on_event)

    def on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if self.test is not None and event in PROCESS_EVENTS and args[:1] not in QUICK:
            refuse(self.test, "starts a process")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid
        sleep = time.sleep

        def short_sleep(seconds: float) -> None:
            if seconds > SLEEP_MAX:
                refuse(item.nodeid, f"sleeps {seconds} s")
            sleep(seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "sleep", short_sleep)
            patch.setattr(BaseProcess, "start", lambda process: refuse(item.nodeid, "starts a process"))
            try:
                return (yield)
            finally:
                self.test = None


def refuse(test: str, what: str) -> NoReturn:
    """Fail the test that is running."""
    pytest.fail(f"{test} {what}: mark it `slow`")
