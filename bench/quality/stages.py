"""Dialogues through the real stages in this process, on a folder, with the defaults of `memstream worker all`."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import SecretStr

from memstream.adapters.ports import VectorStore
from memstream.cli.output.event_feed import nothing_left
from memstream.cli.wiring.local_stages import LocalStages, local_stages
from memstream.cli.wiring.settings import OFFLINE, Settings
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.collections import FACTS
from memstream.schemas.commands import Command
from memstream.schemas.facts import Fact, StoredFact
from memstream.schemas.front_door.turns import read_turn
from memstream.schemas.topics import COMMANDS
from memstream.schemas.turns import Owner, turn_value
from memstream.streams.log.broker_url import EMBEDDED
from memstream.streams.log.port import Log
from memstream.streams.senders.turns import TurnSender
from tests.support.model_server import ModelServer, Script
from tests.support.polling import TimedOut, at_least, wait_for

from .dialogues import Dialogue, Turn

TENANT = "quality"
WITHIN = 120.0
"""Seconds for one session of every dialogue."""
LOOK_SECONDS = 0.05
QUIET = 8
"""Consecutive checks without lag before a wave counts as done."""


class NotSettled(RuntimeError):
    """The stages were not done in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The options of a deployment. `script`: the answers of a scripted model server; None means the offline model."""

    script: Script | None = None
    embedder: str = "hashing"
    consolidated: bool = True
    """True when each person's memory is consolidated by a command at the end, as a schedule would do."""


async def remembered(talks: Sequence[Dialogue], deployment: Deployment) -> Mapping[str, list[Fact]]:
    """Return the active facts at the end, by dialogue. Sessions run one after the other, dialogues concurrently."""
    async with deployed(deployment) as ports:
        for wave in range(max(len(talk.sessions) for talk in talks)):
            await tell(ports.log, [(talk.id, talk.sessions[wave]) for talk in talks if wave < len(talk.sessions)])
        if deployment.consolidated:
            await _consolidate(ports.log, talks)
            await _settled(ports.log)
        return {talk.id: await _active(ports.store, talk.id) for talk in talks}


@asynccontextmanager
async def deployed(deployment: Deployment) -> AsyncIterator[LocalStages]:
    """Run all stages on a fresh folder."""
    async with (
        _settings(deployment) as settings,
        local_stages(settings, MemoryPolicy(), purpose="bench.quality") as ports,
    ):
        yield ports


async def tell(log: Log, sessions: Sequence[tuple[str, Sequence[Turn]]]) -> None:
    """Send one session of each person, and wait until the stages have handled them."""
    await _say(log, sessions)
    await _settled(log)


@asynccontextmanager
async def _settings(deployment: Deployment) -> AsyncIterator[Settings]:
    """Yield the settings of a fresh folder with only the model set; the environment is ignored."""
    with tempfile.TemporaryDirectory(prefix="memstream-quality-") as made, ExitStack() as stack:
        folder = Path(made)
        address = f"{EMBEDDED}{folder}"
        model: dict[str, object] = {"model": OFFLINE, "openai_api_key": None, "openai_base_url": None}
        if deployment.script is not None:
            server = stack.enter_context(ModelServer(deployment.script))
            model = {
                "model": "scripted-1",
                "openai_api_key": SecretStr("scripted"),
                "openai_base_url": server.base_url,
            }
        plain: dict[str, object] = {
            "broker": address,
            "qdrant": address,
            "datadir": folder,
            "embedder": deployment.embedder,
            "tier": "standard",
            "partitions": None,
            "health_port": 0,
            "worker_id": None,
        }
        yield Settings(datadir=folder).model_copy(update=plain | model)
        if deployment.script is not None and server.script_errors:
            raise server.script_errors[0]


async def _say(log: Log, wave: Sequence[tuple[str, Sequence[Turn]]]) -> None:
    sender = TurnSender(log, "quality")
    sent = []
    for person, turns in wave:
        for turn in turns:
            value = turn_value(
                {
                    "tenant_id": TENANT,
                    "user_id": person,
                    "session_id": turn.session_id,
                    "turn_id": turn.turn_id,
                    "occurred_at": turn.occurred_at,
                    "messages": [{"role": each.role, "content": each.content} for each in turn.messages],
                }
            )
            sent.append(sender.send(read_turn(value).turn, value))
    await asyncio.gather(*sent)


async def _consolidate(log: Log, talks: Sequence[Dialogue]) -> None:
    for talk in talks:
        command = Command(
            command_id=str(uuid.uuid4()),
            kind="consolidate",
            tenant_id=TENANT,
            owner=Owner(scope="user", id=talk.id),
            issued_by="bench.quality",
            issued_at=datetime.now(UTC),
        )
        await log.append(COMMANDS.name, key=command.key.encode(), value=command.to_bytes())


async def _settled(log: Log) -> None:
    """Wait until no stage has lag."""
    quiet = 0

    async def quiet_checks() -> int:
        nonlocal quiet
        quiet = quiet + 1 if await nothing_left(log) else 0
        return quiet

    try:
        await wait_for(
            quiet_checks, f"{QUIET} checks without lag", until=at_least(QUIET), deadline=WITHIN, pause=LOOK_SECONDS
        )
    except TimedOut as error:
        raise NotSettled(str(error)) from error


async def _active(store: VectorStore, person: str) -> list[Fact]:
    found = await store.select(FACTS, tenant_id=TENANT)
    rows = [StoredFact.from_payload(each.payload) for each in found]
    owned = [row for row in rows if row.owner.id == person and row.state == "active"]
    return [row.public() for row in sorted(owned, key=lambda row: (row.subject, row.content))]
