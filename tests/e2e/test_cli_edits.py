"""Memory edited by hand from the command line, in a folder: facts, episodes, blocks, procedures, tasks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from memstream.cli.commands import erase as commands
from tests.support.cli_process import Done, InProcess

OF_U1 = ("--tenant", "acme", "--user", "u1")
IN_S1 = (*OF_U1, "--session", "s1")
WITHIN = 60.0


@pytest.fixture
def memstream(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, {"MEMSTREAM_DATADIR": str(tmp_path / "data")})


def done(result: Done) -> dict[str, Any]:
    assert result.code == 0, result.err
    told: dict[str, Any] = json.loads(result.out)
    return told


def rows(result: Done) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_a_fact_is_remembered_reworded_replaced_and_forgotten(memstream: InProcess) -> None:
    key = ("--idempotency-key", "k1", "--json")
    made = done(memstream("remember", "Works at Gogle", *OF_U1, "--tag", "work", *key))
    again = done(memstream("remember", "Works at Gogle", *OF_U1, "--tag", "work", *key))
    assert made == again
    fact_id, tenant = made["fact_id"], ("--tenant", "acme", "--json")
    assert done(memstream("edit", fact_id, "--content", "Works at Google", *tenant))["version"] == 2
    pinned = done(memstream("pin", f"mt_{fact_id}", "--reason", "support asked", *tenant))
    assert (pinned["version"], pinned["changed"]) == (3, True)
    assert [each["pinned_at"] is not None for each in rows(memstream("show", "facts", *OF_U1, "--json"))] == [True]
    assert "support asked" in memstream("trace", fact_id, "--tenant", "acme").out
    assert done(memstream("unpin", fact_id, *tenant))["version"] == 4
    new = done(memstream("supersede", f"mt_{fact_id}", "Works at Stripe", "--reason", "told by mail", *tenant))
    (shown,) = rows(memstream("show", "facts", *OF_U1, "--json"))
    assert (shown["fact_id"], shown["content"]) == (new["fact_id"], "Works at Stripe")
    assert "told by mail" in memstream("trace", new["fact_id"], "--tenant", "acme").out
    forgotten = memstream("forget", new["fact_id"], "--tenant", "acme").out
    assert "forgotten: yes" in forgotten
    assert "--restore" in forgotten
    assert rows(memstream("show", "facts", *OF_U1, "--json")) == []
    assert done(memstream("forget", new["fact_id"], "--restore", *tenant))["restored_fact_ids"] == [fact_id]
    (shown,) = rows(memstream("show", "facts", *OF_U1, "--json"))
    assert (shown["fact_id"], shown["content"]) == (fact_id, "Works at Google")
    assert "restored" in memstream("trace", fact_id, "--tenant", "acme").out
    assert memstream("verify").code == 0


def say(memstream: InProcess, *said: tuple[str, str]) -> None:
    """Send the turns t0, t1 …, each a session and its text, and wait for a fact of each."""
    turns = [
        {"tenant_id": "acme", "user_id": "u1", "session_id": session, "turn_id": f"t{n}",
         "messages": [{"role": "user", "content": text}]}
        for n, (session, text) in enumerate(said)
    ]  # fmt: skip
    sent = memstream("produce", "-", input="".join(json.dumps(each) + "\n" for each in turns))
    assert sent.code == 0, sent.err
    until = time.monotonic() + WITHIN
    while len(rows(memstream("show", "facts", *OF_U1, "--json"))) < len(said):
        assert time.monotonic() < until
        memstream("task", "add", "Anything", *OF_U1, "--condition", "ever")  # the stages run while it is added


def test_a_turn_is_taken_back(memstream: InProcess) -> None:
    say(memstream, ("s1", "I work at Stripe."), ("s1", "I live in Rome."))
    first = done(memstream("retract", "t0", *IN_S1, "--reason", "a joke", "--json"))
    assert (first["retracted"], first["messages"], first["entries"]) == (True, 1, 1)
    assert [each["content"] for each in rows(memstream("show", "facts", *OF_U1, "--json"))] == ["Lives in Rome"]
    assert [each["content"] for each in rows(memstream("show", "episodes", *OF_U1, "--json"))] == ["Lives in Rome"]
    assert [each["turn_id"] for each in rows(memstream("show", "turns", *OF_U1, "--json"))] == ["t1"]
    told = memstream("trace", "--turn", "t0", *IN_S1).out
    assert "taken back" in told
    assert "Stripe" not in told
    again = done(memstream("retract", "t0", *IN_S1, "--json"))
    assert (again["retracted"], again["messages"], again["entries"]) == (False, 0, 0)
    assert memstream("verify").code == 0


def test_a_session_is_taken_back(memstream: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    say(memstream, ("s1", "I work at Stripe."), ("s2", "I live in Rome."))
    counted = done(memstream("erase", *IN_S1, "--dry-run", "--json"))
    assert (counted["turns"], counted["facts"], counted["episodes"], counted["working"]) == (1, 1, 1, 1)
    first = done(memstream("erase", *IN_S1, "--json"))
    assert (first["erased"], first["messages"], first["entries"]) == (True, 1, 1)
    assert not any(done(memstream("erase", *IN_S1, "--dry-run", "--json")).values())
    for kind in ("facts", "episodes"):
        assert [each["content"] for each in rows(memstream("show", kind, *OF_U1, "--json"))] == ["Lives in Rome"]
    assert [each["turn_id"] for each in rows(memstream("show", "turns", *OF_U1, "--json"))] == ["t1"]
    traced = memstream("trace", "--turn", "t0", *IN_S1).out
    assert "the session was erased" in traced
    assert "Stripe" not in traced
    again = done(memstream("erase", *IN_S1, "--json"))
    assert (again["erased"], again["messages"], again["entries"]) == (False, 0, 0)
    assert {each["action"] for each in rows(memstream("audit", "--tenant", "acme", "--json"))} >= {"session.erase"}
    assert memstream("verify").code == 0

    async def one_is_left(*_: object, **__: object) -> dict[str, int]:
        return {"facts": 1, "turns": 0}

    monkeypatch.setattr(commands, "count_session_records", one_is_left)
    told = memstream("erase", *IN_S1)
    assert told.code == 1
    assert "records still name the session, run the command again: facts (1)" in told.err
    told = memstream("erase", "--tenant", "acme", "--session", "s1")
    assert told.code == 2
    assert "--user is missing" in told.err


def test_episodes_are_merged_and_forgotten(memstream: InProcess) -> None:
    ids = [
        done(memstream("remember", text, *OF_U1, "--episode", "--json"))["episode_id"]
        for text in ("Moved to Rome", "Took a flat in Rome")
    ]
    merged = done(memstream("merge", *ids, "--tenant", "acme", "--json"))
    assert (merged["episode_id"], merged["merged_episode_ids"]) == (ids[0], ids[1:])
    assert memstream("forget", ids[0], "--tenant", "acme", "--restore").code == 2
    assert done(memstream("forget", ids[0], "--tenant", "acme", "--json"))["changed"]


@pytest.mark.long
def test_blocks_procedures_and_tasks_stand_where_they_were_put(memstream: InProcess) -> None:
    assert "characters: 19" in memstream("block", "rethink", "Notes", "Likes short answers", *OF_U1).out
    assert done(memstream("block", "attach", "Notes", *IN_S1, "--json"))["attached"]
    assert done(memstream("block", "define", "Task", "Plan the trip", *IN_S1, "--json"))["limit"] == 2_000
    assert done(memstream("block", "replace", "Task", "trip", "journey", *IN_S1, "--json"))["value"] == (
        "Plan the journey"
    )
    steps = ("--step", "Run the tests", "--step", "Tag")
    assert done(memstream("procedure", "define", "Deploy", "--when", "now", *steps, *OF_U1, "--json"))["version"] == 1
    assert done(memstream("procedure", "activate", "Deploy", *IN_S1, "--json"))["active"]
    assert [each["name"] for each in rows(memstream("block", "list", *OF_U1, "--json"))] == ["Notes"]
    assert [each["steps"] for each in rows(memstream("procedure", "list", *OF_U1, "--json"))] == [
        ["Run the tests", "Tag"]
    ]
    due = done(memstream("task", "add", "Call the plumber", *OF_U1, "--due", "2026-01-01", "--json"))["task_id"]
    until = time.monotonic() + WITHIN
    while not (told := rows(memstream("task", "list", *OF_U1, "--state", "due", "--json"))):
        assert time.monotonic() < until
        memstream("task", "add", "Anything", *OF_U1, "--condition", "ever")  # the stages run while it is added
    assert [each["task_id"] for each in told] == [due]
    assert done(memstream("task", "done", due, *OF_U1, "--json"))["state"] == "done"


def test_a_group_shares_with_its_members(memstream: InProcess) -> None:
    fact = done(memstream("remember", "Works at Stripe", *OF_U1, "--json"))["fact_id"]
    shared = ("--member", "user:u2", "--fact", fact)
    assert done(memstream("group", "attach", "team", "--tenant", "acme", *shared, "--json"))["members"] == 1
    recall = ("recall", "--tenant", "acme", "--user", "u2", "--cue", "Stripe", "--json")
    assert [each["content"] for each in rows(memstream(*recall))] == ["Works at Stripe"]
    (listed,) = rows(memstream("group", "list", "--tenant", "acme", "--of", "user:u2", "--json"))
    assert (listed["group_id"], listed["fact_ids"]) == ("team", [fact])
    memstream("group", "detach", "team", "--tenant", "acme", "--member", "user:u2")
    assert rows(memstream(*recall)) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("remember", "Works at Stripe", "--tenant", "acme"), 2, "the owner is missing"),
        (("remember", "", *OF_U1), 2, "content"),
        (("forget", "nothing", "--tenant", "acme"), 1, "neither a fact nor an episode"),
        (("edit", "nothing", "--tenant", "acme"), 2, "nothing to change"),
        (("merge", "one", "--tenant", "acme"), 2, "two or more"),
        (("block", "replace", "Task", "x", *OF_U1), 2, "usage: memstream block replace NAME OLD NEW"),
        (("block", "append", "Task", "x", *OF_U1), 1, "there is no block 'Task'"),
        (("block", "attach", "Task", *OF_U1), 2, "needs --user and --session"),
        (("task", "add", "Call", *OF_U1), 2, "due_at or condition"),
        (("procedure", "define", "Deploy", *OF_U1), 2, "trigger"),
        (("group", "attach", "team", "--tenant", "acme", "--member", "u2"), 2, "write user:ID or agent:ID"),
        (("pin", "nothing", *IN_S1), 1, "has no entry nothing"),
        (("pin", "nothing", *IN_S1, "--reason", "x"), 2, "--reason applies to facts only"),
        (("unpin", "nothing", "--tenant", "acme"), 1, "neither a fact nor an episode"),
        (("pin", "nothing", *OF_U1), 2, "--user needs --session"),
        (("pin", "nothing", "--tenant", "acme", "--session", "s1"), 2, "--session needs --user"),
        (("retract", "t1", *OF_U1), 2, "--session"),
        (("retract", "t" * 129, *IN_S1), 2, "turn_id"),
    ],
)
def test_what_is_wrong_is_told(memstream: InProcess, arguments: tuple[str, ...], code: int, says: str) -> None:
    if code == 1:
        memstream("remember", "Likes tea", *OF_U1)
    result = memstream(*arguments)
    assert (result.code, result.out) == (code, "")
    assert says in result.err


def test_each_edit_is_in_the_audit_trail(memstream: InProcess) -> None:
    fact_id = done(memstream("remember", "Works at Google", *OF_U1, "--json"))["fact_id"]
    assert memstream("forget", fact_id, "--tenant", "acme").code == 0
    first, second = rows(memstream("audit", "--tenant", "acme", "--json"))
    assert [first["action"], second["action"]] == ["facts.remember", "facts.forget"]
    assert {each["who"].partition(":")[0] for each in (first, second)} == {"cli"}
    assert {(each["owner"]["id"], each["result"], each["fact_id"]) for each in (first, second)} == {
        ("u1", "applied", fact_id)
    }
    assert rows(memstream("audit", "--action", "facts.forget", "--limit", "1", "--json")) == [second]
    assert rows(memstream("audit", "--tenant", "rival", "--json")) == []
    assert "facts.forget" in memstream("audit", "--user", "u1").out
