"""The conflict corpus is what it says: unique, in two halves that share nothing, of every kind enough; and its scorer
counts each fault once."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from memstream.memory.facts.conflict import Neighbours, carry_out, resolve
from memstream.memory.facts.transitions import Stamp
from memstream.memory.policies import MemoryPolicy
from memstream.schemas import ids
from memstream.schemas.observations import Category
from tests.support.conflict_corpus import (
    NOW,
    OUTCOMES,
    TUNED_ON,
    Half,
    Outcome,
    Pair,
    outcome,
    pairs,
    rows,
    score,
)

HALVES: tuple[Half, ...] = ("tune", "test")
PARTS: tuple[Half, ...] = (*HALVES, "tune_more")
KINDS = {
    "job": "changed jobs",
    "move": "moves",
    "relationship": "marriages and other ties",
    "correction": "what was never true",
    "negation": "what is denied",
    "retraction": "habits that ended",
    "multi": "additions to multi-valued attributes",
    "other-subject": "the same words about others",
    "tense": "the past and the future",
    "hedge": "hedges and plans",
    "paraphrase": "one statement in other words",
    "detail": "more and less detail",
    "number": "values and spellings of numbers",
    "order": "the same words in another order",
    "near-miss": "near, but not one statement",
    "also": "what says itself that it is added",
    "unknown-predicate": "predicates that no pack knows",
    "late": "late turns",
}
KEYS = {"id", "kind", "old", "new", "expect", "expect_hashing", "expect_dense", "also_accept", "why"}
OLD_KEYS = {"subject", "content", "category", "valid_from"}
NEW_KEYS = OLD_KEYS | {"occurred_at", "late", "is_correction"}


@pytest.mark.parametrize("half", PARTS)
def test_every_line_has_known_fields_and_values(half: Half) -> None:
    for row in rows(half):
        assert row.keys() <= KEYS, row["id"]
        assert row["old"].keys() <= OLD_KEYS, row["id"]
        assert row["new"].keys() <= NEW_KEYS, row["id"]
        expected = {row[key] for key in ("expect", "expect_hashing", "expect_dense") if key in row}
        assert set() < expected <= set(OUTCOMES), row["id"]
        assert set(row.get("also_accept", [])) <= set(OUTCOMES) - expected, row["id"]
        assert {row["old"]["category"], row["new"]["category"]} <= set(get_args(Category)), row["id"]
        assert row["why"], row["id"]


@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_every_kind_often_enough(half: Half) -> None:
    counted = Counter(row["kind"] for row in rows(half))
    assert counted.keys() == KINDS.keys()
    assert min(counted.values()) >= 8
    assert counted.total() >= 160


def test_ids_are_unique_over_all_parts() -> None:
    told = [pair.id for half in PARTS for pair in pairs(half)]
    assert len(told) == len(set(told))


def test_the_halves_share_no_statement() -> None:
    def statements(*halves: Half) -> set[str]:
        return {ids.canonical(row[side]["content"]) for half in halves for row in rows(half) for side in ("old", "new")}

    shared = len(statements(*TUNED_ON) & statements("test"))
    assert shared == 0  # which they are is not told: whoever writes rules reads the other half


@pytest.mark.parametrize("half", PARTS)
def test_late_is_what_was_told_before_the_old_one(half: Half) -> None:
    for row, pair in zip(rows(half), pairs(half), strict=True):
        assert (pair.new.told < pair.old.told) == row["new"].get("late", False), pair


def test_every_pair_can_be_put_before_the_pipeline() -> None:
    for pair in (pair for half in PARTS for pair in pairs(half)):
        assert pair.known().content == pair.old.content
        said = pair.said()
        assert (said.occurred_at, said.is_correction) == (pair.new.told, pair.new.is_correction)


def test_the_scorer_counts_right_ones_and_faults_apart() -> None:
    def always(answer: Outcome) -> dict[str, int]:
        report = score(lambda pair: answer)
        return {
            "wrong": len(report.wrong),
            "merged": len(report.false_merges),
            "superseded": len(report.false_supersedes),
            "kinds": sum(every - right for _, right, every in report.kinds),
        }

    tune = pairs("tune")
    unlike = {each: sum(each not in pair.accepted["hashing"] for pair in tune) for each in OUTCOMES}
    mergeable = sum(bool(pair.accepted["hashing"] & {"reinforce", "updated"}) for pair in tune)
    assert always("supersede") == {"wrong": (n := unlike["supersede"]), "merged": 0, "superseded": n, "kinds": n}
    assert always("updated")["merged"] == len(tune) - mergeable
    assert always("admit") == {"wrong": (n := unlike["admit"]), "merged": 0, "superseded": 0, "kinds": n}
    assert score(lambda pair: min(pair.accepted["hashing"])).right == 1


def test_an_outcome_is_read_off_the_transitions() -> None:
    def decided(pair: Pair, **neighbours: object) -> Outcome:
        policy, new = MemoryPolicy(), pair.said()
        stamp = Stamp(now=NOW, cause="new", embedder="hashing")
        found = Neighbours(**neighbours)  # type: ignore[arg-type]
        return outcome(carry_out(resolve(new, found, policy, now=NOW), new, stamp, policy))

    one = next(pair for pair in pairs("tune") if pair.kind == "job")
    late = next(pair for pair in pairs("tune") if pair.kind == "late")
    corrected = next(pair for pair in pairs("tune") if pair.kind == "correction")
    assert decided(one) == "admit"
    assert decided(one, equal=one.known()) == "reinforce"
    assert decided(one, replaced=one.known()) == "supersede"
    assert decided(late, replaced=late.known()) == "history"
    assert decided(corrected, replaced=corrected.known()) == "supersede"
