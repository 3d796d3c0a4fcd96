"""The console over a whole pipeline, on Kafka and in a folder: a person signs in, looks for the cause of a wrong fact
on each screen, and forgets it by its form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from selectolax.lexbor import LexborHTMLParser

from tests.support.cli_process import Memstream
from tests.support.console_pages import page_of, words
from tests.support.conversation import PERSISTENT
from tests.support.kafka import free_port
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for
from tests.support.serving import serving

pytestmark = [pytest.mark.long, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]
JOB: dict[str, Any] = {"category": "profession", "slot": "employer", **PERSISTENT}
KNOWN: dict[str, list[dict[str, Any]]] = {
    "I work at Google": [{**JOB, "content": "Works at Google", "value": "Google"}],
    "now I work at Stripe": [{**JOB, "content": "Works at Stripe", "value": "Stripe"}],
}
SAID = ["I work at Google.", "Well, now I work at Stripe.", "What is the weather like?"]
REFUSED = {"user_id": "u1", "session_id": "s1", "turn_id": "t9"}
"""A turn without messages."""
SCOPES = ("memory:read", "memory:read-secret", "memory:write", "memory:admin")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(place.pipeline(model, env={"MEMSTREAM_EMBEDDER": "hashing"})) as ready:
        yield ready


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def console(pipeline: Pipeline) -> AsyncIterator[httpx.AsyncClient]:
    """The browser of a person who has signed in, after the stages have read every turn."""
    scopes = [part for each in SCOPES for part in ("--scope", each)]
    (made,) = pipeline.json_lines("tokens", "new", "--name", "eva", "--tenant", pipeline.tenant, *scopes)
    (pipeline.folder / "tokens.toml").write_text(made["entry"])
    memstream = Memstream(pipeline.folder, pipeline.environment(MEMSTREAM_TOKENS="tokens.toml"))
    with serving(memstream, free_port(), "--with-stages") as server:
        await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)), dict(REFUSED))
        await pipeline.settled()
        async with httpx.AsyncClient(base_url=server.url, timeout=60, follow_redirects=True) as client:
            form = page_of(await client.get(address(pipeline, "facts")))
            assert words(form, "h1") == "Sign in"
            facts = page_of(await client.post("/console/sign-in", data=fields(form) | {"token": made["token"]}))
            assert words(facts, "h1").startswith("Facts of user u1")
            yield client


def address(pipeline: Pipeline, page: str, **query: str) -> str:
    return str(httpx.URL(f"/console/{page}", params={"tenant_id": pipeline.tenant, "user_id": "u1", **query}))


def fields(page: LexborHTMLParser, form: str = "main form") -> dict[str, str]:
    """Return the hidden fields of a form."""
    found = page.css_first(form).css("input[type=hidden]")
    return {str(each.attributes["name"]): str(each.attributes["value"]) for each in found}


def texts(page: LexborHTMLParser, selector: str) -> list[str]:
    return [" ".join(node.text(separator=" ").split()) for node in page.css(selector)]


def link_to(page: LexborHTMLParser, text: str) -> str:
    return str(next(node for node in page.css("main a") if node.text().strip() == text).attributes["href"])


async def test_the_start_page_has_the_stages_at_the_end_of_the_log(console: httpx.AsyncClient) -> None:
    start = page_of(await console.get("/console"))
    assert texts(start, "#stages tr") == [f"{name} 1 0 – 0" for name in ("recorder", "observer", "reflector",
                                                                      "consolidation")]  # fmt: skip
    assert {part.split()[-1] for part in texts(start, "#parts li")} == {"ready"}
    assert words(start, ".who") == "eva"


async def test_a_fact_leads_to_the_words_and_to_the_fact_that_it_closed(
    pipeline: Pipeline, console: httpx.AsyncClient
) -> None:
    facts = page_of(await console.get(address(pipeline, "facts")))
    assert texts(facts, "ul.records .statement") == ["Works at Stripe"]
    stripe = page_of(await console.get(link_to(facts, "Works at Stripe")))
    assert words(stripe, "h1") == "Works at Stripe"
    assert texts(stripe, "mark") == ["now I work at Stripe"]
    (version,) = texts(stripe, ".timeline > li")
    assert version.startswith("new version 1 active")
    google = page_of(await console.get(link_to(stripe, "Works at Google")))
    assert words(google, "h1 + .meta").startswith("superseded version 2")
    assert texts(google, ".timeline .head strong") == ["superseded", "new"]


async def test_the_trail_has_each_turn_with_its_outcome(pipeline: Pipeline, console: httpx.AsyncClient) -> None:
    trail = page_of(await console.get(address(pipeline, "trail")))
    turns = texts(trail, "article.turn")
    assert [each.split()[:2] for each in turns] == [["t3", "reflected"], ["t2", "reflected"], ["t1", "reflected"]]
    weather, stripe, google = turns
    assert "Nothing was learnt: the model found nothing in it that lasts" in weather
    assert ("learnt Works at Stripe" in stripe, "closed Works at Google" in stripe) == (True, True)
    assert "closed Works at Google" in google
    assert words(trail, "#lag") == "All stages have read everything that was sent."
    assert trail.css_first("main").attributes["data-updates"], "the page is live"
    one = page_of(await console.get(link_to(trail, "t2")))
    assert words(one, ".said") == "Well, now I work at Stripe."


async def test_the_lab_shows_the_scores_and_the_context(pipeline: Pipeline, console: httpx.AsyncClient) -> None:
    lab = page_of(await console.get(address(pipeline, "lab", cue="Where do I work?", preset="full")))
    (fact,) = (row for row in texts(lab, "#answer tr") if row.startswith("Works at Stripe"))
    assert "semantic" in fact
    assert "Works at Stripe" in words(lab, "#context")
    assert lab.css_first(".notice.warn") is None, "no part of memory is missing"


async def test_a_refused_turn_is_a_dead_letter_with_its_record(pipeline: Pipeline, console: httpx.AsyncClient) -> None:
    letters = page_of(await console.get(address(pipeline, "dead-letters")))
    assert letters.css_first(".notice.warn") is None
    listed = texts(letters, "#letters > li")
    assert listed
    assert all("t9" in each for each in listed)
    links = [str(node.attributes["href"]) for node in letters.css("#letters a")]
    path = next(each for each in links if "/dead-letters/" in each)
    letter = page_of(await console.get(httpx.URL(path).copy_merge_params({"ceiling": "secret"})))
    assert "memory.turns" in texts(letter, "dd")
    assert '"turn_id": "t9"' in words(letter)


async def test_a_wrong_fact_is_forgotten_and_the_one_before_is_believed(
    pipeline: Pipeline, console: httpx.AsyncClient
) -> None:
    facts = page_of(await console.get(address(pipeline, "facts")))
    stripe = page_of(await console.get(link_to(facts, "Works at Stripe")))
    action = str(stripe.css_first("form[action$='/forget']").attributes["action"])
    given = fields(stripe, "form[action$='/forget']") | {"reason": "he never did", "because": "wrong"}
    done = page_of(await console.post(action, data=given))
    assert words(done, ".notice") == "Done."
    assert words(done, "h1 + .meta").startswith("forgotten version 2")
    newest = texts(done, ".timeline > li")[0]
    assert ("he never did" in newest, "by eva" in newest) == (True, True)
    facts = page_of(await console.get(address(pipeline, "facts")))
    assert texts(facts, "ul.records .statement") == ["Works at Google"]
    await pipeline.settled()
    await pipeline.verified()
