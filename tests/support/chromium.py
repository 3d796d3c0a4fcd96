"""Chromium of the machine for tests of pages: Debian's package `chromium-headless-shell`, or another Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING: Final = "no Chromium: apt-get install --no-install-recommends chromium-headless-shell"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser. Without one, the test is skipped."""
    found = next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
    if found is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
