"""The corpus of cues: memories as conversations with what a good observer makes of them, and for each cue its answers.

A file of tests/corpora/recall is one person's memory. The stages of this process store it with a scripted model, and
the recall service answers the cues. The cues were written before the ranking that they measure; half of them tune it
(`half`). `python -m tests.support.recall_cues` prints the tuning cues that it gets wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import JsonValue

from bench.quality.dialogues import Message, Turn
from bench.quality.stages import TENANT, Deployment, deployed, tell
from memstream.adapters.embedders.factory import create_embedder
from memstream.adapters.ports import Embedder
from memstream.cli.output import logs
from memstream.cli.wiring.local_stages import LocalStages
from memstream.cli.wiring.ports import NoUsage
from memstream.memory.policies import RecallPolicy
from memstream.recall.request import ReadSession, RecallRequest
from memstream.recall.service import RecalledMemory, RecallService
from memstream.schemas.turns import Owner
from tests.support.model_server import Answer, Ask, Json, Script
from tests.support.openai_bodies import OBSERVATION
from tests.support.prompt_view import user_text

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "recall"
Half = Literal["tune", "test"]


@dataclass(frozen=True)
class Right:
    """An answer: a statement about a subject, or a message (`subject` is None)."""

    subject: str | None
    content: str


@dataclass(frozen=True)
class Cue:
    memory: str
    text: str
    right: frozenset[Right]

    @property
    def half(self) -> Half:
        """The half by the hash of the cue, so that no result chose it."""
        digest = hashlib.sha256(f"{self.memory}/{self.text}".encode()).hexdigest()
        return "test" if int(digest, 16) % 2 else "tune"


@dataclass(frozen=True)
class Memory:
    """A person's conversations, by session, and the cues that are asked afterwards."""

    id: str
    sessions: tuple[tuple[Turn, ...], ...]
    observed: Mapping[str, Sequence[Json]]
    """What the model finds in a user's message."""
    asked_at: datetime
    session: ReadSession | None
    """The session that goes on while the cues are asked."""
    cues: tuple[Cue, ...]


@dataclass(frozen=True)
class Place:
    """Where the best right answer stands, from 0; None when it is not among the answers."""

    cue: Cue
    rank: int | None
    items: Sequence[RecalledMemory]

    def __str__(self) -> str:
        right = " | ".join(f"{each.subject or 'message'}: {each.content}" for each in self.cue.right)
        lines = [f"{self.cue.memory}: {self.cue.text!r} is at {self.rank}, right: {right}"]
        for each in self.items[:4]:
            parts = " ".join(f"{name} {value:.2f}" for name, value in each.item.parts.items())
            subject = each.item.subject or each.role
            lines.append(f"    {each.item.score:.2f} {each.item.tier} {subject}: {each.item.content} ({parts})")
        return "\n".join(lines)


def memories() -> list[Memory]:
    return [_memory(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.json"))]


def _memory(row: dict[str, Any]) -> Memory:
    owner = row["id"]
    sessions = tuple(
        tuple(_turn(turn, session["session_id"]) for turn in session["turns"]) for session in row["sessions"]
    )
    return Memory(
        id=owner,
        sessions=sessions,
        observed={
            turn["messages"][0]["content"]: turn["observations"]
            for session in row["sessions"]
            for turn in session["turns"]
        },
        asked_at=datetime.fromisoformat(row["asked_at"]),
        session=None if row["session_id"] is None else ReadSession(owner, row["session_id"]),
        cues=tuple(Cue(owner, each["cue"], frozenset(map(_right, each["right"]))) for each in row["cues"]),
    )


def _turn(row: dict[str, Any], session_id: str) -> Turn:
    messages = tuple(Message(each["role"], each["content"]) for each in row["messages"])
    return Turn(session_id, row["turn_id"], row["occurred_at"], messages)


def _right(row: Mapping[str, str]) -> Right:
    return Right(None, row["message"]) if "message" in row else Right(row["subject"], row["content"])


# ------------------------------------------------------------------------------------------------ remembered
def script(known: Sequence[Memory]) -> Script:
    """Return the model that finds in each message what the corpus says."""
    observed = {text.strip(): items for memory in known for text, items in memory.observed.items()}

    def answer(ask: Ask) -> Answer:
        if ask.task != "observations":
            return {}
        found: list[Json] = []
        for name, text in ask.turns.items():
            said = user_text(text).strip()
            found += [_observation(item, name, said, ask, found) for item in observed.get(said, ())]
        return {"observations": list[JsonValue](found)}

    return answer


def _observation(item: Json, turn: str, said: str, ask: Ask, earlier: Sequence[Json]) -> Json:
    old = item.get("replaces")
    own = [f"o{place}" for place, other in enumerate(earlier, 1) if other["content"] == old]
    replaces = None if old is None else own[-1] if own else ask.prompt.id_of(str(old))
    return {**OBSERVATION, **item, "turn": turn, "replaces": replaces, "evidence": said}


@asynccontextmanager
async def remembered(known: Sequence[Memory], *, embedder: str) -> AsyncIterator[LocalStages]:
    """Run the stages until they have stored all memories."""
    async with deployed(Deployment(script=script(known), embedder=embedder, consolidated=False)) as ports:
        for wave in range(max(len(memory.sessions) for memory in known)):
            await tell(ports.log, [(each.id, each.sessions[wave]) for each in known if wave < len(each.sessions)])
        yield ports


# ------------------------------------------------------------------------------------------------ asked
async def ask_all(known: Sequence[Memory], ports: LocalStages, embedder: Embedder) -> list[Place]:
    recall = RecallService(store=ports.store, embedder=embedder, policy=RecallPolicy())
    places = []
    for memory in known:
        owner = Owner(scope="user", id=memory.id)
        for cue in memory.cues:
            request = RecallRequest(TENANT, owner, memory.session, cue=cue.text)
            answer = await recall.recall(request, now=memory.asked_at)
            said = [Right(each.item.subject, each.item.content) for each in answer.items]
            rank = next((place for place, each in enumerate(said) if each in cue.right), None)
            places.append(Place(cue, rank, answer.items))
    return places


def share(places: Sequence[Place], *, among: int) -> float:
    """Return the share of cues whose right answer is among the first so many."""
    return sum(each.rank is not None and each.rank < among for each in places) / len(places)


async def measured(embedder: str) -> list[Place]:
    known = memories()
    async with remembered(known, embedder=embedder) as ports:
        local = create_embedder(embedder, api_key=None, base_url=None, timeout=30.0, sink=NoUsage())
        try:
            return await ask_all(known, ports, local)
        finally:
            await local.close()


@click.command()
@click.option("--embedder", default="hashing", show_default=True, help="As MEMSTREAM_EMBEDDER; local embedders only.")
def main(embedder: str) -> None:
    """Measure both halves, and print the tuning cues whose right answer is not first."""
    logs.configure(level=logging.ERROR)
    places = asyncio.run(measured(embedder))
    for each in places:
        if each.cue.half == "tune" and each.rank != 0:
            click.echo(each)
    for half in ("tune", "test"):
        asked = [each for each in places if each.cue.half == half]
        first, three = share(asked, among=1), share(asked, among=3)
        click.echo(f"{embedder}, {half}: {len(asked)} cues, right first {first:.3f}, among three {three:.3f}")


if __name__ == "__main__":
    main()
