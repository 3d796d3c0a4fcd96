"""English: phrases about where a person lives, and about moving in and out."""

from __future__ import annotations

from ..notation import phrases, words
from ..pack import PredicateRule

DWELLINGS = frozenset(
    words(
        """
flat apartment house houseboat studio dorm dormitory bungalow cottage condo condominium loft townhouse caravan van
camper trailer hostel farmhouse basement duplex penthouse mansion cabin tent castle barn room boat yurt maisonette
bedsit residence villa chalet motorhome rv
"""
    )
)
AREAS = frozenset(
    words(
        "city town village countryside suburb suburbs coast seaside mountains island downtown outskirts centre"
        " center farm hamlet metropolis"
    )
)
FAMILY = frozenset(
    words("parent parents mother father mum mom dad family sister brother aunt uncle grandparents folks parents'")
)
STREETS = frozenset(words("street avenue road lane boulevard square drive close alley way terrace"))
_LIVING = phrases(
    "live in|live currently in|live over in|live out in|live down in|live up in|live back in|reside in"
    "|{be,be now} {base,live,settle,locate} {in,out of}"
    "|home be|home be in|be resident of|have home in|live near|hometown now be|dwell in|{reside,live} permanently in"
    "|be live in|be home in|make home in"
)
_MOVED = phrases(
    "move {across,halfway across,over,half way across} {country,town,city,world,border,ocean,pond,state} to"
    "|move all the way to"
    "|move {to,into,in to,back to,over to,out to,down to,up to,across to}|{relocate,emigrate,migrate,immigrate} to"
    "|{settle,settle down,resettle,put down root} in|make {move,the move,leap} to"
    "|move {house,home,flat,apartment,away,out,back,permanently,abroad,family} to"
    "|{move,relocate} with * to|relocate {back,family,permanently} to|up stick to|pack up and move to"
    "|take up residence in"
    "|{return,go back,come back,move back} {for good,permanently} to|return to live in|return home to"
)
RULES = (
    PredicateRule("lives_on", "single", phrases("live on"), named=True),
    PredicateRule("lives_on", "single", phrases("move to"), happened=True, among=STREETS),
    PredicateRule("lives_in", "single", _LIVING, named=True),
    PredicateRule("lives_in", "single", phrases("call * home|call * home now"), named=True),
    PredicateRule("lives_in", "single", _MOVED, happened=True, named=True),
    PredicateRule("lives_in", "single", phrases("return to * {for good,permanently}"), happened=True, named=True),
    PredicateRule(
        "lives_in",
        "unsure",
        phrases(
            "have {place,own place,own flat,own apartment,new place} in|be back in|be back home in|be home in"
            "|rent in|{buy,rent} {house,home,flat,apartment,place} in"
        ),
        named=True,
    ),
    PredicateRule("lives_in", "unsure", phrases("live {nearby,next door,close by,around corner}"), value="nearby"),
    PredicateRule("lives_on", "unsure", phrases("rent {flat,apartment,house,room,place} {on,in}"), among=STREETS),
    PredicateRule("lives_in_area", "single", _LIVING, among=AREAS),
    PredicateRule("lives_in_area", "single", _MOVED, happened=True, among=AREAS),
    PredicateRule("lives_in_area", "single", phrases("live {abroad,overseas}"), value="abroad"),
    PredicateRule("lives_in_area", "single", phrases("move {abroad,overseas}"), value="abroad", happened=True),
    PredicateRule(
        "lives_in_area",
        "single",
        phrases("{move,return,come} {back home,home,back}|be back home"),
        value="home",
        happened=True,
    ),
    PredicateRule("dwells_in", "single", _LIVING, among=DWELLINGS),
    PredicateRule("dwells_in", "single", _MOVED, happened=True, among=DWELLINGS),
    PredicateRule("lives_with", "single", phrases("live {alone,by oneself,on own,solo}"), value="alone"),
    PredicateRule(
        "lives_with",
        "unsure",
        phrases("live with|live together with|share {flat,house,apartment,home,room} with|room with"),
    ),
    PredicateRule(
        "lives_with",
        "single",
        phrases("move in with|move back in with|move in together with|{start,begin} live with"),
        happened=True,
    ),
    PredicateRule(
        "lives_with",
        "single",
        phrases(
            "move out {of,from} * {house,home,place,flat,apartment,basement}|leave * {house,home,place}"
            "|move out {of,from} house of"
        ),
        denied=True,
        happened=True,
        among=FAMILY,
    ),
    PredicateRule(
        "lives_on_floor", "single", phrases("live on # floor|live on * floor|be on # floor|have flat on # floor")
    ),
    PredicateRule("lives_on_floor", "single", phrases("move to # floor|move {up,down} to # floor"), happened=True),
    PredicateRule(
        "address", "single", phrases("live at|{address,home address,current address,postal address,mailing address} be")
    ),
    PredicateRule("hometown", "single", phrases("hometown be|home town be")),
    PredicateRule("born_in", "single", phrases("be bear in|be born in|birthplace be|place of birth be"), happened=True),
    PredicateRule(
        "grew_up_in", "single", phrases("grow up in|be raise in|be bring up in|spend childhood in"), happened=True
    ),
    PredicateRule(
        "comes_from",
        "single",
        phrases("come from|be from|hail from|be originally from|come originally from|be native of"),
    ),
)
ENDS = phrases(
    "move away {from,out of}|move out {of,from}|move {from,out}|leave|vacate"
    "|sell {house,flat,apartment,home,place} in|give up {house,flat,apartment,home,place,lease} in"
    "|give up lease {on,for}|be evict from|{be,get} kick out of|be throw out of|flee|escape from|check out of"
    "|relocate from|emigrate from"
)
