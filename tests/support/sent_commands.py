"""Commands of a pipeline's tenant, appended to the log without a service in between."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from memstream.schemas.commands import Command, SessionRef
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION
from memstream.schemas.turns import Owner
from memstream.streams.log.partitioner import partition_for
from tests.support.pipeline import Pipeline


def edit(pipeline: Pipeline, kind: str, args: dict[str, Any], *, session: bool = False) -> Command:
    """Return a command about the user u1, or about the session s1 of this user."""
    return Command(
        command_id=f"{kind}-{session}",
        kind=kind,
        args=args,
        tenant_id=pipeline.tenant,
        owner=None if session else Owner(scope="user", id="u1"),
        session=SessionRef(user_id="u1", session_id="s1") if session else None,
        issued_by="test",
        issued_at=datetime.now(UTC),
    )


async def send(pipeline: Pipeline, command: Command, *, key: str | None = None) -> None:
    """Append a command to the partition of its own key; `key` is the key of the record if it is another one."""
    topic = COMMANDS_SESSION if command.session is not None else COMMANDS
    partitions = await pipeline.log.partitions(topic.name)
    assert partitions is not None
    await pipeline.log.append(
        topic.name,
        key=(key or command.key).encode(),
        value=command.to_bytes(),
        partition=partition_for(command.key.encode(), partitions),
    )
