"""Edits by hand in tests: sent to a stage one after the other, with their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from memstream.schemas import ids
from memstream.schemas.blocks import StoredHoldings
from memstream.schemas.commands import CommandResult, ResultError
from memstream.schemas.topics import RESULTS

from .embedded_stage import Bench
from .observer_world import SESSION, ObserverWorld
from .reflector_world import command


class Editor(ABC):
    """Sends edits. The first one has the command id `e1`."""

    def __init__(self) -> None:
        self.sent = 0

    @abstractmethod
    async def send(self, command_id: str, kind: str, args: Mapping[str, Any]) -> CommandResult: ...

    async def __call__(self, kind: str, **args: Any) -> CommandResult:
        self.sent += 1
        return await self.send(f"e{self.sent}", kind, args)

    async def done(self, kind: str, **args: Any) -> Mapping[str, Any]:
        """Return the result of an edit that is applied."""
        result = await self(kind, **args)
        assert result.status == "applied", result.error
        assert result.result is not None
        return result.result

    async def refusal(self, kind: str, **args: Any) -> ResultError:
        """Return why an edit is refused."""
        result = await self(kind, **args)
        assert result.error is not None
        return result.error

    async def refused(self, kind: str, **args: Any) -> str:
        """Return the code of a refusal."""
        return (await self.refusal(kind, **args)).code


class OwnerEditor(Editor):
    """Edits of an owner. `fields`: those of each command, by default owner and time of `command`."""

    def __init__(self, bench: Bench, **fields: Any) -> None:
        super().__init__()
        self.bench = bench
        self.fields = fields

    async def send(self, command_id: str, kind: str, args: Mapping[str, Any]) -> CommandResult:
        await self.bench.run(command(self.bench, command_id=command_id, kind=kind, args=dict(args), **self.fields))
        return self.bench.results()[-1]


class SessionEditor(Editor):
    """Edits of the session of an observer."""

    def __init__(self, world: ObserverWorld | None = None) -> None:
        super().__init__()
        self.world = world or ObserverWorld()

    async def send(self, command_id: str, kind: str, args: Mapping[str, Any]) -> CommandResult:
        await self.world.deliver(self.world.command(command_id, kind, args=dict(args)))
        return CommandResult.read(self.world.harness.on(RESULTS.name)[-1].value or b"")

    def holdings(self) -> StoredHoldings:
        point = self.world.points.of("holdings")[ids.holdings_id(ids.session_key(*SESSION))]
        return StoredHoldings.from_payload(point.payload)
