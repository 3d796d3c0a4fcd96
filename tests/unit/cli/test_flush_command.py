"""`memstream flush`: when the command is sent, and what it waits for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memstream.cli.wiring import command_runs
from memstream.cli.wiring.local_stages import LocalStages
from memstream.cli.wiring.settings import Settings
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.topics import AUDIT_TRAIL, COMMANDS_SESSION, RESULTS, TURNS
from memstream.streams.log.port import Position, Record
from tests.support.record_builders import NOW


class FakeLog:
    """memory.turns ends at 5; the observer's commits come one after the other. The reflector is heard of before the
    observer."""

    def __init__(self, *commits: int | None, members: int = 1) -> None:
        self.commits = list(commits)
        self.present = members
        self.sent: list[tuple[str, Command, int]] = []
        """Topic, command, and how many commits were not looked at yet."""

    async def partitions(self, topic: str) -> int:
        return 1

    async def ends(self, topic: str) -> tuple[int, ...]:
        return (5,) if topic == TURNS.name else (0,)

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        assert (group, topic) == ("memory-observer", TURNS.name)
        return (self.commits.pop(0),)

    async def members(self, group: str) -> int:
        return self.present

    async def append(self, topic: str, *, key: bytes, value: bytes, headers: Any) -> None:
        if topic != AUDIT_TRAIL.name:
            self.sent.append((topic, Command.read(value), len(self.commits)))

    async def read(self, topic: str, *, start: dict[int, int], follow: bool) -> AsyncGenerator[Record]:
        assert topic == RESULTS.name
        (_, command, _), *_ = self.sent
        episodes: list[Any] = [{"episode_id": "e1", "verdict": "applied"}]
        told: dict[str, Any] = {"waiting": 0, "entries": 1, "left": 0, "command_ids": ["k1"]}
        for n, (command_id, result) in enumerate([("k1", {"episodes": episodes}), (command.command_id, told)]):
            value = CommandResult(command_id=command_id, status="applied", result=result, at=NOW).to_bytes()
            yield Record(Position(RESULTS.name, 0, n), None, value)


@pytest.fixture
def flush(monkeypatch: pytest.MonkeyPatch) -> Any:
    async def asked(log: FakeLog) -> command_runs.CommandRun:
        @asynccontextmanager
        async def beside(*_: Any, **__: Any) -> AsyncIterator[LocalStages]:
            yield LocalStages(log=cast(Any, log), store=cast(Any, None), model="")

        monkeypatch.setattr(command_runs, "local_stages", beside)
        monkeypatch.setattr(command_runs, "LOOK_SECONDS", 0)
        session = SessionRef(user_id="u1", session_id="s1")
        return await command_runs.flushed(
            cast(Settings, SimpleNamespace(audit_log=None)), MemoryPolicy(), tenant="acme", session=session, args={}
        )

    return asked


@pytest.mark.parametrize("commits", [(5,), (None, 3, 4, 5), (7,)])
async def test_a_flush_is_sent_when_the_turns_that_are_there_were_read(flush: Any, commits: tuple[int]) -> None:
    log = FakeLog(*commits)
    done = await flush(log)
    ((topic, command, not_looked_at),) = log.sent
    assert (topic, command.kind, command.key, not_looked_at) == (
        COMMANDS_SESSION.name,
        "flush_important",
        "acme/u1/s1",
        0,
    )
    assert (done.status, done.complete, done.counts["entries"]) == ("applied", True, 1)
    assert done.session_payload("waiting") == {
        "status": "applied",
        "waiting": 0,
        "episodes": [{"episode_id": "e1", "verdict": "applied"}],
    }


async def test_where_no_observer_runs_nothing_is_waited_for(flush: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = FakeLog(members=0)
    await flush(log)
    assert len(log.sent) == 1
    assert "no observer worker is running" in capsys.readouterr().err
