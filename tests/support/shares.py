"""Shares of tests that are too dear to run for each commit. Over as many seeds in turn as a share has parts, each test
comes once. `--seed` chooses; without it, the commit does.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        type=int,
        default=None,
        help="chooses the share of long tests and fault rows, the place of a flow, and what is random in a fault row",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.seed is None:
        config.option.seed = commit_seed()


def chosen(nodeid: str, *, seed: int, share: int) -> bool:
    """Return whether this test is in the share of this seed."""
    return _number(nodeid) % share == seed % share


def _number(nodeid: str) -> int:
    return int.from_bytes(hashlib.sha256(nodeid.encode()).digest()[:8], "big")


@functools.cache
def commit_seed() -> int:
    """Return a number of the commit, or 1 where there is none."""
    done = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=False)
    return int(done.stdout, 16) if done.returncode == 0 else 1


def other_places(items: list[pytest.Item], *, seed: int) -> list[pytest.Item]:
    """Return the items that run where another item of the same flow runs: a broker, or a folder. The seed chooses the
    place that stays, one for a module: its tests may go on from what an earlier one left."""
    flows: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        if (flow := _flow(item)) is not None:
            flows.setdefault(flow[0], {})[flow[1]] = item
    return [
        places[PLACES[(_number(flow.partition("::")[0]) + seed) % 2]]
        for flow, places in flows.items()
        if len(places) == len(PLACES)
    ]


NAMES = {"kafka": "kafka", "on_kafka": "kafka", "embedded": "embedded", "in_folder": "embedded"}
PLACES = ("kafka", "embedded")


def _flow(item: pytest.Item) -> tuple[str, str] | None:
    """Return the item's name without its place, and the place."""
    test, bracket, parameters = item.nodeid.partition("[")
    names = parameters.removesuffix("]").split("-")
    places = [NAMES[name] for name in names if name in NAMES]
    if not bracket or len(places) != 1:
        return None
    return f"{test}[{'-'.join('*' if name in NAMES else name for name in names)}]", places[0]
