"""A command imports what it needs: each worker process pays for its imports at each start."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys

import pytest
from pydantic import BaseModel

from memstream.adapters.lean_imports import deferred_models, hidden_package
from memstream.cli.process.garbage_collection import collection_paused

pytestmark = pytest.mark.slow

SHOW = """
import sys
from memstream.cli.main import cli
cli.get_command(None, "worker")
from memstream.adapters.vectors.server.remote import Address
from memstream.adapters.vectors.server.server_engine import remote_engine
remote_engine(Address("http://127.0.0.1:1"), seconds=1.0)
{more}
print(*sys.modules)
"""
WITH_A_MODEL = """
from memstream.adapters.completions.factory import create_completions
create_completions(
    model="m", api_key="k", base_url="http://127.0.0.1:1", timeout=1.0, concurrency=1, sink=None, models=None
)
"""
READS_WITH_A_MODEL = """
from memstream.cli.wiring.reranker import new_selector
from memstream.cli.wiring.settings import Settings
from memstream.memory.policies import MemoryPolicy, RecallPolicy
from memstream.memory.policies.recall import RecallToolPolicy
policy = MemoryPolicy(recall=RecallPolicy(tool=RecallToolPolicy(strategy="model")))
new_selector(Settings(model="m", OPENAI_BASE_URL="http://127.0.0.1:1"), policy, sink=None)
"""
INCOMPLETE = """
from qdrant_client.http.models import models
made = [each for each in vars(models).values() if isinstance(each, type) and hasattr(each, "model_fields")]
assert sum(each.__pydantic_complete__ for each in made) < len(made) / 2
assert models.QueryRequest(filter=models.Filter(must=[]), limit=1).model_dump(exclude_unset=True)
assert models.QueryRequest.__pydantic_complete__
"""


def imported_by_a_worker(more: str = "") -> set[str]:
    program = SHOW.format(more=more)
    return {*subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()}


def test_a_worker_imports_no_stage_and_no_model_before_it_is_asked_for_one() -> None:
    stages = {"agents.recorder.stage", "agents.observer.stage", "agents.reflector.stage", "agents.consolidation.stage"}
    models = {"adapters.completions.offline", "adapters.completions.openai"}
    assert not {f"memstream.{name}" for name in stages | models} & imported_by_a_worker()


def test_a_worker_imports_no_package_of_local_models_and_no_tools_of_agents() -> None:
    imported = imported_by_a_worker()
    assert "qdrant_client" in imported
    assert not {"fastembed", "onnxruntime", "openai", "memstream.schemas.tools"} & imported


def test_the_openai_client_is_imported_by_the_first_call_of_a_model() -> None:
    imported = imported_by_a_worker(WITH_A_MODEL)
    assert "memstream.adapters.completions.openai" in imported
    assert "openai" not in imported


def test_a_read_that_asks_a_model_does_not_wait_for_its_client_to_be_imported() -> None:
    assert "openai" in imported_by_a_worker(READS_WITH_A_MODEL)


def test_models_of_the_qdrant_client_are_completed_at_their_first_use() -> None:
    assert imported_by_a_worker(INCOMPLETE)


def test_only_the_models_of_the_named_package_are_deferred() -> None:
    class Theirs(BaseModel):
        other: Later

    class Ours(BaseModel):
        other: Later

    class Later(BaseModel):
        number: int

    Theirs.__module__ = "their_package.models"
    before = BaseModel.__dict__["model_rebuild"]
    with deferred_models("their_package"):
        Theirs.model_rebuild()
        Ours.model_rebuild()
        assert Ours.__pydantic_complete__
        assert not Theirs.__pydantic_complete__
    assert BaseModel.__dict__["model_rebuild"] is before
    assert Theirs.model_validate({"other": {"number": 1}}).other.number == 1


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
        gc.collect()
        gc.freeze()  # as before: modules and collected tests
