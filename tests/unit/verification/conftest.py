"""One real run of the whole pipeline for all tests of the history checker."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.history_dump import Dump, real_run


@pytest.fixture(scope="session")
def real_dump(tmp_path_factory: pytest.TempPathFactory) -> Dump:
    """Not to be changed: take `dump`."""
    return asyncio.run(real_run(tmp_path_factory.mktemp("history")))


@pytest.fixture
def dump(real_dump: Dump) -> Dump:
    """A copy to plant something in."""
    return real_dump.copy()
