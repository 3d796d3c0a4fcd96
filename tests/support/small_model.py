"""The folder of a small sentence encoder, which a clone of a user does not have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MINILM = Path(__file__).resolve().parents[2].parent / "shared" / "models" / "all-minilm-l6-v2-int8"


def minilm_or_skip() -> str:
    """Return the folder. Without it the test is skipped; in CI it fails."""
    if not MINILM.is_dir():
        missing = f"no model folder at {MINILM}: only these few tests need it"
        if os.environ.get("CI"):
            pytest.fail(f"{missing}, and in CI it must be there", pytrace=False)
        pytest.skip(missing)
    return str(MINILM)
