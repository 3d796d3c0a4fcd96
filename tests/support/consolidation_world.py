"""The consolidation stage in process, with a scripted model, stored memory and input records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import JsonValue

from memstream.adapters.ports import A, Completion, CompletionRequest, Completions, Point, Usage
from memstream.agents.common.tier_spending import TierSpending
from memstream.agents.consolidation.rows import ProgressRow
from memstream.agents.consolidation.stage import Consolidation
from memstream.memory.effective_policy import without_disabled_tiers
from memstream.memory.policies import MemoryPolicy, ObservePolicy
from memstream.memory.policies.budget import NO_CEILING, TIERS, Ceiling, Tier, TierPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.schemas import ids
from memstream.schemas.commands import Change, Command, FactsApply
from memstream.schemas.digests import Basis, StoredDigest
from memstream.schemas.episodes import EpisodesRecorded, RecordedEpisode, StoredEpisode
from memstream.schemas.facts import StoredFact
from memstream.schemas.topics import COMMANDS, EPISODES_RECORDED
from memstream.schemas.working_set import StoredMessage
from memstream.streams.log.port import Record
from tests.support.embedded_stage import PARTITIONS, Bench
from tests.support.record_builders import NOW, OWNER, episode, stored_fact

Answer = Callable[[str], JsonValue]
KEY = OWNER.key("acme")


def in_short(shown: str) -> str:
    """Return what the user says in the turns of a summary's prompt: an answer that the turns support."""
    return " ".join(line.removeprefix("user: ") for line in shown.splitlines() if line.startswith("user: "))


class Scripted:
    """A model that answers from the text it is shown: `answer` to the task consolidation, `answers` to other
    tasks by name.
    """

    def __init__(self) -> None:
        self.model = "scripted"
        self.costs_money = False
        self.by_rules = False
        self.answer: Answer = lambda shown: {"facts": []}
        self.answers: dict[str, Answer] = {
            "insights": lambda shown: {"insights": []},
            "procedures": lambda shown: {"procedures": []},
            "summary": lambda shown: {"text": ""},
        }
        self.away: Exception | None = None
        self.away_for: str | None = None
        """The one task that `away` concerns; None means all."""
        self.asked: list[str] = []
        self.tasks: list[str] = []

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        if self.away is not None and self.away_for in (None, request.task):
            raise self.away
        shown = request.messages[-1].content
        self.asked.append(shown)
        self.tasks.append(request.task)
        answer = self.answer if request.task == "consolidation" else self.answers[request.task]
        return Completion(request.parse(answer(shown)), self.model, Usage(1, 10, 5))

    async def close(self) -> None:
        return None


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def proposal(action: str = "new", **fields: Any) -> dict[str, JsonValue]:
    return {
        "subject": "user",
        "content": "Likes tea",
        "confidence": 0.6,
        "category": "preference",
        "action": action,
        "target_fact_id": None,
        "source_episode_ids": ["e1"],
    } | fields


