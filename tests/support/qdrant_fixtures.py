"""Fixtures for tests that need a Qdrant over the network (see tests/support/qdrant.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .qdrant import QdrantServer, qdrant_server


@pytest.fixture(scope="session")
def shared_qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    """The one server of a run's tests that run whole pipelines on the shared broker: facts that are on the broker and
    not in Qdrant stop a reflector. Tests tell themselves apart by tenant."""
    with qdrant_server(tmp_path_factory.mktemp("shared-qdrant")) as server:
        yield server


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[QdrantServer]:
    """A server for this test alone, started; the test may stop, kill and start it. `environment` is for workers."""
    with qdrant_server(tmp_path / "qdrant-server") as server:
        yield server


@pytest.fixture
def qdrant_url(qdrant: QdrantServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The url of `qdrant`; its token is in QDRANT_API_KEY of this process, so in that of its children too."""
    monkeypatch.setenv("QDRANT_API_KEY", qdrant.token)
    return qdrant.url
