"""A request to forget arrives before its statement on a real log, while the reflector dies at each of the two."""

from __future__ import annotations

import pytest

from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, actions, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = pytest.mark.timeout(180)
WRITERS = ("recorder", "observer", "reflector")
LIKES_TEA: Json = {"content": "Likes tea", "category": "preference", **PERSISTENT}
KNOWN = {"I like tea": [LIKES_TEA], "Forget that tea is my drink": [LIKES_TEA], "Tea is fine again": [LIKES_TEA]}


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest.mark.long
async def test_a_request_counts_for_an_older_statement_that_arrives_later(place: Place) -> None:
    with ModelServer(observing(KNOWN)) as model:
        async with running(place.pipeline(model)) as pipeline:
            for n, text in ((2, "Forget that tea is my drink"), (1, "I like tea")):
                await pipeline.produce(turn(text, n, session=f"s{n}"))
                await pipeline.crashes(*WRITERS, at="reflector:table")
            await pipeline.produce(turn("Tea is fine again", 3, session="s3"))
            pipeline.spawn(*WRITERS)
            await pipeline.settled(*WRITERS)
            assert actions(await pipeline.updates()) == [
                ("new", "Likes tea"),
                ("forgotten", "Likes tea"),
                ("new", "Likes tea"),
            ]
            await pipeline.verified(*WRITERS)
