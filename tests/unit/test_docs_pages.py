"""The pages as a whole: what code and pages name exists, and every page stands in the navigation."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.support.cases import for_each

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
READER_FILES = re.compile(r"^(my_chat/.*|hello|erase)\.py$")
"""Files that a page asks the reader to write."""
UNKNOWN_TO_USERS = re.compile(
    r"(contracts|memory-model|recall-and-tools|amendments|pipeline|trust|operations)\.md|\.\./shared"
)


NO_NAMES_OF_THE_CODE = {"memstream_agents", "session_N", "session_N_date_time", "integration"}
"""Words in backticks that are no names of the code: a rejected alternative, a foreign format, a folder."""


@lru_cache
def words_of_the_code() -> frozenset[str]:
    suffixes = (".py", ".toml", ".yml", ".json", ".mjs", ".java", ".go", "Makefile")
    paths = [ROOT / name for name in tracked() if name.endswith(suffixes) and "test_docs" not in name]
    texts = [path.read_text(errors="replace") for path in paths if path.is_file()]
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


@lru_cache
def tracked() -> tuple[str, ...]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git working tree")
    return tuple(listed.stdout.splitlines())


def test_every_page_stands_in_the_navigation_once() -> None:
    sites = "".join((ROOT / name).read_text() for name in ("mkdocs.yml", "mkdocs.developers.yml"))
    named = re.findall(r"^ +- .*?([\w/-]+\.md)$", sites, re.MULTILINE)
    pages = [str(page.relative_to(DOCS)) for page in PAGES if page.name != "0000-template.md"]
    assert sorted(name for name in named if name != "adr/0000-template.md") == sorted(pages)


def test_pages_that_files_name_exist() -> None:
    gone = []
    for name in tracked():
        path = ROOT / name
        if path.suffix not in {".py", ".md", ".yml", ".toml", ".json", ""} or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        gone += [
            (name, page) for page in re.findall(r"(?<![\w/.-])docs/[\w/-]+\.md", text) if not (ROOT / page).exists()
        ]
    assert gone == []


@for_each("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
class TestPage:
    def test_modules_that_it_names_exist(self, page: Path) -> None:
        files = [name for name in tracked() if name.endswith(".py")]
        named = re.findall(r"`([\w/.]+\.py)(?:::\w+)?`", page.read_text())
        gone = [
            name
            for name in named
            if not READER_FILES.match(name) and not any(f"/{file}".endswith(f"/{name}") for file in files)
        ]
        assert gone == []

    def test_it_refers_to_nothing_that_a_user_does_not_have(self, page: Path) -> None:
        assert UNKNOWN_TO_USERS.search(page.read_text()) is None

    def test_names_in_backticks_are_names_of_the_code(self, page: Path) -> None:
        named = set(re.findall(r"`([A-Za-z_][A-Za-z_.]{3,})`", page.read_text())) - NO_NAMES_OF_THE_CODE
        names = {name for name in named if not name.endswith((".py", ".md", "_"))}
        assert sorted(name for name in names if name.strip(".").split(".")[-1] not in words_of_the_code()) == []
