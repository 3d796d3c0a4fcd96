"""Tokens: the format of the file, the lookup, and the rights of a caller."""

from __future__ import annotations

import pytest

from memstream.api.credentials import ANYONE, Caller, Credentials, digest, new_token
from memstream.api.problems import Problem
from memstream.schemas.turns import Owner
from tests.support.api_server import entry

FILE = f"""
[[token]]
name = "chat"
sha256 = "{digest("secret-1")}"
tenants = ["acme"]
scopes = ["turns:write", "memory:read"]

[[token]]
name = "one user"
sha256 = "{digest("secret-2")}"
tenants = ["acme", "rival"]
users = ["u1"]
scopes = ["memory:read"]
"""
U1, U2 = Owner(scope="user", id="u1"), Owner(scope="user", id="u2")


def refused(call: object) -> tuple[int, str]:
    with pytest.raises(Problem) as caught:
        call()  # type: ignore[operator]
    return int(caught.value.status), caught.value.detail


def test_a_token_is_known_by_its_digest_alone() -> None:
    credentials = Credentials.read(FILE)
    assert credentials.caller("secret-1") == Caller(
        "chat", frozenset({"turns:write", "memory:read"}), frozenset({"acme"})
    )
    assert refused(lambda: credentials.caller(digest("secret-1")))[0] == 401
    assert refused(lambda: credentials.caller("secret-3"))[0] == 401
    assert refused(lambda: credentials.caller(None))[0] == 401


def test_without_a_file_anyone_is_anybody() -> None:
    assert Credentials(None).caller(None) is ANYONE
    assert ANYONE.tenant("any") == "any"
    assert refused(lambda: ANYONE.tenant(None)) == (
        422,
        "tenant: is required, because the token does not have exactly one tenant",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "token"),
        ("[[token]", "not valid TOML"),
        (FILE.replace('scopes = ["memory:read"]', 'scopes = ["memory:everything"]'), "token.1.scopes.0"),
        (FILE.replace('name = "chat"', 'nam = "chat"'), "token.0.nam"),
        (FILE.replace(digest("secret-1"), "secret-1"), "token.0.sha256"),
        (FILE.replace(digest("secret-1"), digest("secret-2")), "twice"),
        (FILE.replace('["u1"]', "[]"), "token.1.users"),
    ],
)
def test_a_file_that_says_something_wrong_is_refused_by_the_field(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        Credentials.read(text)
    assert "secret-1" not in str(caught.value), "what may be a token is not repeated"


def test_tenants_and_users_are_the_tokens() -> None:
    chat, one = (Credentials.read(FILE).caller(token) for token in ("secret-1", "secret-2"))
    assert chat.tenant(None) == chat.tenant("acme") == "acme"
    assert refused(lambda: chat.tenant("rival"))[0] == 403
    assert refused(lambda: one.tenant(None))[0] == 422, "it has two"
    assert one.tenant("rival") == "rival"
    assert (chat.user("u2"), one.user(None), one.user("u1")) == ("u2", "u1", "u1")
    assert refused(lambda: chat.user(None))[0] == 422
    assert refused(lambda: one.user("u2"))[0] == 403


@pytest.mark.parametrize("scope", ["agent", "org", "group"])
def test_a_token_of_users_sees_nothing_that_is_shared(scope: str) -> None:
    shared = Owner.model_validate({"scope": scope, "id": "u1"})
    one, chat = entry("t", users=["u1"]).caller(), entry("t").caller()
    assert (one.sees(U1), one.sees(U2), one.sees(shared)) == (True, False, False)
    assert all(chat.sees(owner) for owner in (U1, U2, shared))


def test_secret_needs_its_scope() -> None:
    caller = entry("t").caller()
    caller.check_ceiling("internal")
    assert refused(lambda: caller.check_ceiling("secret"))[0] == 403
    entry("t", scopes=["memory:read", "memory:read-secret"]).caller().check_ceiling("secret")


def test_a_new_token_is_new_and_tells_what_it_is() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert all(token.startswith("mst_") and len(token) > 40 for token in made)
