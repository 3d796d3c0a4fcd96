"""Which reranker and which chooser the policy means, and what is said when they cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstream.adapters.rerankers.cross_encoder import CrossEncoder
from memstream.adapters.rerankers.late_interaction import LateInteraction
from memstream.cli.errors import CommandFailed
from memstream.cli.wiring.ports import NoUsage
from memstream.cli.wiring.reranker import new_reranker, new_selector
from memstream.cli.wiring.settings import Settings
from memstream.memory.policies import MemoryPolicy, ModelsPolicy, RecallPolicy, RecallToolPolicy
from memstream.recall.llm_reranker import LlmReranker
from tests.support import tiny_cross_encoder


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MEMSTREAM_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_rrf_is_nobody() -> None:
    assert new_reranker(Settings(), MemoryPolicy(), sink=NoUsage()) is None


def test_a_cross_encoder_of_a_folder(tmp_path: Path) -> None:
    folder = str(tiny_cross_encoder.make(tmp_path, words=["work"]))
    policy = MemoryPolicy(recall=RecallPolicy(reranker="cross-encoder", cross_encoder=folder))
    assert isinstance(new_reranker(Settings(), policy, sink=NoUsage()), CrossEncoder)


def test_late_interaction_of_a_folder(tmp_path: Path) -> None:
    folder = tiny_cross_encoder.make(tmp_path, words=["work"])
    (folder / "config.json").write_text('{"hidden_size": 1}')
    policy = MemoryPolicy(recall=RecallPolicy(reranker="late", late_encoder=str(folder)))
    assert isinstance(new_reranker(Settings(), policy, sink=NoUsage()), LateInteraction)


def test_a_cross_encoder_that_nobody_knows_is_wrong_usage() -> None:
    policy = MemoryPolicy(recall=RecallPolicy(reranker="cross-encoder", cross_encoder="no/such-model"))
    with pytest.raises(CommandFailed, match="no/such-model"):
        new_reranker(Settings(), policy, sink=NoUsage())


async def test_the_model_judges_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = MemoryPolicy(recall=RecallPolicy(reranker="model"))
    with pytest.raises(CommandFailed, match="set OPENAI_API_KEY or MEMSTREAM_MODEL"):
        new_reranker(Settings(), policy, sink=NoUsage())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    judge = new_reranker(Settings(), policy, sink=NoUsage())
    assert isinstance(judge, LlmReranker)
    await judge.close()


async def test_the_model_chooses_for_the_tool_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert new_selector(Settings(), MemoryPolicy(), sink=NoUsage()) is None
    chosen = MemoryPolicy(recall=RecallPolicy(tool=RecallToolPolicy(strategy="model")))
    with pytest.raises(CommandFailed, match=r"memory\.recall\.tool\.strategy .* set OPENAI_API_KEY or MEMSTREAM_MODEL"):
        new_selector(Settings(), chosen, sink=NoUsage())
    assert new_reranker(Settings(), chosen, sink=NoUsage()) is None, "the other reads stay ranked"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    selector = new_selector(Settings(), chosen, sink=NoUsage())
    assert isinstance(selector, LlmReranker)
    await selector.close()
    offline = MemoryPolicy(recall=chosen.recall, models=ModelsPolicy(selection="offline"))
    with pytest.raises(CommandFailed, match="needs a model"):
        new_selector(Settings(), offline, sink=NoUsage())
