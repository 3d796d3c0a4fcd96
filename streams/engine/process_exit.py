"""The end of a worker process: exit codes, and timers that end a process whose stop hangs.

Flush and commit wait without a limit for a broker that does not answer, so a stopping worker could hang forever. It is
better that the process exits: its supervisor starts it again.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import structlog
from aiokafka.errors import KafkaError

from ...schemas.errors import OverBudget, Relinquished, StageError, Transient
from .dead_letters import message_of

log = structlog.get_logger(__name__)

DONE = 0
PARTLY = 1
USAGE = 2
#: a server cannot be reached, or the process lost its membership in the consumer group
UNREACHABLE = 3
#: a broken invariant stopped the worker
BROKEN = 4

ExitProcess = Callable[[int], None]


class LeaseLost(Relinquished):
    """Other workers may own this worker's partitions: the group coordinator has not answered for too long."""

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="wait, or look at the broker's log; the worker rejoins on its own")


def exit_code_for(reason: BaseException | None) -> int:
    """Return the exit code of a worker that ended because of `reason`; None means that it was asked to stop."""
    if reason is None:
        return DONE
    unreachable = Transient | Relinquished | OverBudget | ConnectionError | TimeoutError | KafkaError
    return UNREACHABLE if isinstance(reason, unreachable) else BROKEN


def tell_end(reason: BaseException) -> None:
    """Log the last line of a worker that ends because of `reason`."""
    remedy = {"remedy": reason.remedy} if isinstance(reason, StageError) and reason.remedy else {}
    log.critical("worker_stopped", why=message_of(reason), kind=type(reason).__name__, **remedy)


def tell_thrown_out(*, app: str, silent: float, session: float, worker_id: str | None) -> None:
    """Log the last line of a worker that its consumer group has removed.

    `silent`: seconds since the last heartbeat that the group accepted. `session`: the group's session time-out in
    seconds.
    """
    taken = f"; is there another worker with MEMSTREAM_WORKER_ID={worker_id}?" if worker_id else ""
    log.critical(
        "out_of_the_consumer_group",
        app=app,
        why=f"other workers have its partitions: the last heartbeat that its group accepted is {silent:.1f} s old",
        remedy="none if it is rare: its supervisor starts it again, and unfinished events are delivered again; else "
        f"give it more CPU, or a longer MEMSTREAM_SESSION_TIMEOUT ({session:g} s){taken}",
        exit_code=UNREACHABLE,
    )


def end_process(code: int) -> None:
    """End the process immediately. Only logs and standard streams are flushed; no exit handler runs."""
    for flush in (logging.shutdown, sys.stdout.flush, sys.stderr.flush):
        with suppress(Exception):  # a closed pipe or a full disk must not prevent the exit
            flush()
    os._exit(code)


class ExitTimer:
    """A timer that ends the process after `seconds`, for a stop that hangs.

    `reason`: the crash that caused the stop; None for a requested stop. The timer is a thread, because the event loop
    itself may hang.
    """

    def __init__(self, seconds: float, *, reason: BaseException | None, exit_process: ExitProcess) -> None:
        self._reason = reason
        self._exit = exit_process
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()
        atexit.register(self._timer.cancel)

    def cancel(self) -> None:
        """Cancel the timer."""
        self._timer.cancel()
        atexit.unregister(self._timer.cancel)

    def _expire(self) -> None:
        what = "it was asked to stop" if self._reason is None else "it stops for a crash"
        code = UNREACHABLE if self._reason is None else exit_code_for(self._reason)
        log.critical(
            "shutdown_cut_off", why=f"{what}, and did not finish in time", seconds=self._seconds, exit_code=code
        )
        if self._reason is not None:
            tell_end(self._reason)
        self._exit(code)
