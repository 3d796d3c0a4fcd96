"""Lines from files, pipes and memory."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path

import pytest

from memstream.cli.commands.produce import _produce
from memstream.cli.errors import CommandFailed
from memstream.cli.process.line_reader import LINE_MAX, lines
from memstream.cli.wiring.settings import Settings

TEXT = b"one\n\ntwo\r\n" + b"x" * 200_000 + b"\nlast"
EXPECTED = [b"one", b"", b"two\r", b"x" * 200_000, b"last"]


async def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(TEXT)
    with path.open("rb") as file:
        assert [line async for line in lines(file)] == EXPECTED


async def test_memory() -> None:
    assert [line async for line in lines(io.BytesIO(TEXT))] == EXPECTED


@pytest.mark.parametrize("text", [b"", b"\n", b"a", b"a\n"])
async def test_ends(text: bytes) -> None:
    assert [line async for line in lines(io.BytesIO(text))] == text.splitlines()


async def test_a_pipe_gives_lines_while_it_is_open() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as file:
        coming = lines(file)
        for text in (b"one", b"two"):
            os.write(writer, text + b"\n")
            assert await asyncio.wait_for(anext(coming), 5) == text
        os.write(writer, b"three")
        os.close(writer)
        assert [line async for line in coming] == [b"three"]


async def test_an_endless_line_is_cut_and_the_next_one_is_whole() -> None:
    found = [line async for line in lines(io.BytesIO(b"x" * (3 * LINE_MAX) + b"\nnext"))]
    assert [len(found[0]), found[1]] == [LINE_MAX + 1, b"next"]


class Unreadable(io.BytesIO):
    """A file of which the system reads nothing: a folder."""

    name = "turns.ndjson"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.descriptor = os.open(folder, os.O_RDONLY)

    def fileno(self) -> int:
        return self.descriptor

    def close(self) -> None:
        os.close(self.descriptor)
        super().close()


async def test_what_cannot_be_read_is_no_end(tmp_path: Path) -> None:
    with Unreadable(tmp_path) as file, pytest.raises(CommandFailed, match=r"turns\.ndjson cannot be read"):
        assert [line async for line in lines(file)] == []


async def test_turns_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    settings = Settings(broker=f"embedded://{tmp_path / 'log'}")
    with Unreadable(tmp_path) as file, pytest.raises(CommandFailed, match="cannot be read") as failed:
        await asyncio.wait_for(_produce(settings, file, as_json=False), 20)
    assert failed.value.exit_code == 1
