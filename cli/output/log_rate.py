"""Rate limit of log lines: an outage writes a few lines with cause and remedy instead of thousands.

The kind of a line is its event and component. The first line of a kind opens a window of `seconds` with a limited
number of lines. At the end of the window, one line reports the number of dropped lines. Lines of libraries (aiokafka,
faust) have the limit of warnings; their kind is the logger and the message without arguments.

CRITICAL lines and INFO lines about results (`fact_new` …) are never dropped. The information in dropped lines is also
elsewhere: refused records are on `<topic>.dlq`, and /metrics counts refusals by reason and retries by component.
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
"""Fields that name the component of a line. The first of these fields that the line has is used. In a value such as
`model:<tenant>`, the text after the colon is ignored, because an unavailable server is unavailable for every tenant."""
ABOUT_A_RECORD = frozenset(
    (
        "record_refused",
        "turn_refused",
        "record_kills_worker",
        "turn_not_embedded",
        "windows_not_embedded",
        "turn_deferred",
        "lease_lost",
        "not_ready",
        "ready_again",
    )
)
"""Events of one record, and changes of a part's state, which their sender limits."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """Limits on the lines of one kind in a window of `seconds`."""

    seconds: float = 30.0
    warnings: int = 1
    """Maximum number of warnings, from memstream or a library."""
    records: int = 20
    """Maximum number of lines about single records and states."""
    kinds: int = 1_000
    """Maximum number of open windows. A further kind ends the oldest window."""


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
    """Rate limit with one window per kind of line. Thread-safe.

    `tell(kind, lines)` is called at the end of a window with the number of dropped lines, if there are any.
    `later(seconds, call)` schedules a call.
    """

    policy: RatePolicy
    tell: Callable[[EventKind, int], None]
    later: Callable[[float, Callable[[], None]], None]
    clock: Callable[[], float] = time.monotonic
    _windows: OrderedDict[EventKind, _Window] = field(default_factory=OrderedDict)
    _waiting: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, kind: EventKind, at_most: int) -> bool:
        """Count a line of this kind, and return whether it may be written."""
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
        """Close expired windows."""
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
    """Return a rate limit that reports dropped lines to the log and uses timer threads."""
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
    """Processor of structlog that drops lines. It runs first, so that dropped lines cost almost nothing."""

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
    """Filter for a handler of the standard library's `logging`. It drops lines of libraries."""

    rate: LogRate

    def __call__(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.CRITICAL:
            return True
        return self.rate.admits(EventKind(str(record.msg)[:200], record.name), self.rate.policy.warnings)
