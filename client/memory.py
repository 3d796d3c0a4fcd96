"""Connection of a chat service to memory: `connect`, and the `Memory` that it opens."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Protocol

import httpx

from ..schemas.turns import Owner
from ..streams.log.broker_url import EMBEDDED, KAFKA, embedded_folder, is_embedded, kafka_servers
from ..streams.log.kafka_security import KafkaSecurity
from ..streams.log.port import Log, Position
from .errors import Misconfigured, translate_errors
from .http_client import Api
from .proxies import open_http
from .sse_updates import HttpUpdates
from .tools import Tools
from .turn_wait import WAIT_SECONDS, TurnWait, wait_for_turn
from .turns import LogTurns, Privacy, TurnLike, Turns
from .updates import BEGINNING, NOW, Group, Handler, LogUpdates, Update, Updates

TIMEOUT = 10.0
"""Time limit of one call to a broker or a server in seconds, including its retries."""
HTTP = ("http://", "https://")
PORT_MAX = 65_535
EXTRA_OF = {KAFKA: "kafka", EMBEDDED: "server"}
"""Extra of the package that an address needs, by address scheme."""


class Groups(Protocol):
    """Factory of consumer group members."""

    def __call__(self, *, group: str, after: str) -> Group: ...


class Memory:
    """Open connection. It sends turns and yields changes of facts, over the log or HTTP. `api` reads memory."""

    def __init__(self, *, turns: Turns, updates: Updates, groups: Groups, api: Api | None) -> None:
        self._turns, self._updates, self._groups, self._api = turns, updates, groups, api

    async def produce(
        self, turn: TurnLike, *, wait: TurnWait | None = None, wait_seconds: float = WAIT_SECONDS
    ) -> Position:
        """Send a turn; see `Turns.produce`. With `wait`, return after memory has observed or reflected the turn.

        A wait asks the server at intervals, so it needs a server address. Use it in scripts and tests; a chat service
        does not wait for its memory.

        Raises:
            TurnRefused: the turn became a dead letter.
            Unavailable: the turn is written, but memory needs longer than `wait_seconds`.
        """
        if wait is None:
            return await self._turns.produce(turn)
        api = self.api
        position = await self._turns.produce(turn)
        await wait_for_turn(api, turn, wait, seconds=wait_seconds)
        return position

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        """Yield changes of facts; see `Updates.updates`."""
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
        """Handle changes of facts as a member of a Kafka consumer group, which stores the position; see `Group.run`."""
        await self._groups(group=group, after=after).run(handler, tenant_id=tenant_id, owner=owner)

    def tools(self, **identity: str | None) -> Tools:
        """Return the tools of agents for one user: definitions for function calling, and an executor.

        `identity` has any of tenant_id, user_id, session_id, agent_id, org_id and group_id. Raises Misconfigured if
        `connect` has no server address.
        """
        return Tools(self.api, **identity)

    @property
    def api(self) -> Api:
        """Calls to the server: recall, context, digest, facts, edits. Raises Misconfigured without a server address."""
        if self._api is None:
            raise Misconfigured('memory is read over HTTP: give the server address, connect(…, api="http://host:port")')
        return self._api


@asynccontextmanager
async def connect(
    address: str,
    *,
    api: str | None = None,
    token: str | None = None,
    timeout: float = TIMEOUT,
    privacy: Privacy = "default",
    security: KafkaSecurity | None = None,
) -> AsyncIterator[Memory]:
    """Open a client. A service opens one client and keeps it open while it runs.

    Args:
        address: address for turns and for changes of facts: `kafka://host:port[,host:port]` (needs
            `memstream[kafka]`), `embedded:///folder` (needs `memstream[server]`), or `http(s)://host:port` of
            `memstream serve`.
        api: address of the server that `Memory.api` calls; by default `address`, if it is a server.
        token: the server's bearer token.
        timeout: seconds for each call including its retries.
        privacy: masking of a turn before it is sent. The default masks passwords, keys, card numbers and more; `off`
            masks nothing; a `PrivacyPolicy` sets the action for each kind of secret.
        security: TLS and SASL for a Kafka address; by default as the variables MEMSTREAM_KAFKA_… say.

    Raises:
        Misconfigured: an address or the token is wrong, or an extra of the package is not installed.
        Unavailable: the broker does not answer.
    """
    server = address if address.startswith(HTTP) else api
    async with AsyncExitStack() as stack:
        calls = None
        if server is not None:
            http = await stack.enter_async_context(_http(server, token, timeout))
            calls = Api(http=http, timeout=timeout, privacy=privacy)
            if server == address:
                yield Memory(turns=calls, updates=HttpUpdates(api=calls), groups=_no_groups, api=calls)
                return
        with translate_errors():
            if security is None:
                security = KafkaSecurity.from_environment(os.environ if address.startswith(KAFKA) else {})
            log = _log(address, timeout, security)
            await log.start()
        stack.push_async_callback(log.close)
        turns, updates = LogTurns(log=log, privacy=privacy), LogUpdates(log=log)
        yield Memory(turns=turns, updates=updates, groups=_groups(address, log, timeout, security), api=calls)


def _http(address: str, token: str | None, timeout: float) -> httpx.AsyncClient:
    """Open an HTTP client. Raises Misconfigured for an invalid address or token; the message never contains the
    token."""
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
        raise Misconfigured("the token is empty or has an invalid character, such as a line break at its end")
    return open_http(url, timeout=timeout, headers=credential)


def _log(address: str, timeout: float, security: KafkaSecurity) -> Log:
    """Return the log of an address, not started. The module of the log is imported in this function, because it needs
    an extra of the package."""
    if not address.startswith((KAFKA, EMBEDDED)):
        raise Misconfigured(f"{address!r}: expected {KAFKA}host:port, {EMBEDDED}/folder or {HTTP[0]}host:port")
    with _needs_extra(address):
        if is_embedded(address):
            from ..streams.log.embedded import EmbeddedLog

            return EmbeddedLog(folder=embedded_folder(address))
        from ..streams.log.kafka import KafkaLog

        return KafkaLog(
            servers=kafka_servers(address), security=security, timeout=timeout, client_id="memstream-client"
        )


@contextmanager
def _needs_extra(address: str) -> Iterator[None]:
    """Raise Misconfigured if a module for this address is missing. The message names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = EXTRA_OF[EMBEDDED if is_embedded(address) else KAFKA]
        raise Misconfigured(f"{address} needs {error.name}: pip install 'memstream[{extra}]'") from error


def _no_groups(*, group: str, after: str) -> Group:
    raise Misconfigured(f"{group}: only Kafka has consumer groups; store the position of each update instead")


def _groups(address: str, log: Log, timeout: float, security: KafkaSecurity) -> Groups:
    if is_embedded(address):
        return _no_groups
    from .kafka_group import KafkaGroup

    return partial(KafkaGroup, log=log, servers=kafka_servers(address), security=security, timeout=timeout)
