"""German: phrases about where a person lives, and about moving in and out."""

from __future__ import annotations

from ..pack import PredicateRule
from .spelling import phrases, words

DWELLINGS = frozenset(
    words(
        "wohnung haus hausboot studio wohnheim bungalow hütte wohnwagen zelt wg wohngemeinschaft reihenhaus villa"
        " schloss bauernhof zimmer apartment loft mehrfamilienhaus einfamilienhaus altbau neubau plattenbau"
    )
)
AREAS = frozenset(
    words("stadt dorf land küste meer insel vorort innenstadt zentrum stadtrand umland ausland großstadt")
)
_LIVING = phrases(
    "{wohnen,leben,residieren,hausen} {in,auf,an,bei,nahe}|sein {wohnhaft,ansässig,zuhause,daheim} in"
    "|{haben,besitzen} {wohnsitz,hauptwohnsitz} in|wohnort sein|wohnsitz sein"
)
_MOVED = phrases(
    "{ziehen,umziehen,hinziehen,wegziehen,zurückziehen,umsiedeln} {nach,in,auf,an,zu}"
    "|{übersiedeln,auswandern,emigrieren,zurückkehren} {nach,in,auf,an,zu}"
    "|ziehen zurück {nach,in,auf}|{zurückkehren,zurückgehen,zurückkommen} {nach,in}|einziehen in|finden wohnung in"
)
RULES = (
    PredicateRule("lives_in", "single", _LIVING, named=True),
    PredicateRule("lives_in", "single", _MOVED, happened=True, named=True),
    PredicateRule("lives_in_area", "single", _LIVING, among=AREAS),
    PredicateRule("lives_in_area", "single", _MOVED, happened=True, among=AREAS),
    PredicateRule("dwells_in", "single", _LIVING, among=DWELLINGS),
    PredicateRule("dwells_in", "single", _MOVED, happened=True, among=DWELLINGS),
    PredicateRule("dwells_in", "single", phrases("ausziehen {aus,bei}"), denied=True, happened=True, among=DWELLINGS),
    PredicateRule("lives_with", "single", phrases("{wohnen,leben} {allein,alleine}"), value="alone"),
    PredicateRule(
        "lives_with",
        "single",
        phrases("{wohnen,leben} mit|{zusammenwohnen,zusammenleben} mit|{wohnen,leben} bei"),
    ),
    PredicateRule("lives_with", "single", phrases("zusammenziehen mit|einziehen bei|ziehen zu"), happened=True),
    PredicateRule("lives_with", "single", phrases("ausziehen bei"), denied=True, happened=True),
    PredicateRule("lives_on_floor", "single", phrases("{wohnen,leben} in # {stock,etage,stockwerk}")),
    PredicateRule("lives_on_floor", "single", phrases("{ziehen,umziehen} in # {stock,etage}"), happened=True),
    PredicateRule("address", "single", phrases("{adresse,anschrift,wohnadresse} sein")),
    PredicateRule(
        "born_in",
        "single",
        phrases("{sein,werden} gebären in|geboren in|geburtsort sein|kommen zur welt in"),
        happened=True,
    ),
    PredicateRule("grew_up_in", "single", phrases("aufwachsen {in,auf}|verbringen kindheit in"), happened=True),
    PredicateRule(
        "comes_from",
        "single",
        phrases("kommen aus|stammen aus|sein aus|sein {gebürtig,ursprünglich} aus|kommen {gebürtig,ursprünglich} aus"),
    ),
)
ENDS = phrases(
    "{wegziehen,ausziehen,fortziehen} {aus,von}|{ziehen,gehen} weg {aus,von}|verlassen|aufgeben wohnung in"
    "|verkaufen {haus,wohnung} in|kündigen wohnung in"
)
