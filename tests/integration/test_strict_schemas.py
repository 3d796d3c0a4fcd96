"""Every record that our own producers write fits the strict JSON Schema of its topic, on a folder with no server."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from docs.generate.json_schemas import FOLDER, STRICT
from memstream.schemas.topics import (
    AUDIT_TRAIL,
    COMMANDS,
    COMMANDS_SESSION,
    EPISODES_RECORDED,
    ERASURES,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    POLICIES,
    RECALLED,
    RESULTS,
    TASKS_DUE,
    TOPICS,
    TURNS,
)
from memstream.streams.log.embedded import EmbeddedLog
from tests.support.cli_process import InProcess

SCHEMA_OF = {
    TURNS.name: "turn",
    COMMANDS_SESSION.name: "command",
    OBSERVATIONS.name: "observed",
    COMMANDS.name: "command",
    EPISODES_RECORDED.name: "episodes_recorded",
    RECALLED.name: "recalled",
    FACTS_UPDATED.name: "fact_updated",
    FACTS.name: "fact",
    TASKS_DUE.name: "task_due",
    RESULTS.name: "command_result",
    POLICIES.name: "tenant_policy",
    AUDIT_TRAIL.name: "audit_record",
    ERASURES.name: "erasure_marker",
}
WITHIN = 60.0
ARGS_OF = {
    "facts.apply": "facts_apply",
    "episodes.record": "episodes_record",
    "episodes.keep": "episodes_keep",
    "flush_important": "flush_important",
    "compact": "compact",
    "tasks.add": "task_add",
    "tasks.due": "task_due_now",
}


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((FOLDER / STRICT / f"{name}.json").read_text()))


async def values_in(folder: Path) -> list[tuple[str, bytes]]:
    """Topic and value of every record in a folder's log."""
    log = EmbeddedLog(folder=folder)
    await log.start()
    values = [(name, record.value or b"null") for name in SCHEMA_OF async for record in log.read(name)]
    await log.close()
    return values


@pytest.mark.long
def test_what_our_producers_write_fits_the_strict_schemas(tmp_path: Path) -> None:
    memstream = InProcess(tmp_path, {"MEMSTREAM_DATADIR": str(tmp_path / "data")})
    of_ana = ("--tenant", "demo", "--user", "ana")
    policy = tmp_path / "policy.json"
    policy.write_text('{"personas": {"coach": {"openness": 0.9}}, "recall": {"limit": 5}}')
    for command in (
        ("demo",),
        ("task", "add", "Call the plumber", *of_ana, "--due", "2026-01-01"),
        ("policies", "set", "--tenant", "demo", str(policy)),
        ("recall", *of_ana, "--cue", "Stripe"),
        ("flush", *of_ana, "--session", "monday", "--threshold", "0"),
        ("compact", *of_ana, "--session", "monday", "--keep", "0"),
        ("erase", "--tenant", "demo", "--user", "bob"),
    ):
        done = memstream(*command)
        assert done.code == 0, (command, done.err)

    until = time.monotonic() + WITHIN
    while not memstream("task", "list", *of_ana, "--state", "due", "--json").out:
        assert time.monotonic() < until, "the task was not told"
        memstream("task", "add", "Anything", *of_ana, "--condition", "ever")  # the stages run meanwhile

    assert set(SCHEMA_OF) == {topic.name for topic in TOPICS}
    wrong: list[str] = []
    seen: dict[str, int] = defaultdict(int)
    for topic, value in asyncio.run(values_in(tmp_path / "data")):
        record = json.loads(value)
        if topic == ERASURES.name and "places" in record:
            wrong += [f"receipt: {error.message}" for error in validator("erasure_receipt").iter_errors(record)]
            continue
        wrong += [f"{topic}: {error.message}" for error in validator(SCHEMA_OF[topic]).iter_errors(record)]
        seen[topic] += 1
        if SCHEMA_OF[topic] == "command" and record["kind"] in ARGS_OF:
            args = validator(ARGS_OF[record["kind"]])
            wrong += [f"{record['kind']}: {error.message}" for error in args.iter_errors(record["args"])]
            seen[record["kind"]] += 1
    assert wrong == []
    assert set(seen) == set(SCHEMA_OF) | set(ARGS_OF), "each topic and each kind of args was seen"
