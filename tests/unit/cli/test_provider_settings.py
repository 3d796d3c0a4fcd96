"""The identity provider in the settings, at the start of `serve`, and in `doctor`."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstream.api.credentials import digest
from memstream.api.sign_in.access_tokens import ProvidedCredentials
from memstream.cli.errors import CommandFailed
from memstream.cli.wiring.provider_check import check_provider
from memstream.cli.wiring.server import read_credentials
from memstream.cli.wiring.settings import Settings, load
from tests.support.identity_provider import IdentityProvider

GRANT = '[[oidc.grant]]\nwhen = { role = "chat" }\ntenants = ["acme"]\nusers_from = "sub"\nscopes = ["turns:write"]\n'
SERVER = 'oidc_issuer = "https://id.example.com/"\noidc_audience = "memstream, web"\n'
FILE = f'[[token]]\nname = "t"\nsha256 = "{digest("mst_t")}"\ntenants = ["acme"]\nscopes = ["memory:read"]\n'


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TOKENS", "OIDC_ISSUER", "OIDC_AUDIENCE", "OIDC_RESOURCE"):
        monkeypatch.delenv(f"MEMSTREAM_{name}", raising=False)


def settings_of(text: str) -> Settings:
    Path("memstream.toml").write_text(text)
    return load()[0]


def refusal(text: str) -> str:
    with pytest.raises(CommandFailed) as caught:
        settings_of(text)
    return str(caught.value)


def test_the_provider_and_its_grants_are_settings() -> None:
    provider = settings_of(f'{SERVER}oidc_resource = "https://memory.example.com/x/mcp"\n{GRANT}').provider
    assert provider is not None
    assert (provider.issuer, provider.audiences) == ("https://id.example.com/", ("memstream", "web"))
    assert provider.grants[0].users_from == "sub"
    assert provider.metadata_url == "https://memory.example.com/.well-known/oauth-protected-resource/x/mcp"
    assert settings_of("").provider is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GRANT, "[oidc]: has no effect without MEMSTREAM_OIDC_ISSUER"),
        ('oidc_audience = "a"', "MEMSTREAM_OIDC_AUDIENCE: has no effect without"),
        (SERVER, "oidc.grant: is needed with MEMSTREAM_OIDC_ISSUER"),
        (f'oidc_issuer = "https://id.example.com/"\n{GRANT}', "MEMSTREAM_OIDC_AUDIENCE: is needed"),
        (f"{SERVER.replace('https', 'http')}{GRANT}", "MEMSTREAM_OIDC_ISSUER: needs https"),
        (f'{SERVER}oidc_resource = "memory.example.com"\n{GRANT}', "MEMSTREAM_OIDC_RESOURCE: expected a URL"),
        (f"{SERVER}{GRANT}tenants_from = 'x'\n", "oidc: grant.0: needs either tenants or tenants_from"),
        (f"{SERVER}[oidc]\nissuer = 'x'\n", "oidc: issuer"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(text: str, says: str) -> None:
    assert says in refusal(text)


async def test_a_server_with_a_provider_listens_beyond_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    credentials = read_credentials(settings_of(SERVER + GRANT), "0.0.0.0")
    assert isinstance(credentials, ProvidedCredentials)
    assert not credentials.open
    Path("tokens.toml").write_text(FILE)
    monkeypatch.setenv("MEMSTREAM_TOKENS", "tokens.toml")
    both = read_credentials(settings_of(SERVER + GRANT), "0.0.0.0")
    assert (await both.admit("mst_t")).name == "t"
    Path("tokens.toml").write_text(FILE.replace(digest("mst_t"), digest("mst_u")))
    assert (await both.admit("mst_u")).name == "t", "the file is read again"


async def test_doctor_reads_the_keys() -> None:
    async with IdentityProvider().served() as idp:
        settings = settings_of(f'oidc_issuer = "{idp.issuer}"\noidc_audience = "memstream"\n{GRANT}')
        (check,) = await check_provider(settings)
        assert check.ok
        assert "1 keys (PS256, PS384, PS512, RS256, RS384, RS512), 1 grants, audience memstream" in check.detail
    (check,) = await check_provider(settings)
    assert (check.ok, "MEMSTREAM_OIDC_ISSUER" in check.fix) == (False, True)
    assert await check_provider(settings_of("")) == []
