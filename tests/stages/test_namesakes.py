"""Two people with one name are two subjects when their relations to the user differ."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import StoredFact
from tests.support.embedded_stage import Bench, open_bench
from tests.support.reflector_world import Talk, reflector

CORPUS = Path(__file__).parents[1] / "corpora" / "namesakes"
CASES = [case for name in ("tuned", "unseen") for case in json.loads((CORPUS / f"{name}.json").read_text())]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_namesakes(bench: Bench, case: dict[str, Any], together: bool) -> None:
    talk = Talk(bench)
    records = [talk.turn(*(talk.says(**said) for said in turn)) for turn in case["turns"]]
    if together:
        await bench.run(records[0], ahead=records[1:])
    else:
        for record in records:
            await bench.run(record)
    rows = [StoredFact.from_payload(each.payload) for each in await bench.store.select("facts", tenant_id="acme")]
    said = {row.content: row.subject for row in rows if row.state == "active"}
    assert {content: said.get(content) for content in case["subjects"]} == case["subjects"]
    episodes = await bench.store.select("episodes", tenant_id="acme")
    heard = {each.content: each.subject for each in (StoredEpisode.from_payload(row.payload) for row in episodes)}
    assert {content: heard.get(content) for content in case["subjects"]} == case["subjects"]
    await bench.agree()


async def test_a_corrected_relation_leaves_one_person(bench: Bench) -> None:
    talk = Talk(bench)
    brother = await talk.tell("Has a brother named Alex", slot="sibling", value="Alex")
    named = {"replaces_observation_id": brother.observation_id, "is_correction": True}
    await talk.tell("Has a cousin named Alex", slot="relative", value="Alex", **named)
    cousin = "my cousin Alex sings"
    again = talk.says("Has a cousin named Alex", slot="relative", value="Alex", evidence=cousin)
    await bench.run(talk.turn(again, talk.says("Sings", subject="alex", evidence=cousin)))
    assert (await bench.facts())["Sings"].subject == "alex"
