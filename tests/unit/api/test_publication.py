"""How a server is reached from outside: behind a proxy under a path of a site, and from web pages of other origins."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from docs.generate.openapi import bare_app
from memstream.api.app import Publication
from memstream.api.credentials import Credentials
from memstream.cli.commands.serve import OWN_SEGMENTS
from memstream.cli.main import cli
from tests.support.api_server import app_over, bearer, called, entry
from tests.unit.api.test_turns import TURN

APP, OTHER = "https://app.example.com", "https://evil.example"
TOKENS = Credentials([entry("mst_a")])


# ------------------------------------------------------------------------------------------------ a prefix
@pytest.mark.parametrize("before", ["", "/memory"])
async def test_a_proxy_may_remove_the_prefix_or_leave_it(before: str) -> None:
    api = called(app_over(credentials=TOKENS, publication=Publication("/memory")))
    for path in ("/livez", "/readyz", "/metrics"):
        assert (await api.get(before + path)).status_code == 200
    assert (await api.post(f"{before}/v1/turns", json=TURN, headers=bearer("mst_a"))).status_code == 202
    assert (await api.get(f"{before}/openapi.json")).status_code == 401, "the guard sees the path without the prefix"
    document = (await api.get(f"{before}/openapi.json", headers=bearer("mst_a"))).json()
    assert document["servers"] == [{"url": "/memory"}]
    page = (await api.get(f"{before}/docs", headers=bearer("mst_a"))).text
    assert "/memory/openapi.json" in page
    assert "/memory/docs/static/" in page
    files = [part.partition('"')[0] for part in page.split('"/memory/docs/static/')[1:]]
    for file in files:
        assert (await api.get(f"{before}/docs/static/{file}", headers=bearer("mst_a"))).status_code == 200
    missing = (await api.get(f"{before}/v1/nothing")).json()
    assert (missing["status"], missing["instance"]) == (404, "/memory/v1/nothing")


async def test_a_path_that_only_begins_like_the_prefix_is_another() -> None:
    api = called(app_over(publication=Publication("/m")))
    assert (await api.get("/metrics")).status_code == 200
    assert (await api.get("/m/metrics")).status_code == 200
    assert (await api.get("/mm/metrics")).status_code == 404


def test_each_first_segment_of_a_route_is_refused_as_a_prefix() -> None:
    assert {path.split("/")[1] for path in bare_app().openapi()["paths"]} <= OWN_SEGMENTS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("/v1", "/v1 is a path of this server"),
        ("docs/x", "/docs is a path of this server"),
        ("https://a.example/memory", "a path of letters"),
        ("/a b", "a path of letters"),
        ("/a//b", "a path of letters"),
        ("/a?b", "a path of letters"),
    ],
)
def test_a_prefix_that_is_none_is_refused(given: str, said: str) -> None:
    done = CliRunner().invoke(cli, ["serve", "--root-path", given])
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


# ------------------------------------------------------------------------------------------------ pages
def preflight(origin: str) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-memstream-user",
    }


async def test_without_the_setting_no_page_may_call() -> None:
    api = called(app_over(credentials=TOKENS))
    assert (await api.options("/v1/turns", headers=preflight(APP))).status_code == 405
    answer = await api.get("/v1/facts", headers=bearer("mst_a") | {"Origin": APP})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("credentials", [TOKENS, Credentials(None)], ids=["tokens", "no tokens"])
async def test_a_named_origin_may_call_and_another_may_not(credentials: Credentials) -> None:
    api = called(app_over(credentials=credentials, publication=Publication(origins=(APP,))))
    asked = await api.options("/v1/turns", headers=preflight(APP))
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, APP)
    assert "x-memstream-user" in asked.headers["access-control-allow-headers"]
    assert (await api.options("/v1/turns", headers=preflight(OTHER))).status_code == 400
    site = {"Sec-Fetch-Site": "cross-site"}
    sent = await api.post("/v1/turns", json=TURN, headers=bearer("mst_a") | {"Origin": APP} | site)
    assert (sent.status_code, sent.headers["access-control-allow-origin"]) == (202, APP)
    assert "Retry-After" in sent.headers["access-control-expose-headers"]
    foreign = await api.post("/v1/turns", json=TURN, headers=bearer("mst_a") | {"Origin": OTHER} | site)
    assert "access-control-allow-origin" not in foreign.headers
    assert foreign.status_code == (403 if credentials.open else 202), "without tokens nothing is done for it either"
    denied = await api.get("/v1/nothing", headers={"Origin": APP})
    assert (denied.status_code, denied.headers["access-control-allow-origin"]) == (404, APP), "a page can read errors"


async def test_without_tokens_a_page_of_no_named_origin_is_refused_as_before() -> None:
    api = called(app_over(publication=Publication(origins=(APP,))))
    for headers in ({"Origin": OTHER}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        assert (await api.get("/v1/facts?tenant=acme", headers=headers)).status_code == 403
    rebound = {"Origin": APP, "Host": "app.example.com"}
    assert (await api.get("/v1/facts?tenant=acme", headers=rebound)).status_code == 403
