"""Rows of the fault matrix: tests with `@pytest.mark.fault(broken=…, holds=…)`.

`--faults none` (the default) runs no row, `share` one in `--faults-share`, chosen by `--seed`, and one in OFTEN of the
rows marked `often=True`, `all` every row. `--faults-report FILE` writes the table of this run between two marks of a
Markdown page.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from .shares import chosen

OFTEN = 4
"""A share has one in so many of the rows marked `often=True`."""
BEGIN, END = "<!-- fault rows: begin -->", "<!-- fault rows: end -->"
RESULTS = pytest.StashKey["Rows"]()


@dataclass(frozen=True, slots=True)
class FaultRow:
    """The arguments of the marker."""

    broken: str
    holds: str
    often: bool = False


@dataclass(slots=True)
class Result:
    row: FaultRow
    outcome: str
    seconds: float


def row_of(item: pytest.Item) -> FaultRow | None:
    marker = item.get_closest_marker("fault")
    if marker is None:
        return None
    try:
        return FaultRow(*marker.args, **marker.kwargs)
    except TypeError as wrong:
        raise pytest.UsageError(
            f"{item.nodeid}: @pytest.mark.fault(broken=…, holds=…, often=False): {wrong}"
        ) from wrong


# ---------------------------------------------------------------------------------------------- hooks of pytest
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--faults", choices=("none", "share", "all"), default="none", help="which fault rows run")
    group.addoption("--faults-share", type=int, default=5, help="one row in so many")
    group.addoption("--faults-report", type=Path, help="the page whose table of rows is written anew")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(broken, holds, often=False): a row of the fault matrix")
    config.stash[RESULTS] = Rows()
    config.pluginmanager.register(config.stash[RESULTS], "fault-rows")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    which, seed, share = (config.getoption(name) for name in ("faults", "seed", "faults_share"))
    left: list[pytest.Item] = []
    for item in items:
        row = row_of(item)
        if row is not None:
            item.user_properties.append(("fault", [row.broken, row.holds]))
            shared = chosen(item.nodeid, seed=seed, share=min(share, OFTEN) if row.often else share)
            if which == "none" or (which == "share" and not shared):
                left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def pytest_report_header(config: pytest.Config) -> str:
    return f"fault rows: {config.getoption('faults')}, seed {config.getoption('seed')}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    page: Path | None = session.config.getoption("faults_report")
    if page is None or hasattr(session.config, "workerinput"):
        return
    results = session.config.stash[RESULTS].results
    page.write_text(
        with_table(page.read_text(), table(results, seed=session.config.getoption("seed"), at=datetime.now(UTC)))
    )


@pytest.fixture
def fault_seed(request: pytest.FixtureRequest) -> int:
    """The seed for random choices in a row."""
    return int(request.config.getoption("seed"))


class Rows:
    """Collects the result of each row, in the main process when there are several."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        marked = dict(report.user_properties).get("fault")
        if not isinstance(marked, Sequence):
            return
        result = self.results.setdefault(report.nodeid, Result(FaultRow(*map(str, marked)), "holds", 0.0))
        result.seconds += report.duration
        if report.failed:
            result.outcome = "**fails**"
        elif report.skipped:
            result.outcome = "not run"


# ---------------------------------------------------------------------------------------------- the page
def table(results: dict[str, Result], *, seed: int, at: datetime) -> str:
    """Build the table. The parameters of one test are one line, with the number that passed."""
    lines: dict[tuple[str, str, str], list[Result]] = {}
    for nodeid, result in sorted(results.items()):
        test = nodeid.split("[", 1)[0].removeprefix("tests/")
        lines.setdefault((result.row.broken, result.row.holds, test), []).append(result)
    held = sum(result.outcome == "holds" for result in results.values())
    head = (
        f"Run of {at:%Y-%m-%d %H:%M} UTC, seed {seed}, commit {_commit()}: {held} of {len(results)} cases hold "
        f"({sum(result.seconds for result in results.values()):.0f} s of test time)."
    )
    body = [
        f"| {broken} | {holds} | {_outcome(cases)} | {sum(case.seconds for case in cases):.0f} | `{test}` |"
        for (broken, holds, test), cases in sorted(lines.items())
    ]
    return "\n".join([head, "", "| broken | must hold | result | s | test |", "|---|---|---|---|---|", *body])


def _outcome(cases: Sequence[Result]) -> str:
    if len(cases) == 1:
        return cases[0].outcome
    worst = next((case.outcome for case in cases if case.outcome != "holds"), "holds")
    return f"{worst}, {sum(case.outcome == 'holds' for case in cases)} of {len(cases)}"


def with_table(page: str, rows: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{rows}\n{END}{after}"


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
