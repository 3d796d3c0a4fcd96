"""The README's own commands, from a fresh clone, on a machine that has Python, make and git and nothing of ours."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST = re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def run(folder: Path, *command: str, input: str = "") -> str:
    dropped = ("MEMSTREAM_", "OPENAI_", "QDRANT_", "VIRTUAL_ENV", "PYTHONPATH", "MAKE", "CI")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        command, cwd=folder, env=env, input=input, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_two_commands(tmp_path: Path) -> None:
    clone, *_ = FIRST[0].splitlines()
    make = FIRST[0].splitlines()[1]
    assert (clone, make) == ("git clone <this repository> && cd memstream", "make demo")
    folder = tmp_path / "memstream"
    run(tmp_path, "git", "clone", "--quiet", str(ROOT), str(folder))
    out = run(folder, *make.split())
    for part in ("learnt", "replaced", "corrected", "nothing worth remembering", "What next"):
        assert part in out
    chat = FIRST[1].strip()
    assert chat == ".venv/bin/memstream chat"
    assert chat in out, "the demo ends with what the README says next"
    talked = run(folder, *chat.split(), input="My favourite colour is teal.\n")
    assert "It remembers of ana" in talked
    assert run(folder, "git", "status", "--short") == "", "what it makes is ignored by git"
