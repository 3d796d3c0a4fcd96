"""Names and references of the repository: a public name is in one module, and no text names a missing document."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter, defaultdict
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

REPEATED = {
    "add": 4,
    "advance": 2,
    "answered": 3,
    "apply": 2,
    "at_least": 2,
    "attach": 2,
    "bounded": 2,
    "canonical": 2,
    "checked": 2,
    "confirm": 2,
    "connect": 2,
    "create": 3,
    "create_app": 2,
    "dead_letter": 2,
    "decode": 2,
    "decoded": 2,
    "define": 2,
    "detach": 2,
    "digest": 2,
    "edit": 3,
    "ended": 3,
    "evict": 2,
    "excerpt": 2,
    "flushed": 2,
    "forget": 5,
    "install": 2,
    "is_kin": 2,
    "load": 2,
    "main": 3,
    "merge": 3,
    "observed": 2,
    "of_owner": 2,
    "one_of": 2,
    "owner_of": 2,
    "parse": 7,
    "phrases": 2,
    "pin": 2,
    "plan": 2,
    "point": 3,
    "prune": 2,
    "read": 3,
    "read_page": 2,
    "refresh": 2,
    "refused": 4,
    "register": 2,
    "reinforce": 2,
    "remember": 2,
    "remove": 4,
    "restore": 3,
    "route_event": 3,
    "session_row_key": 2,
    "shown": 4,
    "since": 2,
    "statements_of": 2,
    "steps": 2,
    "supersede": 2,
    "tell": 2,
    "tenant_of": 2,
    "text_of": 2,
    "tokens": 2,
    "topics": 2,
    "translate_errors": 2,
    "trimmed": 2,
    "turn": 2,
    "turns_of": 2,
    "unpin": 2,
    "update": 3,
    "utc_now": 2,
    "with_names": 2,
    "without_secrets": 3,
    "words": 3,
}
"""Names of public functions in several modules, with the number of these modules. It only shrinks."""


def modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def test_a_public_class_name_stands_once() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_public_function_name_is_in_one_module() -> None:
    """Routers and the functions of commands are left out: the module and the command give them their name."""
    modules_with: Counter[str] = Counter()
    for path in modules():
        if path.parent != ROOT / "cli" / "commands":
            body = ast.parse(path.read_text(encoding="utf-8")).body
            functions = {each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
            modules_with.update(name for name in functions if not name.startswith("_") and name != "router")
    found = {name: count for name, count in modules_with.items() if count > 1}
    assert {name: count for name, count in found.items() if count > REPEATED.get(name, 1)} == {}, "take another name"
    assert {name for name, count in REPEATED.items() if found.get(name, 1) < count} == set(), "lower REPEATED"


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
