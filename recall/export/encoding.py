"""Text forms of an export: NDJSON, and the same lines as one JSON list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...schemas.export import ExportFormat, ExportLine

MEDIA_TYPES: Final[dict[ExportFormat, str]] = {"ndjson": "application/x-ndjson", "json": "application/json"}


def opening(form: ExportFormat, header: ExportLine) -> bytes:
    text = header.to_line()
    return (f"{text}\n" if form == "ndjson" else f"[\n{text}").encode()


def further(form: ExportFormat, lines: Sequence[ExportLine]) -> bytes:
    texts = (each.to_line() for each in lines)
    return "".join(f"{text}\n" if form == "ndjson" else f",\n{text}" for text in texts).encode()


def closing(form: ExportFormat, end: ExportLine) -> bytes:
    text = end.to_line()
    return (f"{text}\n" if form == "ndjson" else f",\n{text}\n]\n").encode()
