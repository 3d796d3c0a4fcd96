"""The file of the audit trail under a rotation of logs."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstream.cli.output.logs import open_audit
from memstream.tools.audit import AUDIT, audit


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    before = (AUDIT.handlers[:], AUDIT.level, AUDIT.propagate)
    open_audit(tmp_path / "audit.log")
    yield tmp_path / "audit.log"
    for handler in AUDIT.handlers:
        handler.close()
    AUDIT.handlers[:], AUDIT.level, AUDIT.propagate = before


def said(file: Path) -> list[str]:
    return [json.loads(line)["action"] for line in file.read_text().splitlines()]


def test_lines_go_on_in_a_new_file_after_a_rotation(file: Path) -> None:
    audit("first", who="a", tenant_id=None, owner=None, result="denied")
    rotated = file.rename(file.with_suffix(".1"))
    audit("second", who="a", tenant_id=None, owner=None, result="denied")
    assert (said(rotated), said(file)) == (["first"], ["second"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
