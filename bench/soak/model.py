"""The scripted model of the soak, a process with the OpenAI protocol: `python -m bench.soak.model`.

It returns the observations of `conversation.noted` and sometimes misbehaves. The fault depends on the seed, the
question and how often it was asked before, so that the same question fails in the same way for every caller. A control
port returns counts and makes the model unavailable for some time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import click
from aiohttp import web

from bench.soak.conversation import UNSPEAKABLE, Note, noted
from bench.soak.hostile import ORDER
from tests.support.openai_bodies import CHARACTERS_A_TOKEN, OBSERVATION, completion
from tests.support.prompt_view import PromptView, user_text, view

Json = dict[str, Any]
Away = Literal["refuses", "hangs", "overloaded"]
AWAYS: tuple[Away, ...] = ("refuses", "hangs", "overloaded")
MARK = re.compile(r"\(note (\d+)\)")
"""Pattern of the number in every turn of the soak. It identifies repeated answers."""
NAMED = re.compile(r'JSON schema, named "(\w+)"')
PROSE = ("summary", "digest")
LATENCY = (0.05, 0.35)
"""Range of the time of an answer in seconds."""
SLOW = 4.0
TOO_SLOW = 30.0
"""Time of a hanging answer in seconds, longer than the time-out of the soak's workers."""
HANGS = 3_600.0


@dataclass
class Counts:
    """Counts of questions and answers since the start."""

    asked: int = 0
    misbehaved: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)
    """Number of usable answers by note number."""
    runs: Counter[bytes] = field(default_factory=Counter)
    """Number of usable answers to consolidation by question."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Tokens by schema name and direction, counted as 4 characters each."""
    times: Counter[bytes] = field(default_factory=Counter)
    """Number of times that each question was asked."""

    def as_json(self) -> Json:
        return {
            "asked": self.asked,
            "misbehaved": dict(self.misbehaved),
            "tokens": dict(self.tokens),
            "turns_answered": len(self.answers),
            "turns_answered_again": sum(self.answers.values()) - len(self.answers),
            "runs_answered": len(self.runs),
            "runs_answered_again": sum(self.runs.values()) - len(self.runs),
        }


class Model:
    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self._counts = Counts()
        self._away: Away | None = None

    # ------------------------------------------------------------------------------------------------ control
    async def counts(self, request: web.Request) -> web.Response:
        return web.json_response(self._counts.as_json())

    async def go(self, request: web.Request) -> web.Response:
        """Handle `/away/<how>` and `/back`."""
        how = request.match_info.get("how")
        self._away = next((each for each in AWAYS if each == how), None)
        return web.json_response({"away": self._away})

    # ------------------------------------------------------------------------------------------------ protocol
    async def chat(self, request: web.Request) -> web.StreamResponse:
        if self._away is not None:
            return await self._gone(request, self._away)
        body = await request.json()
        messages = [(str(each["role"]), str(each["content"])) for each in body["messages"]]
        question = next(content for role, content in reversed(messages) if role == "user")
        digest = hashlib.blake2b(question.encode("utf-8", "replace"), digest_size=16).digest()
        counts = self._counts
        counts.asked += 1
        counts.times[digest] += 1
        times = counts.times[digest]
        roll = self._roll(digest, times)
        await asyncio.sleep(LATENCY[0] + (LATENCY[1] - LATENCY[0]) * self._roll(digest, -times))
        if self._away is not None:
            return await self._gone(request, self._away)
        if UNSPEAKABLE in question:
            counts.misbehaved["unspeakable"] += 1
            return _answer(body, "Hm.")
        if roll < 0.005:
            counts.misbehaved["429"] += 1
            return web.json_response({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "1"})
        if roll < 0.009:
            counts.misbehaved["500"] += 1
            return web.json_response({"error": {"message": "scripted"}}, status=500)
        if roll < 0.010:
            counts.misbehaved["too slow"] += 1
            await asyncio.sleep(TOO_SLOW)
        elif roll < 0.015:
            counts.misbehaved["slow"] += 1
            await asyncio.sleep(SLOW)
        elif roll < 0.020 and times == 1:
            counts.misbehaved["garbage"] += 1
            return _answer(body, "Sure! Here is what I noticed:")
        elif roll < 0.025 and times == 1:
            counts.misbehaved["cut"] += 1
            return _answer(body, '{"observations": [{"subj', finish_reason="length")
        schema = _schema(body, messages)
        answer: Json = {}
        if schema == "observations":
            counts.answers.update(int(number) for number in MARK.findall(question))
            answer = {"observations": observations(view(messages))}
        elif schema == "consolidation":
            counts.runs[digest] += 1
            answer = {"facts": proposals(view(messages), roll)}
        elif schema in PROSE:  # different words at each request
            answer = {"text": f"Small talk, of {len(MARK.findall(question))} turns; told {times} times."}
        content = json.dumps(answer)
        counts.tokens[f"{schema} in"] += sum(len(text) for _, text in messages) // CHARACTERS_A_TOKEN
        counts.tokens[f"{schema} out"] += len(content) // CHARACTERS_A_TOKEN
        return _answer(body, content)

    async def _gone(self, request: web.Request, how: Away) -> web.StreamResponse:
        self._counts.misbehaved[how] += 1
        if how == "overloaded":
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        if how == "hangs":
            await asyncio.sleep(HANGS)
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=503)

    def _roll(self, digest: bytes, times: int) -> float:
        mixed = hashlib.blake2b(f"{self._seed}/{times}/".encode() + digest, digest_size=8).digest()
        return int.from_bytes(mixed, "big") / 2**64


