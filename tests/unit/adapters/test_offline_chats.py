"""The offline model on chats as people type them, through the conflict pipeline. One half of them tunes its rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.chat_corpus import FOLDER, chats, measured

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "corpora" / "dialogues-tune.jsonl"


async def test_what_it_believes_after_chats_that_its_rules_were_not_tuned_on() -> None:
    score, faults = await measured(chats(FOLDER / "test.jsonl"))
    assert score.precision >= 0.85, faults
    assert score.recall >= 0.6, faults


async def test_what_it_believes_after_chats_whose_faults_nobody_has_read() -> None:
    score, _ = await measured(chats(FOLDER / "unseen.jsonl"))
    assert score.precision >= 0.9, score
    assert score.recall >= 0.35, score
    assert score.never <= 1, score


async def test_what_it_believes_after_chats_that_its_rules_were_tuned_on() -> None:
    score, faults = await measured(chats(FOLDER / "tune.jsonl"))
    assert score.precision >= 0.93, faults
    assert score.recall >= 0.6, faults
    assert score.never == 0, faults


async def test_what_it_believes_after_chats_that_others_wrote() -> None:
    if not SHARED.exists():
        assert not os.environ.get("CI"), f"{SHARED} is missing"
        pytest.skip(f"{SHARED} is missing")
    score, faults = await measured(chats(SHARED))
    assert score.precision >= 0.9, faults
    assert score.recall >= 0.8, faults
    assert score.never == 0, faults


def test_each_chat_says_what_is_wanted() -> None:
    every = [chat for name in ("tune", "test", "unseen") for chat in chats(FOLDER / f"{name}.jsonl")]
    assert len({chat.id for chat in every}) == len(every) >= 40
    assert all(chat.sessions and (chat.active or chat.never) for chat in every)
