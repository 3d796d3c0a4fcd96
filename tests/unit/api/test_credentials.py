"""Tokens: the format of the file, the lookup, and the rights of a caller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from memstream.api.credentials import ANYONE, Caller, Credentials, FileCredentials, digest, new_token
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
    caller.check_ceiling("internal", "acme")
    assert refused(lambda: caller.check_ceiling("secret", "acme"))[0] == 403
    entry("t", scopes=["memory:read", "memory:read-secret"]).caller().check_ceiling("secret", "acme")


def test_a_new_token_is_new_and_tells_what_it_is() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert all(token.startswith("mst_") and len(token) > 40 for token in made)


# ------------------------------------------------------------------------------------------------ a file that changes
@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(entries("secret-1", "secret-2"))
    return path


def entries(*tokens: str, scopes: str = '"memory:read"') -> str:
    return "".join(
        f'[[token]]\nname = "{token}"\nsha256 = "{digest(token)}"\ntenants = ["acme"]\nscopes = [{scopes}]\n'
        for token in tokens
    )


def test_the_file_is_read_again_when_it_changes(file: Path) -> None:
    credentials = FileCredentials(file)
    removed, kept = credentials.caller("secret-1"), credentials.caller("secret-2")
    replaced = file.with_suffix(".new")
    replaced.write_text(entries("secret-2", "secret-3"))
    replaced.rename(file)
    assert credentials.find("secret-1") is None
    assert credentials.find("secret-3") is not None
    assert (credentials.holds(removed), credentials.holds(kept)) == (False, True)


def test_a_token_with_other_rights_is_another_one(file: Path) -> None:
    credentials = FileCredentials(file)
    caller = credentials.caller("secret-1")
    file.write_text(entries("secret-1", "secret-2", scopes='"turns:write"'))
    assert not credentials.holds(caller)
    file.write_text(entries("secret-1").replace(digest("secret-1"), digest("secret-9")))
    assert not credentials.holds(caller)


@pytest.mark.parametrize("broken", ["", "[[token]", "[[token]]\nname = 'x'\n", "\x00", None])
def test_a_broken_file_keeps_the_tokens_and_is_reported_once(file: Path, broken: str | None) -> None:
    credentials = FileCredentials(file)
    file.unlink()
    if broken is not None:
        file.write_text(broken)
    with structlog.testing.capture_logs() as logs:
        assert credentials.caller("secret-1").name == "secret-1"
        assert credentials.holds(credentials.caller("secret-2"))
    assert [(line["event"], line["log_level"]) for line in logs] == [("tokens_not_read", "error")]
    file.write_text(entries("secret-2"))
    assert credentials.find("secret-1") is None


@pytest.mark.parametrize("name", ["/memstream/consolidation", "cli:root"])
def test_a_token_has_no_name_of_a_stage_or_of_the_command_line(file: Path, name: str) -> None:
    with pytest.raises(ValueError, match="must not begin with"):
        Credentials.read(entries("secret-1").replace('name = "secret-1"', f'name = "{name}"'))


# ------------------------------------------------------------------------------------------------ tokens that expire
NOON = datetime(2027, 1, 31, 12, tzinfo=UTC)
EXPIRING = entries("secret-1") + "expires_at = 2027-01-31T13:00:00+01:00\n" + entries("secret-2")


@dataclass
class Clock:
    time: datetime = NOON - timedelta(seconds=1)

    def __call__(self) -> datetime:
        return self.time


def test_a_token_is_refused_from_its_time_on(file: Path) -> None:
    file.write_text(EXPIRING)
    credentials = FileCredentials(file, now=(clock := Clock()))
    caller, other = credentials.caller("secret-1"), credentials.caller("secret-2")
    assert (credentials.holds(caller), credentials.find("secret-1")) == (True, caller)
    clock.time = NOON
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            status, why = refused(lambda: credentials.caller("secret-1"))
            assert (status, "'secret-1' expired at 2027-01-31T12:00:00Z" in why) == (401, True), why
    assert [(line["event"], line["token"]) for line in logs] == [("token_expired", "secret-1")]
    assert (credentials.holds(caller), credentials.find("secret-1")) == (False, None)
    assert (credentials.holds(other), credentials.find("secret-2")) == (True, other)


def test_a_later_time_in_the_file_holds_at_once(file: Path) -> None:
    file.write_text(EXPIRING)
    credentials = FileCredentials(file, now=(clock := Clock()))
    caller = credentials.caller("secret-1")
    file.write_text(EXPIRING.replace("2027-01-31", "2027-02-28"))
    clock.time = NOON
    assert credentials.holds(caller), "the same rights"
    assert credentials.caller("secret-1") == caller


@pytest.mark.parametrize("value", ["2027-01-31", "2027-01-31T00:00:00", "13:00:00", "1800000000", '"soon"', "true"])
def test_a_time_without_its_zone_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"token\.0\.expires_at.*with its zone, such as 2027-01-31T00:00:00Z"):
        Credentials.read(f"{entries('secret-1')}expires_at = {value}\n")
