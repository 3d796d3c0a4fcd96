"""Fixtures that every test may use."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # so that tests import `tests.support.…` whichever way pytest is started

pytest_plugins = [
    "tests.support.fault_rows",
    "tests.support.kafka_fixtures",
    "tests.support.long_tests",
    "tests.support.pipeline_places",
    "tests.support.qdrant_fixtures",
    "tests.support.recall_service",
    "tests.support.temporary_folders",
]

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no failing property
hypothesis.settings.load_profile("untimed")
