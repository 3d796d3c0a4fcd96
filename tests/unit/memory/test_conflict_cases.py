"""How right the conflict pipeline decides when known statements were told one by one: floors that hold.

The cases in cases_tune.jsonl served to write rules, those in cases_test.jsonl only measure. A file beside the
repository holds cases of another author; a clone without it skips them.
"""

from __future__ import annotations

import os

import pytest

from tests.support.conflict_cases import OUTSIDE, TEST, TUNE, CaseReport, load, measure
from tests.support.small_model import minilm_or_skip

LOST = 0.01
"""At most this share: a known statement closed that must stay, or two statements made one."""


async def test_with_hashing() -> None:
    hold(await measure(TEST, "hashing"), right=0.85)
    tuned = await measure(TUNE, "hashing")
    assert tuned.right >= 0.93, tuned.lines()


@pytest.mark.semantic
async def test_with_a_small_model() -> None:
    minilm_or_skip()
    hold(await measure(TEST, "dense"), right=0.88)


async def test_cases_of_another_author() -> None:
    if not OUTSIDE.is_file():
        _missing(f"no cases at {OUTSIDE}")
    report = await measure(OUTSIDE, "hashing")
    assert report.right >= 0.95, report.lines()
    assert not report.lost


def test_the_halves_share_no_id_and_no_kind_is_missing_in_one() -> None:
    tune, test = load(TUNE), load(TEST)
    assert not {case.id for case in tune} & {case.id for case in test}
    assert len(tune) + len(test) >= 470
    frequent = {case.kind for case in tune if sum(each.kind == case.kind for each in tune) >= 5}
    assert frequent <= {case.kind for case in test}


def hold(report: CaseReport, *, right: float) -> None:
    """Which cases are wrong is not told: whoever writes rules reads the other half."""
    if report.right < right or len(report.lost) > LOST * report.cases:
        pytest.fail(f"{report}; at least {right:.0%} right and at most {LOST:.0%} lost", pytrace=False)


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and in CI it must be there", pytrace=False)
    pytest.skip(f"{what}: only these few tests need it")
