"""Commands on the embedded default: what they print, and what they end with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memstream.schemas.topics import catalogue
from tests.support.cli_process import InProcess, Memstream, turn
from tests.support.kafka import free_port


@pytest.fixture
def memstream(tmp_path: Path) -> Memstream:
    return InProcess(tmp_path)


@pytest.fixture
def process(tmp_path: Path) -> Memstream:
    """Where the process itself matters: pipes, signals."""
    return Memstream(tmp_path)


class TestTopics:
    def test_create_then_check(self, memstream: Memstream) -> None:
        missing = memstream("topics", "check", "--json")
        assert missing.code == 1
        assert {record["fix"] for record in missing.records} == {"memstream topics create"}
        made = memstream("topics", "create", "--json")
        assert made.code == 0
        assert [record["topic"] for record in made.records] == [topic.name for topic in catalogue()]
        assert all(set(record) == {"topic", "ok", "detail", "fix"} for record in made.records)
        assert memstream("topics", "check").code == 0


class TestProduce:
    def test_answers_in_order_and_tells_bad_lines_by_number(self, memstream: Memstream) -> None:
        lines = [turn("t1", "one"), "{", turn("t2", "two", session="s2"), "", turn("t3", "three"), '{"tenant_id": "a"}']
        done = memstream("produce", "-", "--json", input="\n".join(lines))
        assert done.code == 1
        assert [record["turn_id"] for record in done.records] == ["t1", "t2", "t3"]
        assert done.records[0] == {"topic": "memory.turns", "partition": 0, "offset": 0, "turn_id": "t1"}
        told = done.err.splitlines()
        assert [line.split(":")[0] for line in told] == ["line 2", "line 6"]
        assert "user_id" in told[1]

    def test_a_file_and_a_summary(self, memstream: Memstream) -> None:
        (memstream.folder / "turns.ndjson").write_text(turn("t1", "one") + "\n")
        done = memstream("produce", "turns.ndjson")
        assert (done.code, done.out) == (0, "")
        assert "1 turns written, 0 lines refused" in done.err

    def test_each_line_is_answered_while_the_pipe_stays_open(self, process: Memstream) -> None:
        with process.started("produce", "-", "--json") as running:
            assert running.stdin is not None
            assert running.stdout is not None
            for number in range(3):
                running.stdin.write(turn(f"t{number}", "hello").encode() + b"\n")
                running.stdin.flush()
                assert json.loads(running.stdout.readline())["turn_id"] == f"t{number}"

    def test_too_large_a_turn_is_told(self, memstream: Memstream) -> None:
        done = memstream("produce", "-", input=turn("t1", "x" * 300_000))
        assert done.code == 1
        assert "line 1: the turn has" in done.err

    def test_a_file_that_is_not_there(self, memstream: Memstream) -> None:
        assert memstream("produce", "nowhere").code == 2


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("nonsense",),
            ("show", "facts"),
            ("show", "facts", "--tenant", ""),
            ("show", "facts", "--tenant", "a", "--scope", "agent"),
            ("show", "turns", "--tenant", "a", "--as-of", "2026-01-01"),
            ("show", "working", "--tenant", "a", "--known-at", "2026-01-01"),
            ("show", "turns", "--tenant", "a", "--subject", "user"),
            ("show", "facts", "--tenant", "a", "--as-of", "yesterday"),
            ("worker",),
            ("worker", "painter"),
            ("worker", "all", "observer"),
            ("dlq", "list", "--topic", "memory.facts"),
            ("flush", "--tenant", "a", "--user", "u"),
            ("flush", "--tenant", "a", "--user", "u", "--session", "s", "--threshold", "1.1"),
            ("compact", "--tenant", "a", "--user", "u", "--session", "s", "--keep", "-1"),
            ("--config", "nowhere.toml", "topics", "check"),
        ],
        ids=" ".join,
    )
    def test_wrong_usage_is_exit_2(self, memstream: Memstream, arguments: tuple[str, ...]) -> None:
        done = memstream(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err

    def test_a_wrong_setting_is_named(self, memstream: Memstream) -> None:
        done = memstream("topics", "check", env={"MEMSTREAM_BROKR": "x", "MEMSTREAM_TIER": "gold"})
        assert done.code == 2
        assert "MEMSTREAM_BROKR: there is no such setting (did you mean MEMSTREAM_BROKER?)" in done.err
        assert "MEMSTREAM_TIER='gold'" in done.err

    def test_help_needs_no_settings(self, memstream: Memstream) -> None:
        done = memstream("--help", env={"MEMSTREAM_BROKR": "x"})
        assert done.code == 0
        assert "doctor" in done.out

    def test_a_server_that_is_away_is_exit_3(self, memstream: Memstream) -> None:
        done = memstream("topics", "check", env={"MEMSTREAM_BROKER": "kafka://127.0.0.1:1"})
        assert done.code == 3
        assert "MEMSTREAM_BROKER" in done.err
        done = memstream("show", "facts", "--tenant", "a", env={"MEMSTREAM_QDRANT": "http://127.0.0.1:1"})
        assert done.code == 3
        assert "MEMSTREAM_QDRANT" in done.err

    def test_a_reader_that_goes_away_gets_no_traceback(self, process: Memstream) -> None:
        with process.started("topics", "create", "--json") as running:
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.close()
            running.wait(30)
            assert running.stderr.read() == b""
            running.stdout = None


class TestEmpty:
    @pytest.mark.parametrize("what", ["facts", "episodes", "working", "turns"])
    def test_nothing_remembered_is_no_error(self, memstream: Memstream, what: str) -> None:
        memstream("topics", "create")
        done = memstream("show", what, "--tenant", "acme", "--json")
        assert (done.code, done.out) == (0, "")

    def test_watch_ends_when_idle(self, memstream: Memstream) -> None:
        memstream("topics", "create")
        done = memstream("watch", "--from-beginning", "--until-idle", "0.2", "--json")
        assert (done.code, done.out) == (0, "")

    def test_no_dead_letters(self, memstream: Memstream) -> None:
        memstream("topics", "create")
        assert memstream("dlq", "list", "--json").out == ""
        assert memstream("dlq", "show", "memory.turns", "0", "0").code == 1
        assert "no dead letters" in memstream("dlq", "list").err
        redriven = memstream("dlq", "redrive", "--json")
        assert (redriven.code, redriven.out) == (0, "")
        assert "0 put back, 0 were put back before, 0 failed" in redriven.err

    def test_a_fact_that_is_not_there(self, memstream: Memstream) -> None:
        memstream("topics", "create")
        done = memstream("trace", "no-such-fact", "--tenant", "acme")
        assert done.code == 1
        assert "no-such-fact" in done.err


class TestSessionLog:
    """The stages come with the commands; the model is the offline one."""

    WHOSE = ("--tenant", "acme", "--user", "u1", "--session", "s1")

    def test_flush_and_compact(self, memstream: Memstream) -> None:
        said = [turn("t1", "I work at Google."), turn("t2", "I love jazz.")]
        assert memstream("produce", "-", input="\n".join(said)).code == 0
        flush = memstream("flush", *self.WHOSE, "--json")
        (flushed,) = flush.records
        assert list(flushed) == ["status", "waiting", "entries", "left", "episodes"]
        assert (flush.code, flushed["status"], flushed["waiting"], flushed["left"]) == (0, "applied", 0, 0)
        assert flushed["entries"] == len(flushed["episodes"]) == 2
        compact = memstream("compact", *self.WHOSE, "--keep", "1", "--json")
        (compacted,) = compact.records
        assert list(compacted) == ["run_id", "status", "turns", "left", "episodes"]
        assert (compact.code, compacted["status"], compacted["turns"], compacted["left"]) == (0, "applied", 1, 0)
        assert [each["verdict"] for each in compacted["episodes"]] == ["applied"]
        summaries = [
            each for each in memstream("show", "episodes", "--tenant", "acme", "--json").records if each["tags"]
        ]
        assert [(each["tags"], each["turn_ids"]) for each in summaries] == [(["summary"], ["t1"])]


class TestDoctor:
    def test_all_well_embedded(self, memstream: Memstream) -> None:
        memstream("topics", "create")
        done = memstream("doctor", "--json")
        assert done.code == 0, done.out
        assert all(set(record) == {"check", "ok", "detail", "fix"} for record in done.records)
        checks = {record["check"] for record in done.records}
        assert {"settings", "broker", "topics", "qdrant", "embedder", "model", "datadir"} <= checks

    def test_the_worker_is_asked_where_it_has_a_port(self, memstream: Memstream) -> None:
        port = free_port()
        memstream("topics", "create")
        done = memstream("doctor", "--json", env={"MEMSTREAM_HEALTH_PORT": str(port)})
        details = {record["check"]: record["detail"] for record in done.records}
        assert details["worker"] == f"no worker answers at http://127.0.0.1:{port}/readyz"

    def test_what_is_wrong_has_a_fix(self, memstream: Memstream) -> None:
        done = memstream(
            "doctor",
            "--json",
            env={
                "MEMSTREAM_BROKER": "kafka://127.0.0.1:1",
                "MEMSTREAM_QDRANT": "http://127.0.0.1:1",
                "MEMSTREAM_MODEL": "gpt-5-mini",
            },
        )
        assert done.code == 1
        wrong = {record["check"]: record["fix"] for record in done.records if not record["ok"]}
        assert set(wrong) == {"broker", "qdrant", "model"}
        assert all(wrong.values())
        assert "OPENAI_API_KEY" in wrong["model"]

    def test_wrong_settings_are_a_check_that_fails(self, memstream: Memstream) -> None:
        done = memstream("doctor", "--json", env={"MEMSTREAM_TIER": "gold"})
        assert done.code == 1
        assert [record["check"] for record in done.records] == ["settings"]

    def test_secrets_are_not_printed(self, memstream: Memstream) -> None:
        done = memstream(
            "doctor",
            env={"OPENAI_API_KEY": "sk-canary", "OPENAI_BASE_URL": "http://127.0.0.1:1", "QDRANT_API_KEY": "qk-canary"},
        )
        assert "canary" not in done.out + done.err
