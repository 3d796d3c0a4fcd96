"""The selection of fault rows and their table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import hypothesis
import pytest

from tests.support.fault_rows import BEGIN, END, OFTEN, FaultRow, Result, table, with_table
from tests.support.shares import chosen

pytest_plugins = ["pytester"]
PLUGIN = "from tests.support.fault_rows import *\npytest_plugins = ['tests.support.shares']\n"
MODULE = """
import pytest
def test_ordinary(): pass
@pytest.mark.fault(broken="kill", holds="I1", often=True)
def test_often(): pass
@pytest.mark.fault(broken="rare", holds="I2")
@pytest.mark.parametrize("n", range(12))
def test_rare(n): assert n != 5
"""


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A run within a test imports what it loads anew: seconds. The number of examples is the whole process's."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    before = hypothesis.settings.get_current_profile_name()
    yield
    hypothesis.settings.load_profile(before)


FLOWS = """
import pytest
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("place", ["kafka", "embedded"])
def test_two_places(place, n): pass
@pytest.mark.parametrize("place", ["kafka"])
def test_one_place(place): pass
@pytest.mark.parametrize("place", ["kafka", "embedded"])
@pytest.mark.fault(broken="b", holds="h")
def test_fault(place): pass
def test_no_place(): pass
@pytest.mark.long
def test_long(): pass
"""


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        ((), {"passed": 1, "deselected": 13}),
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


@pytest.mark.slow
def test_a_share_has_the_often_rows_of_its_seed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(MODULE)
    options = ("-p", "no:cacheprovider", "--faults", "share", "--faults-share", "1000000", "--seed")
    passed = [pytester.runpytest(*options, str(seed)).parseoutcomes()["passed"] for seed in range(OFTEN)]
    assert sorted(passed) == [1] * (OFTEN - 1) + [2]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "place"), [("1", "embedded"), ("2", "kafka")])
def test_of_a_flow_in_two_places_one_runs_and_no_long_test(pytester: pytest.Pytester, seed: str, place: str) -> None:
    result = run_flows(pytester, "--seed", seed)
    result.assert_outcomes(passed=4, deselected=5)
    result.stdout.fnmatch_lines([f"*test_two_places[[]{place}-{n}] PASSED*" for n in (1, 2)])


@pytest.mark.slow
def test_with_all_every_flow_runs_in_both_places_and_every_long_test(pytester: pytest.Pytester) -> None:
    run_flows(pytester, "--long", "all").assert_outcomes(passed=7, deselected=2)


def run_flows(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    plugins = [f"tests.support.{name}" for name in ("shares", "long_tests", "fault_rows")]
    pytester.makeconftest(f"pytest_plugins = {plugins}")
    (pytester.mkdir("integration") / "test_flow.py").write_text(FLOWS)
    return pytester.runpytest("-p", "no:cacheprovider", "-p", "no:schemathesis", "-v", *options)


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
    pytester.runpytest("-p", "no:cacheprovider", "--faults", "all", "--faults-report", str(page), "--seed", "9")
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