class Consolidating:
    """A stage bench with the consolidation stage and the memory that it reads."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.model = Scripted()
        self.time = Time()
        self.number = 0
        self.build()

    def build(
        self,
        *,
        tier: Tier | TierPolicy = "free",
        judgement: Ceiling = NO_CEILING,
        **policy: Any,
    ) -> Consolidation:
        policy.setdefault("observe", ObservePolicy(patience=0.05))
        self.policies = TenantPolicies(without_disabled_tiers(MemoryPolicy(**policy)))
        self.stage = Consolidation(
            store=self.bench.store,
            embedder=self.bench.embedder,
            completions=self.model,
            calls=self.bench.calls,
            metrics=self.bench.metrics,
            send_durably=self.bench.send_durably,
            policies=self.policies,
            partitions=PARTITIONS,
            spending=TierSpending(
                tier if isinstance(tier, TierPolicy) else TIERS[tier],
                completions_of=lambda task: cast(Completions, self.model),
                judgement=judgement,
            ),
            now=self.bench.now,
            secrets=SecretFilter(),
            monotonic=self.time,
        )
        self.bench.stage = self.stage
        return self.stage

    async def episodes(self, *contents: str) -> list[StoredEpisode]:
        return await self.store_episodes(*(episode(content, turn=f"x{n}") for n, content in enumerate(contents)))

    async def store_episodes(self, *made: StoredEpisode) -> list[StoredEpisode]:
        vectors = await self.bench.embedder.embed([each.content for each in made], tenant_id="acme")
        await self.bench.store.insert(
            "episodes",
            [
                Point(each.episode_id, each.to_payload(), dense, each.content)
                for each, dense in zip(made, vectors, strict=True)
            ],
        )
        return list(made)

    async def facts(self, *contents: str) -> list[StoredFact]:
        return await self.store(*(stored_fact(content, turn=f"f{n}") for n, content in enumerate(contents)))

    async def store(self, *facts: StoredFact) -> list[StoredFact]:
        """Write these rows over the stored ones."""
        vectors = await self.bench.embedder.embed([each.content for each in facts], tenant_id="acme")
        await self.bench.store.put(
            "facts",
            [
                Point(each.fact_id, each.to_payload(), dense, each.content)
                for each, dense in zip(facts, vectors, strict=True)
            ],
        )
        return list(facts)

    def turn(self, episodes: int = 0, **fields: Any) -> Record:
        self.number += 1
        defaults: dict[str, Any] = {
            "tenant_id": "acme",
            "owner": OWNER,
            "user_id": "u1",
            "session_id": "s1",
            "turn_id": f"t{self.number}",
            "turn_number": self.number,
            "occurred_at": NOW,
            "episodes": tuple(
                RecordedEpisode(episode_id=f"{self.number}/{n}", importance=0.7, category="event")
                for n in range(episodes)
            ),
        }
        recorded = EpisodesRecorded(**(defaults | fields))
        return self.bench.record(EPISODES_RECORDED.name, recorded.owner.key(recorded.tenant_id), recorded)

    def command(self, kind: str = "consolidate", command_id: str = "c1", **fields: Any) -> Record:
        made = Command(
            **{"command_id": command_id, "kind": kind, "tenant_id": "acme", "owner": OWNER, "issued_at": NOW} | fields
        )
        return self.bench.record(COMMANDS.name, made.key, made)

    async def due(self) -> Record:
        """Deliver three turns and return the fourth, which makes a run due."""
        for _ in range(3):
            await self.bench.run(self.turn(2))
        return self.turn(0)

    def proposed(self) -> list[Command]:
        commands = [Command.read(value) for value in self.bench.values(COMMANDS.name)]
        return [each for each in commands if each.kind == "facts.apply"]

    def changes(self) -> list[Change]:
        """All proposed changes, in order."""
        return [change for each in self.proposed() for change in FactsApply.from_payload(each.args).changes]

    def reminders(self, kind: str = "consolidate") -> list[Command]:
        commands = [Command.read(value) for value in self.bench.values(COMMANDS.name)]
        return [each for each in commands if each.kind == kind]

    async def store_digest(self, text: str) -> None:
        digest = StoredDigest(
            digest_id=ids.digest_id(KEY),
            tenant_id="acme",
            owner=OWNER,
            owner_key=KEY,
            text=text,
            at=NOW,
            basis=Basis(),
        )
        await self.bench.store.ensure("digests")
        await self.bench.store.put("digests", [Point(digest.digest_id, digest.to_payload())])

    async def digest(self) -> StoredDigest | None:
        found = await self.bench.store.select("digests", tenant_id="acme")
        return StoredDigest.from_payload(found[0].payload) if found else None

    def row(self) -> ProgressRow:
        return ProgressRow.model_validate_json(self.bench.rows.rows[KEY])

    async def consolidated(self) -> int:
        found = await self.bench.store.select("episodes", tenant_id="acme")
        return sum(each.payload.get("consolidated_at") is not None for each in found)

    async def remind(self) -> None:
        """Let the reminders check once what is due."""
        task = asyncio.create_task(self.stage.background())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()


async def in_session_log(
    it: Consolidating, turns: Mapping[str, Mapping[str, Any]], *, session: str = "s1", **fields: Any
) -> None:
    """Store one message per turn id with these fields, as the recorder does."""
    messages = [
        StoredMessage(
            **{
                "message_id": ids.message_id(ids.session_key("acme", "u1", session), turn_id, 0),
                "message_index": 0,
                "role": "user",
                "tenant_id": "acme",
                "owner_key": KEY,
                "user_id": "u1",
                "session_id": session,
                "turn_id": turn_id,
                "occurred_at": NOW,
            }
            | own
            | fields
        )
        for turn_id, own in turns.items()
    ]
    vectors = await it.bench.embedder.embed([each.content for each in messages], tenant_id="acme")
    points = [
        Point(each.message_id, each.to_payload(), dense, each.content)
        for each, dense in zip(messages, vectors, strict=True)
    ]
    await it.bench.store.insert("turns", points)
