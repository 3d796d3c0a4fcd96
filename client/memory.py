"""What a chat service holds: `async with connect("kafka://localhost:9092", api="http://localhost:8080") as memory`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Protocol

import httpx

from ..schemas.turns import Owner
from ..streams.log.broker_url import EMBEDDED, KAFKA, embedded_folder, is_embedded, kafka_servers
from ..streams.log.embedded import EmbeddedLog
from ..streams.log.port import Log, Position
from .errors import Misconfigured, translated
from .http_client import Api
from .sse_updates import HttpUpdates
from .turns import LogTurns, TurnLike, Turns
from .updates import BEGINNING, NOW, Group, Handler, LogUpdates, Update, Updates

TIMEOUT = 10.0
"""Seconds that one call to a broker or a server may take, with all its tries."""
HTTP = ("http://", "https://")
PORT_MAX = 65_535


class Groups(Protocol):
    """Makes members of consumer groups."""

    def __call__(self, *, group: str, after: str) -> Group: ...


class Memory:
    """Turns in, changes of facts out, over the log or over HTTP; what is read, over HTTP (`api`)."""

    def __init__(self, *, turns: Turns, updates: Updates, groups: Groups, api: Api | None) -> None:
        self._turns, self._updates, self._groups, self._api = turns, updates, groups, api

    async def produce(self, turn: TurnLike) -> Position:
        """See `Turns.produce`."""
        return await self._turns.produce(turn)

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        """See `Updates.updates`."""
        return self._updates.updates(after=after, tenant_id=tenant_id, owner=owner)

    async def handle(
        self,
        group: str,
        handler: Handler,
        *,
        after: str = BEGINNING,
        tenant_id: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        """See `Group.run`. As a member of a consumer group, which keeps the position itself; over Kafka only."""
        await self._groups(group=group, after=after).run(handler, tenant_id=tenant_id, owner=owner)

    @property
    def api(self) -> Api:
        """Recall, context, digest, facts. Raises Misconfigured without an address of a server."""
        if self._api is None:
            raise Misconfigured('what is remembered is read over HTTP: connect(…, api="http://host:port")')
        return self._api


@asynccontextmanager
async def connect(
    address: str, *, api: str | None = None, token: str | None = None, timeout: float = TIMEOUT
) -> AsyncIterator[Memory]:
    """One client for a service, for as long as it lives.

    Args:
        address: where turns go and changes come from: `kafka://host:port[,host:port]`, `embedded:///folder`, or
            `http(s)://host:port` of `memstream serve`.
        api: the server that is asked for what is remembered; `address` itself when that is one.
        token: the server's bearer token.
        timeout: seconds, for each call with its tries.
    """
    server = address if address.startswith(HTTP) else api
    async with AsyncExitStack() as stack:
        called = None
        if server is not None:
            http = await stack.enter_async_context(_http(server, token, timeout))
            called = Api(http=http, timeout=timeout)
            if server == address:
                yield Memory(turns=called, updates=HttpUpdates(api=called), groups=_no_groups, api=called)
                return
        with translated():
            log = _log(address, timeout)
            await log.start()
        stack.push_async_callback(log.close)
        turns, updates = LogTurns(log=log), LogUpdates(log=log)
        yield Memory(turns=turns, updates=updates, groups=_groups(address, log, timeout), api=called)


def _http(address: str, token: str | None, timeout: float) -> httpx.AsyncClient:
    """Raises Misconfigured for what no request could carry; with a token it does not repeat it."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise Misconfigured(f"{address!r}: {error}; expected {HTTP[0]}host:port") from None
    if f"{url.scheme}://" not in HTTP or not url.host or (url.port or 0) > PORT_MAX:
        raise Misconfigured(f"{address!r}: expected {HTTP[0]}host:port")
    if token is None:
        credential = {}
    elif token.isascii() and token.isprintable() and token.split() == [token]:
        credential = {"authorization": f"Bearer {token}"}
    else:
        raise Misconfigured("the token is empty, or has characters that none has: a line break at its end?")
    return httpx.AsyncClient(base_url=url, headers=credential, timeout=timeout, follow_redirects=False)


def _log(address: str, timeout: float) -> Log:
    if not address.startswith((KAFKA, EMBEDDED)):
        raise Misconfigured(f"{address!r}: expected {KAFKA}host:port, {EMBEDDED}/folder or {HTTP[0]}host:port")
    if is_embedded(address):
        return EmbeddedLog(folder=embedded_folder(address))
    from ..streams.log.kafka import KafkaLog  # only who uses it pays for it

    return KafkaLog(servers=kafka_servers(address), timeout=timeout, client_id="memstream-client")


def _no_groups(*, group: str, after: str) -> Group:
    raise Misconfigured(f"{group}: only Kafka has consumer groups; keep the position of each update instead")


def _groups(address: str, log: Log, timeout: float) -> Groups:
    if is_embedded(address):
        return _no_groups
    from .kafka_group import KafkaGroup

    return partial(KafkaGroup, log=log, servers=kafka_servers(address), timeout=timeout)
