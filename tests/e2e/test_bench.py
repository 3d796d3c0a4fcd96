"""The measurements run: with tiny numbers, so that they measure nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


def test_a_quick_run_writes_its_figures_as_json(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.run", "--quick", "--on", "embedded", "--only", "R1", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "bench.json").read_text())
    assert {"at", "cpus", "python", "load_at_start", "libraries"} <= told["machine"].keys()
    assert [(row["ratio"], row["on"]) for row in told["figures"]] == [("R1", "embedded")] * 4
    for row in told["figures"]:
        assert row["value"] > 0
        assert row["target"] == 0.97
        assert row["holds"] in (True, False)


def test_a_quick_read_of_memory_writes_its_figures_as_json(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.recall", "--quick", "--on", "embedded", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "recall.json").read_text())
    assert {(row["ratio"], row["target"]) for row in told["figures"]} == {("R4", 1.3), ("R5", 3.0), ("readers", 250)}
    assert all(row["value"] > 0 for row in told["figures"])


def test_a_quick_run_with_many_users_writes_its_figures_as_json(tmp_path: Path) -> None:
    """Users whose memory is copied go on from it: each of their turns becomes a fact."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.users", "--quick", "--on", "embedded", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "users.json").read_text())["figures"]
    assert (row["ratio"], row["on"], row["target"]) == ("R5", "embedded", 1.3)
    assert row["value"] > 0


def test_a_quick_run_of_the_console_writes_its_figures_as_json(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.console", "--facts", "20", "--rounds", "2", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "console.json").read_text())["figures"]
    assert [(row["ratio"], row["target"]) for row in figures] == [("console", 2.0)] * 3
    assert all(row["value"] > 0 for row in figures)


def test_a_quick_run_of_what_is_remembered_writes_its_figures_as_json(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "bench.quality",
            "--quick",
            "--half",
            "tune",
            "--model",
            "oracle",
            "--out",
            str(tmp_path),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "quality.json").read_text())["rows"]
    assert (row["model"], row["half"], row["dialogues"]) == ("oracle", "tune", 2)
    assert row["counts"]["facts"] > 0
    assert row["evidence_rate"] == 1.0
    assert {"precision", "recall", "stale_rate", "duplicate_rate"} <= row.keys()
    assert "| oracle | tune |" in (tmp_path / "quality.md").read_text()
