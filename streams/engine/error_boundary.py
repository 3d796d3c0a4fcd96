"""The boundary of errors: the only place that decides what becomes of an event whose handling failed.

poison → dead letter (or a count, where another stage has the letter), then acknowledged; transient → the same event
again, with full jitter, holding its key only; fatal, and every exception nobody expected → the worker stops. Such
deaths are counted per record on disk when decoding or `decide` raised them; the third sends the record to the dead
letters. The count stays: a record that comes again after its dead letter, because the worker died before the commit,
must not stop the worker another three times.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import structlog

from ...schemas.errors import Fatal, LaterVersion, Poison, StageError
from ..log.port import Position

log = structlog.get_logger(__name__)
T = TypeVar("T")

DEATHS_MAX = 3
"""The third death by one record sends it to the dead letters."""
LETTERS_IN_A_ROW_MAX = 20
TRACE_FRAMES = 6
_FORGET_AFTER = 7 * 24 * 3600.0


class DecisionFailed(Exception):
    """Decoding or `decide` raised what nobody expected for this record; `__cause__` is what."""


def decoded(route: Callable[[], T]) -> T:
    """What `route()` returns. Raises Poison as it is; DecisionFailed for everything that nobody expected."""
    try:
        return route()
    except Poison:
        raise
    except Exception as error:
        raise DecisionFailed(repr(error)) from error


async def failure_of(work: Awaitable[None]) -> Exception | None:
    """Await `work` and return the exception that it raised, if any."""
    try:
        await work
    except Exception as failure:
        return failure
    return None


class CrashCounter:
    """How often a record killed the worker: one small file a record in `folder`, written before the worker stops."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, position: Position) -> int:
        try:
            count: int = json.loads(self._path(position).read_text())["deaths"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0
        return count

    def add(self, position: Position, why: str) -> int:
        """Count one more, durable when it returns; the new count."""
        self._folder.mkdir(parents=True, exist_ok=True)
        count = self.of(position) + 1
        path = self._path(position)
        fields = {"topic": position.topic, "partition": position.partition, "offset": position.offset}
        draft = path.with_suffix(".new")
        with draft.open("w") as file:
            json.dump(fields | {"deaths": count, "why": why[:500]}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        return count

    def forget_old(self, now: float) -> None:
        """Drop counts that nobody asked for in a week."""
        if self._folder.is_dir():
            for path in self._folder.glob("*.json"):
                if now - path.stat().st_mtime > _FORGET_AFTER:
                    path.unlink(missing_ok=True)

    def _path(self, position: Position) -> Path:
        name = f"{position.topic}/{position.partition}/{position.offset}"
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


class ErrorBoundary:
    """Runs one event to its end. `refuse(reason error, attempts)` makes the dead letter durable, or counts it."""

    def __init__(self, *, deaths: CrashCounter) -> None:
        self._deaths = deaths
        self._letters_in_a_row = 0
        deaths.forget_old(time.time())

    async def run(
        self,
        position: Position,
        handle: Callable[[], Awaitable[None]],
        refuse: Callable[[Poison, int], Awaitable[None]],
    ) -> None:
        """Return when the event may be acknowledged.

        Raises Transient and Relinquished, after which the lanes try the event again or leave it to the partition's
        next owner, and everything that stops the worker.
        """
        try:
            await handle()
        except Poison as poison:
            await refuse(poison, 1)
            if poison.reason == "refused_by_model":
                self.count_dead_letter()
        except DecisionFailed as failed:
            cause = failed.__cause__ or failed
            deaths = self._deaths.add(position, repr(cause))
            if deaths < DEATHS_MAX:
                log.error(
                    "record_kills_worker",
                    topic=position.topic,
                    partition=position.partition,
                    offset=position.offset,
                    deaths=deaths,
                    of=DEATHS_MAX,
                    error=repr(cause),
                    # not exc_info: renderers may show local variables, and in them what users said
                    where="".join(traceback.format_tb(cause.__traceback__)[-TRACE_FRAMES:]),
                )
                raise
            fatal = Poison("fatal", f"{type(cause).__name__}: {cause}")
            fatal.__cause__ = cause
            await refuse(fatal, deaths)
            self.count_dead_letter()

    def succeeded(self) -> None:
        """An event had its effect: the run of dead letters ends."""
        self._letters_in_a_row = 0

    def count_dead_letter(self) -> None:
        """A dead letter of our own making (never one for undecodable or invalid input). Raises Fatal at 20 in a row."""
        self._letters_in_a_row += 1
        if self._letters_in_a_row >= LETTERS_IN_A_ROW_MAX:
            raise Fatal(
                f"{LETTERS_IN_A_ROW_MAX} dead letters in a row with no success between: something is wrong with the "
                "model or this version, not with the input; look at `memstream dlq list`, mend it and start again"
            )


def unexpected(error: BaseException) -> bool:
    """Whether an exception counts as a crash caused by the record: a broken invariant, or no error of ours."""
    if isinstance(error, StageError):
        return isinstance(error, Fatal) and not isinstance(error, LaterVersion)
    return not isinstance(error, asyncio.CancelledError)
