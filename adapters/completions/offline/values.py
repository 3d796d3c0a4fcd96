"""Checks of the words that an offline rule found: are they a place, a name, an occupation …? When in doubt, a check
returns False."""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from .words import (
    AIDS,
    BUSINESSES,
    CONDITIONS,
    DIETS,
    FIELDS,
    HOUSEHOLD,
    LANGUAGES,
    MADE,
    MARITAL,
    MONTHS,
    NO_OCCUPATIONS,
    NO_TRADE,
    NUMBERS,
    OCCUPATION_ENDINGS,
    OCCUPATIONS,
    ORGANISATIONS,
    ORIGINS,
    PET_PLURALS,
    PETS,
    PLACES,
    PLAYED,
    PRACTISED,
    RELATIONS,
    WORN,
)

_DEICTIC: Final = re.compile(
    r"(?:it|this|that|these|those|you|your|yours|them|him|her$|his$|their$|its$|what|how|when|where|why|who|whom|there|here"
    r"|if|so|not|no|nothing|something|anything|everything|someone|one|ones|some|any|such|more|less|i|we|he|she|they)(?!\w)",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(rf"(?:{NUMBERS}|many|several|various|different|both) ", re.IGNORECASE)
_ADDRESSED: Final = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_DETERMINED: Final = re.compile(r"(?:the|an?|this|that|their|some|all|every|each|both) ", re.IGNORECASE)
_MANNER: Final = re.compile(
    r"(?:usual|always|well|much|hard|late|early|up|in|on|off|out|forces|expected|intended|designed|part|long|soon|far"
    r"|fast|alone|together|again|online|remotely)\b",
    re.IGNORECASE,
)
_OF_THE_TALK: Final = re.compile(
    r"^to\b|\b(?:idea|suggestion|option|answer|version|draft|sound|one|ones|plan|point|reply|explanation|approach|way|joke"
    r"|sentence|paragraph|step|example|wording|you|your|question)\b",
    re.IGNORECASE,
)
_NO_PLACE: Final = re.compile(
    r"(?:home|night|noon|once|all|least|most|least|best|first|last|risk|work|stake|hand|ease|peace|free|money|fun"
    r"|myself|themselves|weekends?|moment|future|time|times|theory|general|progress|charge|trouble|touch|love|need"
    r"|doubt|fear|luxury|pain|denial|silence|harmony|sin|the (?:moment|weekend|past|present|future|dark|cloud|shadows?"
    r"|same|end|middle|area|neighbou?rhood|clouds|now|[0-9]+s))\b",
    re.IGNORECASE,
)


_EMPHASIS: Final = re.compile(r"\s+(?:themselves|too|as well|either|both|all)$")
"""Words after an object that add nothing: allergic to them *themselves*."""


def is_plausible(value: str) -> bool:
    """Accept short texts about the world. Reject texts about the listener or about the conversation."""
    return (
        0 < len(value) <= 80
        and len(value.split()) <= 10
        and "…" not in value
        and not _DEICTIC.match(value)
        and last_word(_EMPHASIS.sub("", value)) not in {"it", "this", "that", "these", "those", "them"}
        and not _ADDRESSED.search(value)
    )


def is_place(value: str) -> bool:
    return not _NO_PLACE.match(value)


_THE_COUNTRY: Final = re.compile(
    r"the (?:netherlands|philippines|us|usa|uk|states|united \w+|emirates|bahamas|maldives|alps|bronx|czech republic|midlands"
    r"|highlands|azores|canaries|hague|middle of nowhere)$",
    re.IGNORECASE,
)


def is_somewhere(value: str) -> bool:
    """Accept a place of residence or origin."""
    if _THE_COUNTRY.match(value):
        return True
    return is_place(value) and not _COUNTED.match(value) and (_is_proper_or_bare(value) or _has_word(value, PLACES))


def is_employer(value: str) -> bool:
    return is_place(value) and (
        _is_proper_or_bare(value) or _has_word(value, ORGANISATIONS) or re.match(r"their \w+'s \w", value) is not None
    )


def is_proper(value: str) -> bool:
    return any(word[0].isupper() for word in value.split())


def _is_proper_or_bare(value: str) -> bool:
    """Accept a text with a capital letter, or a short text without a determiner, for people who type no capitals."""
    return is_proper(value) or (len(value.split()) <= 2 and not _DETERMINED.match(value) and not _MANNER.match(value))


def _has_word(value: str, words: Collection[str]) -> bool:
    return any(word.strip(",.").lower() in words for word in value.split())


def is_role(value: str) -> bool:
    """Accept an occupation."""
    return not _MANNER.match(value) and (
        value.lower().startswith(("a ", "an ")) or is_occupation(value.split(" of ")[0])
    )


def is_language(value: str) -> bool:
    return _has_word(value, LANGUAGES)


def is_played(value: str) -> bool:
    parts = re.split(r",| and ", value.lower())
    return all(part.strip().startswith("the ") or _has_word(part, PLAYED) for part in parts)


def is_worn(value: str) -> bool:
    return _has_word(value, WORN)


def is_subject_of_study(value: str) -> bool:
    return (value.lower().startswith("the ") and is_played(value[4:])) or (
        not _DETERMINED.match(value) and not re.match(r"(?:for|hard|at night|with|from|how|in|on|to be)\b", value)
    )


def is_aim(value: str) -> bool:
    return last_word(value) not in {
        "meeting",
        "call",
        "hours",
        "days",
        "weeks",
        "ages",
        "work",
        "bed",
        "lunch",
        "dinner",
    }


def is_name(value: str) -> bool:
    words = value.split()
    return (
        1 <= len(words) <= 3
        and all(word[0].isupper() and (len(word) == 1 or not word.isupper()) for word in words)
        and all(re.fullmatch(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?", word) for word in words)
        and words[0].lower() not in ORIGINS
        and words[0] not in ("I", "Not", "A", "An", "The")
    )


def is_spoken_name(value: str) -> bool:
    """Accept a name after "my name is", with or without a capital letter."""
    return is_name(value.title()) and value.split()[0].lower() not in (
        "not",
        "too",
        "hard",
        "difficult",
        "often",
        "on",
        "in",
    )


def is_occupation(value: str) -> bool:
    words = value.lower().replace(",", " ").split()
    if not words or len(words) > 5 or words[0] in NO_TRADE:
        return False
    last = words[-1]
    return last not in NO_OCCUPATIONS and (
        last in OCCUPATIONS or (len(last) > 4 and last.endswith(OCCUPATION_ENDINGS)) or last in ("engineer", "driver")
    )


def is_diet(value: str) -> bool:
    return value.lower() in DIETS


def is_origin(value: str) -> bool:
    words = value.lower().replace("-", " ").split()
    return (
        1 <= len(words) <= 3
        and words[-1] in ORIGINS
        and all(w in ORIGINS or w in ("half", "part", "quarter") for w in words)
    )


def is_marital(value: str) -> bool:
    return value.lower().partition(" ")[0] in MARITAL


_THE_LASTING: Final = re.compile(
    r"the (?:[a-z]+ ){0,2}?(?:sea|ocean|mountains?|beach|outdoors|cold|heat|rain|snow|sun|countryside|city|theatre|theater|cinema|opera|piano|violin|guitar"
    r"|cello|drums|dark|winter|summer|autumn|spring|forest|woods|desert|water|internet|taste|smell|sound|violence|noise|crowds|silence)\b",
    re.IGNORECASE,
)
_OF_NOW: Final = re.compile(
    r"(?:how|when|where|why|if|to|being|having|getting|seeing|hearing|doing|going|the|this|that|these|those|your|his|her|its|their (?!work|family|garden)|all (?:of|the)"
    r"|both|some of|most of|every|each|us|them)\b",
    re.IGNORECASE,
)


def is_taste(value: str) -> bool:
    """Accept an object of a lasting taste. "The recipe" or "how you said it" belongs to the conversation."""
    if _OF_THE_TALK.search(value):
        return False
    return (
        _OF_NOW.match(value) is None
        or _THE_LASTING.match(value) is not None
        or re.match(r"the (?-i:[A-Z])", value) is not None
    )


def is_business(value: str) -> bool:
    return any(word in BUSINESSES for word in value.lower().split())


def is_pets(value: str) -> bool:
    return last_word(value) in PETS | PET_PLURALS | {"pigs"}


def is_kin(value: str) -> bool:
    return last_word(value) in RELATIONS | HOUSEHOLD or is_pets(value)


def is_condition(value: str) -> bool:
    return last_word(value) in CONDITIONS


def is_ambition(value: str) -> bool:
    return not re.match(r"(?:become|be) (?:able|sure|certain|clear|more|better)\b", value)


def last_word(value: str) -> str:
    words = value.lower().split()
    return words[-1] if words else ""


def is_field(value: str) -> bool:
    """Accept a field of work: "logistics", "software development"."""
    words = value.lower().split()
    return 0 < len(words) <= 3 and words[-1] in FIELDS


def is_project(value: str) -> bool:
    """Accept a thing that a person builds or writes over weeks: "an old rowing boat"."""
    head = re.split(r" (?:in|for|with|about|from|at|on|of) ", value.lower())[0]
    return last_word(head) in MADE and bool(_ONE_THING.match(value))


def is_practised(value: str) -> bool:
    """Accept a regular activity: "yoga", "judo and pilates"."""
    return any(word.strip(",") in PRACTISED for word in value.lower().split()[:4])


def is_tool(value: str) -> bool:
    """Accept a named tool, or a personal aid."""
    return (value[0].isupper() and not _DETERMINED.match(value)) or _has_word(value, AIDS)


def is_activity(value: str) -> bool:
    """Accept a new activity: "swimming in the evenings", "the cello"."""
    words = value.lower().split()
    return words[0].endswith("ing") or is_practised(value) or _has_word(value, PLAYED)


def is_possession(value: str) -> bool:
    """Accept a lasting possession: a vehicle, an instrument, a home."""
    return bool(_KEPT.search(value.lower()))


_ONE_THING: Final = re.compile(r"(?:an?|my|our|the|their|this) ", re.IGNORECASE)
_KEPT: Final = re.compile(
    r"\b(?:house|flat|apartment|cottage|farm|boat|sailboat|van|car|motorbike|motorcycle|scooter|e-?bike|bike|bicycle|camper"
    r"|caravan|piano|violin|guitar|cello|bass|drums?|drum kit|trumpet|saxophone|harp|ukulele|accordion|allotment|garden"
    r"|land|cabin|sewing machine|3d printer|telescope|camera|loom|kiln|kayak|canoe)(?: in \w[\w -]+)?$"
)


def is_workplace(value: str) -> bool:
    """Accept an organisation of at most three words: "bank" in "I'm at the bank"."""
    words = value.lower().split()
    return len(words) <= 3 and words[-1] in ORGANISATIONS - {
        "bar",
        "shop",
        "store",
        "pub",
        "cafe",
        "café",
        "hospital",
        "airport",
        "restaurant",
        "supermarket",
        "gym",
        "clinic",
        "pharmacy",
        "library",
        "museum",
        "zoo",
        "hotel",
        "station",
        "garage",
        "theatre",
        "theater",
        "church",
    }


_LASTING: Final = re.compile(
    r"\b(?:for (?:\w+ ){1,3}(?:years?|months|weeks)|since|every|once|twice|times a|regularly|weekly|daily"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|on weekends)\b"
)


def is_lasting(value: str) -> bool:
    """Accept an activity with a duration or a frequency."""
    return _LASTING.search(value.lower()) is not None


def is_sport(value: str) -> bool:
    word = value.lower().split()[0]
    return word in {
        "climbing", "bouldering", "swimming", "running", "jogging", "hiking", "cycling", "skiing", "surfing", "dancing",
        "fishing", "sailing", "rowing", "riding", "skating", "kayaking", "diving", "snowboarding", "paddling", "bowling",
    }  # fmt: skip


def is_level(value: str) -> bool:
    """Accept a lasting qualification: a language level, a licence, a degree."""
    return (
        re.search(
            r"\b(?:[abc][12]|driving (?:test|exam|licen[cs]e)|bar exam|finals|licen[cs]e|diploma|certificate|certification)\b",
            value.lower(),
        )
        is not None
    )


def is_plain_trade(value: str) -> bool:
    """Accept an occupation without an article, as learners of English write it."""
    word = value.lower()
    return word in OCCUPATIONS or (
        word not in NO_OCCUPATIONS and word.endswith(("ionist", "logist", "ician", "artist"))
    )


def is_written(value: str) -> bool:
    return (
        re.search(
            r"\b(?:mystery|mysteries|novels?|poems?|poetry|fiction|songs|lyrics|short stories|thrillers?|fantasy|essays|plays"
            r"|screenplays|children's books|romance|code|a blog|a column|crime|horror)\b",
            value.lower(),
        )
        is not None
    )


def is_project_name(value: str) -> bool:
    return last_word(value) in MADE


def is_dated(value: str) -> bool:
    """Accept a date with a month: "May 3"."""
    return re.search(rf"\b(?:{MONTHS})\b", value.lower()) is not None


def is_origin_place(value: str) -> bool:
    """Accept a place of origin. Reject a bare word in small letters, because it may not be a place: "I come from
    java"."""
    return is_somewhere(value) and (is_proper(value) or _has_word(value, PLACES))


def is_medicine(value: str) -> bool:
    """Accept the name of a medicine ("ramipril"), but not "breaks every hour"."""
    word = value.lower().split()[0]
    return len(word) > 4 and (
        word.endswith(("pril", "olol", "statin", "formin", "artan", "azole", "idone", "oxin", "epam", "etine", "xine", "azine"))
        or word in {"insulin", "iron", "aspirin", "ibuprofen", "paracetamol", "antihistamines", "antidepressants", "vitamins",
                    "magnesium", "thyroxine", "lithium", "ritalin", "sertraline", "melatonin", "cortisone", "statins"}
    )  # fmt: skip


def is_missed(value: str) -> bool:
    """Accept a thing whose absence says something about a person: a car, children, pets."""
    thing = re.sub(r"^(?:an?|any) ", "", value.lower())
    return is_possession(thing) or thing in HOUSEHOLD | PET_PLURALS | {
        "pets",
        "tv",
        "television",
        "smartphone",
        "siblings",
    }


def is_home(value: str) -> bool:
    """Accept the place of a new home."""
    return (is_somewhere(value) and not re.match(r"(?:an?|another|some) (?!\w+ (?:in|near) )", value)) or _has_word(
        value, PLACES
    )


_FOODS: Final = frozenset(
    [
        "dairy",
        "gluten",
        "nuts",
        "peanuts",
        "shellfish",
        "seafood",
        "fish",
        "lactose",
        "milk",
        "alcohol",
        "caffeine",
        "sugar",
        "meat",
        "pork",
        "beef",
        "eggs",
        "wheat",
        "soy",
        "garlic",
        "onions",
        "onion",
        "fructose",
        "spicy",
        "tomatoes",
        "cheese",
        "bread",
        "coffee",
        "mushrooms",
        "sesame",
        "celery",
        "strawberries",
        "shrimp",
        "prawns",
        "histamine",
    ]
)


def is_food(value: str) -> bool:
    return _has_word(value, _FOODS)


_MASS: Final = frozenset(
    [
        "music",
        "software",
        "furniture",
        "bread",
        "honey",
        "cheese",
        "wine",
        "beer",
        "coffee",
        "pottery",
        "jewellery",
        "jewelry",
        "insurance",
        "hardware",
        "clothing",
        "vegetables",
        "sourdough",
        "cider",
        "whisky",
        "gin",
        "chocolate",
        "code",
        "textiles",
        "leather",
        "glass",
        "news",
        "firewood",
        "salt",
    ]
)
_NO_WARES: Final = re.compile(
    r"\b(?:things?|stuff|mistakes?|errors?|bugs?|changes|plans?|notes?|decisions?|jokes?|images?|requests?|files?|tests?|lists?|copies|progress|friends?|typos?|excuses"
    r"|points?|steps?|words|tables?|queries|calls?|times|days|hours|weeks|ways?|sentences?|answers?|questions?|emails?|mails?|letters?|others|promises|secrets|cakes?|reservations|thoughts?|ideas?)$",
    re.IGNORECASE,
)
_RUN_THINGS: Final = re.compile(
    r"(?:an? )(?:[\w-]+ )?(?:taxi|cab|bus|tram|train|truck|lorry|ambulance|forklift|tractor|crane|newsletter|podcast|blog|column|magazine)$",
    re.IGNORECASE,
)


def is_trade_object(value: str) -> bool:
    """Accept the object of a regular occupation: "hearing aids", "weddings on weekends", "a taxi"."""
    head = re.split(r" (?:in|for|with|about|from|at|on|of|to|over|by) ", value)[0]
    if _RUN_THINGS.match(head):
        return True
    return (
        not _DETERMINED.match(value)
        and not _DEICTIC.match(value)
        and not _NO_WARES.search(head)
        and len(head.split()) <= 3
        and re.fullmatch(r"[a-z][a-z -]+(?<!ss)s|", head) is not None
    ) or last_word(head) in _MASS
