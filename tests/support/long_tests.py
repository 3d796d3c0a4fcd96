"""The marker `long` for tests that start many processes one after the other.

They run with `--long` (`make long`, and in CI). The default run leaves them out and stays short.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ONE_MARKER = ("long", "fault")
"""Markers of `make long` and `make faults`. Few modules have them, and to collect all modules takes long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("long").addoption("--long", action="store_true", help="also the tests marked long")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: starts many processes one after the other; runs with --long")
    if config.getoption("long"):  # slow to import, and used by tests that are long
        config.pluginmanager.import_plugin("schemathesis.pytest.plugin")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module without the one marker that `-m` selects."""
    marker = config.option.markexpr
    if marker not in ONE_MARKER or collection_path.suffix != ".py":
        return None
    return f"mark.{marker}" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("long"):
        return
    left = [item for item in items if item.get_closest_marker("long") is not None]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
