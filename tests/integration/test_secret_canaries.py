"""A canary of each kind goes through the whole product, and nothing that we write has it afterwards.

A model over the wire copies everything that it sees into contents, quotes and summaries. The turns come on every way:
at once, waiting for a model that is away, refused by it, undecodable, with a worker that dies between two steps; a
command brings some too. Then every byte is looked at: topics, changelogs, tables, collections, prompts, logs.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.schemas.cloudevents import MASKED_HEADER
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.topics import COMMANDS, TURNS
from tests.support.model_server import OBSERVATION, Answer, Ask, ModelServer, error, garbage, nothing
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import Place
from tests.support.polling import wait_for

pytestmark = pytest.mark.timeout(240)

CANARIES: dict[str, tuple[str, str]] = {
    "password": ("My password is {}, and I prefer mint tea.", "Zebra-7791-kite"),
    "pin": ("The PIN of my card is {}, and I like green apples.", "831694"),
    "passphrase": ("My passphrase is {}, and I play the cello.", "velvet anchor sunday lantern"),
    "api_key": ("Our AWS key is {} and I prefer dark chocolate.", "AKIA" + "Q3EGFAKE7XAMPLE2"),
    "token": ("Use {} for it, and I enjoy long walks.", "ghp_" + "FakeFakeFake0123456789abcdefABCDEF01"),
    "jwt": (
        "The header is {} and I love old maps.",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJmYWtlLXVzZXItMDEifQ." + "ZmFrZS1zaWduYXR1cmUtZm9yLXRlc3Rz",
    ),
    "private_key": (
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\nAnd I collect stamps.",
        "RkFLRS1rZXktZm9yLXRlc3RzLW9ubHktMDEyMzQ1Njc4OTA=",
    ),
    "connection_string": ("It is postgres://keeper:{}@db.example.com:5432/app and I grow tomatoes.", "Walrus-4402"),
    "card": ("My card is {}, and I prefer window seats.", "4000 0566 5566 5556"),
    "iban": ("My IBAN is {}, and I sing in a choir.", "DE89 3704 0044 0532 0130 00"),
}
SECRETS = {kind: secret for kind, (_, secret) in CANARIES.items()}
AWAY, REFUSED = "(the model is away)", "(no use)"
POLICY = "[memory.observe]\npatience = 0.5\n"


def said(kind: str) -> str:
    sentence, secret = CANARIES[kind]
    return sentence.format(secret)


def pairs(kinds: list[str]) -> list[tuple[str, str]]:
    return list(zip(kinds[::2], kinds[1::2], strict=True))


class Copier:
    """A model that writes down whatever it reads. It is away or of no use for some turns."""

    def __init__(self) -> None:
        self.is_away = True

    def __call__(self, ask: Ask) -> Answer:
        text = ask.last_user_message
        if self.is_away and AWAY in text:
            return error(503)
        if REFUSED in text:
            return garbage()
        if ask.task == "observations":
            items: list[Any] = []
            for name, shown in ask.turns.items():
                words = shown.removeprefix("user: ")
                lasting = {"turn": name, "durability": "permanent", "importance": 0.9, "category": "attribute"}
                items.append({**OBSERVATION, **lasting, "content": words[:1_000], "evidence": words[:450]})
                liked = words.replace("\n", " ").rpartition(" I ")[2]
                items.append({**OBSERVATION, **lasting, "content": f"They {liked}", "evidence": words[:450]})
            return {"observations": items}
        if ask.task == "consolidation":
            ids = re.findall(r"\[(e\d+)\]", text)
            new = {"action": "new", "subject": "user", "category": "knowledge", "confidence": 0.9}
            return {"facts": [{**new, "content": text[:1_500], "source_episode_ids": ids}]}
        if ask.task in ("summary", "digest"):
            return {"text": text[:1_500]}
        return nothing(ask)


@pytest.fixture
def mind() -> Copier:
    return Copier()


@pytest.fixture
def model(mind: Copier) -> Iterator[ModelServer]:
    with ModelServer(mind) as server:
        yield server


@pytest.fixture
async def pipeline(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    env = {"MEMSTREAM_SESSION_TIMEOUT": "10", "MEMSTREAM_TIER": "standard"}
    async with running(in_folder.pipeline(model, env=env, policy=POLICY)) as ready:
        yield ready


# ------------------------------------------------------------------------------------------------ looking
FORMS = {
    kind: tuple(form.encode() for form in {secret, secret.replace(" ", ""), json.dumps(secret)[1:-1]})
    for kind, secret in SECRETS.items()
}
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{24,}")


def leaks(where: str, raw: bytes) -> list[str]:
    """Name the canaries that stand in these bytes: as they are, without spaces, or in base64, as in rows of tables."""
    every = [raw]
    for run in () if where.startswith("store/") else BASE64.findall(raw):
        if len(run) % 4 != 1:
            padded = run.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(run) % 4)
            every.append(base64.b64decode(padded))
    return [
        f"{kind} in {where}" for kind, forms in FORMS.items() if any(form in one for form in forms for one in every)
    ]


async def everything(pipeline: Pipeline, model: ModelServer) -> list[tuple[str, bytes]]:
    """All bytes that the product has written, each with its place, but for what others put on its topics."""
    found: list[tuple[str, bytes]] = []
    for topic in await pipeline.log.topics():
        if topic != TURNS.name:
            for record in await pipeline.records(topic):
                if topic == COMMANDS.name and b'"issued_by":"test"' in (record.value or b""):
                    continue
                headers = b"\n".join(name.encode() + b": " + value for name, value in record.headers)
                found.append((topic, b"\n".join((record.key or b"", record.value or b"", headers))))
    for path in pipeline.folder.rglob("*"):
        if path.is_file() and "log.sqlite3" not in path.name:
            found.append((str(path.relative_to(pipeline.folder)), path.read_bytes()))
    found += [
        (f"prompt {ask.number} ({ask.task})", json.dumps(ask.body, ensure_ascii=False).encode()) for ask in model.asks
    ]
    return found


async def payloads(pipeline: Pipeline) -> list[tuple[str, bytes]]:
    """Every record of every collection, which the engine compresses in its files. The worker has ended."""
    identity = HashingEmbedder().identity
    store = await open_store(f"embedded://{pipeline.folder / 'store'}", embedder=identity, holds_folder=True)
    found = [
        (f"{spec.name}/{each.id}", json.dumps(each.payload, ensure_ascii=False).encode())
        for spec in COLLECTIONS
        if await store.exists(spec.name)
        for each in await store.select(spec.name, tenant_id=pipeline.tenant)
    ]
    await store.close()
    return found


async def check(
    pipeline: Pipeline, model: ModelServer, more: Sequence[tuple[str, bytes]] = ()
) -> list[tuple[str, bytes]]:
    found = [*await everything(pipeline, model), *more]
    leaked = sorted({leak for where, raw in found for leak in leaks(where, raw)})
    assert not leaked, "\n".join(leaked)
    return found


def test_the_search_finds_a_canary_in_every_form() -> None:
    secret = SECRETS["password"].encode()
    inside = base64.urlsafe_b64encode(b'{"content":"' + secret + b'"}')
    assert leaks("x", secret) == leaks("x", b'{"value":"' + inside + b'"}') == ["password in x"]
    assert leaks("x", SECRETS["card"].replace(" ", "").encode()) == ["card in x"]
    assert leaks("x", b"[password] [card]") == []


@pytest.mark.long
async def test_no_masked_secret_is_anywhere(pipeline: Pipeline, model: ModelServer, mind: Copier) -> None:
    kinds = list(CANARIES)
    at_once: list[Json] = [turn(f"{said(one)} {said(other)}", n) for n, (one, other) in enumerate(pairs(kinds))]
    later: list[Json] = [
        turn(" ".join(map(said, kinds)) + f" {AWAY}", 1, session="away"),
        turn(f"{said('password')} {REFUSED}", 1, session="refused", metadata={"pin": SECRETS["pin"]}),
        turn("Hello.", 1, session="invalid") | {"messages": [{"role": "nobody", "content": said("card")}]},
    ]
    await pipeline.produce(*at_once)
    # A worker dies between store and publish, in the middle of a masked turn.
    await pipeline.crashes("all", at="observer:store:2")
    await check(pipeline, model)

    pipeline.spawn("all")
    await pipeline.produce(*later)
    await pipeline.command(
        "facts.apply",
        run_id="r1",
        changes=[
            {"action": "new", "subject": "user", "content": said(kind), "category": "knowledge", "reason": said(kind)}
            for kind in kinds
        ],
    )
    await pipeline.command(f"unknown {SECRETS['api_key']}")
    await pipeline.settled()
    assert await pipeline.dead_letters() != []
    await check(pipeline, model)

    mind.is_away = False
    observed = len(at_once) + 1
    await wait_for(
        pipeline.observed, "the deferred turns", until=lambda found: len(set(found)) >= observed, deadline=60
    )
    for kind in ("consolidate", "digest"):
        await pipeline.command(kind)
    await pipeline.settled()
    pipeline.stop()
    stored = await payloads(pipeline)
    assert {where.partition("/")[0] for where, _ in stored} >= {"turns", "working", "episodes", "facts", "digests"}
    found = await check(pipeline, model, stored)

    written = b"\n".join(raw for _, raw in found)
    assert [kind for kind in kinds if f"[{kind}]".encode() not in written] == []
    (refused, *_) = [each for each in await pipeline.dead_letters() if b"refused" in (each.key or b"")]
    assert dict(refused.headers)[MASKED_HEADER] == b"1"
    quotes = [
        piece["quote"]
        for fact in pipeline.json_lines("show", "facts", "--tenant", pipeline.tenant, "--state", "all")
        if fact["content"].startswith("They ")
        for piece in fact["evidence"]
    ]
    assert quotes
    assert not any("[" in quote for quote in quotes), quotes
    assert {ask.task for ask in model.asks} >= {"observations", "consolidation", "digest"}
    await pipeline.verified()
