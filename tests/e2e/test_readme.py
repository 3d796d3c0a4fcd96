"""The README's commands, from a fresh clone on a machine that has Python, make and git; its snippet, and its cue."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.cli_process import Memstream
from tests.support.kafka import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text()
FIRST = re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)


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


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_the_snippet_prints_what_its_comments_say(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    memstream, port = Memstream(tmp_path), free_port()
    with memstream.started("serve", "--port", str(port)) as server:
        until = time.monotonic() + 60
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server is not ready"
            time.sleep(0.1)
        for attempt in ("the first time", "again, as a reader may"):
            done = subprocess.run(
                [sys.executable, "-c", snippet.replace("127.0.0.1:8000", f"127.0.0.1:{port}")],
                cwd=tmp_path,
                env=memstream.env(),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            first, *context = done.stdout.splitlines()
            assert first == "active Works at Stripe", attempt
            assert any("Works at Stripe" in line for line in context), "the context is not empty"


def test_the_cue_finds_the_job_first(tmp_path: Path) -> None:
    (command,) = re.findall(r"^\.venv/bin/(memstream recall .*)$", PAGE, re.MULTILINE)
    memstream = Memstream(tmp_path)
    shown = memstream("demo")
    assert shown.code == 0, shown.err
    found = memstream(*shlex.split(command)[1:], "--json")
    assert found.code == 0, found.err
    assert found.records[0]["content"] == "Works at Stripe"
