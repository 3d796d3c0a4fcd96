"""The retrieval benchmark without its store: metrics to the digit, the LoCoMo reader, the choice of parameters."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.retrieval import locomo
from bench.retrieval.conversations import Conversation, NotReadable, Question
from bench.retrieval.memory import Answer
from bench.retrieval.metrics import Quality, mean, ndcg, quality, recall, reciprocal_rank
from bench.retrieval.report import rows
from bench.retrieval.variants import DEFAULT, STEPS, VARIANTS, split, tuned
from memstream.memory.policies import FusionPolicy

INVENTED = Path(__file__).parents[2] / "data" / "locomo" / "invented.json"
CONVERSATIONS = INVENTED.with_name("invented-conversations.json")
RANKED = st.lists(st.sampled_from("abcdefghijkl"), unique=True)
EVIDENCE = st.sets(st.sampled_from("abcdefghijkl"), min_size=1)


# ------------------------------------------------------------------------------------------------ metrics
def test_recall_is_the_share_of_the_evidence() -> None:
    assert recall("abcde", {"a", "e", "x"}, at=5) == pytest.approx(2 / 3)
    assert recall("abcde", {"a", "e", "x"}, at=4) == pytest.approx(1 / 3)
    assert recall("", {"a"}, at=5) == 0


def test_reciprocal_rank_is_that_of_the_first() -> None:
    assert reciprocal_rank("abc", {"b", "c"}, at=10) == 1 / 2
    assert reciprocal_rank("abcdefghijk", {"k"}, at=10) == 0
    assert reciprocal_rank("abcdefghijk", {"j"}, at=10) == 1 / 10


def test_ndcg_discounts_by_the_logarithm_of_the_place() -> None:
    assert ndcg("abc", {"a"}, at=10) == 1
    assert ndcg("abc", {"b"}, at=10) == pytest.approx(1 / math.log2(3))
    assert ndcg("abc", {"a", "c"}, at=10) == pytest.approx((1 + 1 / 2) / (1 + 1 / math.log2(3)))
    assert ndcg("abc", {"c"}, at=2) == 0
    assert ndcg("abcdefghij", set("abcdefghijklm"), at=10) == 1, "more evidence than places"


@given(RANKED, EVIDENCE)
def test_all_lie_within_0_and_1_and_all_of_it_first_is_1(ranked: list[str], evidence: set[str]) -> None:
    of = quality(ranked, evidence)
    assert all(0 <= each <= 1 for each in (of.recall_at_5, of.recall_at_10, of.mrr, of.ndcg_at_10))
    assert of.recall_at_5 <= of.recall_at_10
    best = quality([*sorted(evidence), *(each for each in ranked if each not in evidence)], evidence)
    assert (best.mrr, best.ndcg_at_10) == (1, pytest.approx(1))
    assert best.recall_at_10 == min(1, 10 / len(evidence))


def test_the_mean_is_over_questions() -> None:
    assert mean([Quality(1, 1, 0.5, 0), Quality(0, 1, 0.25, 1)]) == Quality(0.5, 1, 0.375, 0.5)


# ------------------------------------------------------------------------------------------------ reader
def written(folder: Path, *samples: Any) -> Path:
    path = folder / "samples.json"
    path.write_text(json.dumps(list(samples)), encoding="utf-8")
    return path


def sample(lines: list[dict[str, Any]], *qa: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"sample_id": "s", "conversation": {"session_1": lines, **more}, "qa": list(qa)}


LINE = {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello"}
ASKED = {"question": "Who?", "evidence": ["D1:1"], "category": 4}


def test_an_invented_file_is_read_as_it_is() -> None:
    corpus = locomo.read(INVENTED)
    first, second = corpus.conversations
    assert (first.id, len(first.sessions), first.lines, len(first.questions)) == ("invented-1", 3, 24, 9)
    assert (second.id, len(second.sessions), second.lines, len(second.questions)) == ("invented-2", 3, 21, 7)
    assert first.sessions[0].begins == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert [each.id for each in first.sessions] == ["session_1", "session_2", "session_3"]
    assert first.sessions[0].lines[4].text == (
        "Mostly bowls, and one very crooked teapot. (shares a photo of a blue teapot on a wooden table)"
    )
    assert {each.speaker for each in first.sessions[0].lines} == {"Mira", "Tobias"}
    evidence = {each.text: set(each.evidence) for each in first.questions}
    assert evidence["What has Mira made in her pottery class?"] == {"D1:5", "D2:6"}, "two in one string"
    assert evidence["What does Mira want to buy and where will it stand?"] == {"D2:8", "D3:5"}, "a colon too many"
    assert evidence["Where did Mira move?"] == {"D3:5"}, "a zero too many"
    assert evidence["How far did Tobias run along the canal?"] == {"D3:2"}, "one is cut"
    assert [each.category for each in first.questions] == [
        *("single-hop", "single-hop", "temporal", "single-hop", "multi-hop", "multi-hop"),
        *("single-hop", "open-domain", "single-hop"),
    ]
    assert corpus.skipped == {
        "adversarial questions": 1,
        "questions without evidence": 2,
        "evidence of no line": 1,
        "evidence that names no line": 1,
    }


def test_the_invented_conversations_are_all_usable() -> None:
    """The second file is for figures: nothing of it may be left out in silence."""
    corpus = locomo.read(CONVERSATIONS)
    questions = [question for each in corpus.conversations for question in each.questions]
    kinds = Counter(question.category for question in questions)
    assert len(corpus.conversations) == 10
    assert len(questions) >= 300
    assert {kind: count for kind, count in kinds.items() if count < 20} == {}, "each kind often enough to be counted"
    assert set(kinds) == {"single-hop", "multi-hop", "temporal", "open-domain"}
    assert set(corpus.skipped) == {"adversarial questions"}, "no id of evidence without its line"
    for what in (
        [question.text.casefold() for question in questions],
        [line.text for each in corpus.conversations for session in each.sessions for line in session.lines],
        [name for each in corpus.conversations for name in speakers(each)],
    ):
        assert [each for each, times in Counter(what).items() if times > 1] == []


def test_the_invented_conversations_have_many_sessions_of_two_in_the_order_of_time() -> None:
    for each in locomo.read(CONVERSATIONS).conversations:
        begins = [session.begins for session in each.sessions]
        assert len(begins) >= 8
        assert begins == sorted(set(begins)), each.id
        assert locomo.UNDATED not in begins
        assert len(speakers(each)) == 2
        said_in = {line.id: session.id for session in each.sessions for line in session.lines}
        hops = [question for question in each.questions if question.category == "multi-hop"]
        across = [hop for hop in hops if len({said_in[identity] for identity in hop.evidence}) > 1]
        assert len(across) >= 0.8 * len(hops), "multi-hop: turns of several sessions"


def speakers(conversation: Conversation) -> set[str]:
    return {line.speaker for session in conversation.sessions for line in session.lines}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"text": "Hi", "blip_caption": "a dog"}, "Hi (shares a dog)"),
        ({"text": "", "blip_caption": "a dog"}, "(shares a dog)"),
        ({"text": " Hi ", "blip_caption": None}, "Hi"),
        ({"text": "Hi", "img_url": ["x"]}, "Hi"),
    ],
)
def test_what_a_picture_shows_is_part_of_what_was_said(tmp_path: Path, line: dict[str, Any], text: str) -> None:
    corpus = locomo.read(written(tmp_path, sample([{"speaker": "Ann", "dia_id": "D1:1", **line}])))
    assert [each.text for each in corpus.conversations[0].sessions[0].lines] == [text]


def test_sessions_go_by_their_number_and_dates_alone_are_none(tmp_path: Path) -> None:
    more = {"session_10": [LINE | {"dia_id": "D10:1"}], "session_2": [LINE | {"dia_id": "D2:1"}]}
    read = locomo.read(written(tmp_path, sample([LINE], ASKED, **more, session_11_date_time="x", session_x=[LINE])))
    assert [each.id for each in read.conversations[0].sessions] == ["session_1", "session_2", "session_10"]
    assert read.conversations[0].sessions[0].begins == locomo.UNDATED


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"evidence": None}, "questions without evidence"),
        ({"evidence": []}, "questions without evidence"),
        ({"evidence": ["D"]}, "evidence that names no line"),
        ({"evidence": ["D4:2"]}, "evidence of no line"),
        ({"evidence": "nonsense"}, "evidence that names no line"),
        ({"question": " "}, "questions without words"),
        ({"question": None}, "questions without words"),
        ({"category": 5}, "adversarial questions"),
    ],
)
def test_what_cannot_be_asked_is_counted(tmp_path: Path, asked: dict[str, Any], why: str) -> None:
    corpus = locomo.read(written(tmp_path, sample([LINE], ASKED, ASKED | asked)))
    assert len(corpus.conversations[0].questions) == 1
    assert corpus.skipped[why] == 1


@pytest.mark.parametrize(
    ("evidence", "ids"),
    [
        (["D1:1", "D1:2"], {"D1:1", "D1:2"}),
        (["D1:1 D1:2 D9:9"], {"D1:1", "D1:2"}),
        (["D1:1;D1:2"], {"D1:1", "D1:2"}),
        (["D:1:2"], {"D1:2"}),
        (["d01:002"], {"D1:2"}),
        ("D1:2", {"D1:2"}),
        (["D1:1", 7, None, {}], {"D1:1"}),
    ],
)
def test_evidence_is_found_however_it_is_written(tmp_path: Path, evidence: Any, ids: set[str]) -> None:
    lines = [LINE, LINE | {"dia_id": "D1:2"}]
    corpus = locomo.read(written(tmp_path, sample(lines, ASKED | {"evidence": evidence})))
    assert corpus.conversations[0].questions[0].evidence == ids


def test_lines_without_words_or_of_an_id_that_was_there_are_counted(tmp_path: Path) -> None:
    lines = [LINE, LINE | {"text": ""}, LINE, {"speaker": "Ann", "text": "no id"}, "no line"]
    corpus = locomo.read(written(tmp_path, sample(lines)))  # type: ignore[arg-type]
    assert [each.id for each in corpus.conversations[0].sessions[0].lines] == ["D1:1", "D1:4"]
    assert corpus.skipped == {"lines without words": 2, "lines of an id that was there": 1}


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '[{"qa": []}]', '["x"]'])
def test_another_form_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(NotReadable):
        locomo.read(path)


def test_two_samples_of_one_name_would_be_one_memory(tmp_path: Path) -> None:
    with pytest.raises(NotReadable, match="several samples called s"):
        locomo.read(written(tmp_path, sample([LINE], ASKED), sample([LINE], ASKED)))


# ------------------------------------------------------------------------------------------------ parameters
def conversation(name: str) -> Conversation:
    return Conversation(name, [], [])


def test_whole_conversations_are_held_out() -> None:
    parts = split([conversation(name) for name in "abcde"])
    assert [each.id for each in parts.tuning] == ["a", "c", "e"]
    assert [each.id for each in parts.held_out] == ["b", "d"]


def test_the_best_is_kept_from_step_to_step() -> None:
    wanted = replace(DEFAULT, k=20.0, windowed=2.0, lexical=3.0, speaker=0.45)
    names = ("k", "windowed", "lexical", "speaker")
    assert tuned(lambda policy: sum(getattr(policy, name) == getattr(wanted, name) for name in names)) == wanted


def test_where_nothing_is_better_the_default_stays() -> None:
    tried: list[FusionPolicy] = []

    def score(policy: FusionPolicy) -> float:
        tried.append(policy)
        return 0.5

    assert tuned(score) == DEFAULT
    assert len(tried) == len(set(tried)) == 1 + sum(len(step) - 1 for step in STEPS)


def test_the_variants_differ_in_what_they_ask_for() -> None:
    asked = {
        name: tuple(part for part in ("dense", "windowed", "lexical", "speaker") if getattr(policy, part) > 0)
        for name, policy in VARIANTS.items()
    }
    assert asked == {
        "lexical": ("lexical",),
        "dense": ("dense",),
        "fused": ("dense", "lexical"),
        "windowed": ("dense", "windowed", "lexical"),
        "full": ("dense", "windowed", "lexical", "speaker"),
    }


def test_rows_are_over_all_and_by_category() -> None:
    answers = [
        Answer(Question("?", frozenset("a"), "multi-hop"), ("a",), 0.001),
        Answer(Question("?", frozenset("ab"), "single-hop"), ("x", "a"), 0.003),
    ]
    found = {row.category: row for row in rows("full", "held out", answers)}
    assert {name: (row.questions, row.quality.recall_at_10, row.quality.mrr) for name, row in found.items()} == {
        "all": (2, 0.75, 0.75),
        "multi-hop": (1, 1.0, 1.0),
        "single-hop": (1, 0.5, 0.5),
    }
    assert found["all"].plain()["recall_at_10"] == 0.75
    assert (found["all"].p50_ms, found["all"].p95_ms) == (pytest.approx(3), pytest.approx(3))
    assert rows("full", "held out", []) == []
