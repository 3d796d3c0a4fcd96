"""Progress of an import on stderr: a bar on a terminal, and plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from ...schemas.imports import ImportReport
from . import console

LINE_SECONDS: Final = 5.0
"""Seconds between two plain lines."""
Shown = Callable[[int, ImportReport], None]
"""Function that shows the progress: the bytes that are read, and the result so far."""


@contextmanager
def shown(size: int) -> Iterator[Shown]:
    """Show the progress of an import. `size`: the size of its file."""
    if not sys.stderr.isatty():
        yield _lines(size)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task("import", total=size)
        yield lambda end, report: progress.update(task, completed=end, description=_told(report))


def _lines(size: int) -> Shown:
    last = time.monotonic()

    def show(end: int, report: ImportReport) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            console.advice(f"{100 * end // max(1, size)} %: {_told(report)}")

    return show


def _told(report: ImportReport) -> str:
    errors = len(report.errors) + report.more_errors
    return f"{report.imported} imported, {report.skipped} skipped" + (f", {errors} errors" if errors else "")
