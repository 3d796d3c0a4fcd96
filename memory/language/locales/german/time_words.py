"""German words of times in a question."""

from __future__ import annotations

from ..notation import words
from ..pack import TimeWords

_MONTHS = "januar februar märz april mai juni juli august september oktober november dezember"
_DAYS = "montag dienstag mittwoch donnerstag freitag samstag sonntag"

TIME_WORDS = TimeWords(
    days={
        "heute": 0,
        "gestern": -1,
        "vorgestern": -2,
    },
    recent=frozenset(("neulich", "kürzlich", "vor kurzem", "in letzter zeit")),
    units={
        "tag": "day",
        "tage": "day",
        "tagen": "day",
        "woche": "week",
        "wochen": "week",
        "wochenende": "weekend",
        "wochenenden": "weekend",
        "monat": "month",
        "monats": "month",
        "monate": "month",
        "monaten": "month",
        "jahr": "year",
        "jahres": "year",
        "jahre": "year",
        "jahren": "year",
    },
    this=frozenset(words("diese diesen dieser dieses diesem")),
    last=frozenset(
        words(
            """
            letzte letzten letzter letztes letztem vergangene vergangenen vergangener vergangenes vergangenem
            vorige vorigen voriger voriges vorigem
            """
        )
    ),
    ago_before=frozenset(("vor",)),
    one=frozenset(words("ein einem einer einen")),
    months={
        **{name: number for number, name in enumerate(words(_MONTHS), start=1)},
        "jänner": 1,
        "maerz": 3,
    },
    weekdays={**{name: number for number, name in enumerate(words(_DAYS))}, "sonnabend": 5},
    at=frozenset(words("im in am vom von während des")),
    skipped=frozenset(words("der den dem des jahr jahre jahres ende anfang beginn im zum zu am")),
    relations={"seit": "since", "bis": "until", "vor": "before", "nach": "after"},
    before_year=frozenset(
        words(
            """
            war warst waren wart habe hast hat haben habt hatte hattest hatten bin bist ist sind seid wurde wurden
            ich du er es sie wir ihr man mir dir mich dich uns euch
            """
        )
    ),
)
