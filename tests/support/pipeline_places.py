"""The two places of a pipeline: the run's broker and Qdrant, or a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .model_server import ModelServer
from .pipeline import Pipeline
from .qdrant import QdrantServer

BROKERS = [pytest.param("kafka", marks=pytest.mark.kafka), pytest.param("embedded")]


@dataclass(frozen=True)
class Place:
    """A folder, a broker and a Qdrant. `qdrant` None means the embedded engine in the folder."""

    folder: Path
    broker: str
    qdrant: QdrantServer | None = None

    @classmethod
    def in_folder(cls, folder: Path) -> Place:
        return cls(folder, f"embedded://{folder / 'log'}")

    def pipeline(self, model: ModelServer | None = None, **more: Any) -> Pipeline:
        return Pipeline(folder=self.folder, broker=self.broker, qdrant=self.qdrant, model=model, **more)


@pytest.fixture
def in_folder(tmp_path: Path) -> Place:
    return Place.in_folder(tmp_path)


@pytest.fixture
def on_kafka(tmp_path: Path, kafka_broker: str, shared_qdrant: QdrantServer) -> Place:
    return Place(tmp_path, f"kafka://{kafka_broker}", shared_qdrant)


def place_for(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return the place for a fixture with the parameters BROKERS."""
    folder = tmp_path_factory.mktemp("pipeline")
    if request.param == "embedded":
        return Place.in_folder(folder)
    broker: str = request.getfixturevalue("kafka_broker")
    return Place(folder, f"kafka://{broker}", request.getfixturevalue("shared_qdrant"))
