"""`make unit` leaves slow tests out, and fails a test that starts a process or sleeps without the mark."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
MODULE = """
import multiprocessing, subprocess, sys, time
import pytest
def test_in_memory(): time.sleep(0.001)
def test_process(): subprocess.run([sys.executable, "-c", ""])
def test_child(): multiprocessing.Process(target=print).start()
def test_sleep(): time.sleep(1)
@pytest.mark.slow
def test_marked(): assert False
@pytest.fixture
def kafka_broker(): assert False
def test_broker(kafka_broker): pass
"""
SLOW_MODULE = """
import pytest
pytestmark = pytest.mark.slow
raise ValueError("imported")
"""


@pytest.mark.slow
def test_what_the_fast_loop_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # seconds
    pytester.makeconftest("from tests.support.fast_loop import *\n")
    pytester.makepyfile(
        MODULE, test_slow="import pytest\npytestmark = pytest.mark.slow\nraise ValueError('imported')\n"
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--fast")
    result.assert_outcomes(passed=1, failed=3, deselected=2)
    result.stdout.fnmatch_lines_random(
        [f"*test_{name} {what}*: mark it `slow`" for name, what in (("process", "starts"), ("sleep", "sleeps 1 s"))]
    )
