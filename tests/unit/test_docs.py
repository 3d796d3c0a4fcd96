"""What the documents say against the code: files, links, snippets. tests/unit/test_reference.py has the reference."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from memstream.cli.wiring.settings import Settings, variable
from tests.support.cases import for_each

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.md"))
ROOT_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "AGENTS.md",
    "llms.txt",
    "deploy/README.md",
)
DOCS = [*(ROOT / name for name in ROOT_PAGES), *EXAMPLES, *sorted((ROOT / "docs").rglob("*.md"))]
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
    "tools",
    "verification",
]


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


@for_each("document", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
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
