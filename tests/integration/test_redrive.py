"""Turns that the model refused are put back when it is mended: each is learnt once, also when the command is killed."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter

import pytest

from memstream.schemas.topics import TURNS
from memstream.streams.engine.redrive import redriven_letter
from memstream.tools.dead_letters.letters import LETTER_TOPICS, LetterFilter
from memstream.tools.dead_letters.reader import DeadLetterReader
from memstream.tools.dead_letters.redriver import LetterRedrives
from tests.support.cli_process import COMMAND
from tests.support.conversation import KNOWN
from tests.support.model_server import Answer, Ask, ModelServer, garbage, observing
from tests.support.pipeline import Json, Pipeline, turn
from tests.support.pipeline_places import BROKERS, Place, place_for
from tests.support.whole_worker import whole

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]
USERS = ("u1", "u2", "u3", "u4")


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


class Mind:
    """A model that has no usable answer to what names Oslo until it is mended."""

    def __init__(self) -> None:
        self.mended = False

    def __call__(self, ask: Ask) -> Answer:
        if not self.mended and any("Oslo" in text for text in ask.turns.values()):
            return garbage()
        return observing(KNOWN)(ask)


def redrive(pipeline: Pipeline, *arguments: str) -> list[Json]:
    return pipeline.json_lines("dlq", "redrive", "--tenant", pipeline.tenant, *arguments)


def killed_after_the_first(pipeline: Pipeline) -> None:
    """Kill the command when it has put one letter back."""
    command = [*COMMAND, "dlq", "redrive", "--tenant", pipeline.tenant, "--rate", "0.2", "--json"]
    with subprocess.Popen(
        command, cwd=pipeline.folder, env=pipeline.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        running.kill()
    assert first["action"] == "put_back"


async def test_refused_turns_are_put_back_and_learnt_once(place: Place) -> None:
    mind = Mind()
    with ModelServer(mind) as model:
        async with whole(place, model, env={"MEMSTREAM_TIER": "free"}) as pipeline:
            for user in USERS:
                await pipeline.produce(turn("I work at Google", 1, user=user))
                await pipeline.settled()
                await pipeline.produce(turn("Jennifer lives in Oslo", 2, user=user))
                await pipeline.settled()
                await pipeline.produce(turn("I like green tea", 3, user=user))
            await pipeline.settled()
            assert len(await pipeline.dead_letters()) == len(USERS)

            mind.mended = True
            assert [row["action"] for row in redrive(pipeline, "--dry-run")] == ["would_put_back"] * len(USERS)
            reader, mine = DeadLetterReader(pipeline.log), LetterFilter(tenant=pipeline.tenant).matches
            page = await reader.page(LETTER_TOPICS, mine, limit=50)
            assert sorted((each.user_id, each.put_back) for each in page.items) == [(user, False) for user in USERS]
            letter = await reader.record(page.items[0].topic, page.items[0].partition, page.items[0].offset)
            assert letter is not None
            assert (await LetterRedrives(pipeline.log).put_back(letter, who="eva")).action == "put_back"
            await asyncio.to_thread(killed_after_the_first, pipeline)
            assert len(redrive(pipeline)) == len(USERS) - 2
            assert redrive(pipeline) == []
            await pipeline.settled()

            assert {each.put_back for each in (await reader.page(LETTER_TOPICS, mine, limit=50)).items} == {True}
            letters = [redriven_letter(each) for each in await pipeline.records(TURNS.name)]
            names = [each for each in letters if each is not None]
            assert len(names) == len(set(names)) >= len(USERS)
            facts = (await pipeline.consistent()).values()
            learnt = Counter((fact["content"], fact["owner"]["id"], fact["version"]) for fact in facts)
            contents = ("Works at Google", "Lives in Oslo", "Likes green tea")
            assert learnt == Counter((content, user, 1) for content in contents for user in USERS)
            await pipeline.verified()
