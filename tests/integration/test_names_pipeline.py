"""Nicknames and namesakes from the turn to the fact, while the reflector dies once, on Kafka and in a folder."""

from __future__ import annotations

import pytest

from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = pytest.mark.timeout(180)
WRITERS = ("recorder", "observer", "reflector")


def said(content: str, subject: str = "user", slot: str = "other", value: str | None = None) -> Json:
    return {
        **PERSISTENT,
        "content": content,
        "subject": subject,
        "category": "relationship",
        "slot": slot,
        "value": value,
    }


KNOWN = {
    "Everyone calls Robert Bob": [said("Is called Bob", "robert", "nickname", "Bob")],
    "Robert lives in Oslo": [said("Lives in Oslo", "robert", "residence", "Oslo")],
    "Bob lives in Bergen": [said("Lives in Bergen", "bob", "residence", "Bergen")],
    "Robert likes tea, so Bob does": [said("Likes tea", "robert"), said("Likes tea", "bob")],
    "My colleague Alex hates chess": [
        said("Has a colleague named Alex", "user", "colleague", "Alex"),
        said("Hates chess", "alex", "dislikes", "chess"),
    ],
    "My brother Alex plays the cello": [
        said("Has a brother named Alex", "user", "sibling", "Alex"),
        said("Plays the cello", "alex", "hobby", "cello"),
    ],
}


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest.mark.long
async def test_a_nickname_joins_two_names_and_a_relation_separates_two_people(place: Place) -> None:
    with ModelServer(observing(KNOWN)) as model:
        async with running(place.pipeline(model)) as pipeline:
            await pipeline.produce(*(turn(text, n) for n, text in enumerate(KNOWN, 1)))
            await pipeline.crashes(*WRITERS, at="reflector:store")
            pipeline.spawn(*WRITERS)
            await pipeline.settled(*WRITERS)
            rows = pipeline.shown("facts")[pipeline.tenant]["facts"]
            believed = {row["content"]: row["subject"] for row in rows if row["state"] == "active"}
            assert believed == {
                "Is called Bob": "robert",
                "Lives in Bergen": "bob",
                "Likes tea": "robert",
                "Has a colleague named Alex": "user",
                "Hates chess": "alex",
                "Has a brother named Alex": "user",
                "Plays the cello": "alex-sibling",
            }
            await pipeline.verified(*WRITERS)
