"""Time to the first byte of console pages ÷ time of the REST answer behind them: `python -m bench.console`.

One user has many facts on a folder, each with its event in the log. Pages and REST answers are asked in turn, in one
process and without a socket: what a socket costs is the same for both, and would hide a slow page.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from fastapi import FastAPI
from rich.console import Console

from memstream.adapters.ports import Point
from memstream.api.credentials import Credentials
from memstream.schemas import ids
from memstream.schemas.collections import FACTS
from memstream.schemas.facts import StoredFact
from tests.support.console_world import ConsoleWorld, console_world
from tests.support.record_builders import observation, stored_fact

from .report import Figure, as_json, as_table, machine
from .run import OUT

TARGET: Final = 2.0
BATCH: Final = 200
USER: Final = "tenant_id=acme&user_id=u1"
WORDS: Final = ("coffee", "Lisbon", "running", "jazz", "chess", "Stripe", "tea", "Oslo", "Rust", "pottery")


async def fill(world: ConsoleWorld, count: int) -> StoredFact:
    """Write facts of one user with their events. Return one that also has its observation and its turn."""
    whole = await world.learnt("Works at Stripe", user="u1")
    session = ids.session_key("acme", "u1", "s1")
    for first in range(1, count, BATCH):
        facts = [fact_of(whole, number, session) for number in range(first, min(first + BATCH, count))]
        vectors = await world.memory.embedder.embed([each.content for each in facts], tenant_id="acme")
        points = [
            Point(each.fact_id, each.to_payload(), dense=vector, text=each.content)
            for each, vector in zip(facts, vectors, strict=True)
        ]
        await world.past.store.put(FACTS, points)
        await asyncio.gather(*(world.changed(each, None, action="new") for each in facts))
    return whole


def fact_of(like: StoredFact, number: int, session: str) -> StoredFact:
    content = f"Likes {WORDS[number % len(WORDS)]} number {number} more than {WORDS[number // 10 % len(WORDS)]}"
    cause = observation(content, session=session).observation_id
    evidence = tuple(each.model_copy(update={"observation_id": cause, "quote": content}) for each in like.evidence)
    changes = {"tenant_id": like.tenant_id, "owner": like.owner, "owner_key": like.owner_key, "evidence": evidence}
    return stored_fact(content).model_copy(update=changes | {"fact_id": ids.fact_id(like.owner_key, cause)})


async def first_byte(app: FastAPI, path: str) -> tuple[float, int]:
    """Return the seconds until the body of an answer begins, and the bytes of this first piece."""
    target, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": target, "raw_path": target.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    }  # fmt: skip
    found: list[tuple[float, int]] = []
    status: list[int] = []

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])
        elif not found:
            found.append((time.perf_counter() - began, len(message["body"])))

    began = time.perf_counter()
    await app(scope, receive, send)  # type: ignore[arg-type]
    assert status == [200], (status, path)
    return found[0]


async def compare(app: FastAPI, what: str, page: str, rest: str, *, rounds: int) -> Figure:
    """Ask for a page and for its REST answer in turn, and compare the medians."""
    for path in (page, rest):
        await first_byte(app, path)
    pages, answers = [], []
    for number in range(rounds):
        order = ((page, pages), (rest, answers))
        for path, taken in order if number % 2 == 0 else reversed(order):
            taken.append(await first_byte(app, path))
    (page_s, page_bytes), (rest_s, rest_bytes) = map(medians, (pages, answers))
    detail = {
        "page ms": 1_000 * page_s,
        "REST ms": 1_000 * rest_s,
        "page kB": page_bytes / 1e3,
        "REST kB": rest_bytes / 1e3,
    }
    return Figure(
        ratio="console",
        what=f"{what}: page ÷ REST",
        on="embedded",
        value=page_s / rest_s,
        target=TARGET,
        better="lower",
        detail=detail,
    )


def medians(taken: Sequence[tuple[float, int]]) -> tuple[float, float]:
    return statistics.median(each[0] for each in taken), statistics.median(each[1] for each in taken)


async def measure(count: int, *, rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="memstream-bench-", ignore_cleanup_errors=True) as folder:
        async with console_world(Path(folder), Credentials(None)) as world:
            fact = await fill(world, count)
            pairs = {
                "list of facts": (f"/console/facts?{USER}", f"/v1/facts?{USER}"),
                "list of facts in every state": (f"/console/facts?{USER}&state=all", f"/v1/facts?{USER}&state=all"),
                "one fact": tuple(
                    path.format(fact.fact_id) for path in
                    ("/console/facts/{}?tenant_id=acme", "/v1/facts/{}/trace?tenant_id=acme")
                ),
            }  # fmt: skip
            figures = [
                await compare(world.app, name, page, rest, rounds=rounds) for name, (page, rest) in pairs.items()
            ]
    return [replace(each, what=f"{each.what}, {count} facts of the user") for each in figures]


@click.command()
@click.option("--facts", default=10_000, show_default=True)
@click.option("--rounds", default=40, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=OUT)
def main(facts: int, rounds: int, out: Path) -> None:
    about, began = machine(), time.monotonic()
    figures = asyncio.run(measure(facts, rounds=rounds))
    out.mkdir(parents=True, exist_ok=True)
    result = as_json(about, figures, missing={}, seconds=time.monotonic() - began)
    (out / "console.json").write_text(json.dumps(result, indent=2))
    Console().print(as_table(figures))


if __name__ == "__main__":
    main()
