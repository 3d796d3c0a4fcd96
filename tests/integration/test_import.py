"""Imports on a real broker and in a folder: an export of the restored memory is equal to the imported file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from memstream.schemas import ids
from memstream.schemas.erasures import USER_PREFIX, ErasureMarker
from memstream.schemas.topics import ERASURES
from tests.support.generated_memory import GeneratedMemory
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest.fixture
async def pipeline(place: Place) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline()) as made:
        made.spawn("all")
        yield made


def imported(pipeline: Pipeline, text: str, name: str, *options: str) -> dict[str, Any]:
    """Import a text, and continue while a busy machine makes a stage answer late."""
    path = pipeline.folder / name
    path.write_text(text)
    tries = (pipeline.cli("import", str(path), *options, expect=None, timeout=240).strip() for _ in range(3))
    report: dict[str, Any] = json.loads(next(filter(None, tries)))
    return report


def exported(pipeline: Pipeline, name: str, *whose: str, form: str = "ndjson") -> str:
    out = pipeline.folder / name
    pipeline.cli("export", *whose, "--format", form, "--out", str(out), timeout=120)
    return out.read_text()


def without_header(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [line for line in lines if not line.startswith('{"kind":"export"')]


@pytest.mark.long
async def test_an_export_of_a_restored_memory_is_equal_to_the_imported_file(pipeline: Pipeline) -> None:
    for seed, form in ((1, "ndjson"), (2, "json")):
        tenant = f"{pipeline.tenant}-{seed}"
        memory = GeneratedMemory(seed, tenant)
        text = memory.text(form)
        report = imported(pipeline, text, f"{seed}.in")
        assert report["errors"] == []
        assert report["imported"] + report["skipped"] == len(memory.lines()) - 1
        again = exported(pipeline, f"{seed}.out", "--tenant", tenant, "--user", "u1", form=form)
        assert without_header(again) == without_header(text)
        imported(pipeline, text, f"{seed}.in")
        once_more = exported(pipeline, f"{seed}.once", "--tenant", tenant, "--user", "u1", form=form)
        assert without_header(once_more) == without_header(text)


@pytest.mark.long
async def test_a_tenant_with_a_group_is_restored(pipeline: Pipeline) -> None:
    memory = GeneratedMemory(3, f"{pipeline.tenant}-3", group=True)
    assert imported(pipeline, memory.text(), "3.in")["errors"] == []
    again = exported(pipeline, "3.out", "--tenant", memory.tenant)
    assert sorted(without_header(again)) == sorted(without_header(memory.text()))


@pytest.mark.long
async def test_a_memory_that_moves_to_another_user_has_new_ids_and_the_same_words(pipeline: Pipeline) -> None:
    memory = GeneratedMemory(4, f"{pipeline.tenant}-4")
    target = ("--tenant", f"{pipeline.tenant}-5", "--user", "ana")
    assert imported(pipeline, memory.text(), "4.in")["errors"] == []
    assert imported(pipeline, memory.text(), "4.in", *target)["errors"] == []
    before = exported(pipeline, "4.out", "--tenant", memory.tenant, "--user", "u1")
    assert without_header(before) == without_header(memory.text()), "the source is as it was"
    moved = exported(pipeline, "5.out", *target)
    assert memory.tenant not in moved
    assert "u1" not in {each.get("user_id") for each in records(moved)}
    assert words(moved) == words(memory.text())
    assert not {each["fact_id"] for each in records(moved) if "fact_id" in each} & {
        each["fact_id"] for each in records(memory.text()) if "fact_id" in each
    }


def kinds(text: str) -> Counter[str]:
    return Counter(json.loads(line)["kind"] for line in without_header(text))


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line)["record"] for line in without_header(text)]


def words(text: str) -> list[str]:
    said = [each.get("content") or each.get("text") or each.get("value") or "" for each in records(text)]
    said += [message["content"] for each in records(text) for message in each.get("messages", ())]
    return sorted(said)


async def test_a_broken_line_costs_that_line(pipeline: Pipeline) -> None:
    memory = GeneratedMemory(6, f"{pipeline.tenant}-6")
    lines = memory.text().splitlines()
    lines[3] = lines[3][:50]
    lines[5] = lines[5].replace('"kind":"fact"', '"kind":"dream"')
    lines[7] = lines[7].replace(f'"tenant_id":"{memory.tenant}"', '"tenant_id":"other"')
    report = imported(pipeline, "\n".join(lines), "6.in")
    assert [each["line"] for each in report["errors"]] == [4, 6, 8]
    assert all(each["what"] and each["what_to_do"] for each in report["errors"])
    lost = {json.loads(memory.lines()[n - 2])["record"]["fact_id"] for n in (4, 6, 8)}
    there = exported(pipeline, "6.out", "--tenant", memory.tenant, "--user", "u1")
    facts = {each["fact_id"] for each in records(there) if "evidence" in each and "predicate" in each}
    assert facts == {each.fact_id for each in memory.records["fact"]} - lost


@pytest.mark.long
async def test_an_export_from_before_an_erasure_brings_nobody_back(pipeline: Pipeline) -> None:
    memory = GeneratedMemory(10, f"{pipeline.tenant}-10")
    marker = ErasureMarker(erasure_id="e1", state="closed", at=datetime.now(UTC))
    user = USER_PREFIX + ids.user_hash(memory.tenant, "u1")
    await pipeline.log.append(ERASURES.name, key=user.encode(), value=marker.to_bytes())
    report = imported(pipeline, memory.text(), "10.in")
    assert report["imported"] == 0
    assert {each["what"].partition(": ")[2] for each in report["errors"]} == {"it names a user who was erased"}
    there = exported(pipeline, "10.out", "--tenant", memory.tenant)
    assert set(kinds(there)) <= {"end"}
    moved = imported(pipeline, memory.text(), "10.in", "--tenant", memory.tenant, "--user", "ana")
    assert moved == report, "nor under another name"


@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "seed"), [("reflector:store:1", 7), ("observer:table:2", 8), ("recorder:store:1", 9)]
)
async def test_an_import_continues_after_a_worker_has_died(place: Place, point: str, seed: int) -> None:
    async with running(place.pipeline()) as pipeline:
        memory = GeneratedMemory(seed, pipeline.tenant)
        dying = pipeline.spawn("all", MEMSTREAM_CRASH_POINT=point)
        path = pipeline.folder / f"{memory.tenant}.in"
        path.write_text(memory.text())

        async def result() -> str:
            """The result of the import; empty if it ended early, or if the worker was not reached."""
            return pipeline.cli("import", str(path), expect=None, timeout=240).strip()

        async def death() -> bool:
            await result()
            return dying.poll() is not None

        await wait_for(death, "the death of the worker", deadline=120)
        pipeline.spawn("all")
        report = json.loads(await wait_for(result, "the result of the import", deadline=120))
        assert report["errors"] == []
        there = exported(pipeline, f"{memory.tenant}.out", "--tenant", memory.tenant, "--user", "u1")
        assert kinds(there) == kinds(memory.text())
        assert without_header(there) == without_header(memory.text())
