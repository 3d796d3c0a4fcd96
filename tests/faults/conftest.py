"""Pipelines with a scripted model for the rows of the fault matrix."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.support.conversation import different_each_time
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running
from tests.support.pipeline_places import BROKERS, Place, place_for


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that answers a repeated question with other words. A test may replace its script."""
    with ModelServer(different_each_time) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    """A pipeline with a tenant of its own and groups that are at the end of their topics."""
    async with running(on_kafka.pipeline(model)) as ready:
        yield ready


@pytest_asyncio.fixture(params=BROKERS)
async def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> AsyncIterator[Pipeline]:
    """A pipeline on the run's broker and Qdrant, and one in a folder."""
    async with running(place_for(request, tmp_path_factory).pipeline(model)) as pipeline:
        yield pipeline
