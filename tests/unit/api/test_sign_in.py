"""Access tokens of an identity provider: verification, keys, and the table of grants."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from memstream.api.app import new_followers
from memstream.api.credentials import Caller, Credentials
from memstream.api.problems import Problem
from memstream.api.sign_in import issuer_keys
from memstream.api.sign_in.access_tokens import TOKEN_MAX, ProvidedCredentials
from memstream.api.sign_in.grants import Grant, NoGrant, read_grants, rights_of, values_at
from memstream.api.sign_in.issuer_keys import AGAIN_SECONDS, FRESH_SECONDS, KEPT_SECONDS, IssuerKeys, fetch_keys
from memstream.api.sign_in.provider import Provider, why_elsewhere, why_unsafe
from memstream.schemas.errors import Transient
from memstream.schemas.tools import RecalledTraces
from memstream.schemas.topics import FACTS_UPDATED
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import LIMITS, app_over, bearer, called, entry, served
from tests.support.identity_provider import (
    AUDIENCE,
    IdentityProvider,
    ec_key,
    ed_key,
    public,
    rsa_key,
    segment,
)
from tests.support.polling import wait_for
from tests.support.sse import streaming
from tests.unit.api.test_mcp import connected, mcp_server
from tests.unit.tools.test_mcp_server import ScriptedTools

GRANT = Grant(when={}, tenants=("acme",), users_from="sub", scopes=("turns:write", "memory:read"))
AWAY = Transient("identity provider", "it is away")


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return 1_000.0 + self.ahead

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.ahead, UTC)


class World:
    """A provider, and the credentials of a server that trusts it."""

    def __init__(self, *grants: Grant, resource: str | None = None) -> None:
        self.clock, self.idp = Clock(), IdentityProvider()
        self.keys = IssuerKeys(self.idp.issuer, fetch=self.idp.fetch, clock=self.clock)
        self.credentials = ProvidedCredentials(
            Credentials([entry("mst_file")]),
            Provider(self.idp.issuer, (AUDIENCE, "other"), grants or (GRANT,), resource),
            keys=self.keys,
            now=self.clock.now,
        )

    async def refused(self, token: str) -> tuple[int, str]:
        with pytest.raises(Problem) as caught:
            await self.credentials.admit(token)
        return int(caught.value.status), caught.value.detail


async def test_a_token_of_the_provider_is_a_caller_and_a_token_of_the_file_stays_one() -> None:
    world = World()
    caller = await world.credentials.admit(world.idp.token())
    assert caller.name == "oidc:ana"
    assert (caller.tenants, caller.users) == (frozenset({"acme"}), frozenset({"ana"}))
    assert caller.scopes == {"turns:write", "memory:read"}
    assert (await world.credentials.admit("mst_file")).name == "mst_file"
    assert (await world.refused("mst_other"))[0] == 401
    with pytest.raises(Problem, match="a bearer token is needed"):
        await world.credentials.admit(None)


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"iss": "https://id.example.com/realms/other"}, "another issuer"),
        ({"iss": None}, "has no claim 'iss'"),
        ({"aud": "billing"}, "another audience"),
        ({"aud": ["billing", "web"]}, "another audience"),
        ({"aud": None}, "has no claim 'aud'"),
        ({"exp": None}, "has no claim 'exp'"),
        ({"exp": int(time.time()) - 60}, "has expired"),
        ({"exp": "soon"}, "not a time"),
        ({"exp": True}, "not a time"),
        ({"exp": float("inf")}, "not a time"),
        ({"exp": 10**400}, "not a time"),
        ({"nbf": int(time.time()) + 9_000}, "not valid yet (nbf)"),
        ({"iat": int(time.time()) + 9_000}, "not valid yet (iat)"),
        ({"sub": 7}, "neither one of memstream"),
    ],
)
async def test_wrong_claims_are_refused(claims: dict[str, Any], says: str) -> None:
    world = World()
    token = world.idp.token()
    body = world.idp.claims(**claims)
    signed = jwt.api_jws.encode(json.dumps(body).encode(), rsa_key("first"), "RS256", headers={"kid": "first"})
    status, detail = await world.refused(signed)
    assert (status, says in detail) == (401, True), detail
    assert (await world.credentials.admit(token)).name == "oidc:ana"


async def test_clocks_may_differ_a_little() -> None:
    world, now = World(), int(time.time())
    await world.credentials.admit(world.idp.token(exp=now - 10, nbf=now + 10, iat=now + 10))
    await world.credentials.admit(world.idp.token(aud=["web", "other"]))


async def test_wrong_signatures_are_refused() -> None:
    world = World()
    header, body, signature = world.idp.token().split(".")
    public_pem = (
        rsa_key("first")
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    hs256 = {"alg": "HS256", "kid": "first"}
    confused = f"{segment(hs256)}.{body}"
    by_hand = segment(
        jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(confused.encode(), public_pem)
    )
    forged = segment(world.idp.claims(sub="admin"))
    for token, says in (
        (world.idp.token(key=rsa_key("stranger")), "signature is wrong"),
        (f"{header}.{forged}.{signature}", "signature is wrong"),
        (f"{confused}.{by_hand}", "algorithm is not accepted"),
        (f"{segment({'alg': 'none', 'kid': 'first'})}.{body}.x", "algorithm is not accepted"),
        (f"{segment({'alg': 'nOnE'})}.{body}.{signature}", "algorithm is not accepted"),
        (f"{segment({'alg': ['RS256'], 'kid': 'first'})}.{body}.{signature}", "algorithm is not accepted"),
        (f"{segment({'alg': 'none'})}.{body}.", "signed JWT"),
        (world.idp.token(header={"jwk": public(rsa_key("stranger"))}, key=rsa_key("stranger")), "signature is wrong"),
        (world.idp.token(header={"crit": ["x"], "x": 1}), "crit"),
        (world.idp.token(header={"typ": "logout+jwt"}), "typ"),
        (world.idp.token(alg="RS512", kid="ec", key=rsa_key("first")), "kid"),
        (f"{segment({'alg': 'RS256', 'kid': 7})}.{body}.{signature}", "kid"),
        (f"{segment(b'[' * 9_000)}.{body}.{signature}", "signed JWT"),
        (f"{header}.{segment(b'[' * 9_000)}.{signature}", "signature is wrong"),
        (f"{segment([])}.{body}.{signature}", "signed JWT"),
        (f"é.{body}.{signature}", "signed JWT"),
        ("opaque", "signed JWT"),
        ("a.b.c", "signed JWT"),
        ("a.b.c.d.e", "signed JWT"),
        ("x" * (TOKEN_MAX + 1), f"more than {TOKEN_MAX} characters"),
    ):
        status, detail = await world.refused(token)
        assert (status, says in detail) == (401, True), (token[:60], detail)


@pytest.mark.parametrize(
    ("alg", "key", "listed"),
    [
        ("RS256", rsa_key, {}),
        ("PS384", rsa_key, {}),
        ("RS256", rsa_key, {"alg": "RS256", "use": "sig"}),
        ("ES256", ec_key, {}),
        ("EdDSA", ed_key, {"key_ops": ["verify"]}),
    ],
)
async def test_asymmetric_algorithms_are_accepted(alg: str, key: Any, listed: dict[str, Any]) -> None:
    world = World()
    world.idp.published = [public(key("k"), kid="k", **listed)]
    assert (await world.credentials.admit(world.idp.token(key=key("k"), kid="k", alg=alg))).name == "oidc:ana"


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
@pytest.mark.parametrize(
    "listed",
    [
        {"kty": "oct", "k": segment(b"0" * 64), "kid": "k"},
        public(rsa_key("k"), kid="k", use="enc"),
        public(rsa_key("k"), kid="k", key_ops=["encrypt"]),
        public(rsa_key("k"), kid="k", alg="RS512"),
        public(rsa_key("weak", 1024), kid="k"),
        public(rsa_key("k"), kid="k") | {"n": "!"},
        {"kty": "RSA", "kid": "k"},
        public(rsa_key("k"), kid="k", key_ops="verify"),
        public(rsa_key("k"), kid="k", key_ops=None),
        public(rsa_key("k"), kid="k", key_ops=5),
        public(rsa_key("k"), kid="k", use=None),
        public(rsa_key("k"), kid="k", use=["sig"]),
        public(ec_key("k"), kid="k", alg="RS256"),
        public(rsa_key("k"), kid="k") | {"kty": "oct"},
        jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("k"), as_dict=True) | {"kid": "k", "key_ops": ["verify"]},
        public(rsa_key("k"), kid="k", kty=["RSA"]),
        public(rsa_key("k"), kid=["k"]),
        "text",
    ],
)
async def test_keys_that_must_not_verify_are_left_out(listed: Any) -> None:
    world = World()
    world.idp.published = [listed, public(rsa_key("first"), kid="first")]
    weak = isinstance(listed, dict) and listed.get("n") == public(rsa_key("weak", 1024))["n"]
    token = world.idp.token(key=rsa_key("weak", 1024) if weak else rsa_key("k"), kid="k")
    assert "key (kid) is not among" in (await world.refused(token))[1]
    assert (await world.credentials.admit(world.idp.token())).name == "oidc:ana", "another key of the set is lost"


async def test_two_keys_with_one_id_verify_nothing() -> None:
    world = World()
    twice = public(rsa_key("first"), kid="first", use="sig", crv=[])
    world.idp.published = [*world.idp.published, twice]
    await world.credentials.admit(world.idp.token())
    world.idp.published = [twice, public(rsa_key("second"), kid="first")]
    world.clock.ahead = FRESH_SECONDS
    await world.keys.refresh()
    assert "key (kid) is not among" in (await world.refused(world.idp.token()))[1]


async def test_a_token_without_a_key_id_needs_exactly_one_key() -> None:
    world = World()
    await world.credentials.admit(world.idp.token(kid=None))
    world.idp.published.append(public(rsa_key("second"), kid="second"))
    world.clock.ahead = AGAIN_SECONDS
    await world.keys.refresh()
    assert "kid" in (await world.refused(world.idp.token(kid=None)))[1]


# ------------------------------------------------------------------------------------------------ keys
async def test_a_rotated_key_is_fetched_and_a_withdrawn_one_is_refused() -> None:
    world = World()
    caller = await world.credentials.admit(world.idp.token())
    world.idp.published = [public(rsa_key("second"), kid="second")]
    world.clock.ahead = AGAIN_SECONDS
    await world.credentials.admit(world.idp.token(key=rsa_key("second"), kid="second"))
    assert world.idp.fetches == 2
    assert not world.credentials.holds(caller), "streams of a withdrawn key end"
    assert (await world.refused(world.idp.token()))[0] == 401


async def test_a_flood_of_unknown_keys_fetches_once_in_a_while() -> None:
    world = World()
    flood = [world.idp.token(kid=f"k{n}") for n in range(50)]
    await asyncio.gather(*(world.refused(token) for token in flood))
    for token in flood[:5]:
        await world.refused(token)
    assert world.idp.fetches == 1, "one fetch for requests at the same time, and none right after it"
    world.clock.ahead = AGAIN_SECONDS + 1
    await asyncio.gather(*(world.refused(token) for token in flood))
    assert world.idp.fetches == 2
    await world.credentials.admit(world.idp.token())


async def test_known_keys_go_on_while_the_provider_is_away_and_new_ones_are_503() -> None:
    world = World()
    caller = await world.credentials.admit(world.idp.token(exp=int(time.time() + 2 * KEPT_SECONDS)))
    world.idp.away, world.clock.ahead = AWAY, FRESH_SECONDS + 1
    long = world.idp.token(exp=int(time.time() + 2 * KEPT_SECONDS))
    await world.credentials.admit(long)
    await wait_for(lambda: world.idp.fetches, "a fetch in the background", until=lambda found: found == 2)
    await world.credentials.admit(long)
    assert world.idp.fetches == 2
    status, detail = await world.refused(world.idp.token(kid="new", exp=int(time.time() + 2 * KEPT_SECONDS)))
    assert (status, "identity provider does not answer" in detail) == (503, True)
    assert world.credentials.holds(caller)
    world.clock.ahead = KEPT_SECONDS + 1
    assert (await world.refused(long))[0] == 503, "keys are not trusted for ever"
    assert not world.credentials.holds(caller)
    world.idp.away, world.clock.ahead = None, KEPT_SECONDS + 1 + AGAIN_SECONDS
    assert (await world.credentials.admit(long)).name == "oidc:ana"


async def test_a_cancelled_request_does_not_cancel_the_fetch_of_another() -> None:
    world, gate = World(), asyncio.Event()
    fetch = world.idp.fetch

    async def slow(issuer: str) -> Any:
        await gate.wait()
        return await fetch(issuer)

    world.credentials.keys = IssuerKeys(world.idp.issuer, fetch=slow)
    first, second = (asyncio.create_task(world.credentials.admit(world.idp.token())) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    assert (await second).name == "oidc:ana"
    assert world.idp.fetches == 1


async def test_a_caller_is_held_until_its_token_expires() -> None:
    world = World()
    caller = await world.credentials.admit(world.idp.token())
    assert world.credentials.holds(caller)
    world.clock.ahead = 400
    assert not world.credentials.holds(caller)
    file = await world.credentials.admit("mst_file")
    assert world.credentials.holds(file)


async def test_keys_are_fetched_over_http() -> None:
    async with IdentityProvider().served() as idp:
        assert [key_id for key_id, _ in await fetch_keys(idp.issuer)] == ["first"] * 6
        with pytest.raises(Transient, match="must be equal"):
            await fetch_keys(f"{idp.issuer}/")
        with pytest.raises(Transient, match="answers 404"):
            await fetch_keys(idp.issuer.replace("main", "other"))
        idp.published = []
        with pytest.raises(Transient, match="no usable key"):
            await fetch_keys(idp.issuer)
        idp.published = [{"pad": "x" * issuer_keys.BODY_MAX}]
        with pytest.raises(Transient, match="more than"):
            await fetch_keys(idp.issuer)
    with pytest.raises(Transient):
        await fetch_keys(idp.issuer)


@pytest.mark.parametrize(
    "elsewhere",
    ["https://localhost/k", "https://127.0.0.1/k", "https://127.1/k", "https://2130706433/k", "https://[::1]/k",
     "https://10.0.0.7/k", "https://169.254.169.254/latest/meta-data", "https://192.168.1.1/k", "https://[fd00::1]/k",
     "https://[::ffff:10.0.0.7]/k", "https://[64:ff9b::a00:7]/k", "https://keys.example.com/k",
     "https://id.example.com:9200/k", "http://id.example.com/k", "http://127.0.0.1:1/k", "ftp://id.example.com/k",
     "file:///etc/passwd", "", 7],
)  # fmt: skip
async def test_keys_are_not_fetched_from_a_private_address(monkeypatch: pytest.MonkeyPatch, elsewhere: Any) -> None:
    loop, really = asyncio.get_running_loop(), asyncio.get_running_loop().getaddrinfo

    async def resolved(host: str, port: int, **more: Any) -> Any:
        return await really("10.0.0.9" if host.endswith("example.com") else host, port, **more)

    monkeypatch.setattr(loop, "getaddrinfo", resolved)
    async with IdentityProvider().served() as idp:
        idp.jwks_uri = elsewhere
        with pytest.raises(Transient, match="jwks_uri"):
            await fetch_keys(idp.issuer)
        assert idp.fetches == 0
    assert await why_elsewhere("https://id.example.com/k", issuer="https://id.example.com/realms/main") is None
    assert await why_elsewhere("https://8.8.8.8/k", issuer="https://id.example.com") is None, "a public host"
    assert await why_elsewhere("https://10.0.0.7:443/k", issuer="https://10.0.0.7/realms/main") is None, "its own"


def test_keys_need_tls() -> None:
    assert why_unsafe("http://id.example.com") == "needs https, because whoever can change the answer could sign tokens"
    assert why_unsafe("https://id.example.com/x") is None
    assert why_unsafe("http://localhost:8080") is None
    for url in ("id.example.com", "ftp://a", "https://", "https://u:p@host", "https://host:port"):
        assert why_unsafe(url) is not None


# ------------------------------------------------------------------------------------------------ grants
BOTH_USERS = {"when": {}, "tenants": ["t"], "users": ["u"], "users_from": "x", "scopes": ["memory:read"]}
CLAIMS: Mapping[str, object] = {
    "sub": "ana",
    "organization": "acme",
    "realm_access": {"roles": ["user", "admin"]},
    "https://memory.example.com/roles": ["reviewer"],
    "scope": "openid memory:read memory:write",
    "email_verified": True,
    "level": 1,
    "groups": ["a", 7, {"x": 1}, None],
}


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        ({}, True),
        ({"realm_access.roles": "admin"}, True),
        ({"realm_access.roles": ["x", "user"]}, True),
        ({"realm_access.roles": "adm"}, False),
        ({"realm_access": "roles"}, False),
        ({"https://memory.example.com/roles": "reviewer"}, True),
        ({"scope": "memory:read"}, True),
        ({"scope": "memory"}, False),
        ({"email_verified": True}, True),
        ({"email_verified": 1}, False),
        ({"level": 1}, True),
        ({"level": True}, False),
        ({"level": "1"}, False),
        ({"sub": "ana", "level": 2}, False),
        ({"missing": "x"}, False),
        ({"sub.x": "ana"}, False),
    ],
)
def test_a_grant_matches_by_claims(when: dict[str, Any], matches: bool) -> None:
    grants, problems = read_grants({"grant": [{"when": when, "tenants": ["t"], "scopes": ["memory:read"]}]})
    assert problems == []
    assert grants[0].holds(CLAIMS) is matches


def test_the_first_grant_that_matches_gives_the_rights() -> None:
    first = Grant(when={"sub": "ana"}, tenants_from="organization", users_from="sub", scopes=("memory:read",))
    second = Grant(when={}, tenants=("t",), scopes=("memory:read", "memory:write", "memory:admin"), scopes_from="scope")
    rights = rights_of((first, second), CLAIMS)
    assert (rights.tenants, rights.users, rights.scopes) == ({"acme"}, {"ana"}, {"memory:read"})
    rights = rights_of((first, second), {**CLAIMS, "sub": "bob"})
    assert (rights.tenants, rights.users, rights.scopes) == ({"t"}, None, {"memory:read", "memory:write"})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"users_from": "missing"}, "does not have"),
        ({"users_from": "realm_access"}, "does not have"),
        ({"users_from": "level"}, "not an id"),
        ({"users_from": "groups"}, "not an id"),
        ({"users_from": "long"}, "not an id"),
        ({"scopes_from": "organization"}, "gives no scope"),
        ({"scopes_from": "groups"}, "gives no scope"),
        ({"when": {"sub": "bob"}}, "no [[oidc.grant]]"),
    ],
)
def test_a_claim_that_a_grant_needs_must_be_there(more: dict[str, Any], says: str) -> None:
    grant = Grant(**({"when": {}, "tenants": ("t",), "scopes": ("memory:read",)} | more))
    with pytest.raises(NoGrant) as caught:
        rights_of((grant,), {**CLAIMS, "long": "x" * 129})
    assert says in str(caught.value)
    assert values_at({}, "a.b") == ()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"grants": []}, "grants"),
        ({"grant": [{"tenants": ["t"], "scopes": ["memory:read"]}]}, "when"),
        ({"grant": [{"when": {}, "scopes": ["memory:read"]}]}, "tenants_from"),
        ({"grant": [{"when": {}, "tenants": ["t"], "tenants_from": "x", "scopes": ["memory:read"]}]}, "tenants_from"),
        (
            {"grant": [{"when": {}, "tenants": ["t"], "users": ["u"], "users_from": "x", "scopes": ["memory:read"]}]},
            "users_",
        ),
        ({"grant": [{"when": {}, "tenants": ["t"], "scopes": []}]}, "scopes"),
        ({"grant": [{"when": {}, "tenants": ["t"], "scopes": ["memory:all"]}]}, "scopes"),
        ({"grant": [{"when": {"a": 1.5}, "tenants": ["t"], "scopes": ["memory:read"]}]}, "when"),
        ([], "oidc"),
    ],
)
def test_a_wrong_table_is_refused_by_name(table: object, says: str) -> None:
    grants, problems = read_grants(table)
    assert grants == ()
    assert any(says in line for line in problems), problems


# ------------------------------------------------------------------------------------------------ over HTTP
async def test_routes_take_access_tokens_and_say_why_not() -> None:
    world = World(Grant(when={"role": "chat"}, tenants=("acme",), users_from="sub", scopes=("turns:write",)))
    turn = {"user_id": "ana", "session_id": "s", "turn_id": "t", "messages": [{"role": "user", "content": "Hi"}]}
    async with called(app_over(credentials=world.credentials)) as api:
        sent = await api.post("/v1/turns", json=turn, headers=bearer(world.idp.token(role="chat")))
        assert sent.status_code == 202, sent.text
        other = await api.post(
            "/v1/turns", json=turn | {"user_id": "bob"}, headers=bearer(world.idp.token(role="chat"))
        )
        assert other.status_code == 403
        none = await api.post("/v1/turns", json=turn, headers=bearer(world.idp.token()))
        assert (none.status_code, "[[oidc.grant]]" in none.json()["detail"]) == (403, True)
        lacks = await api.get("/v1/recall?user_id=ana&cue=x", headers=bearer(world.idp.token(role="chat")))
        assert (lacks.status_code, "memory:read" in lacks.json()["detail"]) == (403, True)
        wrong = await api.get("/v1/recall?user_id=ana&cue=x", headers=bearer("opaque"))
        assert wrong.status_code == 401
        assert wrong.headers["WWW-Authenticate"] == 'Bearer realm="memstream", error="invalid_token"'
        world.idp.away, world.clock.ahead = AWAY, 100.0
        away = await api.post("/v1/turns", json=turn, headers=bearer(world.idp.token(kid="new")))
        assert (away.status_code, away.headers["Retry-After"]) == (503, "10")


async def test_the_metadata_of_mcp_names_the_issuer() -> None:
    world = World(resource="https://memory.example.com/mcp")
    path = "/.well-known/oauth-protected-resource/mcp"
    async with called(app_over(credentials=world.credentials)) as api:
        found = (await api.get(path)).json()
        assert found["resource"] == "https://memory.example.com/mcp"
        assert found["authorization_servers"] == [world.idp.issuer]
        assert found["scopes_supported"] == ["turns:write", "memory:read"]
        refused = await api.get("/v1/facts?user_id=ana")
        expected = f'Bearer realm="memstream", resource_metadata="https://memory.example.com{path}"'
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, expected)
        metrics = (await api.get("/metrics")).text
        assert "memstream_oidc_keys_age_seconds" in metrics


async def test_a_token_is_verified_once_per_request(monkeypatch: pytest.MonkeyPatch) -> None:
    world, calls = World(), list[str]()
    verified = world.credentials.admit

    async def counted(token: str | None) -> Caller:
        calls.append(token or "")
        return await verified(token)

    monkeypatch.setattr(world.credentials, "admit", counted)
    async with called(app_over(credentials=world.credentials)) as api:
        await api.get("/v1/facts/updates?user_id=bob", headers=bearer(world.idp.token()))
        await api.get("/openapi.json", headers=bearer(world.idp.token()))
    assert len(calls) == 2


async def test_a_long_or_strange_subject_is_named_by_its_digest() -> None:
    world = World(Grant(when={}, tenants=("acme",), scopes=("memory:read",)))
    for subject in ("x" * 200, "a\nb"):
        name = (await world.credentials.admit(world.idp.token(sub=subject))).name
        assert len(name) == len("oidc:") + 64
    assert (await world.credentials.admit(world.idp.token(sub=None, azp="chat"))).name == "oidc:chat"


async def test_the_stream_of_an_access_token_ends_when_it_expires(tmp_path: Path) -> None:
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    await log.create([TopicSpec(FACTS_UPDATED.name, 1, 1, {})])
    world = World(Grant(when={}, tenants=("acme",), scopes=("memory:read",)))
    followers = new_followers(log, LIMITS)
    app = app_over(log=log, followers=followers, credentials=world.credentials)
    async with (
        served(app, followers=followers) as url,
        streaming(url, headers=bearer(world.idp.token())) as expires,
        streaming(url, headers=bearer("mst_file")) as stays,
    ):
        world.clock.ahead = 400
        async with asyncio.timeout(20):
            assert (await expires.ended()).json["reason"] == "unauthorized"
        assert all(block.event != "end" for block in stays.blocks)
    await log.close()


async def test_an_mcp_client_signs_in_with_an_access_token() -> None:
    """The keys come from a provider over HTTP, and the client is the SDK's."""
    tools = ScriptedTools({"recall": RecalledTraces(items=())})
    async with IdentityProvider().served() as idp:
        credentials = ProvidedCredentials(Credentials(None), Provider(idp.issuer, (AUDIENCE,), (GRANT,)))
        async with mcp_server(tools, credentials) as url, connected(url, bearer(idp.token())) as client:
            await client.call_tool("recall", {"query": "work"})
        ((_, _, identity, _),) = tools.calls
        assert (identity.tenant_id, identity.user_id, identity.caller) == ("acme", "ana", "oidc:ana")
        assert idp.fetches == 1
        async with mcp_server(tools, credentials) as url, httpx.AsyncClient() as http:
            for token, status in ((idp.token(aud="web"), 401), (idp.token(kid="new"), 401)):
                assert (await http.post(url, json={}, headers=bearer(token))).status_code == status


async def test_the_console_takes_an_access_token() -> None:
    world = World(Grant(when={}, tenants=("acme",), scopes=("memory:read",)))
    async with called(app_over(credentials=world.credentials)) as api:
        good = await api.post("/console/sign-in", data={"token": world.idp.token()})
        assert (good.status_code, "memstream_console=" in good.headers["set-cookie"]) == (303, True)
        api.cookies.clear()
        bad = await api.post("/console/sign-in", data={"token": world.idp.token(aud="web")})
        assert (bad.status_code, "audience" in bad.text) == (401, True)
