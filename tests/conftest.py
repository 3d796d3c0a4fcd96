"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from memstream.tools.audit import AUDIT

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # so that tests import `tests.support.…` whichever way pytest is started

gc.disable()  # until all tests are collected: next to nothing of that is garbage

pytest_plugins = [
    "tests.support.fast_loop",
    "tests.support.fault_rows",
    "tests.support.idle_engines",
    "tests.support.kafka_fixtures",
    "tests.support.long_tests",
    "tests.support.pipeline_places",
    "tests.support.qdrant_fixtures",
    "tests.support.recall_service",
    "tests.support.served_memory",
    "tests.support.shares",
    "tests.support.temporary_folders",
]

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no failing property
hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Take modules and collected tests for permanent. Faust collects garbage whenever it closes a table, which took
    half a second each time with the objects of thousands of tests.
    """
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def log_configuration() -> Iterator[None]:
    """Restore the configuration of logs after each test: a command that runs in process changes it."""
    before = structlog.get_config() if structlog.is_configured() else None
    audit = (AUDIT.handlers[:], AUDIT.level, AUDIT.propagate)
    yield
    AUDIT.handlers[:], AUDIT.propagate = audit[0], audit[2]
    AUDIT.setLevel(audit[1])
    if before is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**before)
