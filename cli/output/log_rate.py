"""Rate limit of log lines: during an outage a few lines with cause and remedy, not thousands.

Event and component make the kind of a line. The first line of a kind passes at once. Then a window of `seconds` lets a
limited number pass; at its end one line says how many were left out. Lines of libraries (aiokafka, faust) have the same
limit; their kind is logger and message without its arguments.

CRITICAL always passes, and so does INFO about results (`fact_new` …). Whatever is left out can be found elsewhere:
refused records are on `<topic>.dlq` and counted by reason, retries are counted by component (/metrics).
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
"""The first of these fields that a line has names its component. Of `model:<tenant>` only the model counts: a server
that is unavailable is so for every tenant."""
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
    """Limits of the lines of one kind in a window of `seconds`."""

    seconds: float = 30.0
    warnings: int = 1
    """Warnings, of memstream and of libraries."""
    records: int = 20
    """Lines about single records."""
    kinds: int = 1_000
    """Kinds that are remembered; beyond, the oldest is forgotten."""


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
    """Open windows. `tell(kind, lines)` is called at the end of a window that left lines out; `later(seconds, call)`
    schedules a call. Thread-safe."""

    policy: RatePolicy
    tell: Callable[[EventKind, int], None]
    later: Callable[[float, Callable[[], None]], None]
    clock: Callable[[], float] = time.monotonic
    _windows: OrderedDict[EventKind, _Window] = field(default_factory=OrderedDict)
    _waiting: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, kind: EventKind, at_most: int) -> bool:
        """Whether a line of this kind may be written now. Counts it."""
        ended: list[tuple[EventKind, int]] = []
        with self._lock:
            now = self.clock()
            window = self._windows.get(kind)
            if window is None or now >= window.began + self.policy.seconds:
                ended += self._ended(kind)
                window = self._windows[kind] = _Window(now)
                if len(self._windows) > self.policy.kinds:
                    ended += self._ended(next(iter(self._windows)))
            admitted = window.shown < at_most
            if admitted:
                window.shown += 1
            else:
                window.left_out += 1
            waits = not admitted and not self._waiting
            self._waiting = self._waiting or waits
        if waits:
            self.later(self.policy.seconds, self._look)
        for each in ended:
            self.tell(*each)
        return admitted

    def _look(self) -> None:
        """End windows whose time is over."""
        with self._lock:
            now = self.clock()
            over = [kind for kind, window in self._windows.items() if now >= window.began + self.policy.seconds]
            ended = [each for kind in over for each in self._ended(kind)]
            again = self._waiting = any(window.left_out for window in self._windows.values())
        if again:
            self.later(self.policy.seconds, self._look)
        for each in ended:
            self.tell(*each)

    def _ended(self, kind: EventKind) -> list[tuple[EventKind, int]]:
        window = self._windows.pop(kind, None)
        return [(kind, window.left_out)] if window is not None and window.left_out else []


def log_rate(policy: RatePolicy | None = None) -> LogRate:
    """Return a rate limit that reports to the log and uses timers of this process."""
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
    """First processor of structlog, so that lines which are left out cost almost nothing."""

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
    """Filter of the standard library's logging, on the handler that writes."""

    rate: LogRate

    def __call__(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.CRITICAL:
            return True
        return self.rate.admits(EventKind(str(record.msg)[:200], record.name), self.rate.policy.warnings)
