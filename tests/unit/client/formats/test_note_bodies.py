"""The notes of an export as people read them: what they show, and where their links lead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.export_files import written
from tests.support.generated_memory import GeneratedMemory

MEMORY = GeneratedMemory(1, "acme", group=True)
LINES = [json.loads(each) for each in (MEMORY.header(), *MEMORY.lines())]
LINK = re.compile(r"(?<!\\)\]\(([^)]+)\)")


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each["record"] for each in LINES if each["kind"] == kind]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (episode, *_), (procedure, *_) = map(of_kind, ("episode", "procedure"))
    fact = next(each for each in of_kind("fact") if each["evidence"])
    fact |= {"content": "Works at Google", "tags": ["work"], "source_episode_ids": [episode["episode_id"]]}
    fact["evidence"][0] |= {"quote": "I work at Google"}
    procedure |= {"steps": ["Write it"], "source_episode_ids": [episode["episode_id"], "gone"]}
    return written(tmp_path_factory.mktemp("notes") / "a", "markdown", list(map(json.dumps, LINES)))


def note_of(notes: Path, kind: str, words: str) -> str:
    """Return the body of the only note of a kind with these words, without its front matter."""
    bodies = [path.read_text().split("\n---\n", 1)[1] for path in (notes / kind).iterdir()]
    (found,) = [each for each in bodies if words in each]
    return found


def test_every_link_leads_to_a_note(notes: Path) -> None:
    links = [(path.parent / unquote(link)) for path in notes.rglob("*.md") for link in LINK.findall(path.read_text())]
    assert len(links) > 50
    assert [each for each in links if not each.is_file()] == []


def test_a_fact_shows_its_statement_its_evidence_and_its_episode(notes: Path) -> None:
    note = note_of(notes, "facts", "# Works at Google")
    assert "- Tags: work" in note
    assert "> I work at Google" in note.partition("## Evidence")[2]
    assert "../episodes/" in note.partition("## Episodes")[2]


def test_a_procedure_shows_its_steps_and_the_episodes_that_memory_still_has(notes: Path) -> None:
    note = note_of(notes, "procedures", "1. Write it")
    assert note.partition("## Episodes")[2].count("](../episodes/") == 1
