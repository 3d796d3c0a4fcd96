"""Crash points: their names, when they end the process, and that no clean-up runs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from memstream.schemas.topics import STAGES
from memstream.streams.engine.crash_points import CRASHED, STEPS, CrashPoint

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "recorder"])
@pytest.mark.parametrize("step", STEPS)
def test_every_stage_has_every_step(stage: str, step: str) -> None:
    assert CrashPoint.parse(f"{stage}:{step}", stages=STAGES) == CrashPoint(stage, step, 1)  # type: ignore[arg-type]
    assert CrashPoint.parse(f"{stage}:{step}:12", stages=STAGES).left == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "observer",
        "observer:",
        "observer:tabel",
        "nobody:table",
        "observer:table:",
        "observer:table:0",
        "observer:table:-1",
        "observer:table:x",
        "observer:table:1:2",
        "observer:table:²",
        " observer:table",
    ],
)
def test_an_unknown_crash_point_is_refused_with_the_allowed_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"<stage>:<step>\[:n\].*observer.*decide, table, store, publish, commit"):
        CrashPoint.parse(text, stages=STAGES)


def test_a_stage_without_a_table_has_no_such_point() -> None:
    with pytest.raises(ValueError, match="no table"):
        CrashPoint.parse("recorder:table", stages=STAGES)
    assert CrashPoint.parse("recorder:store", stages=STAGES).step == "store"


def test_only_its_own_step_arms_it() -> None:
    point = CrashPoint("observer", "table", 2)
    assert point.armed("observer", "table")
    assert not point.armed("observer", "store")
    assert not point.armed("reflector", "table")
    point.passed("observer", "store")
    point.passed("reflector", "table")
    assert point.left == 2


@pytest.mark.slow
def test_the_process_ends_at_the_nth_time_without_clean_up() -> None:
    script = """
        import atexit
        from memstream.streams.engine.crash_points import CrashPoint
        point = CrashPoint("observer", "table", 3)
        atexit.register(print, "cleaned up")
        try:
            for n in range(9):
                print(n, flush=True)
                point.passed("observer", "table")
        finally:
            print("finally")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (CRASHED, ["0", "1", "2"])
