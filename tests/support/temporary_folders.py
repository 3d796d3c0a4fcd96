"""The folders of tests (`tmp_path`) lie in memory where the machine has enough of it, else where pytest puts them.

The tests make hundreds of stores of hundreds of files each. On a disk, half of the run's time is the file system's:
a store that takes 1 s to make there takes 0.3 s in memory. What the tests prove is the same: they kill processes, and
what a killed process has written is in the page cache, on a disk too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
LEAST = 6 << 30
"""Bytes that have to be free. The tests need less than half of it."""
PREFIX = "memstream-tests-"
ROOT = "PYTEST_DEBUG_TEMPROOT"
"""The environment variable that tells pytest where to put its folders."""


def pytest_configure(config: pytest.Config) -> None:
    """Choose the folder, in the process that the others of a run take theirs from."""
    if hasattr(config, "workerinput") or config.getoption("basetemp") or ROOT in os.environ or not _has_room():
        return
    _sweep()
    root = MEMORY / f"{PREFIX}{os.getpid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    os.environ[ROOT] = str(root)
    config.add_cleanup(lambda: os.environ.pop(ROOT, None))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind unless a test failed, whose folder somebody may want to see until the next run."""
    root = MEMORY / f"{PREFIX}{os.getpid()}"
    if not hasattr(config, "workerinput") and root.is_dir() and not any(root.glob("*/*/*")):
        shutil.rmtree(root, ignore_errors=True)


def _has_room() -> bool:
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return False
    try:
        told = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(told["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return False
    return min(available, shutil.disk_usage(MEMORY).free) >= LEAST


def _sweep() -> None:
    """Delete what runs that have ended left."""
    for folder in MEMORY.glob(f"{PREFIX}*"):
        try:
            os.kill(int(folder.name.removeprefix(PREFIX)), 0)
        except (ProcessLookupError, ValueError):
            shutil.rmtree(folder, ignore_errors=True)
        except PermissionError:
            continue
