"""The OpenAI Agents SDK, imported where the repository's root is on the path: the root has a folder `agents`, too."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def import_sdk() -> None:
    """Import the SDK under its own name. Imports of `agents` find it from then on."""
    before = sys.path[:]
    sys.path[:] = [each for each in before if Path(each or ".").resolve() != ROOT]
    try:
        importlib.import_module("agents")
    finally:
        sys.path[:] = before
