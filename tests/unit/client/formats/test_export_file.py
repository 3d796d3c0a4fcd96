"""An export over HTTP to a file of each format."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import get_args

import httpx
import pytest

from memstream.client import Api, Unavailable
from memstream.client.export_file import export_to_file
from memstream.schemas.export import FileFormat
from tests.support.export_files import read_export, records_of
from tests.support.generated_memory import GeneratedMemory

MEMORY = GeneratedMemory(1, "acme")
LINES = [MEMORY.header(), *MEMORY.lines()]


@pytest.mark.parametrize("form", get_args(FileFormat))
async def test_each_format_has_all_records(tmp_path: Path, form: FileFormat) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.url.params["format"], request.url.params["user_id"]) == ("ndjson", "u1")
        return httpx.Response(200, text=MEMORY.text())

    api = Api(http=httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://memory"), timeout=5.0)
    path = tmp_path / "a"
    await api.export_file(path, format=form, tenant_id="acme", user_id="u1")
    found = records_of(read_export(path))
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, records_of(LINES)))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileExistsError, match="exists"):
        await api.export_file(path, format=form, tenant_id="acme", user_id="u1")


async def broken() -> AsyncGenerator[bytes]:
    for line in LINES[:150]:
        yield f"{line}\n".encode()
    raise Unavailable("away")


@pytest.mark.parametrize("form", ["json", "obsidian"])
async def test_an_export_that_stops_leaves_no_file(tmp_path: Path, form: FileFormat) -> None:
    with pytest.raises(Unavailable):
        await export_to_file(broken(), tmp_path / "a", form)
    assert list(tmp_path.iterdir()) == []
