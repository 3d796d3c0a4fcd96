"""Log lines at a bounded rate: while something is away, a few lines with cause and remedy, not thousands.

A kind of line is its event and the part that it is about. The first of a kind goes through at once. Then, for a window
of `seconds`, only so many more; when the window ends one line says how many were left out. Libraries (aiokafka, faust)
are held to the same, a kind being logger and message before its arguments are put in.

What is never lost: CRITICAL, and INFO about what was done (`fact_new` …). What is lost here is counted or lies
elsewhere: refused records lie on `<topic>.dlq` and are counted by reason, retries by component (/metrics).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

LEFT_OUT = "lines_left_out"
PART_FIELDS = ("component", "what", "reason", "stage")
"""The first of these that a line has says what it is about; of `model:<tenant>` only the model, for a server that is
away is away for thousands of tenants."""
ABOUT_A_RECORD = frozenset(
    (
        "record_refused",
        "turn_refused",
        "record_kills_worker",
        "turn_not_embedded",
        "windows_not_embedded",
        "turn_deferred",
        "lease_lost",
    )
)


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """How many lines of a kind go through in a window of `seconds`."""

    seconds: float = 30.0
    warnings: int = 1
    """Of ours and of libraries."""
    records: int = 20
    """Each is about another record."""
    kinds: int = 1_000
    """Remembered; beyond, the oldest is forgotten."""


@dataclass(frozen=True, slots=True)
class EventKind:
    event: str
    part: str = ""


@dataclass(slots=True)
class _Window:
    began: float
    shown: int = 0
    left_out: int = 0


@dataclass(slots=True)
class LogRate:
    """The windows of now. `tell(kind, lines)` is called when one ends in which lines were left out; `later(seconds,
    call)` runs a call then. Any thread may ask."""

    policy: RatePolicy
    tell: Callable[[EventKind, int], None]
    later: Callable[[float, Callable[[], None]], None]
    clock: Callable[[], float] = time.monotonic
    _windows: OrderedDict[EventKind, _Window] = field(default_factory=OrderedDict)
    _waiting: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, kind: EventKind, at_most: int) -> bool:
        """Whether a line of this kind may be written now."""
        told: list[tuple[EventKind, int]] = []
        with self._lock:
            now = self.clock()
            window = self._windows.get(kind)
            if window is None or now >= window.began + self.policy.seconds:
                told += self._ended(kind)
                window = self._windows[kind] = _Window(now)
                if len(self._windows) > self.policy.kinds:
                    told += self._ended(next(iter(self._windows)))
            admitted = window.shown < at_most
            if admitted:
                window.shown += 1
            else:
                window.left_out += 1
            waits = not admitted and not self._waiting
            self._waiting = self._waiting or waits
        if waits:
            self.later(self.policy.seconds, self._look)
        for each in told:
            self.tell(*each)
        return admitted

    def _look(self) -> None:
        """End the windows whose time is over."""
        with self._lock:
            now = self.clock()
            over = [kind for kind, window in self._windows.items() if now >= window.began + self.policy.seconds]
            told = [each for kind in over for each in self._ended(kind)]
            again = self._waiting = any(window.left_out for window in self._windows.values())
        if again:
            self.later(self.policy.seconds, self._look)
        for each in told:
            self.tell(*each)

    def _ended(self, kind: EventKind) -> list[tuple[EventKind, int]]:
        window = self._windows.pop(kind, None)
        return [(kind, window.left_out)] if window is not None and window.left_out else []


def log_rate(policy: RatePolicy | None = None) -> LogRate:
    """One that tells in the log, by timers of the process."""
    policy = policy or RatePolicy()

    def tell(kind: EventKind, lines: int) -> None:
        log = structlog.get_logger(__name__)
        log.warning(LEFT_OUT, of=kind.event, part=kind.part, lines=lines, seconds=policy.seconds)

    def later(seconds: float, call: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()

    return LogRate(policy, tell, later)


@dataclass(frozen=True, slots=True)
class OurLines:
    """A processor of structlog, the first one: what is left out costs next to nothing."""

    rate: LogRate

    def __call__(self, logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        name = str(event.get("event", ""))
        if method == "critical" or name == LEFT_OUT:
            return event
        policy = self.rate.policy
        if name not in ABOUT_A_RECORD and method in ("info", "debug"):
            return event
        at_most = policy.records if name in ABOUT_A_RECORD else policy.warnings
        if not self.rate.admits(EventKind(name, part_of(event)), at_most):
            raise structlog.DropEvent
        return event


def part_of(event: Mapping[str, object]) -> str:
    for name in PART_FIELDS:
        if name in event:
            return str(event[name]).partition(":")[0]
    return ""


@dataclass(frozen=True, slots=True)
class LibraryLines:
    """A filter of the standard library's logging, on the handler that writes."""

    rate: LogRate

    def __call__(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.CRITICAL:
            return True
        return self.rate.admits(EventKind(str(record.msg)[:200], record.name), self.rate.policy.warnings)
