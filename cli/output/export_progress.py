"""Progress of an export on stderr: a bar on a terminal, and plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from ...recall.export.request import ExportCursor
from ...schemas.export import RecordKind
from . import console

LINE_SECONDS: Final = 5.0
"""Seconds between two plain lines."""


def _columns() -> tuple[ProgressColumn, ...]:
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()


class Shown(Protocol):
    def __call__(self, kind: RecordKind, cursor: ExportCursor) -> None:
        """Show the progress after a page of `kind`."""
        ...


@contextmanager
def shown(totals: Mapping[RecordKind, int]) -> Iterator[Shown]:
    """Show the progress of an export. `totals`: expected number of records, by kind."""
    if sys.stderr.isatty():
        with _bar(totals) as bar:
            yield bar
    else:
        yield _Lines(totals)


@contextmanager
def _bar(totals: Mapping[RecordKind, int]) -> Iterator[Shown]:
    with Progress(*_columns(), console=Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task("export", total=sum(totals.values()))

        def show(kind: RecordKind, cursor: ExportCursor) -> None:
            progress.update(task, description=kind, completed=sum(_done(each, cursor) for each in totals))

        yield show
        progress.update(task, completed=sum(totals.values()))


@dataclass(slots=True)
class _Lines:
    totals: Mapping[RecordKind, int]
    _last: float = field(default_factory=time.monotonic)

    def __call__(self, kind: RecordKind, cursor: ExportCursor) -> None:
        if time.monotonic() - self._last < LINE_SECONDS:
            return
        self._last = time.monotonic()
        total = self.totals.get(kind)
        console.advice(f"{kind}: {_done(kind, cursor)}" + ("" if total is None else f" of {total}"))


@contextmanager
def notes_shown() -> Iterator[Callable[[int, int], None]]:
    """Show how many notes are written."""
    if not sys.stderr.isatty():
        last = time.monotonic()

        def plain(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_SECONDS:
                last = time.monotonic()
                console.advice(f"notes: {done} of {total}")

        yield plain
        return
    with Progress(*_columns(), console=Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task("notes", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _done(kind: RecordKind, cursor: ExportCursor) -> int:
    return cursor.counts.get(kind, 0) + cursor.left_out.get(kind, 0)
