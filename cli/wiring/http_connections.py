"""Connections of the HTTP server: a deadline for a request's headers, and limits on the number of connections.

At a limit, the server closes the connection that has waited longest for a request. It prefers a connection of the same
address as the new connection. So silent clients cannot lock out others, and a health probe can always connect.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from functools import partial
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ...api.limits import Limits

RESERVED_FILES = 256
"""Open files for other purposes than client connections: the log, Qdrant, the model's server, tables."""
FEWEST = 64


class ConnectionTable:
    """Open connections of a server with their limits. `_waiting` contains the connections that wait for a request, the
    longest wait first."""

    def __init__(self, limits: Limits) -> None:
        self.header_seconds = limits.header_seconds
        self._most = limits.connections
        self._most_of_address = limits.connections_per_address
        self._open: Counter[str] = Counter()
        self._waiting: dict[BoundedProtocol, None] = {}

    def enter(self, connection: BoundedProtocol) -> None:
        """Add a connection. If it exceeds a limit, close the connection that has waited longest."""
        address = connection.address
        self._open[address] += 1
        self._waiting[connection] = None
        if self._open[address] > self._most_of_address:
            self._close_one(address)
        elif self._open.total() > self._most and not self._close_one(address):
            self._close_one(None)

    def leave(self, connection: BoundedProtocol) -> None:
        self._waiting.pop(connection, None)
        self._open[connection.address] -= 1
        if not self._open[connection.address]:
            del self._open[connection.address]

    def works(self, connection: BoundedProtocol) -> None:
        """Mark a connection as busy with a request."""
        self._waiting.pop(connection, None)

    def waits(self, connection: BoundedProtocol) -> None:
        """Mark a connection as waiting for its next request."""
        self._waiting[connection] = None

    def _close_one(self, address: str | None) -> bool:
        """Close the connection of this address that has waited longest. With None, the address does not matter.

        The newest connection is never closed. Return False if there is no other waiting connection.
        """
        others = list(self._waiting)[:-1]
        oldest = next((each for each in others if address is None or each.address == address), None)
        if oldest is None:
            return False
        self.works(oldest)
        oldest.transport.close()
        return True


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 connection that is closed if a request's headers do not arrive in time."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        table: ConnectionTable,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._table = table
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_deadline()
        self._table.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        self._table.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_deadline()
            self._table.works(self)
        elif not self.transport.is_closing():
            self._begin_deadline()  # the data is a part of the next headers

    def on_response_complete(self) -> None:
        self._table.waits(self)
        super().on_response_complete()
        if self.cycle is not None and not self.cycle.response_complete:  # the client has already sent its next request
            self._table.works(self)

    def _begin_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._table.header_seconds, self.transport.close)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bounded_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return the protocol class of one server, for uvicorn's setting `http`."""
    return partial(BoundedProtocol, table=ConnectionTable(limits))  # type: ignore[return-value]


def connections_that_fit(connections: int) -> int:
    """Raise this process's limit of open files to the limit that `connections` connections need. Return the number of
    connections that the new limit allows."""
    needed = connections + RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(FEWEST, allowed - RESERVED_FILES)
