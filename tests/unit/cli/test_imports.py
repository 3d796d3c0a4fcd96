"""A command imports what it needs: each worker process pays for its imports at each start."""

from __future__ import annotations

import subprocess
import sys

SHOW = """
import sys
from memstream.cli.main import cli
cli.get_command(None, "worker")
print(*sorted(name for name in sys.modules if name.startswith("memstream.")))
"""


def test_a_worker_imports_no_stage_and_no_model_before_it_is_asked_for_one() -> None:
    imported = subprocess.run([sys.executable, "-c", SHOW], check=True, capture_output=True, text=True).stdout.split()
    stages = {"agents.recorder", "agents.observer.stage", "agents.reflector.stage", "agents.consolidation.stage"}
    models = {"adapters.completions.offline", "adapters.completions.openai"}
    assert not {f"memstream.{name}" for name in stages | models} & set(imported)
