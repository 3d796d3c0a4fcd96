"""Import of an export over HTTP: the file in parts, each sent again until the server has answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import JsonValue

from ..schemas.imports import ImportFault, ImportReport
from .answers import decode
from .import_file import FileLine, ImportRefused, located, opened_source
from .import_formats import format_of

PATH: Final = "/v1/import"
PART_LINES: Final = 200
PART_BYTES: Final = 1024 * 1024
"""Bytes of a part. A longer line has a part of its own."""


async def import_file(
    path: Path, call: Callable[..., Awaitable[httpx.Response]], fields: Mapping[str, JsonValue]
) -> ImportReport:
    """Import a file. Raises ImportRefused for a file that is not an export."""
    report = ImportReport()
    with opened_source(path, name=path.name) as source:
        read = format_of(source).read(source, 0, 0)
        header = next(read, None)
        if header is None or isinstance(header, ImportFault):
            raise ImportRefused(f"{path} does not begin with the header of an export")
        for part in _parts(read):
            if isinstance(part, ImportFault):
                report = report.plus(ImportReport(errors=(part,)))
                continue
            body = b"\n".join((_one_line(header.text), *(_one_line(each.text) for each in part)))
            params: dict[str, Any] = {**fields, "file": path.name[:255], "first_line": max(2, part[0].number)}
            answer = await call(
                "POST", PATH, params=params, content=body, headers={"Content-Type": "application/x-ndjson"}
            )
            report = report.plus(located(decode(ImportReport, answer), part))
    return report


def _parts(read: Iterator[FileLine | ImportFault]) -> Iterator[Sequence[FileLine] | ImportFault]:
    """Yield parts of consecutive lines, and the faults between them."""
    part: list[FileLine] = []
    size = 0
    for each in read:
        follows = bool(part) and isinstance(each, FileLine) and each.number == part[-1].number + 1
        full = isinstance(each, FileLine) and (len(part) == PART_LINES or size + len(each.text) > PART_BYTES)
        if part and (full or not follows):
            yield part
            part, size = [], 0
        if isinstance(each, ImportFault):
            yield each
        else:
            part.append(each)
            size += len(each.text)
    if part:
        yield part


def _one_line(text: bytes) -> bytes:
    """Return JSON in one line. Line breaks are only between its parts: within a text they are escaped."""
    return text.replace(b"\r", b" ").replace(b"\n", b" ")
