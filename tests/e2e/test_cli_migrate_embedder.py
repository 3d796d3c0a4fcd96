"""`memstream migrate-embedder` as the page "Change the embedder" has it, with a real model; and what it refuses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.cli_process import Done, InProcess, Memstream, turn, wait_for_records
from tests.support.small_model import minilm_or_skip

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "change-the-embedder.md"
CUE = ("recall", "Which employer pays her?", "--tenant", "demo", "--user", "ana", "--json")


def commands() -> list[list[str]]:
    """The command lines of the page, with the model of the tests instead of a download."""
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    model = f"fastembed:{minilm_or_skip()}"
    return [shlex.split(re.sub(r"fastembed:\S+", lambda _: model, line)) for line in lines]


@pytest.mark.long
@pytest.mark.semantic
def test_the_commands_of_the_page_change_the_embedder(tmp_path: Path) -> None:
    command = InProcess(tmp_path)
    assert command("demo").code == 0
    before = command(*CUE).records
    facts = command("show", "facts", "--tenant", "demo", "--state", "all", "--json").records
    done: list[Done] = []
    for name, *arguments in commands():
        if name == "export":
            variable, _, value = arguments[0].partition("=")
            command.environment[variable] = value
            continue
        assert name == "memstream"
        done.append(command(*arguments, *(["--json"] if arguments[0] == "migrate-embedder" else [])))
        assert done[-1].code == 0, done[-1].err
        if len(done) == 1:
            assert command(*CUE).records == before, "a dry run changes nothing"
        if len(done) == 2:
            assert command(*CUE).code == 2, "the old embedder is refused after the switch"
    counted, moved, recalled, dropped, _doctor = done
    [count], [result] = counted.records, moved.records
    assert (count["from"], count["to"]) == ("hashing", "fastembed:all-minilm-l6-v2-int8")
    assert count["facts"] == len(facts)
    assert result["read"] == result["written"] == sum(value for value in count.values() if isinstance(value, int))
    assert (result["kept"], result["not_embedded"], result["removed"]) == (0, 0, 0)
    assert recalled.out
    assert dropped.records == [{"embedder": "fastembed:all-minilm-l6-v2-int8"}]
    assert command("show", "facts", "--tenant", "demo", "--state", "all", "--json").records == facts
    assert command("demo").code == 0, "the stages run with the new embedder"


@pytest.mark.long
@pytest.mark.semantic
def test_stages_wait_until_the_change_has_ended(tmp_path: Path) -> None:
    memstream, command = Memstream(tmp_path), InProcess(tmp_path)
    model = f"fastembed:{minilm_or_skip()}"
    to = ("migrate-embedder", "--to", model, "--json")
    assert "holds no memory" in command(*to).err
    with memstream.worker("all") as worker:
        command("produce", "-", input=turn("t1", "I live in Oslo."))
        facts = wait_for_records(command, "show", "facts", "--tenant", "acme", count=1)
        refused = command(*to)
        assert (refused.code, str(worker.process.pid) in refused.err) == (2, True)
        assert worker.stop() == 0
    assert command(*to).code == 0
    new = {"MEMSTREAM_EMBEDDER": model}
    for env in ({}, new):
        waiting = memstream("worker", "all", env=env)
        assert waiting.code == 2
        assert "--drop-old or --back" in waiting.err
    assert command("migrate-embedder", "--back", "--json").records == [{"embedder": "hashing"}]
    assert command("show", "facts", "--tenant", "acme", "--json").records == facts
    with memstream.worker("all") as worker:
        command("produce", "-", input=turn("t2", "I work at Stripe."))
        wait_for_records(command, "show", "facts", "--tenant", "acme", count=2)
        assert worker.stop() == 0


@pytest.mark.parametrize(
    "arguments",
    [(), ("--back", "--drop-old"), ("--to", "hashing", "--back"), ("--to", "nonsense"), ("--to", "openai:x")],
)
def test_wrong_usage_changes_nothing(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = InProcess(tmp_path)("migrate-embedder", *arguments)
    assert done.code == 2
    assert not (tmp_path / ".memstream").exists()
