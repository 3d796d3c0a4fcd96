"""The check of words that `make lint` runs (.ci/prose.py)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with a repository of its own that has one page and no allowed finding."""
    spec = importlib.util.spec_from_file_location("prose", ROOT / ".ci" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page, allowed = tmp_path / "page.md", tmp_path / "allowed.json"
    page.write_text("A row has a version.\n")
    allowed.write_text("{}")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ALLOWED", allowed)
    monkeypatch.setattr(module, "files", lambda: [page])
    return module


def found(prose: ModuleType, path: Path) -> list[tuple[int, str]]:
    return [(line, name) for line, name, _ in prose.findings(path)]


def test_docstrings_and_comments_are_searched_and_code_is_not(prose: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        '"""What a row stands for."""\n'
        "def f():\n"
        '    """Return a row.\n\n    It lies in a table, and `told` is code.\n    """\n'
        '    told = "a log line tells"  # the one that was told\n'
    )
    assert sorted(found(prose, source)) == [(1, "first word"), (5, "lie"), (7, "ellipsis"), (7, "tell")]


def test_pages_are_searched_without_code_and_quotations(prose: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "other.md"
    page.write_text('It is made anew.\n\n```\ntold\n```\n\n`told`, "told" and “told”, at once.\n')
    assert found(prose, page) == [(1, "anew"), (7, "at once")]


def test_a_count_may_fall_and_never_grow(prose: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, allowed = tmp_path / "page.md", tmp_path / "allowed.json"
    assert prose.main([]) == 0
    page.write_text("It tells.\n")
    assert prose.main([]) == 1
    assert prose.main(["--write"]) == 1
    assert "page.md:1: tell: It tells." in capsys.readouterr().out
    allowed.write_text(json.dumps({"page.md": {"tell": 2}}))
    assert prose.main([]) == 1
    assert "page.md" in capsys.readouterr().out
    assert prose.main(["--write"]) == 0
    assert json.loads(allowed.read_text()) == {"page.md": {"tell": 1}}
    assert prose.main([]) == 0
