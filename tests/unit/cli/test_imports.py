"""A command imports what it needs: each worker process pays for its imports at each start."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys

import pytest

from memstream.adapters.hidden_package import hidden_package
from memstream.cli.process.garbage_collection import collection_paused

SHOW = """
import sys
from memstream.cli.main import cli
cli.get_command(None, "worker")
from memstream.adapters.vectors.remote import Address, remote_engine
remote_engine(Address("http://127.0.0.1:1"), seconds=1.0)
print(*sys.modules)
"""


def imported_by_a_worker() -> set[str]:
    return {*subprocess.run([sys.executable, "-c", SHOW], check=True, capture_output=True, text=True).stdout.split()}


def test_a_worker_imports_no_stage_and_no_model_before_it_is_asked_for_one() -> None:
    stages = {"agents.recorder", "agents.observer.stage", "agents.reflector.stage", "agents.consolidation.stage"}
    models = {"adapters.completions.offline", "adapters.completions.openai"}
    assert not {f"memstream.{name}" for name in stages | models} & imported_by_a_worker()


def test_a_worker_imports_no_package_of_local_models_and_no_tools_of_agents() -> None:
    imported = imported_by_a_worker()
    assert "qdrant_client" in imported
    assert not {"fastembed", "onnxruntime", "openai", "memstream.schemas.tools"} & imported


def test_a_hidden_package_can_be_imported_afterwards() -> None:
    sys.modules.pop("this", None)
    with hidden_package("this"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("this")
    assert "this" not in sys.modules
    assert importlib.import_module("this")
    with hidden_package("this"):
        assert importlib.import_module("this")


def test_garbage_collection_passes_over_what_was_imported() -> None:
    with collection_paused():
        assert not gc.isenabled()
        imported = [object() for _ in range(3)]
    try:
        assert gc.isenabled()
        assert not any(each is imported for each in gc.get_objects())  # those that the collector looks at
    finally:
        gc.unfreeze()
