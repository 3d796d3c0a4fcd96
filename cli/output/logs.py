"""Configuration of logs: JSON lines, or readable lines on a terminal, with a rate limit (log_rate.py).

Lines of level INFO and above never contain content of conversations.
"""

from __future__ import annotations

import logging
import sys
import threading
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TextIO

import structlog

from ...tools.audit import AUDIT
from ..process.standard_streams import dropping
from .log_rate import LibraryLines, OurLines, log_rate


def configure(*, stream: TextIO | None = None, level: int = logging.WARNING) -> None:
    """Send structlog and the loggers of libraries to one stream, by default stderr.

    A line that cannot be written is dropped: a full disk or a closed pipe must not stop a worker.
    """
    target = dropping(sys.stderr if stream is None else stream)
    rate = log_rate()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if target.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[OurLines(rate), *shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    handler.addFilter(LibraryLines(rate))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    threading.excepthook = _thread_ended
    # Faust warns when a commit waits for a slow disk. The lag and the readiness already show a slow disk.
    logging.getLogger("mode.timers").setLevel(logging.ERROR)


class _AuditFile(WatchedFileHandler):
    """Audit file that only its owner may read. It is reopened after a log rotation has moved it."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).touch(mode=0o600)
        return super()._open()


def open_audit(target: TextIO | Path | None) -> None:
    """Send the logger `memstream.audit` as JSON lines to a stream, or to a file that only its owner may read.

    With None, the audit log stays off.
    """
    if target is None:
        return
    if isinstance(target, Path):
        handler: logging.Handler = _AuditFile(target, encoding="utf-8")
    else:
        handler = logging.StreamHandler(dropping(target))
    handler.setFormatter(logging.Formatter("%(message)s"))
    AUDIT.handlers[:] = [handler]
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = False


def _thread_ended(args: threading.ExceptHookArgs) -> None:
    """Log an uncaught exception of a thread as one line instead of a traceback.

    A thread of Faust ends with an exception when a worker stops while Kafka is unavailable. Another line reports why
    the worker stopped.
    """
    log = structlog.get_logger(__name__)
    log.error("thread_ended", component=args.thread.name if args.thread is not None else "", error=repr(args.exc_value))
