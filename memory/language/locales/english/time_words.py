"""English words of times in a question."""

from __future__ import annotations

from ..notation import words
from ..pack import TimeWords

_MONTHS = "january february march april may june july august september october november december"
_SHORT = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"

TIME_WORDS = TimeWords(
    days={
        "today": 0,
        "this morning": 0,
        "this afternoon": 0,
        "this evening": 0,
        "tonight": 0,
        "yesterday": -1,
        "last night": -1,
        "the day before yesterday": -2,
        "day before yesterday": -2,
    },
    recent=frozenset(("recently", "lately", "the other day")),
    units={
        "day": "day",
        "days": "day",
        "week": "week",
        "weeks": "week",
        "weekend": "weekend",
        "weekends": "weekend",
        "month": "month",
        "months": "month",
        "year": "year",
        "years": "year",
    },
    this=frozenset(("this",)),
    last=frozenset(("last", "past", "previous")),
    ago_after=frozenset(("ago",)),
    one=frozenset(("a", "an", "one")),
    months={
        **{name: number for number, name in enumerate(words(_MONTHS), start=1)},
        **{name: number for number, name in enumerate(words(_SHORT), start=1)},
        "sept": 9,
    },
    weekdays={name: number for number, name in enumerate(words(_DAYS))},
    at=frozenset(("in", "on", "during", "of", "from")),
    skipped=frozenset(("the", "year", "end", "beginning", "start", "of", "in", "on")),
    relations={"since": "since", "until": "until", "till": "until", "before": "before", "after": "after"},
)
