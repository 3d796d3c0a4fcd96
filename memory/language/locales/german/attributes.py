"""German: name, age, studies, body, belongings and similar attributes."""

from __future__ import annotations

from ..pack import PredicateRule
from .spelling import phrases, words

SCHOOLS = frozenset(
    words("gymnasium grundschule realschule hauptschule gesamtschule schule kita kindergarten berufsschule uni")
)
RULES = (
    PredicateRule(
        "birthday", "single", phrases("haben geburtstag an|haben geburtstag|geburtstag sein an|geburtstag sein")
    ),
    PredicateRule("birthday", "single", phrases("{sein,werden} gebären {an,#}"), happened=True),
    PredicateRule("age", "single", phrases("sein # jahr alt|sein # jahr|alter sein|sein #")),
    PredicateRule("age", "single", phrases("werden #|werden # jahr alt"), happened=True),
    PredicateRule(
        "name",
        "single",
        phrases(
            "heißen|name sein|werden nennen|{vorname,nachname,familienname} sein|heißen mit nachnamen"
            "|heißen mit vornamen"
        ),
    ),
    PredicateRule("studies", "single", phrases("studieren")),
    PredicateRule(
        "studies_at",
        "single",
        phrases("studieren {in,an}|sein {student,studentin,schüler,schülerin} {an,in}"),
    ),
    PredicateRule("studies_at", "single", phrases("besuchen"), among=SCHOOLS),
    PredicateRule("studies_at", "single", phrases("wechseln {an,auf}"), happened=True, named=True),
    PredicateRule("weighs", "single", phrases("wiegen|gewicht sein")),
    PredicateRule("height", "single", phrases("sein # {m,cm} groß|größe sein|körpergröße sein")),
    PredicateRule("earns", "single", phrases("verdienen|{gehalt,lohn} {sein,betragen}")),
    PredicateRule(
        "native_language",
        "single",
        phrases("muttersprache sein|sprechen als muttersprache|sein {muttersprachler,muttersprachlerin}"),
    ),
    PredicateRule("email", "single", phrases("{e-mail,email,mailadresse,e-mail-adresse} sein")),
    PredicateRule("phone_number", "single", phrases("{telefonnummer,handynummer,nummer} sein")),
    PredicateRule("has", "multi", phrases("haben|besitzen|halten")),
    PredicateRule("has", "multi", phrases("kaufen|anschaffen|zulegen|adoptieren|bekommen|erben"), happened=True),
)
LASTING = frozenset(
    words(
        "born_in birthday grew_up_in comes_from name native_language visited speaks age allergic_to"
        " intolerant_of height"
    )
)
