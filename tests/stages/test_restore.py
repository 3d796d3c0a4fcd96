"""Restores of exported records: a record that a stage cannot restore costs its own line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.collections import FACTS
from memstream.schemas.errors import Poison
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.generated_memory import GeneratedMemory
from tests.support.reflector_world import reflector

MEMORY = GeneratedMemory(1, "acme")
LINES = [json.loads(line) for line in MEMORY.lines()]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


async def test_a_record_that_cannot_be_stored_costs_its_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [each["record"] for each in LINES if each["kind"] == "fact" and each["record"]["state"] == "active"][:4]
    for each in facts:
        each.pop("embedding", None)
    embed = bench.embedder.embed

    async def refuses(texts: Sequence[str], **options: Any) -> Any:
        if facts[1]["content"] in texts:
            raise Poison("refused_by_model", "the embedder refuses the text")
        return await embed(texts, **options)

    monkeypatch.setattr(bench.embedder, "embed", refuses)
    facts[2]["metadata"] = {"order": 2**63}
    facts[3]["version"] = 2**60
    records = [{"line": n, "kind": "fact", "record": each} for n, each in enumerate(facts, start=2)]
    result: Any = await OwnerEditor(bench).done(
        "restore.owner", source="0" * 16, exported_at="2026-11-01T00:00:00Z", records=records
    )
    assert [each["line"] for each in result["refused"]] == [4, 5, 3]
    assert "embedder refuses" in result["refused"][2]["why"]
    stored = await bench.store.select(FACTS, tenant_id="acme")
    assert [each.id for each in stored] == [facts[0]["fact_id"]]
