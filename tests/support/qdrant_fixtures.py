"""Fixtures for tests that need a Qdrant over the network (see tests/support/qdrant.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .qdrant import QdrantServer, qdrant_server


@pytest.fixture(scope="session")
def shared_qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    """The one Qdrant of all pipelines on the shared broker. Each test has its own tenant.

    They must share it: a fact that is on the broker and missing in Qdrant stops a reflector.
    """
    with qdrant_server(tmp_path_factory.mktemp("shared-qdrant")) as server:
        yield server


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[QdrantServer]:
    """A Qdrant for this test alone, started; the test may stop, kill and start it."""
    with qdrant_server(tmp_path / "qdrant-server") as server:
        yield server
