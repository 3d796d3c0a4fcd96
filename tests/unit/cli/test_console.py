"""Tables and lines in a narrow terminal, and the times of --as-of."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import click
import pytest

from memstream.cli.options import MOMENT
from memstream.cli.output import console

WIDTH = 80
FACT = str(uuid4())
ROW = ("user", "Works as a software engineer", "relationship", "invalidated", FACT)
COLUMNS = ("subject", "content", "category", "state", "fact_id")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def words(text: str) -> list[str]:
    return text.split()


def test_a_table_breaks_between_words_alone(capsys: pytest.CaptureFixture[str]) -> None:
    console.table(COLUMNS, [ROW, ROW], empty="")
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert [line.strip() for line in lines if FACT in line] == [f"fact_id {FACT}"] * 2
    shown = words(" ".join(lines))
    assert all(shown.count(word) >= 2 for cell in ROW for word in words(cell))


def test_a_table_that_fits_has_a_line_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    console.table(COLUMNS, [ROW, ROW], empty="")
    header, *rows = capsys.readouterr().out.splitlines()
    assert words(header) == list(COLUMNS)
    assert [words(row) for row in rows] == [words(" ".join(ROW))] * 2


def test_cells_are_text_and_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    console.table(("content", "id"), [("[red]x[/red] \x1b[31m", "[bold]" * 20)], empty="")
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "[bold][bold]" in out
    assert "\x1b[31m" not in out


def test_a_line_is_indented_by_its_label_and_breaks_between_words(capsys: pytest.CaptureFixture[str]) -> None:
    console.wrapped("[green]learnt     [/green] ", f"{'word ' * 12}{FACT} end")
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("learnt      word")
    assert all(line.startswith(" " * 12) and len(line) <= WIDTH for line in more)
    assert any(FACT in line for line in more)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-11-20", datetime(2026, 11, 20, 23, 59, 59, 999_999, UTC)),
        ("2026-11-20T10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00+02:00", datetime(2026, 11, 20, 8, tzinfo=UTC)),
        ("2026-11-20T00:00:00Z", datetime(2026, 11, 20, tzinfo=UTC)),
    ],
)
def test_a_date_is_the_end_of_its_day_and_a_time_is_itself(given: str, meant: datetime) -> None:
    assert MOMENT.convert(given, None, None) == meant


@pytest.mark.parametrize("given", ["yesterday", "2026-13-01", "0001-01-01T00:00:00+14:00", ""])
def test_what_is_no_time_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="not a time"):
        MOMENT.convert(given, None, None)
