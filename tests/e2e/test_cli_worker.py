"""A worker and the commands beside it, on the embedded default: the lock, the loopback, the end; and the demo."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.support.cli_process import InProcess, Memstream, turn, wait_for_records
from tests.support.model_server import ModelServer


@pytest.fixture
def memstream(tmp_path: Path) -> Memstream:
    return Memstream(tmp_path)


@pytest.fixture
def command(tmp_path: Path) -> InProcess:
    """For the commands beside a worker."""
    return InProcess(tmp_path)


@pytest.mark.long
def test_a_worker_and_commands_beside_it(memstream: Memstream, command: InProcess) -> None:
    with memstream.worker("all") as worker:
        assert worker.get("/livez")[0] == 200
        ready = json.loads(worker.get("/readyz")[1])
        assert set(ready["parts"]) == {"recorder", "observer", "reflector", "consolidation", "qdrant", "disk"}

        lines = [turn("t1", "I work at Google."), turn("t2", "Guess what, I left Google. I now work at Stripe.")]
        produced = command("produce", "-", "--json", input="\n".join(lines))
        assert (produced.code, len(produced.records)) == (0, 2)

        seen = command("watch", "--tenant", "acme", "--from-beginning", "--until-idle", "4", "--json").records
        assert [(each["action"], each["fact"]["content"]) for each in seen] == [
            ("new", "Works at Google"),
            ("superseded", "Works at Google"),
            ("new", "Works at Stripe"),
        ]
        assert command("watch", "--tenant", "other", "--from-beginning", "--until-idle", "0.5", "--json").out == ""

        (fact,) = command("show", "facts", "--tenant", "acme", "--user", "u1", "--json").records
        assert (fact["content"], fact["version"]) == ("Works at Stripe", 1)
        every = command("show", "facts", "--tenant", "acme", "--state", "all", "--json").records
        assert [each["content"] for each in every] == ["Works at Google", "Works at Stripe"]
        assert command("show", "facts", "--tenant", "other", "--state", "all", "--json").out == ""
        at = fact["valid_from"]
        (then,) = command("show", "facts", "--tenant", "acme", "--as-of", at, "--json").records
        assert then["content"] == "Works at Stripe", "validity is half-open"

        messages = wait_for_records(command, "show", "turns", "--tenant", "acme", count=2)
        assert [each["turn_id"] for each in messages] == ["t1", "t2"]
        assert [
            each["content"] for each in command("show", "turns", "--tenant", "acme", "--limit", "1", "--json").records
        ] == ["Guess what, I left Google. I now work at Stripe."]
        (entry,) = command("show", "working", "--tenant", "acme", "--session", "s1", "--json").records
        assert entry["content"] == "Works at Stripe"
        assert len(command("show", "episodes", "--tenant", "acme", "--json").records) == 2

        (chain,) = command("trace", every[0]["fact_id"], "--tenant", "acme", "--json").records
        assert list(chain) == ["fact", "versions", "decisions", "observations", "turns"]
        assert [each["action"] for each in chain["decisions"]] == ["new", "superseded"]
        assert {each["turn_id"] for each in chain["turns"]} == {"t1", "t2"}

        (run,) = command("consolidate", "--tenant", "acme", "--user", "u1", "--json").records
        assert list(run) == ["run_id", "status", "episodes", "changes"]
        assert (run["status"], run["episodes"]) == ("applied", 2)

        assert worker.process.poll() is None, worker.log.read_text()[-3000:]
        refused = command("rebuild", "facts")
        assert refused.code == 2
        assert str(worker.process.pid) in refused.err
        assert worker.get("/metrics")[1].count("memstream_events_done_total") > 1
        assert command("doctor").code == 0
        assert worker.stop() == 0
    assert command("show", "facts", "--tenant", "acme", "--json").records == [fact]


@pytest.mark.long
def test_a_second_worker_waits_and_names_the_first(memstream: Memstream) -> None:
    with memstream.worker("recorder") as worker:
        began = time.monotonic()
        second = memstream("worker", "observer")
        assert second.code == 2
        assert 9 < time.monotonic() - began < 30
        assert f"pid {worker.process.pid}" in second.err
        worker.process.kill()
    with memstream.worker("recorder") as again:  # kill -9 frees the folder
        assert again.stop() == 0


def test_dead_letters_are_listed_and_shown(memstream: Memstream, command: InProcess) -> None:
    from memstream.streams.log.embedded import EmbeddedLog

    async def put(value: bytes) -> None:
        log = EmbeddedLog(folder=memstream.folder / ".memstream")
        await log.start()
        await log.append("memory.turns", key=b"acme/u1/s1", value=value)
        await log.close()

    import asyncio

    assert command("topics", "create").code == 0
    asyncio.run(put(b"\xffnot JSON"))
    with memstream.worker("observer") as worker:
        (letter,) = wait_for_records(command, "dlq", "list", count=1)
        assert worker.stop() == 0
    assert (letter["reason"], letter["stage"], letter["original_topic"]) == ("undecodable", "observer", "memory.turns")
    place = (letter["topic"], str(letter["partition"]), str(letter["offset"]))
    (whole,) = command("dlq", "show", *place, "--json").records
    assert whole["value_base64"] == "/25vdCBKU09O"
    assert whole["key"] == "acme/u1/s1"
    assert ["memstream-reason", "undecodable"] in whole["headers"]


@pytest.mark.long
def test_lost_facts_stop_the_worker_and_come_back(memstream: Memstream, command: InProcess) -> None:
    import shutil

    with memstream.worker("all") as worker:
        command("produce", "-", input=turn("t1", "I live in Oslo."))
        before = wait_for_records(command, "show", "facts", "--tenant", "acme", count=1)
        assert worker.stop() == 0
    shutil.rmtree(next((memstream.folder / ".memstream" / "qdrant").glob("facts__*")))
    stopped = memstream("worker", "all")
    assert stopped.code == 4
    assert "memstream rebuild facts" in stopped.err
    rebuilt = command("rebuild", "facts", "--json")
    assert rebuilt.code == 0
    assert rebuilt.records[0]["written"] == 1
    assert command("show", "facts", "--tenant", "acme", "--json").records == before


def test_a_health_port_that_is_taken_is_a_wrong_setting(memstream: Memstream) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = memstream("worker", "recorder", env={"MEMSTREAM_HEALTH_PORT": port})
    assert done.code == 2
    assert f"MEMSTREAM_HEALTH_PORT={port}" in done.err


@pytest.mark.long
def test_an_embedder_of_another_collection_is_refused(memstream: Memstream) -> None:
    with memstream.worker("recorder") as worker:
        assert worker.stop() == 0
    with ModelServer() as model:
        env = {"MEMSTREAM_EMBEDDER": "openai:other", "OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": model.base_url}
        done = memstream("worker", "recorder", env=env)
    assert done.code == 2
    assert "MEMSTREAM_EMBEDDER=hashing" in done.err


class TestDemo:
    @pytest.mark.long
    def test_the_first_run_and_the_later_ones(self, memstream: Memstream, command: InProcess) -> None:
        first = memstream("demo", timeout=100)
        assert first.code == 0, first.err
        for part in (
            "offline",
            "nothing worth remembering",
            "replaced",
            "corrected",
            "Works at Stripe",
            "tom: Lives in Vienna",
            "Working set of monday",
            "superseded v2",
            "What next",
        ):
            assert part in first.out
        facts = command("show", "facts", "--tenant", "demo", "--json").records
        contents = {fact["content"] for fact in facts}
        assert {"Works at Stripe", "Lives in Potsdam", "Name is Ana"} <= contents
        assert not contents & {"Works at Google", "Lives in Berlin"}

        second = memstream("demo", timeout=100)
        assert second.code == 0
        assert "Remembered from before" in second.out
        assert command("show", "facts", "--tenant", "demo", "--json").records == facts, "told twice is told once"

    @pytest.mark.long
    def test_chat_goes_on_from_there(self, memstream: Memstream) -> None:
        done = memstream("chat", input="I love chess.\nHello!\n")
        assert done.code == 0, done.err
        assert "learnt      Loves chess" in done.out
        assert "nothing learnt: not understood" in done.out
        again = memstream("chat", input="")
        assert "Memory knows about ana" in again.out

    @pytest.mark.long
    def test_chat_ends_at_ctrl_c_while_it_waits_for_a_line(self, memstream: Memstream) -> None:
        with memstream.started("chat") as running:
            assert running.stdout is not None
            while b"Ctrl-D ends" not in (line := running.stdout.readline()):
                assert line, "it ended before it was ready"
            running.send_signal(signal.SIGINT)
            running.wait(30)
        with memstream.worker("recorder") as worker:  # and it gave the folder back
            assert worker.stop() == 0

    def test_its_sentences_are_not_those_of_the_rules(self) -> None:
        from memstream.cli.output.demo_conversation import CONVERSATION

        known = (Path(__file__).resolve().parents[1] / "data" / "offline.jsonl").read_text()
        assert not [said.text for said in CONVERSATION if said.text in known]
