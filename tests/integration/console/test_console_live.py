"""The stream behind the console's live pages over a real store, log and socket: which pages have it, and to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memstream.api.app import new_followers
from memstream.api.console.live import TurnAudience
from memstream.api.console.sign_in import COOKIE
from memstream.api.credentials import Credentials, TokenEntry
from memstream.api.limits import Limits
from memstream.schemas.errors import Transient
from memstream.schemas.topics import OBSERVATIONS, TURNS, StageName, Topic, group_of
from memstream.schemas.turns import Owner
from memstream.streams.log.fanout import CLOSE
from memstream.streams.log.offsets import Offsets
from memstream.streams.log.port import Log, Position, Record
from tests.support.api_server import app_over, served
from tests.support.console_pages import called, page_of
from tests.support.console_world import ALL_RIGHTS, BOUND, READ_ONLY, ConsoleWorld, Run, console_world
from tests.support.record_builders import observation, observed
from tests.support.sse import Stream, streaming

USER = "tenant_id=acme&user_id=u1"


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[ConsoleWorld, str, list[TokenEntry]]]:
    """Serve a console. The list has its tokens, and a token that a test removes from it is gone."""
    entries = [ALL_RIGHTS, READ_ONLY, BOUND]
    credentials, limits = Credentials(entries), Limits(heartbeat_seconds=0.3)
    async with console_world(folder, credentials) as world:
        followers = new_followers(world.past.log, limits)
        app = app_over(log=world.past.log, store=world.past.store, commands=world.commands, credentials=credentials,
                       followers=followers, limits=limits)  # fmt: skip
        async with served(app, limits=limits, followers=followers) as url:
            yield world, url, entries


def signed_in(token: str = "all") -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={token}"}


async def address_of(url: str, path: str, token: str = "all") -> str:
    """Return the address of the stream of a page."""
    async with httpx.AsyncClient(base_url=url, headers=signed_in(token), timeout=30) as client:
        page = page_of(await client.get(path))
    return str(page.css_first("main").attributes["data-updates"])


@asynccontextmanager
async def live(url: str, path: str, token: str = "all") -> AsyncIterator[Stream]:
    """Open the stream of a page."""
    async with streaming(url, path=await address_of(url, path, token), headers=signed_in(token)) as stream:
        yield stream


async def told(stream: Stream, count: int) -> list[str]:
    return [block.json["fact"]["content"] for block in await stream.changes(count)]


async def test_a_page_hears_of_each_change_since_it_was_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as (world, url, _):
        fact = await world.learnt("Works at Google", user="u1")
        page = f"/console/facts/{fact.fact_id}?tenant_id=acme"
        for path in (page, f"/console/facts?{USER}"):
            async with live(url, path) as stream:
                await world.learnt("Hidden", user="u1", turn="secret", sensitivity="secret")
                await world.learnt("Of another user", user="u2")
                await world.learnt("Of another tenant", user="u1", tenant="rival")
                await world.learnt("Works at Stripe", user="u1", turn="t2")
                assert await told(stream, 1) == ["Works at Stripe"], path


# ------------------------------------------------------------------------------------------------ turns
async def sent(log: Log, topic: Topic, key: str, value: bytes = b"{}") -> None:
    await log.append(topic.name, key=key.encode(), value=value)


async def committed(log: Log, stage: StageName, topic: Topic) -> None:
    """Commit every record of the topic, as the stage does after it has handled them."""
    await log.commit(group_of(stage), topic.name, dict(enumerate(await log.ends(topic.name))))


async def handled(stream: Stream) -> Offsets:
    """Read the next event. Return the position after it: the turns of the recorder and of the observer,
    the observations, the changes of facts."""
    (block,) = await stream.changes(1)
    assert (block.event, block.data) == ("turn.handled", "{}")
    return Offsets.read(str(block.id))


@pytest.mark.parametrize("page", ["trail", "turns/t1"])
async def test_a_page_of_turns_hears_of_each_stage_that_has_handled_a_turn(tmp_path: Path, page: str) -> None:
    async with serving(tmp_path) as (world, url, _):
        await world.memory.message("I like tea.", user="u1", turn="t1")
        log = world.past.log
        async with live(url, f"/console/{page}?{USER}") as stream:
            for key in ("acme/u2/s1", "rival/u1/s1", "acme/u10/s1", "acme/u1/s9"):
                await sent(log, TURNS, key)
            await committed(log, "recorder", TURNS)
            assert (await handled(stream)).offsets == (4, 0, 0, 0), "only the fourth turn is of the user"
            await committed(log, "observer", TURNS)
            assert (await handled(stream)).offsets == (4, 4, 0, 0), "observed, refused or kept"
            await sent(log, OBSERVATIONS, "acme/user/u2")
            await sent(log, OBSERVATIONS, "acme/user/u1")
            await committed(log, "reflector", OBSERVATIONS)
            assert (await handled(stream)).offsets == (4, 4, 2, 0)
            await world.learnt("Of another user", user="u2")
            await world.learnt("Hidden", user="u1", turn="t2", sensitivity="secret")
            await world.learnt("Likes tea", user="u1", turn="t3")
            assert (await handled(stream)).offsets == (4, 4, 2, 3)


async def test_a_turn_handled_between_a_page_and_its_stream_is_not_lost(tmp_path: Path) -> None:
    async with serving(tmp_path) as (world, url, _):
        log = world.past.log
        address = await address_of(url, f"/console/trail?{USER}")
        await sent(log, TURNS, "acme/u1/s1")
        await committed(log, "recorder", TURNS)
        async with streaming(url, path=address, headers=signed_in()) as stream:
            await handled(stream)


async def test_a_page_that_is_far_behind_is_loaded_again_without_a_read_of_the_log(tmp_path: Path) -> None:
    async with serving(tmp_path) as (world, url, _):
        log = world.past.log
        address = await address_of(url, f"/console/trail?{USER}")
        for _ in range(CLOSE + 1):
            await sent(log, TURNS, "acme/u2/s1")
        await committed(log, "observer", TURNS)
        async with streaming(url, path=address, headers=signed_in()) as stream:
            assert (await handled(stream)).offsets == (0, CLOSE + 1, 0, 0)


def test_an_observation_of_a_group_changes_the_trail_of_its_speaker() -> None:
    made = observed(observation("Meets on Monday"), tenant_id="acme", owner=Owner(scope="group", id="g1"), user_id="u1")

    def record(topic: Topic, key: str, value: bytes) -> Record:
        return Record(Position(topic.name, 0, 0), key.encode(), value)

    speaker, other = (TurnAudience("acme", Owner(scope="user", id=each), "internal") for each in ("u1", "u2"))
    assert speaker.hears(record(OBSERVATIONS, "acme/group/g1", made.to_bytes()))
    assert not other.hears(record(OBSERVATIONS, "acme/group/g1", made.to_bytes()))
    assert not speaker.hears(record(OBSERVATIONS, "acme/group/g1", b"no observation"))
    assert not speaker.hears(record(OBSERVATIONS, "acme/user/u2", made.to_bytes())), "another user's is not decoded"
    assert not speaker.hears(record(TURNS, "acme/user/u1", b"")), "a session u1 of a user named user"
    assert not speaker.hears(record(OBSERVATIONS, "acme/u1/s1", b""))


# ------------------------------------------------------------------------------------------------ positions, rights
async def test_a_change_between_a_page_and_its_stream_is_not_lost(tmp_path: Path) -> None:
    async with serving(tmp_path) as (world, url, _):
        address = await address_of(url, f"/console/facts?{USER}")
        await world.learnt("Said in between", user="u1")
        async with streaming(url, path=address, headers=signed_in()) as stream:
            assert await told(stream, 1) == ["Said in between"]
        async with streaming(url, path=address, last=stream.last, headers=signed_in()) as again:
            await world.learnt("Said later", user="u1", turn="t2")
            assert await told(again, 1) == ["Said later"], "the position of a reconnect is newer than the page's"


async def test_a_stream_ends_with_its_token(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, url, entries), live(url, f"/console/trail?{USER}", "reader") as stream:
        entries.remove(READ_ONLY)
        assert (await stream.ended()).json["reason"] == "unauthorized"


@pytest.mark.parametrize(
    ("token", "query", "status"),
    [
        ("bound", "user_id=u1", 403),
        ("reader", "tenant_id=rival&user_id=u1", 403),
        ("reader", "user_id=u1&ceiling=secret", 403),
        ("all", f"{USER}&after=nonsense", 422),
        ("bound", "of=turns&user_id=u1", 403),
        ("reader", "of=turns&tenant_id=rival&user_id=u1", 403),
        ("reader", "of=turns&user_id=u1&ceiling=secret", 403),
        ("all", "of=turns&tenant_id=acme&scope=org&id=o1", 422),
        ("all", "of=turns&tenant_id=acme", 422),
        ("all", f"of=turns&{USER}&after=nonsense", 422),
        (None, "user_id=u1", 401),
    ],
)
def test_nobody_hears_what_the_token_does_not_allow(
    run: Run, world: ConsoleWorld, token: str | None, query: str, status: int
) -> None:
    async def opened() -> Any:
        async with called(world.app, token=token) as client:
            return await client.get(f"/console/updates?{query}")

    assert run(opened()).status_code == status


def test_pages_of_many_owners_and_pages_without_a_log_are_not_live(
    run: Run, world: ConsoleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def address(path: str) -> str | None:
        async with called(world.app, token="all") as client:
            page = page_of(await client.get(f"/console/{path}"))
        assert (page.css_first("#outdated") is None) == ("data-updates" not in page.css_first("main").attributes)
        return page.css_first("main").attributes.get("data-updates")

    async def away(*args: Any) -> Any:
        raise Transient("broker", "the log does not answer")

    assert run(address("facts?tenant_id=acme")) is None
    found = run(address("facts?tenant_id=acme&scope=org&id=o1&ceiling=public"))
    assert found is not None
    assert found.startswith("/console/updates?tenant_id=acme&scope=org&id=o1&ceiling=public&after=1.")
    monkeypatch.setattr(type(world.past.log), "ends", away)
    assert run(address(f"facts?{USER}")) is None
