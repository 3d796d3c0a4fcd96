"""The command that writes every generated file, or compares it with the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import __main__ as generate
from docs.generate import asyncapi


def test_the_check_passes_with_the_files_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_the_check_names_each_file_that_differs_and_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "GENERATORS", (asyncapi,))
    monkeypatch.setattr(asyncapi, "differences", lambda: ["asyncapi.yaml: differs from the code"])
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == "asyncapi.yaml: differs from the code\nmend: make generate\n"


def test_without_arguments_every_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "asyncapi.yaml"
    write = asyncapi.write
    monkeypatch.setattr(generate, "GENERATORS", (asyncapi,))
    monkeypatch.setattr(asyncapi, "write", lambda: write(file))
    assert generate.main([]) == 0
    assert file.read_text() == asyncapi.text()


def test_an_unknown_argument_gets_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--wrong"]) == 2
    assert "usage" in capsys.readouterr().err
