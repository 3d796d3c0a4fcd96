"""The retrieval benchmark from end to end: the real recorder, store and recall, on an invented file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.retrieval.__main__ import main

INVENTED = Path(__file__).parents[1] / "data" / "locomo" / "invented.json"


def test_an_invented_file_is_measured() -> None:
    ran = CliRunner().invoke(main, [str(INVENTED), "--embedder", "hashing", "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert (told["embedder"], told["conversations"], told["turns"]) == ("hashing", 2, 45)
    assert told["skipped"]["adversarial questions"] == 1
    assert (told["tuned_on"], told["held_out"]) == (["invented-1"], ["invented-2"])
    assert set(told["tuned"]) >= {"k", "dense", "windowed", "lexical", "speaker"}
    rows = {(row["variant"], row["part"], row["category"]): row for row in told["rows"]}
    assert {variant for variant, _, _ in rows} == {"lexical", "dense", "fused", "windowed", "full", "tuned"}
    assert {part for _, part, _ in rows} == {"held out", "all"}
    assert rows["full", "all", "all"]["questions"] == 16
    assert rows["full", "held out", "all"]["questions"] == 7
    assert rows["full", "all", "multi-hop"]["questions"] == 3
    assert rows["full", "all", "all"]["recall_at_10"] > 0.8, "of 24 lines a question's are among the first 10"
    assert rows["full", "all", "all"]["mrr"] > rows["dense", "all", "all"]["mrr"]
    assert all(0 < row["p50_ms"] <= row["p95_ms"] for row in rows.values())


def test_the_table_tells_what_was_left_out_and_chosen() -> None:
    ran = CliRunner().invoke(main, [str(INVENTED), "--embedder", "hashing"])
    assert ran.exit_code == 0, ran.output
    for told in ("2 conversations, 45 turns", "1 adversarial questions", "recall@10", "held out"):
        assert told in ran.stdout
    assert "tuned: chosen on invented-1, and measured on none of these: FusionPolicy(k=" in ran.stdout
    assert "held out: invented-2, on which nothing was chosen" in ran.stdout


def test_one_conversation_is_measured_without_choosing(tmp_path: Path) -> None:
    one = tmp_path / "one.json"
    one.write_text(json.dumps(json.loads(INVENTED.read_text())[:1]))
    ran = CliRunner().invoke(main, [str(one), "--embedder", "hashing", "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert (told["tuned"], told["tuned_on"]) == (None, [])
    assert {(row["variant"], row["part"]) for row in told["rows"]} == {
        (variant, "all") for variant in ("lexical", "dense", "fused", "windowed", "full")
    }


@pytest.mark.parametrize(
    ("content", "options", "why"),
    [
        ("[]", [], "no list of samples"),
        ('[{"conversation": {}}]', [], "no question"),
        (INVENTED.read_text(), ["--embedder", "nonsense"], "unknown"),
    ],
)
def test_what_cannot_be_measured_is_wrong_usage(tmp_path: Path, content: str, options: list[str], why: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    ran = CliRunner().invoke(main, [str(path), *options])
    assert ran.exit_code == 2
    assert why in ran.output
