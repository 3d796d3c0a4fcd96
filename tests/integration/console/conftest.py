"""One console for each module of this folder, over a real store and log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.console_world import ConsoleWorld, Run, console_world


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def world(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleWorld]:
    opened = console_world(tmp_path_factory.mktemp("console"))
    yield run(opened.__aenter__())
    run(opened.__aexit__(None, None, None))
