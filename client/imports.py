"""Import over HTTP: the file in parts, each sent again until the server has answered. A foreign file is converted
here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import JsonValue

from ..schemas.imports import ImportFault, ImportReport
from ..schemas.turns import Owner
from .answers import decode
from .import_file import FileLine, ImportRefused, located, opened_source
from .import_formats import FORMAT_NAMES, format_of

PATH: Final = "/v1/import"
PART_LINES: Final = 200
PART_BYTES: Final = 1024 * 1024
"""Bytes of a part. A longer line has a part of its own."""


async def import_file(
    path: Path, call: Callable[..., Awaitable[httpx.Response]], fields: Mapping[str, JsonValue]
) -> ImportReport:
    """Import a file. Raises ImportRefused for a file of no known format."""
    report = ImportReport()
    given: Any = fields.get("format", "auto")
    if given not in FORMAT_NAMES:
        raise ImportRefused(f"{given!r} is no format: give {', '.join(FORMAT_NAMES)}")
    with opened_source(path, name=path.name) as source:
        form = format_of(source, given)
        header = form.header(source, tenant_id=_text_or_none(fields, "tenant_id"), owner=_owner(fields))
        read = form.read(source, 0, 0)
        for part in _parts(read if form.foreign else islice(read, 1, None), numbered=form.foreign):
            if isinstance(part, ImportFault):
                report = report.plus(ImportReport(errors=(part,)))
                continue
            body = b"\n".join((_one_line(header), *(_one_line(each.text) for each in part)))
            params: dict[str, Any] = {
                **fields,
                "format": "auto",
                "file": path.name[:255],
                "first_line": max(2, part[0].number),
            }
            answer = await call(
                "POST", PATH, params=params, content=body, headers={"Content-Type": "application/x-ndjson"}
            )
            report = report.plus(located(decode(ImportReport, answer), part))
    return report


def _text_or_none(fields: Mapping[str, JsonValue], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _owner(fields: Mapping[str, JsonValue]) -> Owner | None:
    user_id, scope, owner_id = (_text_or_none(fields, name) for name in ("user_id", "scope", "id"))
    if scope is not None and owner_id is not None:
        return Owner.model_validate({"scope": scope, "id": owner_id})
    return None if user_id is None else Owner(scope="user", id=user_id)


def _parts(read: Iterator[FileLine | ImportFault], *, numbered: bool) -> Iterator[Sequence[FileLine] | ImportFault]:
    """Yield parts of consecutive lines, and the faults between them. `numbered`: the lines have their own numbers."""
    part: list[FileLine] = []
    size = 0
    for each in read:
        follows = bool(part) and isinstance(each, FileLine) and (numbered or each.number == part[-1].number + 1)
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
