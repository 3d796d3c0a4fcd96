"""A loop over cases fails with the names of all failing cases, and hands fixtures on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import for_each


def test_all_failing_cases_are_named() -> None:
    seen = []

    @for_each("number", range(5), ids="case {}".format)
    def check(number: int) -> None:
        seen.append(number)
        assert number % 2 == 0
        assert 6 / (number - 4)

    with pytest.raises(AssertionError) as caught:
        check()
    assert seen == [0, 1, 2, 3, 4]
    first, *failed = str(caught.value).split("\n[")
    assert first == "3 of 5 cases failed:"
    assert [line.split(":")[0] for line in failed] == ["1] case 1", "3] case 3", "4] case 4"]
    assert "ZeroDivisionError: division by zero" in failed[-1]


def test_no_cases_are_refused() -> None:
    with pytest.raises(AssertionError, match="proves nothing"):
        for_each("number", [])


@for_each(("one", "other"), [(1, 1), (2, 2)])
def test_fixtures_are_handed_on(one: int, other: int, tmp_path: Path) -> None:
    assert one == other
    assert tmp_path.is_dir()


@for_each("number", [1, 2])
class TestClass:
    def test_each_test_of_a_class_has_the_cases(self, number: int, tmp_path: Path) -> None:
        assert number > 0
        assert tmp_path.is_dir()
