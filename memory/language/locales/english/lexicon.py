"""English: stop words, words of time, numbers, synonyms and endings."""

from __future__ import annotations

from ..notation import phrases, words

_EMPTY = frozenset(
    words(
        """
full-time part-time o'clock a an the his her their my our your its own of to in at on for by with from into
as is are was were
be been being am has had do does did doing have having 's that this these those there and or so just very really
quite currently now nowadays these again recently actually lately already still always usually often
mostly mainly generally regularly typically every each user he she they i we it him them me us new
old up who which both whole some any time job position called named call name currently today
yesterday since
"""
    )
)
ADVERBS = frozenset(
    words(
        """
very really quite just currently now nowadays again recently actually lately already still always
usually often mostly mainly generally regularly typically today ever finally newly originally
happily both eventually ultimately officially permanently definitely completely totally reluctantly voluntarily
gradually legally suddenly sadly unfortunately luckily fortunately apparently
"""
    )
)
STOP_WORDS = _EMPTY | ADVERBS
MANNER = "ly"
NOT_MANNER = frozenset(
    words(
        "family italy july only assembly jelly belly bully butterfly supply reply daily weekly monthly"
        " silly early elderly"
    )
)
TURNS = frozenset(
    words(
        """
        start begin finish complete pass transfer change switch replace swap convert move relocate return recover heal
        learn make reconcile reunite marry separate split retire close open sell buy find lose remove cure outgrow
        become turn quit stop give take hand settle land accept grow deliver leave
        """
    )
)
"""Verbs whose past tense reports a change."""
ARTICLES = frozenset(("a", "an", "per"))
ALIASES = {
    "US": "United States",
    "USA": "United States",
    "U.S.": "United States",
    "UK": "United Kingdom",
    "U.K.": "United Kingdom",
    "NYC": "New York",
}
NAME_WORD = "name"
SEPARATORS = frozenset(
    words(
        """
in at on for by with from into as of to since because named called over under about after before
during until than and or near named who which that where while through via against without around
per between every each daily weekly behind beside below above across along beyond inside outside within towards
opposite
"""
    )
)
BOTH_WAYS = frozenset(("and", "or"))
NAME_MAKERS = frozenset(("new", "saint", "st", "san", "santa", "los", "las", "el", "la", "fort", "port"))
WEAK_NOUNS = frozenset(("job", "position", "time", "name"))
RECURRING = frozenset(
    words(
        "mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends mornings afternoons evenings"
        " nights summers winters"
    )
)
DAYPARTS = frozenset(words("morning afternoon evening night noon midnight weekend"))
TIMES = frozenset(
    words(
        """
        january february march april may june july august september october november december monday
        tuesday wednesday
        thursday friday saturday sunday last next year month week ago summer winter spring autumn fall weekend
        yesterday today tomorrow long recently night morning afternoon evening noon midnight moment day
        beginning end start middle past while
        """
    )
)
NUMBERS = {
    **{
        word: str(number)
        for number, word in enumerate(
            words(
                """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty
"""
            )
        )
    },
    **{
        word: str(10 * number)
        for number, word in enumerate(words("thirty forty fifty sixty seventy eighty ninety"), start=3)
    },
    **{
        word: str(number)
        for number, word in enumerate(
            words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"), start=1
        )
    },
    "twice": "2",
    "once": "1",
    "hundred": "100",
    "dozen": "12",
}
MULTIPLES = {"k": 1_000, "thousand": 1_000, "m": 1, "million": 1_000_000}
SAME_WORDS = {
    **dict.fromkeys(words("kilometre kilometres kilometer kilometers kms"), "km"),
    **dict.fromkeys(words("metre metres meter meters"), "m"),
    **dict.fromkeys(words("centimetre centimetres centimeter centimeters"), "cm"),
    **dict.fromkeys(words("kilogram kilograms kilo kilos kgs"), "kg"),
    **dict.fromkeys(words("gram grams"), "g"),
    **dict.fromkeys(words("pound pounds lbs"), "lb"),
    **dict.fromkeys(words("foot feet"), "ft"),
    **dict.fromkeys(words("hour hours hrs hr"), "h"),
    **dict.fromkeys(words("minute minutes mins"), "min"),
    **dict.fromkeys(words("euro euros €"), "eur"),
    **dict.fromkeys(words("dollar dollars usd $ bucks"), "usd"),
    **dict.fromkeys(words("percent per-cent"), "%"),
    **dict.fromkeys(words("yrs yr years"), "year"),
    **dict.fromkeys(words("miles mile mi"), "mile"),
    **dict.fromkeys(words("m² m2 sqm"), "sqm"),
    **dict.fromkeys(words("kid kids children"), "child"),
    **dict.fromkeys(words("mom mum mama mommy"), "mother"),
    **dict.fromkeys(words("dad papa daddy"), "father"),
    **dict.fromkeys(words("movie movies films"), "film"),
    **dict.fromkeys(words("soccer"), "football"),
    **dict.fromkeys(words("bike bikes bicycles"), "bicycle"),
    **dict.fromkeys(words("auto automobile cars"), "car"),
    **dict.fromkeys(words("tv telly"), "television"),
    **dict.fromkeys(words("flat flats apartments"), "apartment"),
    **dict.fromkeys(words("motorcycle motorcycles motorbikes"), "motorbike"),
    **dict.fromkeys(words("couch couches sofas"), "sofa"),
    **dict.fromkeys(words("grandma granny gran nan"), "grandmother"),
    **dict.fromkeys(words("grandpa grandad granddad"), "grandfather"),
    **dict.fromkeys(words("vacation vacations holidays"), "holiday"),
    **dict.fromkeys(words("coworker coworkers co-worker colleagues"), "colleague"),
    **dict.fromkeys(words("uni"), "university"),
    **dict.fromkeys(words("lab"), "laboratory"),
    **dict.fromkeys(words("maths mathematics"), "math"),
    **dict.fromkeys(words("attorney solicitor"), "lawyer"),
    **dict.fromkeys(words("physician"), "doctor"),
    **dict.fromkeys(words("fiance fiancé fiancee fiancée"), "fiance"),
    **dict.fromkeys(words("coriander cilantro"), "coriander"),
    **dict.fromkeys(words("aubergine eggplant"), "aubergine"),
    **dict.fromkeys(words("courgette zucchini"), "courgette"),
    **dict.fromkeys(words("men"), "man"),
    **dict.fromkeys(words("women"), "woman"),
    **dict.fromkeys(words("people"), "person"),
    **dict.fromkeys(words("mice"), "mouse"),
    "favourite": "favorite",
    "colour": "color",
    "colours": "color",
    "neighbour": "neighbor",
    "licence": "license",
    "centre": "center",
    "theatre": "theater",
    "programme": "program",
    "grey": "gray",
    "phone": "telephone",
    "gym": "gym",
    "mom's": "mother's",
    "engagement": "engage",
    "wedding": "engage",
    "marriage": "marry",
    "cigs": "cigaret",
    "enrol": "enroll",
    "enrolled": "enrolled",
}
SUFFIXES = (
    ("'s", ""),
    ("sses", "ss"),
    ("ies", "i"),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
    ("ing", ""),
    ("ied", "i"),
    ("ed", ""),
    ("e", ""),
    ("y", "i"),
)
AGENTS = ("er", "r", "or", "ist", "ian", "ing", "ship", "ment")
BECOMES = phrases(
    "{change,switch,move,relocate,shift,push,transfer} {to,into}|turn into|go {up,down} to"
    "|{rise,drop,fall,increase,decrease,grow,shrink} to|go from"
    "|be {move,push,postpone,reschedule,shift,bring forward,change,raise,lower} to"
)
"""Verb and preposition between an attribute and its new value: `moved to` in `the deadline moved to Monday`."""
REASONS = frozenset(words("after during due because amid to over early despite thanks"))
"""Words that begin a reason or a time: `after` in `resigned after ten years`."""
