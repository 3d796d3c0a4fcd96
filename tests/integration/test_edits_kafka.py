"""Edits on a real broker while every worker dies in the middle of them, and each command is sent twice: one effect, one
result, and each due task is told once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.prospective import TaskDue
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION, RESULTS, TASKS_DUE
from memstream.schemas.turns import Owner
from tests.support.pipeline import CRASHED, Pipeline, running, wait_for
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(240)]
USERS = tuple(f"u{n}" for n in range(6))
LINES = 4
"""Lines that are appended to each block, one command each."""


def edits(pipeline: Pipeline, user: str) -> list[Command]:
    """What is sent about one user: blocks of the session and of the owner, facts, tasks due soon, procedures."""
    due = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    session: list[tuple[str, dict[str, Any]]] = [("blocks.rethink", {"name": "Task", "value": "begin"})]
    session += [("blocks.append", {"name": "Task", "text": f"line {n}"}) for n in range(LINES)]
    session += [("working.add", {"content": "The deploy is on Friday", "pinned": True})]
    owner: list[tuple[str, dict[str, Any]]] = [("blocks.rethink", {"name": "Notes", "value": "begin"})]
    owner += [("blocks.append", {"name": "Notes", "text": f"line {n}"}) for n in range(LINES)]
    owner += [("facts.remember", {"content": "Works at Google"}), ("facts.remember", {"content": "Works at Stripe"})]
    owner += [("tasks.add", {"content": f"Call number {n}", "due_at": due}) for n in range(2)]
    owner += [("procedures.define", {"name": "Deploy", "trigger": "now", "steps": [f"step {n}"]}) for n in range(3)]
    whose = {"tenant_id": pipeline.tenant, "issued_by": "test", "issued_at": datetime.now(UTC)}
    about = SessionRef(user_id=user, session_id="s1")
    return [
        Command(command_id=f"{pipeline.tenant}-{user}-s{n}", kind=kind, args=args, session=about, **whose)
        for n, (kind, args) in enumerate(session)
    ] + [
        Command(
            command_id=f"{pipeline.tenant}-{user}-o{n}",
            kind=kind,
            args=args,
            owner=Owner(scope="user", id=user),
            **whose,
        )
        for n, (kind, args) in enumerate(owner)
    ]


async def send(pipeline: Pipeline, commands: Sequence[Command]) -> None:
    for each in commands:
        topic = COMMANDS if each.session is None else COMMANDS_SESSION
        await pipeline.log.append(topic.name, key=each.key.encode(), value=each.to_bytes())


async def results(pipeline: Pipeline) -> dict[str, set[bytes]]:
    """The results of this tenant's commands, by command."""
    found: dict[str, set[bytes]] = defaultdict(set)
    for record in await pipeline.records(RESULTS.name):
        result = CommandResult.read(record.value or b"")
        if result.command_id.startswith(pipeline.tenant):
            found[result.command_id].add(record.value or b"")
    return found


async def told(pipeline: Pipeline) -> list[TaskDue]:
    events = [TaskDue.read(record.value or b"") for record in await pipeline.records(TASKS_DUE.name)]
    return [event for event in events if event.task.tenant_id == pipeline.tenant]


async def test_edits_have_one_effect_though_every_worker_dies_in_the_middle(on_kafka: Place) -> None:
    async with running(on_kafka.pipeline()) as pipeline:
        commands = [command for user in USERS for command in edits(pipeline, user)]
        await send(pipeline, commands)
        dying = [
            pipeline.spawn(stage, MEMSTREAM_CRASH_POINT=f"{stage}:{point}")
            for stage, point in (("observer", "table:10"), ("reflector", "store:25"), ("consolidation", "publish:7"))
        ]
        await wait_for(lambda: all(each.poll() is not None for each in dying), "the death of all workers", deadline=90)
        assert [each.returncode for each in dying] == [CRASHED] * len(dying)
        await send(pipeline, commands)
        for stage in ("observer", "reflector", "consolidation"):
            pipeline.spawn(stage)

        async def complete() -> bool:
            return len(await results(pipeline)) == len(commands) and len(await told(pipeline)) >= 2 * len(USERS)

        await wait_for(complete, "every result and every task", deadline=90, detail=pipeline.logs)
        await pipeline.settled("observer", "reflector", "consolidation", deadline=90)

        for command_id, answers in (await results(pipeline)).items():
            assert len(answers) == 1, f"{command_id}: {answers}"
            (answer,) = answers
            assert CommandResult.read(answer).status == "applied", answer
        assert len({event.event_id for event in await told(pipeline)}) == 2 * len(USERS)
        expected = "\n".join(["begin", *(f"line {n}" for n in range(LINES))])
        for user in USERS:
            whose = ("--tenant", pipeline.tenant, "--user", user)
            blocks, tasks, procedures, facts, working = pipeline.several(
                ["block", "list", *whose],
                ["task", "list", *whose, "--state", "due"],
                ["procedure", "list", *whose],
                ["show", "facts", *whose],
                ["show", "working", *whose],
            )
            assert [(each["value"], each["version"]) for each in blocks] == [(expected, 1 + LINES)]
            assert len(tasks) == 2
            assert [(each["steps"], each["version"]) for each in procedures] == [(["step 2"], 3)]
            assert [each["content"] for each in facts] == ["Works at Stripe"]
            assert [each["content"] for each in working] == ["The deploy is on Friday"]
        assert await pipeline.dead_letters(COMMANDS.name) == []
        assert await pipeline.dead_letters(COMMANDS_SESSION.name) == []
        pipeline.stop()
