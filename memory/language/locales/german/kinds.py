"""German: kinds of things. A statement that denies a kind also denies its members: a person who drinks no alcohol
drinks no wine."""

from __future__ import annotations

from collections.abc import Mapping

from .spelling import spelled, words

_PARTICULARS: Mapping[str, str] = {
    "alkohol": "bier wein sekt whisky wodka gin rum schnaps likör champagner prosecco cocktail cocktails",
    "fleisch": "rind schwein hähnchen huhn steak wurst schinken speck lamm salami schnitzel hackfleisch pute",
    "fisch": "lachs thunfisch forelle hering kabeljau sushi",
    "milchprodukte": "milch käse joghurt butter sahne quark",
    "süßigkeiten": "schokolade kuchen kekse bonbons gummibärchen torte eis",
    "zucker": "süßigkeiten limonade",
    "koffein": "kaffee espresso tee",
    "kaffee": "espresso cappuccino latte",
    "gluten": "brot nudeln weizen",
    "zigaretten": "rauchen",
    "nikotin": "rauchen zigaretten vapen",
    "auto": "vw golf passat polo audi bmw mercedes opel ford tesla toyota skoda fiat renault kombi cabrio",
    "handy": "iphone pixel galaxy android",
    "computer": "laptop macbook pc notebook",
    "fahrrad": "rennrad mountainbike e-bike hollandrad",
    "haustier": "hund katze hamster kaninchen papagei vogel kater",
    "tier": "hund katze hamster kaninchen papagei vogel pferd kater haustier",
    "hund": "welpe dackel pudel schäferhund labrador",
    "kind": "sohn tochter baby",
    "instrument": "gitarre klavier geige cello flöte schlagzeug trompete",
    "sport": "tennis fußball handball yoga joggen schwimmen",
}
KINDS: Mapping[str, tuple[str, ...]] = {
    particular: tuple(spelled(general) for general, under in _PARTICULARS.items() if particular in words(under))
    for particular in {each for under in _PARTICULARS.values() for each in words(under)}
}
ALTERING = frozenset(
    words("stellvertretender stellvertretende ehemaliger ehemalige früherer frühere angehender ex halb stief")
)
