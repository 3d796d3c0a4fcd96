"""The examples for other languages: their keys are ours, as the languages themselves make them where they are here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from memstream.schemas import ids
from memstream.streams.log.partitioner import partition_for

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
KNOWN = json.loads((EXAMPLES / "keys.json").read_text())
CHECKS = {
    "node": ["node", "node/check.mjs", "keys.json"],
    "java": ["java", "java/src/main/java/SessionKey.java", "keys.json"],
    "go": ["go", "run", "-C", "go", "./keys", "../keys.json"],
}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: str(known["key"]))
def test_the_known_keys_and_partitions_are_the_contracts(known: dict[str, str]) -> None:
    key = ids.session_key(known["tenant_id"], known["user_id"], known["session_id"])
    assert (key, partition_for(key.encode(), 12)) == (known["key"], known["partition_of_12"])


@pytest.mark.parametrize("language", CHECKS)
@pytest.mark.slow
def test_a_language_makes_the_same_keys(language: str, tmp_path: Path) -> None:
    command = CHECKS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    wrong = tmp_path / "wrong.json"
    wrong.write_text((EXAMPLES / "keys.json").read_text().replace("%21", "!"))
    told = subprocess.run([*command[:-1], str(wrong)], cwd=EXAMPLES, capture_output=True, timeout=60, check=False)
    assert told.returncode == 1, "the check itself can fail"


@pytest.mark.slow
def test_the_go_producer_builds_and_its_partitions_are_the_contracts() -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    folder = EXAMPLES / "go"
    fetched = subprocess.run(["go", "mod", "download"], cwd=folder, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"the modules of the Go example cannot be fetched: {fetched.stderr[-300:]}")
    for command in (["go", "vet", "./..."], ["go", "test", "./..."]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("node/producer.mjs", ["Partitioners.DefaultPartitioner", "idempotent: true", "acks: -1", "sessionKey(turn)"]),
        ("java/src/main/java/TurnProducer.java", ['"acks", "all"', '"enable.idempotence", "true"', "SessionKey.of("]),
        ("go/main.go", ["kgo.AllISRAcks()", "kgo.StickyKeyPartitioner(nil)", "sessionkey.Of("]),
    ],
)
def test_a_producer_sets_what_the_contract_asks_for(path: str, settings: list[str]) -> None:
    text = (EXAMPLES / path).read_text()
    assert [setting for setting in settings if setting not in text] == []
    assert re.search(r"[\"']memory\.turns[\"']", text)


def test_the_chat_service_can_be_read_as_python() -> None:
    service = (EXAMPLES / "chat_service" / "service.py").read_text()
    compile(service, "service.py", "exec")
    named = set(re.findall(r"\| `?(CHAT_\w+)|`(CHAT_\w+)[=`]", (EXAMPLES / "chat_service" / "README.md").read_text()))
    told = {name for pair in named for name in pair if name}
    assert told <= set(re.findall(r'"(CHAT_\w+)"', service))
