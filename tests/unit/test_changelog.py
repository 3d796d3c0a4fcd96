"""Changes wait as one-line files in changelog.d, and the present version has a section in CHANGELOG.md."""

from __future__ import annotations

import tomllib
from pathlib import Path

from memstream import __version__

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
TYPES = {each["directory"] for each in CONFIG["type"]}


def wrong(name: str, text: str) -> str | None:
    """Return what is wrong with the file of a change."""
    *words, kind, end = name.split(".")
    if len(words) != 1 or end != "md" or kind not in TYPES:
        return f"{name}: name it WORD.TYPE.md, where TYPE is one of {', '.join(sorted(TYPES))}"
    if len(text.strip().splitlines()) != 1 or text.startswith(("-", " ")):
        return f"{name}: write one line, without a bullet"
    return None


def test_each_change_is_one_line_of_a_known_type() -> None:
    assert wrong("min-score.added.md", "Recall takes `min_score`.\n") is None
    assert wrong("min-score.feature.md", "Recall takes `min_score`.\n") is not None
    assert wrong("min-score.added.md", "- Recall takes `min_score`.\n") is not None
    assert wrong("min-score.added.md", "Recall takes\n`min_score`.\n") is not None
    files = [path for path in (ROOT / CONFIG["directory"]).iterdir() if path.name != "README.md"]
    assert [said for path in files if (said := wrong(path.name, path.read_text(encoding="utf-8")))] == []


def test_the_version_has_a_section() -> None:
    text = (ROOT / CONFIG["filename"]).read_text(encoding="utf-8")
    assert CONFIG["start_string"] in text
    assert f"## [{__version__}] - " in text
