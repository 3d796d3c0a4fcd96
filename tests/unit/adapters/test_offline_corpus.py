"""The offline model on its corpus. Odd lines tune the rules, even lines measure them."""

from __future__ import annotations

import pytest

from tests.support.offline_corpus import lines, measuring, score, tuning


def test_the_corpus_is_large_enough() -> None:
    read = lines()
    assert len(read) >= 120
    assert sum(not line.expect for line in read) >= 40
    assert len({line.text for line in read}) == len(read)


async def test_the_even_lines_measure(
    record_property: pytest.RecordProperty, capsys: pytest.CaptureFixture[str]
) -> None:
    measured, _ = await score(measuring())
    tuned, _ = await score(tuning())
    with capsys.disabled():
        print(f"\noffline model, even lines (measure): {measured}\noffline model, odd lines (tune):     {tuned}")
    assert measured.precision >= 0.95
    assert measured.recall >= 0.6


async def test_the_odd_lines_do_not_get_worse() -> None:
    tuned, differences = await score(tuning())
    assert tuned.precision >= 0.98, differences
    assert tuned.recall >= 0.95, differences
