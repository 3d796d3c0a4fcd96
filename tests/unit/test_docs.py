"""What the documents say against the code: settings, commands, files, links, snippets."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from memstream.cli.main import COMMANDS
from memstream.cli.wiring.settings import Settings, variable

ROOT = Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", ROOT / "deploy" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = [
    "adapters",
    "agents",
    "api",
    "cli",
    "client",
    "examples",
    "memory",
    "recall",
    "schemas",
    "streams",
    "verification",
]


def test_every_setting_is_described_and_no_other() -> None:
    table = re.findall(r"^\| ([A-Z_]+) \|", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)
    assert sorted(table) == sorted(variable(field) for field in Settings.model_fields)


def test_the_file_of_the_example_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memstream.cli.wiring.settings import load
    from memstream.memory.policies import MemoryPolicy

    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "settings.md").read_text(), re.DOTALL)
    (tmp_path / "memstream.toml").write_text(example)
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields:
        monkeypatch.delenv(variable(field), raising=False)
    settings, policy = load()
    assert settings.broker == "kafka://localhost:9092"
    assert policy == MemoryPolicy(), "the example shows the defaults"


@pytest.mark.parametrize(
    "document", [each for each in DOCS if "```toml" in each.read_text()], ids=lambda path: path.name
)
def test_every_example_of_the_file_is_taken(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memstream.cli.wiring.settings import load

    for field in Settings.model_fields:
        monkeypatch.delenv(variable(field), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "a key")  # the tier custom needs a model that somebody named
    for example in re.findall(r"```toml\n(.*?)```", document.read_text(), re.DOTALL):
        (tmp_path / "memstream.toml").write_text(example)
        load(config=tmp_path / "memstream.toml")


def test_every_command_is_described_and_no_other() -> None:
    told = re.findall(r"^\| `memstream (\w+)", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert set(told) == set(COMMANDS)


@pytest.mark.parametrize("document", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
class TestDocuments:
    def test_links_lead_somewhere(self, document: Path) -> None:
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text())
        gone = [link for link in links if "://" not in link and not (document.parent / link).exists()]
        assert not gone

    def test_files_that_are_named_exist(self, document: Path) -> None:
        named = re.findall(rf"`((?:{'|'.join(ROOMS)}|tests|deploy|docs)/[\w/.-]*)`", document.read_text())
        gone = [name for name in named if not (ROOT / name).exists()]
        assert not gone

    def test_python_is_python(self, document: Path) -> None:
        for snippet in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
            ast.parse(snippet)
