"""Lines from files, pipes and memory."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path

import pytest

from memstream.cli.lines import LINE_MAX, lines

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
