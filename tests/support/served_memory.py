"""A memory that is served for the tests of a module, with a token for one of its users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memstream.client import Memory
from tests.support.cli_process import InProcess, Memstream
from tests.support.kafka import free_port
from tests.support.polling import wait_for
from tests.support.serving import serving

TENANT = "acme"


@dataclass(frozen=True)
class ServedMemory:
    """`url` takes `token`, which reaches the tenant, and `bound_token`, which reaches its user `bound` alone."""

    url: str
    token: str
    bound_token: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMemory]:
    """`memstream serve --with-stages` on the embedded default, with the offline model."""
    folder: Path = tmp_path_factory.mktemp("served")
    scopes = [part for scope in ("turns:write", "memory:read", "memory:write") for part in ("--scope", scope)]
    whose = (("--tenant", TENANT, *scopes), ("--tenant", TENANT, *scopes, "--user", "bound"))
    made = [
        InProcess(folder)("tokens", "new", "--name", f"t{n}", *each, "--json").records[0]
        for n, each in enumerate(whose)
    ]
    (folder / "tokens.toml").write_text("\n".join(each["entry"] for each in made))
    with serving(Memstream(folder), free_port(), "--with-stages", MEMSTREAM_TOKENS="tokens.toml") as server:
        yield ServedMemory(server.url, made[0]["token"], made[1]["token"])


async def contents(memory: Memory, user: str) -> list[str]:
    """Return the active facts of a user."""
    return sorted([fact.content async for fact in memory.api.facts(tenant_id=TENANT, user_id=user)])


async def wait_until_learnt(memory: Memory, user: str, content: str) -> None:
    await wait_for(lambda: contents(memory, user), f"the fact {content!r}", until=lambda found: content in found)
