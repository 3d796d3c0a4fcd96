"""What `memstream doctor` says of the models: a line for each that is configured, and the server is asked once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memstream.cli.wiring.checks import Check
from memstream.cli.wiring.model_checks import check_models, configured
from memstream.cli.wiring.settings import Settings
from memstream.schemas.tasks import Task

TASKS: dict[Task, str] = {"observations": "small, big", "judge": "careful", "digest": "small,offline"}


@contextmanager
def listing(*names: str, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that lists its models; its address, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"data": [{"id": name} for name in names]}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


async def checked(address: str, model: str = "big, elsewhere") -> dict[str, Check]:
    checks = await check_models(Settings(model=model, openai_base_url=address), TASKS)
    return {each.check: each for each in checks}


def test_each_model_once_and_what_for() -> None:
    assert [(each.name, each.uses, each.setting) for each in configured(("big", "elsewhere"), TASKS)] == [
        ("big", ("first", "fallback for observations"), "MEMSTREAM_MODEL"),
        ("elsewhere", ("fallback",), "MEMSTREAM_MODEL"),
        ("small", ("observations", "digest"), "observations under [models]"),
        ("careful", ("judge",), "judge under [models]"),
        ("offline", ("fallback for digest",), "digest under [models]"),
    ]


async def test_the_one_that_the_server_has_not_is_named_with_its_setting() -> None:
    with listing("big", "small", "elsewhere") as (address, asked):
        checks = await checked(address)
    assert asked == ["/v1/models"]
    assert list(checks) == ["model", "model elsewhere", "model small", "model careful", "model offline"]
    assert [name for name, each in checks.items() if not each.ok] == ["model careful"]
    careful = checks["model careful"]
    assert careful.detail == f"{address} has no careful (judge)"
    assert careful.fix == "set judge under [models] to one of big, elsewhere, small …"
    assert checks["model small"].detail == f"small (observations, digest) at {address}"


async def test_a_server_that_lists_nothing_proves_nothing() -> None:
    with listing(status=404) as (address, _):
        checks = await checked(address)
    assert all(each.ok for each in checks.values())
    assert "careful (judge)" in checks["model careful"].detail
    assert "not verified" in checks["model careful"].detail


@pytest.mark.parametrize(("status", "fix"), [(401, "OPENAI_API_KEY"), (500, "check that server")])
async def test_a_server_that_does_not_serve_fails_all_but_the_rules(status: int, fix: str) -> None:
    with listing(status=status) as (address, asked):
        checks = await checked(address)
    assert [name for name, each in checks.items() if each.ok] == ["model offline"]
    assert all(fix in each.fix for each in checks.values() if not each.ok)
    assert len(asked) == 1


async def test_the_rules_need_no_server() -> None:
    (check,) = await check_models(Settings(), {})
    assert (check.check, check.ok) == ("model", True)
    assert "offline (first)" in check.detail


async def test_a_task_with_a_model_and_no_key_says_what_to_set() -> None:
    checks = await check_models(Settings(), {"judge": "careful"})
    assert [(each.check, each.ok) for each in checks] == [("model", True), ("model careful", False)]
    assert "OPENAI_API_KEY" in checks[1].fix
