"""`memstream tokens list|revoke` and the check of `doctor`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memstream.api.credentials import Credentials, FileCredentials, digest
from memstream.cli.commands.tokens import tokens
from memstream.cli.context import CommandContext
from memstream.cli.wiring import token_file
from memstream.cli.wiring.settings import load

NOW = datetime.now(UTC)


def block(name: str, token: str, expires: datetime | None = None) -> str:
    lines = [f"[[token]]  # {name}", f'name = "{name}"', f'sha256 = "{digest(token)}"', 'tenants = ["acme"]']
    lines += ['scopes = ["memory:read"]'] + ([] if expires is None else [f"expires_at = {expires.isoformat()}"])
    return "\n".join(lines) + "\n"


A, B, C = block("chat", "a", NOW - timedelta(hours=1)), block("chat", "b"), block("jobs", "c", NOW + timedelta(days=1))
TEXT = f"# ours\n{A}\n# of the chat\n{B}\n# of the jobs\n{C}# end\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(TEXT)
    path.chmod(0o640)
    monkeypatch.setenv("MEMSTREAM_TOKENS", str(path))
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(tokens, list(words), obj=CommandContext())


def test_the_list_has_states_and_no_digest(file: Path) -> None:
    rows = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [(row["name"], row["state"], row["expires_at"] is None) for row in rows] == [
        ("chat", "expired", False),
        ("chat", "valid", True),
        ("jobs", "valid", False),
    ]
    assert rows[0]["id"] == digest("a")[:12]
    for told in (run("list").stdout, run("list", "--json").stdout):
        assert digest("a") not in told


def test_a_revoked_token_is_refused_and_the_rest_of_the_file_stays(file: Path) -> None:
    credentials = FileCredentials(file)
    assert credentials.find("b") is not None
    assert run("revoke", digest("b")[:12]).exit_code == 0
    assert file.read_text() == TEXT.replace(B, "")
    assert file.stat().st_mode & 0o777 == 0o640
    assert (credentials.find("b"), credentials.find("c") is None) == (None, False)


def test_a_link_stays_a_link(file: Path) -> None:
    target = file.rename(file.with_name("target.toml"))
    file.symlink_to(target)
    assert run("revoke", "jobs").exit_code == 0
    assert (file.is_symlink(), target.read_text()) == (True, TEXT.replace(C, ""))


INLINE = f'token = [{{name = "a", sha256 = "{digest("a")}", tenants = ["t"], scopes = ["memory:read"]}}, ' + (
    f'{{name = "b", sha256 = "{digest("b")}", tenants = ["t"], scopes = ["memory:read"]}}]\n'
)


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (TEXT, "nobody", "no token has the name or id 'nobody'"),
        (TEXT, "chat", f"give the id of one: {digest('a')[:12]}, {digest('b')[:12]}"),
        (C, "jobs", "this is the only token of the file"),
        (INLINE, "b", "remove it by an editor"),
        ("[[token]", "b", "not valid TOML"),
        (None, "b", "cannot be read"),
    ],
)
def test_what_cannot_be_revoked_changes_nothing(file: Path, text: str | None, name: str, says: str) -> None:
    file.unlink() if text is None else file.write_text(text)
    done = run("revoke", name)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
    assert text is None or file.read_text() == text


def test_a_table_inside_a_text_is_not_taken_for_an_entry(file: Path) -> None:
    odd = A.replace('name = "chat"', 'name = """\n[[token]]\n"""')
    file.write_text(odd + C)
    before = file.read_text()
    done = run("revoke", "jobs")
    assert (done.exit_code, "remove it by an editor" in done.stderr) == (2, True)
    assert file.read_text() == before


def test_without_a_file_the_commands_tell_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMSTREAM_TOKENS", raising=False)
    for words in (("list",), ("revoke", "chat")):
        done = run(*words)
        assert (done.exit_code, "MEMSTREAM_TOKENS is not set" in done.stderr) == (2, True)


def test_a_new_token_has_the_time_at_which_it_expires(file: Path) -> None:
    made = json.loads(run("new", "--name", "n", "--tenant", "acme", "--expires", "2999-01-31", "--json").stdout)
    (entry,) = Credentials.read(made["entry"]).entries or ()
    assert entry.expires_at == datetime(2999, 1, 31, 23, 59, 59, 999999, UTC)
    past = run("new", "--name", "n", "--tenant", "acme", "--expires", "2020-01-31")
    assert (past.exit_code, "is in the past" in past.stderr) == (2, True)


def test_doctor_fails_for_a_token_that_expires_soon(file: Path) -> None:
    settings = load()[0]
    (check,) = token_file.check_tokens(settings, NOW)
    assert not check.ok
    assert all(part in check.detail for part in ("jobs at", "3 tokens, 1 expired, 1 without"))
    file.write_text(A + B)
    (check,) = token_file.check_tokens(settings, NOW)
    assert (check.ok, check.fix) == (True, "")
    file.write_text("[[token]")
    (check,) = token_file.check_tokens(settings, NOW)
    assert (check.ok, "not valid TOML" in check.detail) == (False, True)
