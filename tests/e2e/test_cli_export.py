"""`memstream export` as a user runs it: killed, continued, refused, and read again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.ports import Point
from memstream.adapters.vectors.factory import open_store
from memstream.cli.output import part_file
from memstream.recall.export.exporter import MemoryExporter
from memstream.schemas.collections import FACTS
from memstream.schemas.errors import Transient
from memstream.schemas.export import ExportLine
from memstream.schemas.topics import FACTS_UPDATED
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.cli_process import COMMAND, InProcess, Memstream
from tests.support.polling import wait_for_blocking
from tests.support.record_builders import stored_fact

MANY = 4_000


def remember(folder: Path, count: int) -> None:
    """Write facts of u1 into the memory of `folder`."""

    async def write() -> None:
        with FolderLock(folder=folder) as lock:
            assert lock.try_acquire()
            log = EmbeddedLog(folder=folder)
            await log.start()
            await log.create([TopicSpec(FACTS_UPDATED.name, 1, 1, {})])
            store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
            await store.ensure(FACTS)
            fact = stored_fact("Works at Stripe")
            [dense] = await HashingEmbedder().embed(["Works at Stripe"], tenant_id="acme")
            facts = [
                fact.model_copy(
                    update={
                        "fact_id": f"00000000-0000-5000-8000-{n:012}",
                        "content": f"Likes tea number {n}",
                        "sensitivity": "secret" if n == 1 else "internal",
                    }
                )
                for n in range(count)
            ]
            for begin in range(0, count, 500):
                points = [Point(each.fact_id, each.to_payload(), dense, "tea") for each in facts[begin : begin + 500]]
                await store.put(FACTS, points)
            await store.close()
            await log.close()

    asyncio.run(write())


@pytest.fixture
def command(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, {"MEMSTREAM_DATADIR": str(tmp_path / "data")})


def exported(*more: str, out: str = "a.ndjson") -> tuple[str, ...]:
    return ("export", "--tenant", "acme", "--user", "u1", "--out", out, *more)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("export", "--tenant", "acme"),
            ("export", "--out", "a.ndjson"),
            exported("--format", "xml"),
            exported("--format", "obsidian", "--embeddings"),
            exported("--scope", "group"),
            exported("--scope", "group", "--id", "team"),
            exported(out="nowhere/a.ndjson"),
            exported(out="."),
            ("export", "--tenant", "", "--out", "a.ndjson"),
            ("export", "--tenant", "acme\n", "--out", "a.ndjson"),
        ],
    )
    def test_wrong_usage_is_exit_2_and_writes_nothing(
        self, command: InProcess, tmp_path: Path, arguments: tuple[str, ...]
    ) -> None:
        done = command(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err
        assert os.listdir(tmp_path) == []

    def test_a_folder_without_memory_is_exit_2(self, command: InProcess, tmp_path: Path) -> None:
        done = command(*exported())
        assert done.code == 2
        assert "holds no memory" in done.err
        assert not (tmp_path / "a.ndjson.part").exists()

    def test_a_server_that_is_away_is_exit_3(self, command: InProcess, tmp_path: Path) -> None:
        command("topics", "create")
        done = command(*exported(), env={"MEMSTREAM_QDRANT": "http://127.0.0.1:1"})
        assert done.code == 3
        assert "MEMSTREAM_QDRANT" in done.err
        assert not list(tmp_path.glob("a.*"))

    def test_an_existing_file_is_never_overwritten(self, command: InProcess, tmp_path: Path) -> None:
        remember(tmp_path / "data", 2)
        (tmp_path / "a.ndjson").write_text("precious")
        done = command(*exported())
        assert done.code == 2
        assert "a.ndjson exists; name another --out" in done.err
        assert (tmp_path / "a.ndjson").read_text() == "precious"


def test_an_export_has_everything_that_the_operator_may_see(command: InProcess, tmp_path: Path) -> None:
    remember(tmp_path / "data", 3)
    done = command(*exported())
    assert done.code == 0, done.err
    assert "exported 3 fact to a.ndjson" in done.out
    header, *facts, end = lines_of(tmp_path / "a.ndjson")
    assert (header["kind"], header["record"]["ceiling"], header["record"]["owner"]["id"]) == ("export", "secret", "u1")
    assert [each["record"]["content"] for each in facts] == [f"Likes tea number {n}" for n in range(3)]
    assert (end["kind"], end["record"]["counts"]["fact"]) == ("end", 3)
    assert sorted(os.listdir(tmp_path)) == ["a.ndjson", "data"]


def test_json_is_the_same_as_one_document(command: InProcess, tmp_path: Path) -> None:
    remember(tmp_path / "data", 3)
    assert command(*exported()).code == 0
    assert command(*exported("--format", "json", out="a.json")).code == 0
    lines, document = lines_of(tmp_path / "a.ndjson"), json.loads((tmp_path / "a.json").read_text())
    assert document[1:] == lines[1:]
    assert document[0]["kind"] == "export"


@pytest.mark.long
def test_a_whole_pipeline_is_exported(tmp_path: Path) -> None:
    command = Memstream(tmp_path)
    assert command("demo").code == 0
    out = tmp_path / "a.ndjson"
    done = command("export", "--tenant", "demo", "--out", str(out))
    assert done.code == 0, done.err
    records = [ExportLine.read(line) for line in out.read_text().splitlines()]
    assert {each.kind for each in records} >= {"fact", "fact_change", "episode", "working", "turn"}
    done = command("export", "--tenant", "demo", "--out", "b.ndjson", "--no-conversations", "--embeddings")
    assert done.code == 0, done.err
    further = lines_of(tmp_path / "b.ndjson")
    assert "turn" not in {each["kind"] for each in further}
    assert len(next(each["record"]["embedding"] for each in further if each["kind"] == "fact")) > 1


def test_an_export_whose_store_goes_away_says_how_to_continue(
    command: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(tmp_path / "data", 3)

    async def away(*args: object) -> None:
        raise Transient("store", "Qdrant is away")

    with monkeypatch.context() as patch:
        patch.setattr(part_file, "CHECKPOINT_BYTES", 1)
        patch.setattr(MemoryExporter, "_turns", away)
        done = command(*exported())
    assert done.code == 3
    assert "a.ndjson.part is kept: run the same command again to continue it" in done.err
    done = command(*exported())
    assert done.code == 0, done.err
    assert "continues a.ndjson.part after 3 records" in done.err
    assert len(lines_of(tmp_path / "a.ndjson")) == 5


@pytest.mark.long
def test_a_killed_export_is_continued_as_of_its_moment(command: InProcess, tmp_path: Path) -> None:
    remember(tmp_path / "data", MANY)
    part, state = tmp_path / "a.ndjson.part", tmp_path / "a.ndjson.part.cursor"
    for _ in range(2):
        process = subprocess.Popen(
            [*COMMAND, *exported()], cwd=tmp_path, env=command.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        before = json.loads(state.read_text())["length"] if state.exists() else 0

        def length() -> int:
            return json.loads(state.read_text())["length"] if state.exists() else 0

        wait_for_blocking(length, "a durable part", until=lambda now: now > before, deadline=60.0, pause=0.001)  # noqa: B023
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert not (tmp_path / "a.ndjson").exists(), "killed too late to be about anything"
    with part.open("ab") as file:
        file.write(b'{"kind":"fact","record":{"half of a li')
    header = part.open().readline()
    done = command(*exported())
    assert done.code == 0, done.err
    assert "continues a.ndjson.part after" in done.err
    lines = lines_of(tmp_path / "a.ndjson")
    assert (tmp_path / "a.ndjson").open().readline() == header
    assert [each["record"]["content"] for each in lines[1:-1]] == [f"Likes tea number {n}" for n in range(MANY)]
    assert lines[-1]["record"]["counts"]["fact"] == MANY
    assert not part.exists()
    assert not state.exists()


def test_a_part_of_other_options_is_not_continued(command: InProcess, tmp_path: Path) -> None:
    remember(tmp_path / "data", 2)
    (tmp_path / "a.ndjson.part").write_text("{}\n")
    (tmp_path / "a.ndjson.part.cursor").write_text('{"selection": "ndjson of somebody", "length": 3, "cursor": "x"}')
    done = command(*exported())
    assert done.code == 2
    assert "belongs to another export" in done.err
    assert (tmp_path / "a.ndjson.part").read_text() == "{}\n"
