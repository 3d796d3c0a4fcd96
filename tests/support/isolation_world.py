"""Two tenants whose users, group and agent remember the same under the same ids, and what a request asks of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memstream.adapters.ports import VectorStore
from memstream.memory.policies import MemoryPolicy, RecallPolicy
from memstream.memory.policies.recall import RankingProfile
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.provenance import FactRef, FactTracer
from memstream.recall.record_filters import RecordSelection
from memstream.recall.record_reader import sees_all
from memstream.recall.request import ReadSession, RecallRequest
from memstream.recall.service import RecallService
from memstream.recall.verbatim import EpisodeRef, VerbatimReader
from memstream.schemas import ids
from memstream.schemas.recall import TIERS
from memstream.schemas.topics import FACTS
from memstream.schemas.turns import Owner, Sensitivity
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Log, Position

from .fact_history import PastFacts
from .stored_memory import NOW, StoredMemory
from .written_letters import park, refused_turn

TENANTS, USERS, SESSIONS = ("acme", "rival"), ("u1", "u2"), ("s1", "s2")
CONTENTS = ("Works at Stripe", "Likes green tea")
TEAM = Owner(scope="group", id="team")
AGENT = Owner(scope="agent", id="u1")
"""Another scope under a user's id."""


@dataclass(frozen=True)
class Who:
    """Who asks, and what of it may be told: of this tenant, and where an owner is named, of this owner."""

    tenant: str
    user: str

    @property
    def owner(self) -> Owner:
        return Owner(scope="user", id=self.user)


@dataclass(frozen=True)
class Asked:
    """Everything that a request may say; each read takes what it knows."""

    who: Who
    by_owner: bool = True
    session: str | None = None
    cue: str | None = None
    limit: int = 50
    state: Any = "all"
    subject: str | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    ceiling: Sensitivity = "secret"
    groups: tuple[str, ...] = ()
    profile: RankingProfile = "memstream"
    fact: int = 0
    """Of whom the fact is that is asked for, by its place in `World.facts`."""
    cursor: str | None = None

    @property
    def wanted(self) -> RecordSelection:
        return RecordSelection(
            self.who.tenant,
            owner=self.who.owner if self.by_owner else None,
            user_id=self.who.user if self.by_owner else None,
            session_id=self.session,
            state=self.state,
            subject=self.subject,
            as_of=self.as_of,
            known_at=self.known_at,
            ceiling=self.ceiling,
        )

    @property
    def recall(self) -> RecallRequest:
        return RecallRequest(
            self.who.tenant,
            self.who.owner,
            ReadSession(self.who.user, self.session or "s1"),
            self.groups,
            self.cue,
            self.limit,
            TIERS,
            self.subject,
            ceiling=self.ceiling,
            as_of=self.as_of,
            known_at=self.known_at,
        )


Told = list[tuple[str, str]]
"""Of each record that was told its tenant and owner's key."""
Read = Callable[["World", VectorStore, Asked], Awaitable[Told]]


class World:
    """Two tenants with two users each, a group and an agent; each remembers the same, under the same ids. Everybody's
    links are of what the others remember, so that one's own records are lifted by none."""

    def __init__(self, store: VectorStore, log: EmbeddedLog) -> None:
        self.store = store
        self.log: Log = log
        self.memory = StoredMemory(store)
        self.facts: list[FactRef] = []
        self.letters: list[Position] = []
        """Dead letters, one for each user of each tenant."""
        self.gists: list[str] = []
        """Episodes with their words in the archive, in the order of `facts`."""

    async def remember(self) -> None:
        past = PastFacts(self.store, self.log)
        for tenant in TENANTS:
            for user, owner in [*((user, Owner(scope="user", id=user)) for user in USERS), ("u1", TEAM), ("u1", AGENT)]:
                for content in CONTENTS:
                    typed = {"slot": "likes", "value": "green tea"} if content == CONTENTS[1] else {}
                    fact = await past.fact(content, 3, tenant=tenant, user=user, owner=owner, **typed)
                    self.facts.append(FactRef(tenant, fact.fact_id))
                    self.memory.whose[fact.fact_id] = (tenant, fact.owner_key)
                    key = ids.fact_key(tenant, fact.fact_id).encode()
                    await self.log.append(FACTS.name, key=key, value=fact.public().to_bytes())
                    await self.memory.episode(f"{content}, as told in {owner.scope} {owner.id}"[:40], tenant=tenant,
                                              owner=owner)  # fmt: skip
                    told = f"{content}, in all its words, by {owner.scope} {owner.id}"
                    self.gists.append(await self.memory.compressed(told, tenant=tenant, owner=owner))
                await self.memory.digest(CONTENTS[0], tenant=tenant, owner=owner)
                await self.memory.procedure(CONTENTS[0], tenant=tenant, owner=owner)
                await self.memory.block(CONTENTS[0], tenant=tenant, owner=owner)
                await self.memory.task(CONTENTS[0], tenant=tenant, owner=owner)
            for user in USERS:
                self.letters.append(await refused_turn(self.log, tenant=tenant, user=user))
                await park(self.log, tenant=tenant, user=user)
                name = f"club of {user} in {tenant}"
                self.memory.whose[name] = (tenant, ids.owner_key(tenant, "user", user))
                await self.memory.group(name, tenant=tenant, members=[Owner(scope="user", id=user)])
                for session in SESSIONS:
                    text = f"{tenant} {user}"
                    self.memory.whose[text] = (tenant, ids.owner_key(tenant, "user", user))
                    await self.memory.holdings(tenant=tenant, user=user, session=session, blocks=[text])
                    for number, content in enumerate(CONTENTS):
                        whose = {"tenant": tenant, "user": user, "session": session}
                        await self.memory.entry(content, **whose)
                        for index in (0, 1):
                            await self.memory.message(
                                f"I say: {content}", turn=f"t{number}", message_index=index, **whose,
                                occurred_at=NOW + timedelta(minutes=number),
                            )  # fmt: skip
        linked = [*(each.fact_id for each in self.facts), *self.gists]
        for tenant, key in sorted({self.memory.whose[each] for each in linked}):
            _, scope, owner_id = ids.split(key)
            others = [each for each in linked if self.memory.whose[each] != (tenant, key)]
            await self.memory.links(
                others, weight=1.0, tenant=tenant, owner=Owner.model_validate({"scope": scope, "id": owner_id})
            )

    def of(self, identities: Iterable[str]) -> Told:
        return [self.memory.whose[each] for each in identities]

    def recall(self, store: VectorStore, profile: RankingProfile) -> RecallService:
        return RecallService(
            store=store,
            embedder=self.memory.embedder,
            policy=RecallPolicy(patience=30.0, profile=profile),
        )

    def tracing(self, store: VectorStore) -> FactTracer:
        return FactTracer(store=store, log=self.log)

    def rehydrating(self, store: VectorStore) -> VerbatimReader:
        return VerbatimReader(store=store, log=self.log, policies=TenantPolicies(MemoryPolicy()))

    def gist(self, asked: Asked) -> EpisodeRef:
        """Somebody's episode, asked for by `asked.who`."""
        sees = asked.who.owner.__eq__ if asked.by_owner else sees_all
        return EpisodeRef(asked.who.tenant, self.gists[asked.fact % len(self.gists)], sees, asked.ceiling)

    def ref(self, asked: Asked) -> FactRef:
        """Somebody's fact, asked for by `asked.who`."""
        wanted = self.facts[asked.fact % len(self.facts)]
        sees = asked.who.owner.__eq__ if asked.by_owner else sees_all
        return FactRef(asked.who.tenant, wanted.fact_id, sees, asked.ceiling)
