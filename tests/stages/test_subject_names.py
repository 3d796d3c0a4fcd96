"""Nicknames: while somebody's word says that two names mean one person, statements about both are compared."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.facts.subject_names import NameFact, SubjectNames
from memstream.schemas.facts import StoredFact
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.reflector_world import Talk, reflector

CORPUS = Path(__file__).parents[1] / "corpora" / "names"
CASES = [case for name in ("tuned", "unseen") for case in json.loads((CORPUS / f"{name}.json").read_text())]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


async def believed(bench: Bench) -> list[StoredFact]:
    rows = [StoredFact.from_payload(each.payload) for each in await bench.store.select("facts", tenant_id="acme")]
    return [row for row in rows if row.state == "active"]


def names_in(facts: list[StoredFact]) -> SubjectNames:
    return SubjectNames.of(NameFact(each.subject, each.value, each.denied, each.trust) for each in facts if each.value)


@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_names(bench: Bench, case: dict[str, Any], together: bool) -> None:
    talk = Talk(bench)
    records = [talk.turn(talk.says(**said)) for said in case["says"]]
    if together:
        await bench.run(records[0], ahead=records[1:])
    else:
        for record in records:
            await bench.run(record)
    facts = await believed(bench)
    assert sorted((each.subject, each.content) for each in facts) == sorted(map(tuple, case["believed"]))
    named = [each for each in facts if each.slot in ("name", "nickname")]
    if same := case.get("same"):
        assert set(same) <= set(names_in(named).all_of(same[0]))
    if apart := case.get("apart"):
        assert apart[1] not in names_in(named).all_of(apart[0])
    await bench.agree()


async def test_forgetting_the_name_separates_the_two_again(bench: Bench) -> None:
    editor = OwnerEditor(bench)
    said = await editor.done("facts.remember", subject="robert", content="Is also called Bob")
    await editor.done("facts.remember", subject="robert", content="Lives in Oslo")
    await editor.done("facts.remember", subject="bob", content="Lives in Bergen")
    assert {each.content for each in await believed(bench)} == {"Is also called Bob", "Lives in Bergen"}
    await editor.done("facts.forget", fact_id=said["fact_id"])
    await editor.done("facts.remember", subject="robert", content="Lives in Oslo")
    assert {(each.subject, each.content) for each in await believed(bench)} == {
        ("robert", "Lives in Oslo"),
        ("bob", "Lives in Bergen"),
    }
    await bench.agree()
