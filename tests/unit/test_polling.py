"""The polling helper: it returns what it saw, and its message names what was missed."""

from __future__ import annotations

from itertools import count

import pytest

from tests.support.polling import TimedOut, at_least, has_ended, wait_for, wait_for_blocking


async def test_the_value_that_was_accepted_is_returned() -> None:
    numbers = count()

    async def following() -> int:
        return next(numbers)

    assert await wait_for(following, "three", until=at_least(3), pause=0) == 3
    assert wait_for_blocking(lambda: next(numbers), "five", until=at_least(5), pause=0) == 5
    assert [has_ended(code) for code in (None, 0, 3)] == [False, True, True]


async def test_the_message_of_a_time_out_says_what_was_waited_for_and_what_was_seen_last() -> None:
    with pytest.raises(TimedOut) as late:
        await wait_for(lambda: [1, 2], "three records", until=lambda seen: len(seen) > 2, deadline=0.02, pause=0.01)
    assert str(late.value) == "waited 0.02 s for three records; last seen: [1, 2]"
    with pytest.raises(TimedOut) as late:
        wait_for_blocking(
            lambda: "x" * 600, "an end", until=lambda seen: seen == "end", deadline=0, detail=lambda: "log: no"
        )
    assert str(late.value) == f"waited 0 s for an end; last seen: '{'x' * 499}…\nlog: no"
