"""When a cue meets the condition of a task."""

from __future__ import annotations

import pytest

from memstream.memory.recall.task_conditions import meets_condition


@pytest.mark.parametrize(
    ("condition", "cue", "met"),
    [
        ("when the plumber is mentioned", "The plumber comes tomorrow", True),
        ("when the plumber is mentioned", "Which plumbers are there?", True),
        ("when the plumber is mentioned", "Where do I work?", False),
        ("when the plumber is mentioned", "", False),
        ("at the next visit to Rome", "I am in Rome on Monday, my next trip", True),
        ("wenn der Urlaub geplant wird", "Ich plane meinen Urlaub", True),
        ("wenn der Urlaub geplant wird", "Ich gehe heute ins Kino", False),
        ("when it is", "it is", False),
    ],
)
def test_half_of_its_telling_words_meet_a_condition(condition: str, cue: str, met: bool) -> None:
    assert meets_condition(cue, condition, locale="en,de") is met
