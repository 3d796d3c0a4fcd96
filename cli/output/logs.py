"""Where logs go: JSON lines, or readable ones on a terminal, at a bounded rate (log_rate.py). Content of conversations
is never in them at INFO."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TextIO

import structlog

from .log_rate import LibraryLines, OurLines, log_rate


def configure(*, stream: TextIO | None = None, level: int = logging.WARNING) -> None:
    """structlog and the libraries' own loggers onto one stream (stderr unless told)."""
    target = sys.stderr if stream is None else stream
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
    # A commit that waits for a slow disk is no news: lag and readiness tell it.
    logging.getLogger("mode.timers").setLevel(logging.ERROR)


def _thread_ended(args: threading.ExceptHookArgs) -> None:
    """A line like any other instead of a printed trace: a thread of Faust's ends like this when a worker ends while
    Kafka is away, and why the worker ends stands in a line of its own."""
    log = structlog.get_logger(__name__)
    log.error("thread_ended", component=args.thread.name if args.thread is not None else "", error=repr(args.exc_value))
