"""docs/reference against the code: its tables, its example of the settings file, its example ids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import reference_tables
from docs.generate.contract_tables import STORED
from docs.generate.json_schemas import PUBLISHED
from memstream.agents.reflector.timers import TIMERS_MAX
from memstream.cli.main import COMMANDS
from memstream.cli.wiring.settings import FOR_TESTS, Settings, load, variable
from memstream.memory.policies import MemoryPolicy
from memstream.recall.record_reader import TO_DO_MAX
from memstream.schemas import ids
from memstream.schemas.edits.blocks import BLOCKS_MAX
from memstream.schemas.edits.common import MERGED_MAX
from memstream.schemas.edits.facts import PINNED_FACTS_MAX
from memstream.schemas.edits.groups import MEMBERS_MAX, SHARED_MAX
from memstream.schemas.edits.prospective import TASKS_MAX
from memstream.schemas.procedures import PROCEDURES_MAX
from memstream.schemas.topics import catalogue

PAGES = {page.name: page.read_text() for page in sorted(reference_tables.FOLDER.glob("*.md"))}


def generated(page: str) -> set[str]:
    """Names of the tables on a page."""
    return set(re.findall(r"<!-- generated: ([\w ]+) -->", PAGES[page]))


def test_the_tables_agree_with_the_code() -> None:
    assert reference_tables.differences() == [], "mend: make generate"


def test_the_limits_of_edits_agree_with_the_code() -> None:
    told = re.findall(r"^\| (.+) \| (\d+) \|$", PAGES["edits.md"].partition("## Limits")[2].partition("## ")[0], re.M)
    assert [int(limit) for _, limit in told] == [
        TASKS_MAX,
        TIMERS_MAX,
        TO_DO_MAX,
        PROCEDURES_MAX,
        BLOCKS_MAX,
        MERGED_MAX,
        PINNED_FACTS_MAX,
        MEMBERS_MAX,
    ]
    assert SHARED_MAX == MEMBERS_MAX


def test_drift_is_told_by_page(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    assert reference_tables.differences(tmp_path) == []
    for name, old, new in (
        ("topics.md", "| 30 days |", "| 31 days |"),
        ("settings.md", "| MEMSTREAM_IN_FLIGHT | 64 |", "| MEMSTREAM_IN_FLIGHT | 65 |"),
        ("cli.md", "[--until-idle ", "[--until-tired "),
        ("monitoring.md", "| `memstream_events_in_total` |", "| `memstream_events_total` |"),
        ("collections.md", "evidence[].turn_id", "evidence[].turn"),
        ("records.md", "| `turn_number` |", "| `turn_count` |"),
        ("http.md", "| `GET /v1/digest` |", "| `GET /v1/digests` |"),
    ):
        assert old in PAGES[name], name
        (tmp_path / name).write_text(PAGES[name].replace(old, new, 1))
        assert reference_tables.differences(tmp_path) == [f"{name}: differs from the code"]
        reference_tables.write(tmp_path)
        assert (tmp_path / name).read_text() == PAGES[name]


def test_a_table_that_the_code_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError):
        reference_tables.filled("<!-- generated: wishes -->\n<!-- end -->")


def test_every_table_stands_on_a_page() -> None:
    every = set[str]().union(*(generated(page) for page in PAGES))
    records = {f"fields of {published.name}" for published in PUBLISHED}
    stored = {f"fields of {name}" for name in STORED}
    assert every == set(reference_tables.TABLES) | records | stored
    on_pages = set[str]().union(*(generated(f"{name}.md") for name in ("records", "edits", "policies", "export")))
    assert records == {name for name in on_pages if name.startswith("fields of ")}
    assert stored == {name for name in generated("collections.md") if name.startswith("fields of ")}


def test_every_setting_is_described() -> None:
    rows = re.findall(r"^\| ([A-Z_]+) \| [^|]+ \| (.+) \|$", PAGES["settings.md"], re.MULTILINE)
    described = [field for field in Settings.model_fields if field not in FOR_TESTS]
    assert [name for name, _ in rows] == [variable(field) for field in described]


def test_the_file_of_the_example_shows_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGES["settings.md"], re.DOTALL)
    (tmp_path / "memstream.toml").write_text(example)
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields:
        monkeypatch.delenv(variable(field), raising=False)
    settings, policy = load()
    assert settings.broker == "kafka://localhost:9092"
    assert policy == MemoryPolicy()


def test_every_command_has_a_row_and_a_text() -> None:
    rows = re.findall(r"^\| (?:`|<code>)memstream ([\w-]+)", PAGES["cli.md"], re.MULTILINE)
    assert list(dict.fromkeys(rows)) == list(COMMANDS)
    headings = " ".join(re.findall(r"^### (.+)$", PAGES["cli.md"], re.MULTILINE))
    assert set(re.findall(r"[\w-]+", headings)) >= set(COMMANDS)


def test_every_topic_has_a_row() -> None:
    for topic in catalogue():
        assert f"`{topic.name}`" in PAGES["topics.md"]


def test_the_example_ids_are_those_of_the_code() -> None:
    session, owner = ids.session_key("acme", "u1", "s1"), ids.owner_key("acme", "user", "u1")
    observation = ids.observation_id(session, "t1", "user", "Works at  Stripe")
    fact = ids.fact_id(owner, observation)
    shown = re.findall(r"^\| (\w+)(?: \(version 1\))? \| .+ \| `([0-9a-f-]+)` \|$", PAGES["ids.md"], re.MULTILINE)
    assert shown == [
        ("content_hash", ids.content_hash("Works at  Stripe")),
        ("observation_id", observation),
        ("episode_id", ids.episode_id(observation)),
        ("fact_id", fact),
        ("event_id", ids.event_id(fact, 1)),
    ]


def defaults_of_others() -> list[tuple[str, str, str, str]]:
    """(setting, ours, theirs, why it differs) of each row of the page."""
    rows = re.findall(r"^\| `([\w.]+)` \| (\S+) \| \*[\w.]+\* \| (\S+) \|(.*)\|$", PAGES["defaults.md"], re.MULTILINE)
    return [(setting, ours, theirs, why.strip()) for setting, ours, theirs, why in rows]


def test_the_defaults_of_others_stand_beside_those_of_the_policies() -> None:
    rows = defaults_of_others()
    assert len(rows) == PAGES["defaults.md"].count("\n| `")
    for setting, ours, theirs, why in rows:
        value: object = MemoryPolicy()
        for name in setting.split("."):
            value = getattr(value, name)
        assert ours == (
            str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
        ), setting
        assert (ours == theirs) == (why == ""), f"{setting}: a difference has a reason, and a reason a difference"
