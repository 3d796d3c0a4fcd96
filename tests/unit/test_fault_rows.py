"""The selection of fault rows and their table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.fault_rows import BEGIN, END, FaultRow, Result, chosen, table, with_table

pytest_plugins = ["pytester"]
PLUGIN = "from tests.support.fault_rows import *\n"
MODULE = """
import pytest
def test_ordinary(): pass
@pytest.mark.fault(broken="kill", holds="I1", always=True)
def test_always(): pass
@pytest.mark.fault(broken="rare", holds="I2")
@pytest.mark.parametrize("n", range(12))
def test_rare(n): assert n != 5
"""


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        ((), {"passed": 1, "deselected": 13}),
        (("--faults", "share", "--faults-share", "1000000"), {"passed": 2, "deselected": 12}),
        (("--faults", "all"), {"passed": 13, "failed": 1}),
        (("--faults", "all", "-m", "fault"), {"passed": 12, "failed": 1, "deselected": 1}),
    ],
)
@pytest.mark.slow
def test_which_rows_run(pytester: pytest.Pytester, options: tuple[str, ...], outcomes: dict[str, int]) -> None:
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(MODULE)
    pytester.runpytest("-p", "no:cacheprovider", *options).assert_outcomes(**outcomes)


def test_a_module_without_a_row_is_not_imported(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(f"{PLUGIN}from tests.support.long_tests import pytest_ignore_collect\n")
    pytester.makepyfile(MODULE, test_other="raise ValueError('imported')\n")
    result = pytester.runpytest("-p", "no:cacheprovider", "--faults", "all", "-m", "fault")
    result.assert_outcomes(passed=12, failed=1, deselected=1)


def test_the_shares_of_all_seeds_are_the_whole() -> None:
    rows = [f"tests/faults/test_x.py::test_y[{n}]" for n in range(40)]
    shares = [{row for row in rows if chosen(row, seed=seed, share=5)} for seed in range(7, 12)]
    assert set.union(*shares) == set(rows)
    assert sum(map(len, shares)) == len(rows)
    assert all(shares)


def test_a_marker_without_its_words_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile('import pytest\n@pytest.mark.fault(broken="kill")\ndef test_x(): pass')
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*test_x*holds*"])


def test_the_report_says_what_held(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(MODULE)
    page = pytester.path / "page.md"
    page.write_text(f"# Before\n{BEGIN}\nthe table of before\n{END}\nafter\n")
    pytester.runpytest("-p", "no:cacheprovider", "--faults", "all", "--faults-report", str(page), "--faults-seed", "9")
    text = page.read_text()
    assert text.startswith("# Before\n")
    assert text.endswith("\nafter\n")
    assert "of before" not in text
    assert "| kill | I1 | holds |" in text
    assert "| rare | I2 | **fails**, 11 of 12 |" in text
    assert "seed 9" in text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        with_table("nothing", table({"t": Result(FaultRow("a", "b"), "holds", 1.0)}, seed=1, at=datetime.now(UTC)))