def observations(prompt: PromptView) -> list[Json]:
    """Return the observations of the shown turns. The model obeys all instructions, whoever gives them.

    The entry that an observation replaces is searched among the shown entries.
    """
    items: list[Json] = []
    for turn, text in prompt.turns.items():
        ordered = [(ORDER, Note(ORDER, "preference"))] if ORDER in text else []
        for words, note in (*noted(user_text(text)), *ordered):
            replaces = None
            if note.replaces is not None:
                shown = [each.id for each in prompt.working.values() if each.content.startswith(note.replaces)]
                replaces = shown[-1] if shown else None
            items.append(
                {
                    **OBSERVATION,
                    "turn": turn,
                    "content": note.content,
                    "category": note.category,
                    "durability": note.durability,
                    "importance": note.importance,
                    "replaces": replaces,
                    "is_correction": note.is_correction and replaces is not None,
                    "evidence": words,
                }
            )
    return items


def proposals(prompt: PromptView, roll: float) -> list[Json]:
    """Return one new, reinforced or updated fact, or no fact."""
    sources = list(prompt.episodes)
    if not sources:
        return []
    first = next(iter(prompt.episodes.values())).content
    known = next(iter(prompt.facts.values()), None)
    proposal: Json = {
        "subject": "user", "content": f"Often says: {first}", "confidence": 0.6, "category": "pattern", "action": "new",
        "target_fact_id": None, "source_episode_ids": sources,
    }  # fmt: skip
    if roll < 0.4 or known is None:
        return [proposal]
    if roll < 0.6:
        return [{**proposal, "action": "reinforce", "target_fact_id": known.id, "content": known.content}]
    if roll < 0.7:
        content = known.content if known.content.endswith(" indeed") else f"{known.content} indeed"
        return [{**proposal, "action": "update", "target_fact_id": known.id, "content": content}]
    return []


def _schema(body: Json, messages: Sequence[tuple[str, str]]) -> str | None:
    """Return the name of the answer's schema, which a request in JSON mode has in its messages."""
    if (schema := body.get("response_format", {}).get("json_schema")) is not None:
        return str(schema["name"])
    shown = NAMED.search("\n".join(text for _, text in messages))
    return None if shown is None else shown.group(1)


def _answer(body: Json, content: str, *, finish_reason: str = "stop") -> web.Response:
    tokens_in = sum(len(str(each["content"])) for each in body["messages"]) // CHARACTERS_A_TOKEN
    tokens_out = len(content) // CHARACTERS_A_TOKEN
    model = body["model"]
    return web.json_response(
        completion(content, model=model, tokens_in=tokens_in, tokens_out=tokens_out, finish_reason=finish_reason)
    )


async def serve(*, port: int, control: int, seed: int) -> None:
    model = Model(seed=seed)
    wire = web.Application(client_max_size=16 * 1024 * 1024)
    wire.router.add_post("/v1/chat/completions", model.chat)
    levers = web.Application()
    levers.add_routes(
        [web.get("/counts", model.counts), web.post("/away/{how}", model.go), web.post("/back", model.go)]
    )
    for application, at in ((wire, port), (levers, control)):
        runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", at).start()
    await asyncio.Event().wait()


@click.command()
@click.option("--port", type=int, required=True)
@click.option("--control", type=int, required=True)
@click.option("--seed", type=int, required=True)
def main(port: int, control: int, seed: int) -> None:
    """Serve until killed."""
    asyncio.run(serve(port=port, control=control, seed=seed))


if __name__ == "__main__":
    main()
