"""The README's snippet, and its cue. Its first commands are run from a fresh clone by test_tutorial.py."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.support.cli_process import Memstream
from tests.support.kafka import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text()


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
