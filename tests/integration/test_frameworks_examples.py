"""The examples of agent frameworks as a user runs them, beside a memory that is served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import clean_environment
from tests.support.kafka import free_port
from tests.support.served_memory import TENANT, ServedMemory

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ANSWERS = {
    "openai_agents": "assistant: You told me: Works at Stripe.",
    "langgraph": "[memory] Likes green tea",
    "llama_index": "Works at Stripe",
    "pydantic_ai": "assistant: You told me: Likes green tea.",
}


def run(name: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name / "assistant.py")],
        cwd=folder, env=clean_environment() | env, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_remembers(name: str, served: ServedMemory, tmp_path: Path) -> None:
    where = {"MEMORY_URL": served.url, "MEMORY_TOKEN": served.token}
    done = run(name, tmp_path, **where, MEMORY_TENANT=TENANT, MEMORY_USER=name)
    assert done.returncode == 0, done.stderr
    assert ANSWERS[name] in done.stdout
    assert done.stderr == ""


def test_an_example_says_that_it_has_no_token_and_that_no_memory_runs(served: ServedMemory, tmp_path: Path) -> None:
    refused = run("pydantic_ai", tmp_path, MEMORY_URL=served.url, MEMORY_TENANT=TENANT)
    assert (refused.returncode, refused.stderr.startswith("memory: "), "token" in refused.stderr) == (1, True, True)
    done = run("pydantic_ai", tmp_path, MEMORY_URL=f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, "memstream serve" in done.stderr) == (1, True)
