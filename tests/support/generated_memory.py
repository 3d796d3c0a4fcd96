"""Exports of generated memories: records of every kind with random fields, in the order of an export."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, get_args
from uuid import UUID

from memstream.schemas import ids
from memstream.schemas.archive import ArchivedText
from memstream.schemas.blocks import MemoryBlock, NamedRecord, OwnerBlock, SessionHoldings
from memstream.schemas.digests import Basis, Digest
from memstream.schemas.export import (
    RECORD_KINDS,
    ExportedEpisode,
    ExportedFact,
    ExportedLink,
    ExportedLinks,
    ExportedMessage,
    ExportedTurn,
    ExportEnd,
    ExportHeader,
    ExportLine,
    ExportRecord,
    RecordKind,
)
from memstream.schemas.facts import Decision, Evidence, Fact, FactCause, FactState, FactUpdated
from memstream.schemas.groups import MemoryGroup
from memstream.schemas.observations import Category, Emotion
from memstream.schemas.procedures import Procedure, ProcedureVersion
from memstream.schemas.prospective import ProspectiveTask
from memstream.schemas.turns import SENSITIVITIES, Owner
from memstream.schemas.working_set import StoredWorkingEntry

BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
WORDS = (
    "tea",
    "cello",
    "Potsdam",
    "Straße",
    "日本",
    "bakes",
    "weekly",
    "swims",
    "quietly",
    "green",
    "reads",
    "maps",
    "🧵",
    "—",
)
STATES: Sequence[FactState] = ("active", "superseded", "invalidated", "forgotten", "quarantined", "expired")


class GeneratedMemory:
    """The memory of one user of a tenant of its own. Equal seeds give equal memories."""

    def __init__(self, seed: int, tenant: str, *, user: str = "u1", group: bool = False) -> None:
        self.random = Random(seed)
        self.tenant, self.owner = tenant, Owner(scope="user", id=user)
        self.key = self.owner.key(tenant)
        self.group = group
        self.records: dict[RecordKind, list[Any]] = {kind: [] for kind in RECORD_KINDS}
        for _ in range(40):
            self._fact()
        for _ in range(20):
            self._episode()
        self._held()
        for session in ("s1", "s/2 ü"):
            self._session(session)

    def lines(self) -> list[str]:
        """Return the lines after the header."""
        order: dict[RecordKind, Any] = {
            "fact": lambda each: each.fact_id,
            "episode": lambda each: each.episode_id,
            "archive": lambda each: each.archive_id,
            "procedure": lambda each: each.procedure_id,
            "block": lambda each: each.block_id,
            "task": lambda each: each.task_id,
            "working": lambda each: each.entry_id,
            "holdings": lambda each: ids.holdings_id(ids.session_key(self.tenant, each.user_id, each.session_id)),
            "turn": lambda each: each.messages[0].message_id,
        }
        lines = [
            ExportLine.of(kind, each).to_line()
            for kind in RECORD_KINDS
            for each in sorted(self.records[kind], key=order.get(kind, lambda _: 0))
        ]
        counts = {kind: len(self.records[kind]) for kind in RECORD_KINDS}
        end = ExportEnd(counts=counts, left_out=dict.fromkeys(RECORD_KINDS, 0))
        return [*lines, ExportLine.of("end", end).to_line()]

    def header(self) -> str:
        owner = None if self.group else self.owner
        header = ExportHeader(at=BEGAN, tenant_id=self.tenant, owner=owner, ceiling="secret", conversations=True)
        return ExportLine.of("export", header).to_line()

    def text(self, form: str = "ndjson") -> str:
        lines = [self.header(), *self.lines()]
        return "".join(f"{each}\n" for each in lines) if form == "ndjson" else "[\n" + ",\n".join(lines) + "\n]\n"

    # -------------------------------------------------------------------------------------------- parts
    def add(self, kind: RecordKind, record: ExportRecord) -> None:
        self.records[kind].append(record)

    def number(self) -> float:
        """Return a number of few digits: the store's parser rounds numbers of more than 15 digits."""
        return round(self.random.random(), 6)

    def id(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=5))

    def at(self) -> datetime:
        return BEGAN + timedelta(microseconds=self.random.randrange(200 * 86_400 * 10**6))

    def words(self, most: int = 6) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(2, most))) + f" {self.random.randrange(900)}"

    def some(self, value: Any) -> Any:
        return value if self.random.random() < 0.5 else None

    def of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def _fact(self) -> None:
        fact_id, content, changes = self.id(), self.words(), self.random.randint(0, 3)
        state = self.of(*STATES, "active", "active")
        evidence = tuple(
            Evidence(
                turn_id=f"t{n}", session_id="s1", observation_id=self.id(), occurred_at=self.at(), quote=self.words(),
                trust=self.some("user"), command_id=self.some(self.id()),
            )
            for n in range(self.random.randint(0, 3))
        )  # fmt: skip
        fields: dict[str, Any] = {
            "fact_id": fact_id,
            "version": changes or self.random.randint(1, 9),
            "tenant_id": self.tenant,
            "owner": self.owner,
            "subject": self.of("user", "tom"),
            "predicate": self.some("works_at"),
            "content": content,
            "category": self.of(*get_args(Category)),
            "confidence": self.number(),
            "state": state,
            "sensitivity": self.of(*SENSITIVITIES),
            "trust": self.of("user", "assistant", "tool"),
            "valid_from": self.at(),
            "valid_from_told": self.of(True, False),
            "valid_to": self.some(self.at()),
            "recorded_at": self.at(),
            "supersedes": self.some(self.id()),
            "superseded_by": self.some(self.id()),
            "reinforcement_count": self.random.randrange(9),
            "last_reinforced_at": self.some(self.at()),
            "strength": self.number(),
            "retrieval_count": self.random.randrange(99),
            "last_accessed_at": self.some(self.at()),
            "pinned_at": self.some(self.at()),
            "tags": tuple(self.words(3) for _ in range(self.random.randrange(3))),
            "metadata": self.of({}, {"source": "crm", "n": [1, None, {"ü": 0.5}]}),
            "embedder": "hashing",
            "content_hash": ids.content_hash(content),
            "evidence": evidence,
            "source_episode_ids": tuple(self.id() for _ in range(self.random.randrange(3))),
        }
        self.add("fact", ExportedFact(**fields, closed_at=self.some(self.at()) if state == "superseded" else None))
        before: Fact | None = None
        for version in range(1, changes + 1):
            fact = Fact(**fields | {"version": version, "embedder": "earlier", "reinforcement_count": version})
            self.add(
                "fact_change",
                FactUpdated(
                    event_id=ids.event_id(fact_id, version),
                    action="new" if before is None else "reinforced",
                    at=self.at(),
                    tenant_id=self.tenant,
                    owner=self.owner,
                    fact=fact,
                    before=before,
                    reason=self.words(),
                    decision=self.some(Decision(stage="admit", zone="COLD", similarity=self.number())),
                    cause=FactCause(turn_ids=("t1",), observation_ids=(self.id(),), model=self.some("m/1")),
                ),
            )
            before = fact

    def _episode(self) -> None:
        content, text, observation = self.words(), self.words(), self.id()
        gone, archived = self.random.random() < 0.1, self.random.random() < 0.3
        common: dict[str, Any] = {
            "episode_id": ids.episode_id(observation), "observation_id": observation, "tenant_id": self.tenant,
            "owner": self.owner, "session_id": "s1", "turn_id": "t1", "user_id": self.owner.id,
            "sensitivity": self.of(*SENSITIVITIES),
        }  # fmt: skip
        archived_at = self.at() if archived else None
        self.add(
            "episode",
            ExportedEpisode(
                **common,
                subject="user",
                content=content,
                category="event",
                durability=self.of("persistent", "permanent"),
                importance=self.number(),
                tags=tuple(self.words(3) for _ in range(self.random.randrange(3))),
                emotion=self.some(Emotion(valence=-0.25, arousal=self.number())),
                occurred_at=self.at(),
                valid_from=self.at(),
                recorded_at=self.at(),
                consolidated_at=self.some(self.at()),
                strength=self.number(),
                stability=round(14 * (0.1 + self.number()), 6),
                archived_at=archived_at,
                evidence=self.words(),
                content_hash=ids.content_hash(text if archived else content),
                deleted_at=self.at() if gone else None,
                turn_ids=self.of((), ("t1", "t2")),
            ),
        )
        if archived_at is not None:
            self.add(
                "archive",
                ArchivedText(
                    **common, archive_id=ids.archive_id(common["episode_id"]), owner_key=self.key, content=text,
                    sha256=ids.text_hash(text), archived_at=archived_at, accessed_at=self.at(), access_count=2,
                ),
            )  # fmt: skip

    def _held(self) -> None:
        whose: dict[str, Any] = {"tenant_id": self.tenant, "owner": self.owner}
        self.add(
            "digest",
            Digest(
                **whose, digest_id=ids.digest_id(self.key), text=self.words(40), at=self.at(),
                basis=Basis(facts=3, episodes=1), model="m/1",
            ),
        )  # fmt: skip
        for n in range(4):
            name = f"{self.words(3)} {n}"
            self.add(
                "procedure",
                Procedure(
                    **whose, procedure_id=ids.procedure_id(self.key, name), name=name, trigger=self.words(),
                    steps=(self.words(), self.words()), at=self.at(), version=3, trust=self.some("user"),
                    removed_at=self.some(self.at()), source_episode_ids=(ids.episode_id(name),),
                    earlier=(ProcedureVersion(version=2, trigger="then", steps=("one",), at=self.at()),),
                ),
            )  # fmt: skip
            self.add(
                "block",
                OwnerBlock(
                    **whose, block_id=ids.block_id(self.key, name), name=name, value=self.words(60), limit=2_000,
                    version=self.random.randint(1, 9), updated_at=self.at(), sensitivity=self.of(*SENSITIVITIES),
                ),
            )  # fmt: skip
            self.add(
                "task",
                ProspectiveTask(
                    **whose, task_id=self.id(), version=2, subject="user", content=self.words(),
                    due_at=self.some(datetime(2099, 1, 1, 9, tzinfo=UTC)), condition=self.some("near the shop"),
                    state=self.of("open", "done", "cancelled"), created_at=self.at(), updated_at=self.at(),
                    command_id=self.some(self.id()),
                ),
            )  # fmt: skip
        pairs = [sorted((UUID(self.id()).bytes, UUID(self.id()).bytes)) for _ in range(9)]
        links = tuple(
            ExportedLink(
                one=str(UUID(bytes=one)), other=str(UUID(bytes=other)), weight=self.number(),
                grown_at=self.at().replace(microsecond=0),
            )
            for one, other in pairs
        )  # fmt: skip
        self.add("links", ExportedLinks(tenant_id=self.tenant, owner_key=self.key, links=links))
        if self.group:
            self.add(
                "group",
                MemoryGroup(
                    tenant_id=self.tenant, group_id="team", description="The team", members=(self.owner,),
                    fact_ids=(self.id(),), procedure_ids=(self.id(),), version=4, updated_at=self.at(),
                ),
            )  # fmt: skip

    def _session(self, session: str) -> None:
        whose: dict[str, Any] = {"tenant_id": self.tenant, "user_id": self.owner.id, "session_id": session}
        updated_at = self.at()
        for _ in range(5):
            entry_id = self.id()
            self.add(
                "working",
                StoredWorkingEntry(
                    **whose, owner_key=self.key, entry_id=entry_id, observation_id=entry_id, content=self.words(),
                    subject="user", category="goal", durability="session", importance=self.number(),
                    salience=self.number(), created_turn=1, last_access_turn=3, turn_number=7,
                    updated_at=updated_at, metadata=self.of({}, {"source": "crm"}),
                ),
            )  # fmt: skip
        block = MemoryBlock(name="Plan", value=self.words(30), limit=2_000, updated_at=self.at(), version=3)
        notes = NamedRecord(name="Notes", owner=self.owner)
        self.add(
            "holdings",
            SessionHoldings(**whose, blocks=(block,), attached=(notes,), procedures=(notes,), updated_at=self.at()),
        )
        place = 0
        for n in range(15):
            turn, messages, first = f"{session}-{n}", [], place
            for index, role in enumerate(self.of(("user",), ("user", "assistant"), ("user", "tool", "assistant"))):
                talks = role != "tool"
                messages.append(
                    ExportedMessage(
                        **whose, message_id=ids.message_id(ids.session_key(self.tenant, self.owner.id, session), turn,
                        index), message_index=index, role=role, name=self.some("Ana"), content=self.words(30),
                        owner_key=self.key, turn_id=turn, occurred_at=self.at(), sensitivity=self.of(*SENSITIVITIES),
                        agent_id=self.some("a1"), session_place=place if talks else None,
                        turn_sha256=hashlib.sha256(turn.encode()).hexdigest() if index == 0 else None,
                        first_place=first if index == 0 else None,
                    )
                )  # fmt: skip
                place += talks
            self.add(
                "turn",
                ExportedTurn(
                    user_id=self.owner.id, session_id=session, turn_id=turn, messages=tuple(messages)
                ),
            )  # fmt: skip
