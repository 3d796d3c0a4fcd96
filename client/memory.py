"""What a chat service holds: `async with connect("kafka://localhost:9092") as memory`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..schemas.turns import Owner
from ..streams.addresses import embedded_folder, is_embedded, kafka_servers
from ..streams.embedded_log import EmbeddedLog
from ..streams.ports import Log, Position
from .errors import translated
from .turns import LogTurns, TurnLike, Turns
from .updates import NOW, LogUpdates, Update, Updates

TIMEOUT = 10.0
"""Seconds that one call to a broker or a server may take."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Turns in, changes of facts out."""

    _turns: Turns
    _updates: Updates

    async def produce(self, turn: TurnLike) -> Position:
        """See `Turns.produce`."""
        return await self._turns.produce(turn)

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        """See `Updates.updates`."""
        return self._updates.updates(after=after, tenant_id=tenant_id, owner=owner)


@asynccontextmanager
async def connect(broker: str, *, timeout: float = TIMEOUT) -> AsyncIterator[Memory]:
    """`broker` is `kafka://host:port[,host:port]` or `embedded:///folder`."""
    with translated():
        log = _log(broker, timeout)
        await log.start()
    try:
        yield Memory(LogTurns(log=log), LogUpdates(log=log))
    finally:
        await log.close()


def _log(broker: str, timeout: float) -> Log:
    if is_embedded(broker):
        return EmbeddedLog(folder=embedded_folder(broker))
    from ..streams.kafka_log import KafkaLog  # only who uses it pays for it

    return KafkaLog(servers=kafka_servers(broker), timeout=timeout, client_id="memstream-client")
