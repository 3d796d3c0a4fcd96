"""The error boundary: the treatment of events whose handling failed.

- Poison: the record becomes a dead letter (or is only counted, if another stage writes the dead letter), then it is
  acknowledged.
- Transient, OverBudget, Relinquished: the lanes handle the event again. Meanwhile only events of the same key wait.
- Fatal, and every unexpected exception: the worker stops.

A crash in decoding or in `decide` counts against the current record. The count is in a file, and on a topic that all
workers read (shared_deaths.py). At the third crash the record becomes a dead letter.

A crash in the effects of an outcome counts against the record that the outcome was decided for, if the failure affects
only the outcome's key (`is_of_one_key`). At the third crash the key is parked (parking.py).

The count survives a restart. A worker may die after the third crash and before it commits the record. The redelivered
record must not stop the worker three more times.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import structlog
from aiokafka.errors import KafkaError

from ...schemas.base import describe
from ...schemas.errors import ContentFiltered, DeploymentFault, Fatal, Poison, StageError
from ..log.port import Position
from .failures import HUNG, DecisionFailed, EffectFailed
from .shared_deaths import SharedDeaths

log = structlog.get_logger(__name__)
T = TypeVar("T")

CRASHES_MAX = 3
"""Number of crashes at which a record becomes a dead letter."""
DEAD_LETTERS_IN_A_ROW_MAX = 20
REFUSED_OF_A_TENANT_MAX = 7
"""Maximum number of one tenant's refusals that count towards `DEAD_LETTERS_IN_A_ROW_MAX`. So a worker ends only after
refusals of three tenants: the content of one tenant causes refusals of that tenant, and a faulty model causes refusals
of every tenant."""
TRACE_FRAMES = 6
_FORGET_AFTER = 7 * 24 * 3600.0


def decoded(route: Callable[[], T]) -> T:
    """Call `route` and return its result. Raises Poison unchanged, and DecisionFailed for every other exception."""
    try:
        return route()
    except Poison:
        raise
    except Exception as error:
        raise DecisionFailed(describe(error)) from error


async def exception_of(work: Awaitable[None]) -> Exception | None:
    """Await `work`. Return the exception that it raised, or None."""
    try:
        await work
    except Exception as failure:
        return failure
    return None


class CrashCounter:
    """Durable crash counts of records: one small file per record in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, position: Position) -> int:
        """Return the count of a record, 0 if it has no readable file."""
        try:
            count: int = json.loads(self._path(position).read_text())["deaths"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0
        return count

    def hung(self) -> dict[Position, int]:
        """Return the counts of the records whose last death was a hang."""
        found: dict[Position, int] = {}
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            with suppress(OSError, ValueError, KeyError, TypeError):
                fields = json.loads(path.read_text())
                if str(fields["why"]).startswith(HUNG):
                    position = Position(fields["topic"], int(fields["partition"]), int(fields["offset"]))
                    found[position] = int(fields["deaths"])
        return found

    def add(self, position: Position, why: str) -> int:
        """Count one more crash durably and return the new count."""
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
        """Delete counts that were last written more than a week ago."""
        if self._folder.is_dir():
            for path in self._folder.glob("*.json"):
                if now - path.stat().st_mtime > _FORGET_AFTER:
                    path.unlink(missing_ok=True)

    def _path(self, position: Position) -> Path:
        name = f"{position.topic}/{position.partition}/{position.offset}"
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


class ErrorBoundary:
    """Runner of events that handles their errors.

    It counts the crashes of each record. It also counts consecutive dead letters: those with an unusable answer of the
    model for each tenant, all others together. A refusal by a content filter does not count: it pauses the tenant
    (breaker.py) and does not indicate a fault of the model or of this version.
    """

    def __init__(self, *, crashes: CrashCounter, shared: SharedDeaths | None = None) -> None:
        """`crashes` counts the crashes of this worker, `shared` the crashes of all workers."""
        self._crashes = crashes
        self._shared = shared
        self._unusable_in_a_row: Counter[str] = Counter()
        self._others_in_a_row = 0
        self._first_tenant: str | None = None
        self._several_tenants = False
        crashes.forget_old(time.time())
        self._hung = crashes.hung()
        """Number of deaths by record, for records whose last death was a hang."""

    def deaths_by_hang(self, position: Position) -> int:
        """Return the known number of deaths by a record whose last death was a hang, else 0."""
        return self._hung.get(position, 0)

    def learn_hung(self, deaths: Mapping[Position, int]) -> None:
        """Merge the counts of hangs from other workers."""
        for position, count in deaths.items():
            self._hung[position] = max(count, self.deaths_by_hang(position))

    def count_hang(self, position: Position, why: str, where: str) -> int:
        """Count a hang of the previous process durably, and log it. Return the deaths by the record in the folder."""
        deaths = self._crashes.add(position, why)
        self.learn_hung({position: deaths})
        _log_death(position, deaths, why, where)
        return deaths

    async def run(
        self,
        position: Position,
        handle: Callable[[], Awaitable[None]],
        refuse: Callable[[Poison, int], Awaitable[None]],
        *,
        park: Callable[[EffectFailed, int], Awaitable[None]] | None = None,
        tenant_id: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Handle one event. Return when it may be acknowledged.

        `refuse(poison, attempts)` makes the dead letter durable, or counts the refusal. `park(failed, attempts)` parks
        the key of an outcome and makes the event's dead letter durable. `tenant_id` returns the event's tenant, or None
        if it cannot be read.

        Raises Transient and Relinquished: the lanes then try the event again or leave it to the partition's next owner.
        Every other exception stops the worker.
        """
        if (deaths := self.deaths_by_hang(position)) >= CRASHES_MAX:
            await refuse(Poison("fatal", f"{HUNG} long in a step of this record, {deaths} times"), deaths)
            self.count_dead_letter()
            return
        try:
            await handle()
        except Poison as poison:
            await refuse(poison, 1)
            if poison.reason == "refused_by_model":
                self.count_dead_letter(tenant_id=tenant_id(), filtered=isinstance(poison, ContentFiltered))
        except DecisionFailed as failed:
            cause = failed.__cause__ or failed
            crashes = await self._crashed(position, cause)
            if crashes < CRASHES_MAX:
                raise
            fatal = Poison("fatal", describe(cause))
            fatal.__cause__ = cause
            await refuse(fatal, crashes)
            self.count_dead_letter()
        except EffectFailed as failed:
            crashes = 1 if failed.of_refused_lane else await self._crashed(failed.source, failed.error)
            if park is None or (crashes < CRASHES_MAX and not failed.of_refused_lane):
                raise failed.error from failed.error.__cause__
            await park(failed, crashes)

    async def _crashed(self, position: Position, cause: BaseException) -> int:
        """Count a crash by a record durably, and log it. Return the number of crashes over all workers."""
        crashes = self._crashes.add(position, describe(cause))
        if self._shared is not None:
            crashes = await self._shared.add(position, describe(cause), own=crashes)
        if crashes < CRASHES_MAX:
            # not exc_info: renderers may show local variables, which can contain user text
            where = "".join(traceback.format_tb(cause.__traceback__)[-TRACE_FRAMES:])
            _log_death(position, crashes, describe(cause), where)
        return crashes

    def succeeded(self, tenant_id: str | None = None) -> None:
        """Record a handled event, and reset the count of consecutive dead letters."""
        self._meet(tenant_id)
        self._unusable_in_a_row.clear()
        self._others_in_a_row = 0

    def count_dead_letter(self, *, tenant_id: str | None = None, filtered: bool = False) -> None:
        """Count a dead letter that was not caused by undecodable or invalid input.

        Raises DeploymentFault at `DEAD_LETTERS_IN_A_ROW_MAX` dead letters in a row. `tenant_id`: the tenant whose
        record the model refused. At most `REFUSED_OF_A_TENANT_MAX` dead letters of a tenant count. If this worker has
        seen only one tenant, all of its dead letters count, because nothing shows that the tenant is the cause.
        `filtered`: a content filter refused the record, so the dead letter does not count.
        """
        self._meet(tenant_id)
        if filtered:
            return
        if tenant_id is None:
            self._others_in_a_row += 1
        else:
            self._unusable_in_a_row[tenant_id] += 1
        if self._in_a_row() >= DEAD_LETTERS_IN_A_ROW_MAX:
            raise DeploymentFault(
                f"{DEAD_LETTERS_IN_A_ROW_MAX} dead letters in a row with no success between: something is wrong with "
                "the model or this version, not with the input; look at `memstream dlq list`, fix it and start again"
            )

    def _meet(self, tenant_id: str | None) -> None:
        if tenant_id is not None:
            self._first_tenant = self._first_tenant or tenant_id
            self._several_tenants = self._several_tenants or tenant_id != self._first_tenant

    def _in_a_row(self) -> int:
        """Return the number of consecutive dead letters, with the limit for each tenant."""
        limit = REFUSED_OF_A_TENANT_MAX if self._several_tenants else DEAD_LETTERS_IN_A_ROW_MAX
        return sum(min(count, limit) for count in self._unusable_in_a_row.values()) + self._others_in_a_row


def _log_death(position: Position, deaths: int, error: str, where: str) -> None:
    log.error(
        "record_kills_worker",
        topic=position.topic,
        partition=position.partition,
        offset=position.offset,
        deaths=deaths,
        of=CRASHES_MAX,
        error=error,
        where=where,
    )


def unexpected(error: BaseException) -> bool:
    """Return whether an exception counts as a crash caused by the record.

    True for a broken invariant (Fatal, not DeploymentFault) and for every exception that is not a StageError.
    """
    if isinstance(error, StageError):
        return isinstance(error, Fatal) and not isinstance(error, DeploymentFault)
    return not isinstance(error, asyncio.CancelledError)


OF_THE_PROCESS: tuple[type[Exception], ...] = (OSError, MemoryError, KafkaError, sqlite3.Error)
"""Errors of this machine or of a connection: disk, memory, broker. TimeoutError and ConnectionError are OSErrors."""


def is_of_one_key(error: Exception) -> bool:
    """Return whether a failure of an outcome's effects affects only its key, so that other keys can continue.

    True: a store or a log received the call and refused its content, a compare-and-set found another writer, or our own
    code failed. False: a component is away (Transient), the lease is lost (Relinquished), every key is affected
    (DeploymentFault), or the process lacks disk, memory or a connection.
    """
    if isinstance(error, StageError):
        return unexpected(error) or isinstance(error, Poison)
    return not isinstance(error, OF_THE_PROCESS)
