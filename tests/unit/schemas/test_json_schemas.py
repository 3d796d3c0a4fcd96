"""The checked-in JSON Schemas are those of the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from memstream.schemas import generate


def test_files_and_code_agree() -> None:
    assert generate.differences() == [], "python -m memstream.schemas.generate writes them anew"


@pytest.mark.parametrize("name", sorted(generate.wanted()))
def test_each_is_a_valid_schema(name: str) -> None:
    Draft202012Validator.check_schema(json.loads(generate.wanted()[name]))


def test_drift_is_told_by_file(tmp_path: Path) -> None:
    generate.write(tmp_path)
    assert generate.differences(tmp_path) == []
    (tmp_path / "fact.json").write_text("{}")
    (tmp_path / "turn.json").unlink()
    (tmp_path / "old.json").write_text("{}")
    assert generate.differences(tmp_path) == [
        "turn.json: missing",
        "fact.json: differs from the code",
        "old.json: no contract has this name",
    ]
    generate.write(tmp_path)
    assert generate.differences(tmp_path) == []


def test_the_check_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0
    assert generate.main(["--wrong"]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("published", generate.PUBLISHED, ids=lambda p: p.name)
def test_what_we_produce_is_closed_and_whole(published: generate.Published) -> None:
    schema = json.loads(generate.schema_text(published))
    if published.name == "turn":
        assert schema["additionalProperties"] is True
        assert schema["required"] == ["tenant_id", "user_id", "session_id", "turn_id", "messages"]
        return
    assert schema["additionalProperties"] is False
    if published.view == "produced":
        assert set(schema["required"]) == set(schema["properties"])
