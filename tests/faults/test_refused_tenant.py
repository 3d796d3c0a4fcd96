"""A content filter refuses all that a tenant or a user says. The model of other tenants and colleagues takes 0.2 s."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter

import httpx
import pytest

from memstream.schemas import ids
from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.streams.engine.breaker import BreakerPolicy
from tests.support.health import watched
from tests.support.model_server import Answer, Ask, Json, ModelServer, Reply, as_reply, content_filtered, nothing
from tests.support.pipeline import Pipeline, running, turn, wait_for
from tests.support.pipeline_places import BROKERS, Place
from tests.support.whole_worker import parsed

pytestmark = [pytest.mark.timeout(300)]
TURNS_SAID = 100
MODEL_TAKES = 0.2
IN_FLIGHT = 8
BETWEEN = 0.1
"""Seconds between two turns of the tenant that is well: half of what its model could take one after the other."""
STARVED = 5.0
"""Seconds. Behind a refused tenant a turn took 12.9 s, alone 0.22 s; a busy machine may take a few times as long."""
WHO = re.compile(r"\((\w+)\)")


class Model:
    """Refuses what `refused` says until `mended`."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.mended = False

    def __call__(self, ask: Ask) -> Answer:
        who = {found for text in ask.turns.values() for found in WHO.findall(text)}
        self.asked.update(who)
        if "refused" in who and not self.mended:
            return content_filtered()
        return Reply(**{**as_reply(nothing(ask)).__dict__, "delay": MODEL_TAKES})


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue("in_folder" if request.param == "embedded" else "on_kafka")
    return found


async def say(pipeline: Pipeline, who: str, n: int, *, tenant: str, users: int = 5) -> float:
    user = f"{who}{n % users}"
    fields = turn(f"({who}) I like thing {n}.", n, user=user, session=f"s{n % 25}", tenant_id=tenant)
    key = ids.session_key(tenant, user, fields["session_id"])
    await pipeline.log.append(TURNS.name, key=key.encode(), value=json.dumps(fields).encode())
    return time.time()


async def observed(pipeline: Pipeline, who: str) -> dict[str, float]:
    """By id of the observed turns of these users the time of the record, in seconds."""
    found: dict[str, float] = {}
    for record in await pipeline.records(OBSERVATIONS.name):
        fields: Json = parsed(record.value)
        ours = str(fields["tenant_id"]).startswith(pipeline.tenant)
        if ours and str(fields["user_id"]).startswith(who):
            found.setdefault(str(fields["turn_id"]), record.timestamp / 1000)
    return found


@pytest.mark.fault(
    broken="a content filter refuses 100 turns of a tenant, or a user, among 100 of another tenant, or colleagues",
    holds="no worker ends, it stays ready; the others do not wait; at most one call a turn; nothing is lost",
)
@pytest.mark.parametrize("users", [pytest.param(5, id="tenant"), pytest.param(1, id="user")])
async def test_a_refused_tenant_or_user_is_paused_and_loses_nothing(place: Place, users: int) -> None:
    mind = Model()
    env = {"MEMSTREAM_OBSERVE_TOGETHER": "1", "MEMSTREAM_IN_FLIGHT": str(IN_FLIGHT)}
    with ModelServer(mind) as model:
        made = place.pipeline(model, env=env)
        async with running(made) as pipeline, watched() as health:
            pipeline.configure("[memory.observe]\npatience = 2.0\n")
            worker = pipeline.spawn("observer", **health.env)
            await health.becomes(True, deadline=60)
            refused = f"{pipeline.tenant}-refused"
            well = f"{pipeline.tenant}-well" if users > 1 else refused
            said: dict[str, float] = {}
            for n in range(TURNS_SAID):
                await say(pipeline, "refused", n, tenant=refused, users=users)
                said[f"t{n}"] = await say(pipeline, "well", n, tenant=well)
                await asyncio.sleep(BETWEEN)
            seen = await wait_for(
                lambda: observed(pipeline, "well"),
                "the turns of the others",
                until=lambda seen: len(seen) == TURNS_SAID,
                deadline=60,
                detail=pipeline.logs,
            )
            took = sorted(seen[name] - at for name, at in said.items())
            print(f"p50 {took[TURNS_SAID // 2]:.2f} s, p95 {took[TURNS_SAID * 95 // 100]:.2f} s, {mind.asked}")
            assert took[TURNS_SAID * 95 // 100] < STARVED
            await pipeline.settled("observer")
            letters = await pipeline.dead_letters()
            assert mind.asked["refused"] <= len(letters) + 1, "one try may be under way"
            assert len(letters) <= BreakerPolicy().refusals + 2 * IN_FLIGHT
            look = health.last
            assert look is not None
            note, metric = f"paused tenants: 1: model:{refused}: ", "memstream_tenant_paused"
            if users == 1:
                note, metric = "paused users: 1 of 1 tenants", "memstream_tenant_users_paused"
            assert note in look.notes["observer"]
            async with httpx.AsyncClient() as client:
                told = (await client.get(f"http://127.0.0.1:{health.port}/metrics")).text
            assert f'{metric}{{stage="observer",tenant="{refused}"}} 1.0' in told
            mind.mended = True
            await wait_for(
                lambda: observed(pipeline, "refused"),
                "the refused turns",
                until=lambda seen: len(seen) == TURNS_SAID - len(letters),
                deadline=120,
                detail=pipeline.logs,
            )
            await pipeline.settled("observer")
            assert mind.asked["refused"] <= TURNS_SAID + 1
            assert worker.poll() is None
            assert pipeline.workers == [worker]
            assert all(each.ready for each in health.looks if each.at > look.at)
            health.always_alive()
