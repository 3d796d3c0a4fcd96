"""Files of other memories on a real broker and in a folder: the whole way to recorded turns and believed facts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.topics import TURNS
from tests.support.pipeline import Pipeline, running
from tests.support.pipeline_places import BROKERS, Place, place_for

FILES = Path(__file__).resolve().parents[1] / "data" / "foreign"
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


def imported(pipeline: Pipeline, name: str) -> dict[str, Any]:
    path = shutil.copy(FILES / name, pipeline.folder)
    out = pipeline.cli("import", path, "--tenant", pipeline.tenant, "--user", "u1", expect=None, timeout=240)
    report: dict[str, Any] = json.loads(out)
    return report


@pytest.mark.long
async def test_conversations_and_statements_come_in_once(place: Place) -> None:
    async with running(place.pipeline()) as pipeline:
        pipeline.spawn("all")
        for turns, facts, skipped in ((3, 2, 0), (0, 0, 3)):
            assert (report := imported(pipeline, "conversations.json"))["imported"] == turns, report
            assert report["skipped"] == skipped
            assert (report := imported(pipeline, "mem0.json"))["imported"] == facts, report
        await pipeline.settled()
        shown = pipeline.shown("turns", "facts")[pipeline.tenant]
        assert "I moved to Lisbon in May." in {each["content"] for each in shown["turns"]}
        places = [each["evidence"][0].get("imported") for each in shown["facts"]]
        assert {"file": "mem0.json", "line": 3} in places
        mine = [each for each in await pipeline.records(TURNS.name) if pipeline.tenant.encode() in (each.key or b"")]
        assert len(mine) == 3
        assert await pipeline.dead_letters() == []
        await pipeline.consistent()
