"""Errors of a service as problem details."""

from __future__ import annotations

import pytest

from memstream.api.problems import of_port
from memstream.schemas.errors import NoShare, StageError, Transient

OTHERWISE = 7


@pytest.mark.parametrize(("seconds", "header"), [(None, "7"), (0.0, "1"), (0.2, "1"), (2.0, "2"), (2.3, "3")])
def test_a_repeat_after_the_announced_wait_is_not_too_early(seconds: float | None, header: str) -> None:
    errors: list[StageError] = [Transient("store", "away", retry_after=seconds)]
    if seconds is not None:
        errors += [NoShare("full", retry_after=seconds, own=own) for own in (True, False)]
    for error in errors:
        assert of_port(error, retry_after=OTHERWISE).headers == {"Retry-After": header}
