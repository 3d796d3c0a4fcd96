"""Fair shares of a server's limited resources: concurrent requests, streams, waits for commands.

A pool has a number of places. A token and a tenant have their own limits; beyond them a request is answered 429. While
a pool is full, a tenant with fewer places than an equal share waits, and gets the next free place; any other tenant is
answered 429. If work can end without a loss (a stream continues from its last id), the pool ends the newest work of the
tenant with the most places, so that no tenant can lock out others with long work.

Only the event loop's thread may use the state. Without a token file there is one party, and the size of the pool is its
only limit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ..schemas.base import Contract
from ..schemas.errors import NoShare
from ..schemas.tools import TOOLS_BY_NAME, ToolSpec
from ..streams.engine.fair_queue import FairQueue
from ..tools.tool_port import ToolIdentity, ToolPort
from .credentials import Caller
from .limits import Limits


@dataclass(frozen=True, slots=True)
class Party:
    """Tenant and token of a request. Its place counts towards the limits of both."""

    tenant: str
    token: str


EVERYBODY: Final = Party("", "")
"""Party of all requests if no token is needed. Its share is the whole pool."""
NOBODY: Final = Party("\0", "\0")
"""Party of requests without a known token."""


def party_of(caller: Caller, tenant_id: str | None = None) -> Party:
    """Return the party of a request. While the tenant is unknown, a token with several tenants counts as a separate
    tenant."""
    if caller.tenants is None:
        return EVERYBODY
    only = next(iter(caller.tenants)) if len(caller.tenants) == 1 else f"\0{caller.name}"
    return Party(tenant_id or only, caller.name)


@dataclass(frozen=True, slots=True)
class PoolSize:
    """Size of a pool: all places, and the maximum for one tenant and for one token."""

    total: int
    tenant: int
    token: int


@dataclass(slots=True, eq=False)
class _Claim:
    """Place that a request holds or waits for."""

    party: Party
    leave: Callable[[], None] | None
    given: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    leaving: bool = False
    over: bool = False


class SharedPool:
    """Pool of places of one kind.

    `what` names the places in error messages. `patience` is the number of seconds that a tenant below its share waits.
    """

    def __init__(self, what: str, size: PoolSize, *, patience: float, retry_after: float) -> None:
        self._what = what
        self._size = size
        self._patience = patience
        self._retry_after = retry_after
        self._free = size.total
        self._queue: FairQueue[_Claim] = FairQueue()
        self._claims: dict[_Claim, None] = {}
        """Held and waiting claims, oldest first."""
        self._of_token: Counter[str] = Counter()
        self._of_tenant: Counter[str] = Counter()

    @asynccontextmanager
    async def place(
        self, party: Party, *, leave: Callable[[], None] | None = None
    ) -> AsyncIterator[Callable[[], None]]:
        """Hold a place during the block, or until the yielded function gives it back. Raises NoShare.

        `leave` must end the work of the place soon. It is called when a tenant with fewer places needs a place.
        """
        self._check(party)
        claim = _Claim(party, leave)
        self._claims[claim] = None
        self._of_token[party.token] += 1
        self._of_tenant[party.tenant] += 1
        self._queue.push(party.tenant, claim)
        self._hand_out()
        try:
            if not claim.given.done():
                await self._wait(claim)
            yield lambda: self._give_back(claim)
        finally:
            self._give_back(claim)

    def _check(self, party: Party) -> None:
        if party is EVERYBODY:
            if not self._free:
                raise self._full(own=False)
            return
        if self._of_token[party.token] >= self._size.token:
            raise self._refused(f"this token has {self._size.token} {self._what}, its maximum", own=True)
        if self._of_tenant[party.tenant] >= self._size.tenant:
            raise self._refused(f"this tenant has {self._size.tenant} {self._what}, its maximum", own=True)
        if self._free:
            return
        tenants = len(self._of_tenant.keys() | {party.tenant})
        if self._of_tenant[party.tenant] >= max(1, self._size.total // tenants):
            others = tenants > 1
            raise self._full(own=others)

    async def _wait(self, claim: _Claim) -> None:
        self._make_room(claim.party)
        try:
            async with asyncio.timeout(self._patience):
                await claim.given
        except TimeoutError:
            raise self._full(own=False) from None

    def _make_room(self, party: Party) -> None:
        """Ask the newest work of the tenant with the most places to end.

        That tenant must have at least two places more than the waiting party's tenant.
        """
        held = [claim for claim in self._claims if claim.leave is not None and claim.given.done() and not claim.leaving]
        most = max((self._queue.in_use(claim.party.tenant) for claim in held), default=0)
        if most <= self._queue.in_use(party.tenant) + 1:
            return
        newest = [claim for claim in held if self._queue.in_use(claim.party.tenant) == most][-1]
        newest.leaving = True
        assert newest.leave is not None  # `held` contains only claims with `leave`
        newest.leave()

    def _give_back(self, claim: _Claim) -> None:
        """Give a place back, or stop waiting for one."""
        if claim.over:
            return
        claim.over = True
        del self._claims[claim]
        for counter, name in ((self._of_token, claim.party.token), (self._of_tenant, claim.party.tenant)):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]
        if not self._queue.remove(claim.party.tenant, claim):
            self._free += 1
            self._queue.release(claim.party.tenant)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (turn := self._queue.pop()) is not None:
            self._free -= 1
            _, claim = turn
            if not claim.given.done():  # if the waiting request was cancelled, its `place` gives the place back
                claim.given.set_result(None)

    def _full(self, *, own: bool) -> NoShare:
        return self._refused(f"the server has {self._size.total} {self._what}, its maximum", own=own)

    def _refused(self, message: str, *, own: bool) -> NoShare:
        return NoShare(message, retry_after=self._retry_after, own=own)


@dataclass(frozen=True, slots=True)
class Pools:
    """Pools of a server."""

    requests: SharedPool
    commands: SharedPool
    streams: SharedPool
    catching_up: SharedPool

    @classmethod
    def of(cls, limits: Limits) -> Pools:
        def pool(what: str, name: str) -> SharedPool:
            size = PoolSize(*(getattr(limits, f"{name}{each}") for each in ("", "_per_tenant", "_per_token")))
            return SharedPool(what, size, patience=limits.place_seconds, retry_after=limits.retry_seconds)

        return cls(
            requests=pool("running requests", "requests"),
            commands=pool("requests that wait for commands", "commands"),
            streams=pool("open streams", "streams"),
            catching_up=pool("streams that still read older events", "catching_up"),
        )


@dataclass(frozen=True, slots=True)
class SharedTools:
    """`ToolPort` in which a call that writes holds a place in the pool `commands`, because it waits for a result."""

    inner: ToolPort
    commands: SharedPool
    open: bool
    """True when no token is needed."""

    async def offered(self, identity: ToolIdentity) -> Sequence[ToolSpec]:
        return await self.inner.offered(identity)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        identity: ToolIdentity,
        key: str | None = None,
        patience: float | None = None,
    ) -> Contract:
        spec = TOOLS_BY_NAME.get(name)
        if spec is None or spec.effect == "read":
            return await self.inner.call(name, arguments, identity=identity, key=key, patience=patience)
        party = EVERYBODY if self.open else Party(identity.tenant_id, identity.caller)
        async with self.commands.place(party):
            return await self.inner.call(name, arguments, identity=identity, key=key, patience=patience)
