"""The lines of the audit trail, in a test."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memstream.tools.audit import AUDIT


@contextmanager
def audit_lines() -> Iterator[list[dict[str, Any]]]:
    """Collect what the logger writes inside the block, whatever an earlier command of this process set up."""
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(record.getMessage()))

    before = (AUDIT.handlers[:], AUDIT.level, AUDIT.propagate)
    AUDIT.handlers[:] = [Keep()]
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = False
    try:
        yield lines
    finally:
        AUDIT.handlers[:], AUDIT.propagate = before[0], before[2]
        AUDIT.setLevel(before[1])
