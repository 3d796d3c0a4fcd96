"""Names and references of the whole house: a public class name stands once, and no text names a missing document."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "adapters",
    "agents",
    "api",
    "cli",
    "client",
    "memory",
    "recall",
    "schemas",
    "streams",
    "tools",
    "verification",
)
MISSING_DOCUMENTS = re.compile(
    r"(?<![\w/-])(?:contracts|recall-and-tools|memory-model|pipeline|amendments|layout-and-style|trust|operations)"
    r"(?:\.md\b| §|, section)"
)


def modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def test_a_public_class_name_stands_once() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: the list of files is git's")
    ends = (".py", ".md", ".toml", ".yml", ".yaml", "Makefile")
    return [ROOT / name for name in listed.stdout.split() if name.endswith(ends) and name != "CHANGELOG.md"]


def test_references_point_into_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        if path.is_file() and path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MISSING_DOCUMENTS.search(line)
    ]
    assert found == []
