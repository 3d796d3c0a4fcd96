"""Erasure over HTTP: a server that dies in the middle continues after its restart, and its client gets the receipt."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstream.client import connect
from memstream.streams.engine.crash_points import CRASHED
from tests.support.cli_process import Memstream
from tests.support.kafka import free_port
from tests.support.polling import wait_for
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.timeout(240)


def said(user: str, text: str) -> dict[str, object]:
    message = {"role": "user", "content": text}
    return {"tenant_id": "acme", "user_id": user, "session_id": "s1", "turn_id": "t1", "messages": [message]}


@pytest.mark.long
async def test_an_erasure_continues_after_the_server_died(tmp_path: Path) -> None:
    memstream, port = Memstream(tmp_path), free_port()
    with serving(memstream, port, "--with-stages") as server:
        async with connect(server.url) as memory:
            await memory.produce(said("ana", "I work at Stripe."))
            await memory.produce(said("bob", "I work at Google."))

            async def facts() -> set[str]:
                return {
                    fact.content
                    for user in ("ana", "bob")
                    async for fact in memory.api.facts(tenant_id="acme", user_id=user)
                }

            await wait_for(facts, "both facts", until=lambda found: len(found) == 2, deadline=60)
    env = {"MEMSTREAM_CRASH_POINT": "reflector:table", "MEMSTREAM_TESTING": "1"}
    dying = Serving(memstream, port, "--with-stages", **env)
    dying.until(lambda: dying.get("/readyz"))
    async with connect(dying.url) as memory:
        begun = await memory.api.erase("ana", tenant_id="acme")
    assert (begun.state, begun.receipt) == ("open", None)
    await wait_for(dying.process.poll, "the crash", until=lambda code: code is not None, deadline=60)
    assert dying.process.returncode == CRASHED
    with serving(memstream, port, "--with-stages") as server:
        async with connect(server.url) as memory:
            done = await wait_for(
                lambda: memory.api.erasure(begun.erasure_id),
                "the receipt",
                until=lambda found: found.state == "closed",
                deadline=90,
            )
            assert done.receipt is not None
            places = done.receipt["places"]
            assert isinstance(places, list)
            assert {place["place"]: place["with_ids"] for place in places if place["with_ids"]} == {}  # type: ignore[index,call-overload]
            left = [fact.content async for fact in memory.api.facts(tenant_id="acme", user_id="ana")]
            kept = [fact.content async for fact in memory.api.facts(tenant_id="acme", user_id="bob")]
            assert (left, kept) == ([], ["Works at Google"])
