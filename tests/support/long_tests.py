"""The marker `long` for tests that start many processes one after the other, and flows that have two places.

`make test` leaves the long ones out, and runs each flow of tests/integration in one of its places, which the commit
chooses. `--long share` (CI) adds one in LONG_SHARE of the long ones. `--long all` (`make long`) runs every test in
every place, and draws hypothesis' hundred examples.
"""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

from .shares import chosen, other_places

ONE_MARKER = ("long", "fault")
"""Markers of `make long` and `make faults`. Few modules have them, and to collect all modules takes long."""
LONG_SHARE = 15
EXAMPLES = 25
"""Examples of each property, except with `--long all`. Hypothesis draws others each time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("long").addoption(
        "--long", choices=("none", "share", "all"), default="none", help="which tests marked long run"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes ten seconds or more; runs with --long")
    if config.getoption("long") != "none":  # slow to import, and used by tests that are long
        config.pluginmanager.import_plugin("schemathesis.pytest.plugin")
    if config.getoption("long") != "all":
        hypothesis.settings.register_profile("some", hypothesis.settings.default, max_examples=EXAMPLES)
        hypothesis.settings.load_profile("some")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module without the one marker that `-m` selects."""
    marker = config.option.markexpr
    if marker not in ONE_MARKER or collection_path.suffix != ".py":
        return None
    return f"mark.{marker}" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    which, seed = config.getoption("long"), config.getoption("seed")
    if which == "all":
        return
    flows = [item for item in items if "integration" in item.path.parts and not item.get_closest_marker("fault")]
    left = {*other_places(flows, seed=seed)}
    left |= {
        item
        for item in items
        if item.get_closest_marker("long")
        and not (which == "share" and chosen(item.nodeid, seed=seed, share=LONG_SHARE))
    }
    if left:
        config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]
