"""The marker `long` for tests that start many processes one after the other.

They run with `--long` (`make long`, and in CI). The default run leaves them out and stays short.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("long").addoption("--long", action="store_true", help="also the tests marked long")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: starts many processes one after the other; runs with --long")
    if config.getoption("long"):  # slow to import, and used by tests that are long
        config.pluginmanager.import_plugin("schemathesis.pytest.plugin")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("long"):
        return
    left = [item for item in items if item.get_closest_marker("long") is not None]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
