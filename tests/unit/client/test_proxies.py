"""The client under the proxies of the environment: one clear error, and none for a server on this machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping

import httpx
import pytest

from memstream.client import Misconfigured, connect
from memstream.client.proxies import open_http
from memstream.schemas.hosts import is_loopback

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
AWAY = "http://memory.example"
SOCKS = {"ALL_PROXY": "socks5://127.0.0.1:9"}
UNUSABLE = {
    "SOCKS without its package": (SOCKS, "pip install 'httpx[socks]', or add memory.example to NO_PROXY"),
    "the scheme of a desktop's settings": ({"ALL_PROXY": "socks://u:s3cret@127.0.0.1:9"}, "Unknown scheme for proxy"),
    "no port": ({"HTTP_PROXY": "http://proxy:port"}, "Invalid port"),
    "a list that cannot be read": ({"HTTP_PROXY": "http://proxy:1", "NO_PROXY": "fe80::/10"}, "NO_PROXY"),
    "no certificates": ({"SSL_CERT_FILE": "/does/not/exist"}, "SSL_CERT_FILE"),
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper() in NAMES:
            monkeypatch.delenv(name)


def set_environment(values: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("case", UNUSABLE)
async def test_an_environment_that_cannot_be_used_is_one_clear_error(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, said = UNUSABLE[case]
    if values is SOCKS and importlib.util.find_spec("socksio") is not None:
        pytest.skip("the package for SOCKS is installed")
    set_environment(values, monkeypatch)
    with pytest.raises(Misconfigured) as caught:
        async with connect(AWAY):
            pass
    assert said in str(caught.value)
    assert str(caught.value).startswith("memory.example: ")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("case", [name for name in UNUSABLE if name != "no certificates"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_server_on_this_machine_needs_no_proxy(case: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(UNUSABLE[case][0], monkeypatch)
    async with connect(f"http://{host}:1"):
        pass


@pytest.mark.parametrize(("url", "direct"), [("http://127.0.0.1:1", True), (AWAY, False)])
async def test_only_a_server_elsewhere_is_asked_through_the_proxy(
    url: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment({"HTTP_PROXY": "http://127.0.0.1:2"}, monkeypatch)
    async with open_http(httpx.URL(url), timeout=1.0) as http:
        assert (http._transport_for_url(http.base_url) is http._transport) is direct


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True), ("app.localhost", True), ("127.8.9.1", True), ("::1", True),
        ("localhost.example", False), ("10.0.0.1", False), ("memory", False), ("", False),
    ],
)  # fmt: skip
def test_which_hosts_are_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
