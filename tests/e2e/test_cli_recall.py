"""`memstream recall` as a user runs it: in a folder, beside a worker, and with a Qdrant over the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_process import InProcess, Memstream, turn, wait_for_records
from tests.support.qdrant import qdrant_server

FIELDS = {"tier", "id", "content", "score", "subject", "category", "parts", "archived_at"}
FACT = "I work at Stripe."
GOAL = "My goal is to run a half marathon."
SMALL = "The marathon shoes that I ordered at Stripe have not come yet."
CUE = "marathon goal Stripe"


@pytest.fixture
def command(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path)


def asked(*more: str) -> tuple[str, ...]:
    return ("recall", "--tenant", "acme", "--user", "u1", *more, "--json")


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("recall", "--tenant", "acme"),
            ("recall", "--user", "u1"),
            ("recall", "--tenant", "acme", "--user", "u1", "--limit", "0"),
            ("recall", "--tenant", "acme", "--user", "u1", "--limit", "101"),
            ("recall", "--tenant", "acme", "--user", "u1", "--known-at", "yesterday"),
            ("recall", "--tenant", "acme", "--user", "u1", "--cue", "x" * 2_001),
        ],
        ids=lambda arguments: " ".join(arguments)[:60],
    )
    def test_wrong_usage_is_exit_2(self, command: InProcess, arguments: tuple[str, ...]) -> None:
        done = command(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err

    @pytest.mark.parametrize("more", [(), ("--cue", "Stripe", "--session", "s1")], ids=["plain", "cue"])
    def test_nothing_remembered_is_no_error(self, command: InProcess, more: tuple[str, ...]) -> None:
        command("topics", "create")
        done = command(*asked(*more))
        assert (done.code, done.out) == (0, "")

    def test_a_server_that_is_away_is_exit_3(self, command: InProcess) -> None:
        done = command(*asked("--cue", "Stripe"), env={"MEMSTREAM_QDRANT": "http://127.0.0.1:1"})
        assert done.code == 3
        assert "MEMSTREAM_QDRANT" in done.err


def of_tier(items: list[dict[str, Any]], tier: str) -> list[str]:
    return [each["content"] for each in items if each["tier"] == tier]


@pytest.mark.long
def test_what_was_said_is_recalled_beside_a_worker_and_after_it(tmp_path: Path, command: InProcess) -> None:
    with Memstream(tmp_path).worker("all") as worker:
        produced = command("produce", "-", input="\n".join((turn("t1", FACT), turn("t2", GOAL), turn("t3", SMALL))))
        assert produced.code == 0
        wait_for_records(command, "show", "facts", "--tenant", "acme", count=1)
        wait_for_records(command, "show", "episodes", "--tenant", "acme", count=2)
        wait_for_records(command, "show", "turns", "--tenant", "acme", count=3)

        beside = command(*asked("--cue", CUE))
        assert beside.code == 0, beside.err
        held_to_the_contract(beside.records)
        assert of_tier(beside.records, "semantic") == ["Works at Stripe"]
        assert of_tier(beside.records, "episodic") == ["Goal is to run a half marathon"]
        assert SMALL in of_tier(beside.records, "turns")
        assert of_tier(beside.records, "working") == [], "without a session there is none"

        session = command(*asked("--session", "s1", "--limit", "2"))
        assert session.code == 0, session.err
        assert len(session.records) == 2
        assert of_tier(session.records, "turns") == [], "nothing is looked for"

        policy = tmp_path / "acme.toml"
        policy.write_text("[recall]\nlimit = 1\n[personas.scout]\nagreeableness = 0.9\n")
        assert command("policies", "set", "--tenant", "acme", str(policy)).code == 0
        assert len(command(*asked("--session", "s1")).records) == 1, "the tenant's policy says how much is wanted"
        assert len(command(*asked("--session", "s1", "--agent", "scout")).records) == 2, "its agent wants more"
        assert command("policies", "remove", "--tenant", "acme").code == 0

        for other in (("--tenant", "rival", "--user", "u1"), ("--tenant", "acme", "--user", "u2")):
            strangers = command("recall", *other, "--session", "s1", "--cue", CUE, "--json")
            assert (strangers.code, strangers.out) == (0, "")
        assert worker.stop() == 0

    after = command(*asked("--cue", CUE))
    assert after.code == 0, after.err
    assert [each["id"] for each in after.records] == [each["id"] for each in beside.records]
    told = command(*asked("--cue", CUE)[:-1])
    assert "Works at Stripe" in told.out


def test_a_reranker_that_cannot_be_had_is_wrong_usage(tmp_path: Path, command: InProcess) -> None:
    (tmp_path / "memstream.toml").write_text('[memory.recall]\nreranker = "model"\n')
    command("topics", "create")
    refused = command(*asked("--cue", "Stripe"))
    assert refused.code == 2
    assert "OPENAI_API_KEY" in refused.err


@pytest.mark.long
def test_over_the_network_without_its_embedder_words_are_found_and_it_is_said(
    tmp_path: Path, command: InProcess
) -> None:
    with qdrant_server() as qdrant:
        with Memstream(tmp_path, qdrant.environment).worker("recorder") as worker:
            remote = InProcess(tmp_path, qdrant.environment)
            assert remote("produce", "-", input=turn("t1", SMALL)).code == 0
            wait_for_records(remote, "show", "turns", "--tenant", "acme", count=1)
            done = remote(*asked("--cue", CUE))
            assert done.code == 0, done.err
            assert of_tier(done.records, "turns") == [SMALL]
            assert worker.stop() == 0
        away = {"MEMSTREAM_EMBEDDER": "openai:any", "OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:1"}
        partly = remote(*asked("--cue", CUE), env=away)
        assert partly.code == 1
        assert "missing: embedder" in partly.err
        assert of_tier(partly.records, "turns") == [SMALL]


GREATEST_SUM = 3.0
"""The divisor of scores with a cue, facts and the default weights (docs/reference/records.md)."""


def held_to_the_contract(items: list[dict[str, Any]]) -> None:
    assert all(set(each) == FIELDS for each in items)
    assert [each["score"] for each in items] == sorted((each["score"] for each in items), reverse=True)
    for each in items:
        assert each["score"] == pytest.approx(sum(each["parts"].values()) / GREATEST_SUM)
        assert (each["subject"] is None) == (each["tier"] == "turns")
