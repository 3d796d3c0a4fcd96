"""A pipeline on the run's broker and Qdrant, with a scripted model: what most rows of the fault matrix break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.conversation import different_each_time
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running
from tests.support.pipeline_places import Place


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """It answers what it is asked again with other words; a test may give it another script."""
    with ModelServer(different_each_time) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    """With a tenant of its own, and groups that have nothing else to read."""
    async with running(on_kafka.pipeline(model)) as ready:
        yield ready
