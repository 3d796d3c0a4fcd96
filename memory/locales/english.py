"""The English pack: verbs, the predicates that they name, markers, and the words that make no difference."""

from __future__ import annotations

from collections.abc import Iterator

from .pack import Locale, Markers, Rule

_REGULAR = """
date delete remove uninstall shave digest donate
trade swap exchange replace cease close unsubscribe pass step reset rename reschedule update raise toy flirt prepare aim
promise vary divide mention retrain qualify emigrate relocate bear outgrow recover reside hail major loathe appoint
rent lease subscribe adore stick involve consist apply
accept add admire adopt adore allow answer arrive ask attend avoid bake base believe belong breed bike call
camp cancel carry celebrate change check climb code collect commute complain cook cover crave cycle dance
deliver design detest develop die dislike divorce drop earn employ engage enjoy enroll enter exercise expect
expire explore farm fear finish fire fish follow garden graduate handle happen hate head help hike hire hope
import intend invest invite jog join juggle kayak knit lack last laugh launch lead learn lecture like listen
live loathe look love manage marry mentor miss move name need offer open order own paint park pay perform
phone photograph plan play possess practice practise prefer prepare produce promote publish raise ramble react
receive recommend refuse relate relax relocate remain remember rent reside resign rest retire return row sail
save schedule seem separate serve settle sew share ski skip smoke snowboard sponsor start stay stop struggle
study suffer support surf switch talk taste teach train travel treat trust try turn type use value visit
volunteer vote wait wake walk want wash watch weigh widow wish wonder work worry yearn
"""
_IRREGULAR = """
be is was been being, be are were been, be am was been, be 's was been
have has had had, do does did done, go goes went gone, get gets got gotten, become becomes became become
begin begins began begun, bite bites bit bitten, break breaks broke broken, bring brings brought brought
build builds built built, buy buys bought bought, catch catches caught caught, choose chooses chose chosen
come comes came come, cost costs cost cost, draw draws drew drawn, drink drinks drank drunk, drive drives drove driven
eat eats ate eaten, fall falls fell fallen, feel feels felt felt, find finds found found, fly flies flew flown
forget forgets forgot forgotten, give gives gave given, grow grows grew grown, hang hangs hung hung
hear hears heard heard, hold holds held held, keep keeps kept kept, know knows knew known, lay lays laid laid
leave leaves left left, lend lends lent lent, lose loses lost lost, make makes made made, mean means meant meant
meet meets met met, quit quits quit quit, read reads read read, ride rides rode ridden, run runs ran run
say says said said, see sees saw seen, sell sells sold sold, send sends sent sent, sing sings sang sung
sit sits sat sat, sleep sleeps slept slept, speak speaks spoke spoken, spend spends spent spent
stand stands stood stood, swim swims swam swum, take takes took taken, tell tells told told
think thinks thought thought
throw throws threw thrown, understand understands understood understood, wear wears wore worn, win wins won won
write writes wrote written
"""


def _regular_forms(verb: str) -> Iterator[tuple[str, str, str]]:
    """(form, base, tense); "stop" doubles its last letter, "try" and "move" lose theirs."""
    yield verb, verb, "base"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        yield verb[:-1] + "ies", verb, "present"
        yield verb[:-1] + "ied", verb, "past"
        yield verb + "ing", verb, "ongoing"
        return
    yield verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s"), verb, "present"
    if verb.endswith("e"):
        stem = verb[:-1]
    elif verb in (
        "stop",
        "plan",
        "drop",
        "skip",
        "jog",
        "ski",
        "prefer",
        "travel",
        "control",
        "knit",
        "cancel",
        "swap",
    ):
        stem = verb if verb == "ski" else verb + verb[-1]
    else:
        stem = verb
    yield stem + "ed", verb, "past"
    yield (verb if verb.endswith("ee") else stem) + "ing", verb, "ongoing"
    if verb in ("travel", "cancel"):
        yield verb + "ed", verb, "past"
        yield verb + "ing", verb, "ongoing"


def _irregular_forms(line: str) -> Iterator[tuple[str, str, str]]:
    base, present, past, *participles = line.split()
    yield base, base, "base"
    yield present, base, "present"
    yield past, base, "past"
    for participle in participles:
        yield participle, base, "past" if participle == past else "participle"
    stem = base[:-1] if base.endswith("e") and base not in ("be", "see") else base
    doubled = base in ("get", "begin", "quit", "run", "sit", "swim", "win")
    yield (stem + stem[-1] if doubled else stem) + "ing", base, "ongoing"


def _verbs() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for verb in _REGULAR.split():
        for form, base, tense in _regular_forms(verb):
            found.setdefault(form, (base, tense))
    for line in _IRREGULAR.replace("\n", ",").split(","):
        for form, base, tense in _irregular_forms(line) if line.strip() else ():
            found[form] = (base, tense)
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(each.split()) for each in text.split("|"))


_STATUS = "partner_is"
_DIETS = _phrases("be *|become *|turn *|go *|eat *|follow * diet|be on * diet|have * diet|keep *|keep to * diet")
_RULES = (
    # ------------------------------------------------------------------------------------------ one at a time
    Rule(
        "works_at",
        "single",
        _phrases(
            "work at|work for|be employ by|be employ at|have job at|have job with|employer be|company be|workplace be"
            "|be on the payroll of|do job at|work currently at"
        ),
    ),
    Rule(
        "works_at",
        "single",
        _phrases(
            "join|start at|start work at|start work for|start job at|start job with|begin work at"
            "|begin work for|begin at"
            "|begin job at|get job at|get job with|take job at|take job with|accept job at"
            "|be hire by|get hire by|land job at"
            "|find job at|sign with|change job to"
        ),
        happened=True,
        named=True,
    ),
    Rule("works_at", "single", _phrases("be self-employed|be self employed|be freelance|work freelance"), value="self"),
    Rule("works_in", "unsure", _phrases("work in|be employ in")),
    Rule(
        "works_as",
        "single",
        _phrases(
            "work as|be employ as|have job as|occupation be|profession be|job be|job title be|role be|make living as"
            "|earn living as"
        ),
    ),
    Rule(
        "works_as",
        "single",
        _phrases(
            "get promote to|be promote to|start as|start work as|begin as|get job as|take job as|be hire as|get hire as"
            "|be appoint|train as|retrain as|qualify as"
        ),
        happened=True,
    ),
    Rule(
        "lives_in",
        "single",
        _phrases(
            "live in|reside in|be base in|be live in|home be in|be resident of|have home in|live currently in"
            "|be settle in|hometown now be"
        ),
        named=True,
    ),
    Rule(
        "lives_in",
        "single",
        _phrases("move to|move back to|move over to|relocate to|settle in|settle down in|emigrate to|move in to"),
        happened=True,
        named=True,
    ),
    Rule("born_in", "single", _phrases("be bear in|be born in|birthplace be|place of birth be"), happened=True),
    Rule("birthday", "single", _phrases("birthday be on|birthday be|be born on|date of birth be"), happened=True),
    Rule("grew_up_in", "single", _phrases("grow up in|be raise in|be bring up in"), happened=True),
    Rule("comes_from", "single", _phrases("come from|be from|hail from|be originally from|come originally from")),
    Rule("age", "single", _phrases("be # year old|be # year of age|age be|be age #|be # year")),
    Rule("age", "single", _phrases("turn #"), happened=True),
    Rule("name", "single", _phrases("name be|be call|be name|full name be|go by name of|go by name")),
    Rule("address", "single", _phrases("live at|address be|home address be")),
    Rule(
        _STATUS,
        "single",
        _phrases(
            "be marry to|be marry with|be marry|have husband name|have wife name|have spouse name|have husband call"
            "|have wife call|husband be|wife be|spouse be|have husband|have wife|husband name be|wife name be"
        ),
        value="marry",
    ),
    Rule(_STATUS, "single", _phrases("marry|get marry to|get marry"), value="marry", happened=True),
    Rule(_STATUS, "single", _phrases("be engage to|be engage|have fiance name|fiance be|fiancee be"), value="engage"),
    Rule(_STATUS, "single", _phrases("get engage to|get engage"), value="engage", happened=True),
    Rule(
        _STATUS,
        "single",
        _phrases(
            "be in relationship with|be in relationship|be date|date|have partner name|have partner|partner be"
            "|girlfriend be|boyfriend be|have girlfriend name|have boyfriend name|have girlfriend|have boyfriend"
            "|live with partner|see"
        ),
        value="partner",
    ),
    Rule(_STATUS, "single", _phrases("be single"), value="single"),
    Rule(_STATUS, "single", _phrases("be widow|be widower"), value="widow"),
    Rule(_STATUS, "single", _phrases("be divorce"), value="divorce"),
    *(
        Rule("diet", "single", tuple(each.replace("*", kind) for each in _DIETS), value=kind, happened=True)
        for kind in _words("vegetarian vegan pescatarian omnivore carnivore flexitarian keto paleo halal kosher")
    ),
    Rule(
        "studies_at", "single", _phrases("study at|be student at|attend|be enroll at|be enroll in|go to university in")
    ),
    Rule("studies_at", "single", _phrases("transfer to|enroll at|enter"), happened=True, named=True),
    Rule("majors_in", "single", _phrases("major in|major be")),
    Rule("weighs", "single", _phrases("weigh|weight be")),
    Rule("height", "single", _phrases("be # m tall|be # cm tall|be # ft tall|height be|be tall #")),
    Rule("earns", "single", _phrases("earn|salary be|make salary of")),
    Rule("wakes_up_at", "single", _phrases("wake up at|get up at")),
    Rule("goes_to_bed_at", "single", _phrases("go to bed at|go to sleep at")),
    # ------------------------------------------------------------------------------------------ several at a time
    Rule(
        "likes",
        "multi",
        _phrases(
            "like|love|enjoy|adore|be fond of|be fan of|be big fan of|be into|be keen on"
            "|be passionate about|like to|love to"
            "|enjoy to|appreciate|can stand|can bear|stand|bear|have soft spot for|be enthusiastic about"
        ),
    ),
    Rule(
        "likes",
        "multi",
        _phrases("dislike|hate|detest|loathe|have aversion to|despise"),
        denied=True,
    ),
    Rule("allergic_to", "multi", _phrases("be allergic to|have allergy to|have * allergy|suffer from * allergy")),
    Rule("intolerant_of", "multi", _phrases("be intolerant to|be intolerant of|have * intolerance")),
    Rule("afraid_of", "multi", _phrases("be afraid of|be scared of|fear|have fear of|have phobia of")),
    Rule("speaks", "multi", _phrases("speak|be fluent in|can speak|speak fluent")),
    Rule("learns", "multi", _phrases("learn|be take lesson in|take * lesson")),
    Rule("studies", "multi", _phrases("study")),
    Rule("teaches", "multi", _phrases("teach|give lesson in")),
    Rule("plays", "multi", _phrases("play")),
    Rule("eats", "multi", _phrases("eat")),
    Rule("drinks", "multi", _phrases("drink")),
    Rule("smokes", "multi", _phrases("smoke|be smoker")),
    Rule("drives", "multi", _phrases("drive")),
    Rule("uses", "multi", _phrases("use|be use")),
    Rule("reads", "multi", _phrases("read")),
    Rule("watches", "multi", _phrases("watch")),
    Rule("listens_to", "multi", _phrases("listen to")),
    Rule("knows", "multi", _phrases("know|be friend with|be friends with")),
    Rule("visited", "multi", _phrases("visit|have be to|be to|travel to"), happened=True),
    Rule("volunteers_at", "multi", _phrases("volunteer at|volunteer for|volunteer with|volunteer in")),
    Rule("works_on", "multi", _phrases("work on")),
    Rule("member_of", "multi", _phrases("be member of|belong to|be part of")),
    Rule("supports", "multi", _phrases("support|be supporter of|root for")),
    Rule("interested_in", "multi", _phrases("be interested in|be curious about")),
    Rule("believes", "multi", _phrases("believe|believe in|think that|believe that")),
    Rule("wants", "multi", _phrases("want|need|wish")),
    Rule("has", "multi", _phrases("have|own|possess|keep|be owner of")),
    Rule("has", "multi", _phrases("get|adopt|buy"), happened=True),
    Rule("native_language", "single", _phrases("native language be|mother tongue be|first language be")),
    Rule("native_language", "single", _phrases("be native speaker of")),
    Rule("email", "single", _phrases("email be|email address be|mail address be")),
    Rule("phone_number", "single", _phrases("phone number be|number be|telephone number be|mobile number be")),
    Rule("prefers", "unsure", _phrases("prefer")),
)

ENGLISH = Locale(
    name="en",
    rules=_RULES,
    ends=_phrases(
        "leave|quit|resign from|get lay off by|get lay off from|be lay off by|be lay off from|get fire from|get fire by"
        "|be fire from|be fire by|lose job at|retire from|graduate from|part with|break up with"
        "|separate from|be separate from"
        "|be divorce from|divorce|get divorce from|give up|drop out of|drop|sell|lose|cancel"
        "|get rid of|give away|move away from"
        "|move out of|move out from|stop|cease|cut out|swear off|step down as|resign as|lay off|finish with|be over"
        "|have outgrow|outgrow|unsubscribe from|shut down|close down|delete|close|shave off|remove"
        "|uninstall|be make redundant at|be make redundant by|get make redundant at"
        "|lose interest in|be do with|get over|recover from"
        "|go off|fall out with|call off|withdraw from|step back from"
    ),
    ends_work=_phrases(
        "retire|be retire|be unemployed|lose job|quit job|leave job|get fire|be fire|get lay off|be lay off"
        "|be out of work|resign|be make redundant|get make redundant|stop work|be between jobs|become unemployed"
    ),
    ended=_phrases("move out|run away|die|pass away|be dead|have pass away|be over"),
    sets=(("change", "to"), ("update", "to"), ("reset", "to"), ("rename", "to"), ("reschedule", "to"), ("set", "to")),
    becomes=_phrases(
        "change to|switch to|move to|turn into|go up to|go down to|rise to|drop to|fall to|increase to|go from"
    ),
    markers=Markers(
        negations=("not", "no"),
        never=("never",),
        endings=(
            "no longer",
            "not any more",
            "not anymore",
            "any more",
            "anymore",
            "any longer",
            "used to",
            "formerly",
            "previously",
            "not longer",
            "be former",
            "be a former",
            "be an ex",
        ),
        hedges=(
            "might",
            "may",
            "maybe",
            "perhaps",
            "possibly",
            "probably",
            "could",
            "would like to",
            "would like",
            "would love to",
            "would rather",
            "would",
            "will",
            "plan to",
            "plan on",
            "plan",
            "be plan to",
            "be plan on",
            "hope to",
            "hope for",
            "intend to",
            "be go to",
            "want to",
            "wish to",
            "dream of",
            "think about",
            "think of",
            "be think about",
            "be think of",
            "consider",
            "be consider",
            "try to",
            "be try to",
            "almost",
            "nearly",
            "be about to",
            "look for",
            "be look for",
            "look to",
            "be look to",
            "apply for",
            "apply to",
            "have apply to",
            "interview at",
            "interview with",
            "be tempt to",
            "toy with",
            "decide whether",
            "be curious to",
            "should",
            "talk about",
            "talk of",
            "look into",
            "be open to",
            "be unsure",
            "be not sure",
            "promise to",
            "aim to",
            "expect to",
            "be set to",
            "be due to",
            "ought to",
            "need to",
            "be prepare to",
            "be schedule to",
            "flirt with",
            "if",
            "wonder",
        ),
        additive=(
            "also",
            "too",
            "as well",
            "besides",
            "in addition",
            "in addition to",
            "on top of",
            "apart from",
            "additionally",
            "another",
            "on the side",
        ),
        contrasts=("not", "instead of", "rather than", "and not"),
        until=frozenset(("until", "till")),
        former=(
            ("leave", "for"),
            ("quit", "for"),
            ("switch from", "to"),
            ("change from", "to"),
            ("move from", "to"),
            ("move on from", "to"),
            ("go from", "to"),
            ("transfer from", "to"),
            ("relocate from", "to"),
            ("replace", "with"),
            ("swap", "for"),
            ("trade", "for"),
            ("trade in", "for"),
            ("exchange", "for"),
            ("give up", "for"),
        ),
        others=frozenset(("who", "whose", "which", "that", "because", "although", "when", "while", "since", "unless")),
    ),
    contractions={
        "can't": "can not",
        "cannot": "can not",
        "won't": "will not",
        "n't": " not",
        "'re": " are",
        "'ve": " have",
        "'ll": " will",
        "'d": " would",
        "'m": " am",
    },
    copulas=frozenset(("be", "become")),
    states=frozenset(("be",)),
    auxiliaries={
        "have": frozenset(("past", "participle")),
        "do": frozenset(("base",)),
        "can": frozenset(("base",)),
        "go": frozenset(("ongoing",)),
    },
    joins=frozenset(("and", "but", "then")),
    verbs=_verbs()
    | {
        "born": ("born", "past"),
        "considering": ("consider", "ongoing"),
        "considers": ("consider", "present"),
        "can": ("can", "base"),
    },
    subjects=frozenset(("user", "he", "she", "they", "i", "we", "it", "person", "speaker")),
    people=frozenset(
        _words(
            """
mother father mom mum dad parent parents sister brother sibling son daughter child children kid kids
wife husband spouse partner girlfriend boyfriend fiance fiancee friend friends colleague colleagues
boss manager neighbour neighbor aunt uncle cousin niece nephew grandmother grandfather grandma
grandpa grandparents grandson granddaughter roommate flatmate housemate dog cat pet puppy kitten
horse rabbit parrot doctor dentist therapist landlord teacher coach stepmother stepfather stepson
stepdaughter stepsister stepbrother twin ex baby family team-mate mentor in-law mother-in-law
father-in-law brother-in-law sister-in-law
"""
        )
    ),
    occupation="works_as",
    implied=(("works_at", frozenset(("as",)), "works_as"), ("works_as", frozenset(("at", "for")), "works_at")),
    occupations=frozenset(
        _words(
            """
head chief lead founder ceo cto president accountant actor actress analyst architect artist assistant
astronaut athlete baker barista
bartender biologist bookkeeper builder butcher carpenter cashier chef chemist clerk coach comedian
composer conductor consultant cook dancer dentist designer detective developer diplomat director
doctor driver economist editor electrician engineer executive farmer firefighter fisherman florist
founder freelancer gardener geologist guard guide hairdresser historian housekeeper illustrator
intern interpreter inspector instructor janitor jeweller journalist judge lawyer lecturer librarian
lifeguard manager mathematician mechanic midwife miner minister model musician nanny nurse officer
optician painter paramedic pharmacist photographer physician physicist pilot plumber poet policeman
politician postman principal producer professor programmer psychologist receptionist recruiter
reporter researcher sailor salesman salesperson scientist sculptor secretary self-employed self
employed singer soldier statistician student supervisor surgeon surveyor tailor teacher technician
therapist trader trainer translator tutor unemployed veterinarian vet waiter waitress welder worker
writer zoologist apprentice trainee marketer strategist administrator freelance retired attorney
banker barber cleaner contractor courier
"""
        )
    ),
    occupation_endings=(
        *(
            "eer",
            "ologist",
            "ician",
            "maker",
            "grapher",
            "worker",
            "keeper",
            "smith",
            "er",
            "or",
            "ist",
            "man",
            "woman",
        ),
    ),
    not_occupations=frozenset(
        _words(
            """
            member lover owner supporter follower believer beginner drinker eater smoker swimmer runner rider sleeper
            riser winner stranger teenager gamer hiker perfectionist optimist pessimist feminist minimalist atheist
            cyclist newcomer outsider introvert extrovert planner thinker listener learner survivor donor
            hoarder foreigner human neighbor neighbour woman man partner lodger homeowner sister brother mother father
            daughter player climber walker traveller traveler camper reader loner vegetarian commuter tenor lefthander
            """
        )
    ),
    stop_words=frozenset(
        _words(
            """
full-time part-time o'clock a an the his her their my our your its own of to in at on for by with from into
as is are was were
be been being am has had do does did have 's that this these those there and or so just very really
quite currently now nowadays these again recently actually lately already still always usually often
mostly mainly generally regularly typically every each user he she they i we it him them me us new
old up who which both whole some any time job position called named call name currently today
yesterday since
"""
        )
    ),
    adverbs=frozenset(
        _words(
            """
very really quite just currently now nowadays again recently actually lately already still always
usually often mostly mainly generally regularly typically today ever finally newly originally
happily both
"""
        )
    ),
    manner="ly",
    not_manner=frozenset(
        _words("family italy july only assembly jelly belly bully butterfly supply reply daily weekly monthly silly")
    ),
    articles=frozenset(("a", "an", "per")),
    aliases={
        "US": "United States",
        "USA": "United States",
        "U.S.": "United States",
        "UK": "United Kingdom",
        "U.K.": "United Kingdom",
        "NYC": "New York",
    },
    name_word="name",
    separators=frozenset(
        _words(
            """
in at on for by with from into as of to since because named called over under about after before
during until than and or near named who which that where while through via against without around
per between every each daily weekly behind beside below above across along beyond inside outside within towards opposite
"""
        )
    ),
    both_ways=frozenset(("and", "or")),
    name_makers=frozenset(("new", "saint", "st", "san", "santa", "los", "las", "el", "la", "fort", "port")),
    times=frozenset(
        _words(
            """
            january february march april may june july august september october november december monday
            tuesday wednesday
            thursday friday saturday sunday last next year month week ago summer winter spring autumn fall weekend
            yesterday today tomorrow long recently
            """
        )
    ),
    numbers={
        **{
            word: str(number)
            for number, word in enumerate(
                _words(
                    """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty
"""
                )
            )
        },
        **{
            word: str(10 * number)
            for number, word in enumerate(_words("thirty forty fifty sixty seventy eighty ninety"), start=3)
        },
        **{
            word: str(number)
            for number, word in enumerate(
                _words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"), start=1
            )
            if word != "second"  # as often an addition, or a moment
        },
        "twice": "2",
        "once": "1",
        "hundred": "100",
        "dozen": "12",
    },
    multiples={"k": 1_000, "thousand": 1_000, "m": 1, "million": 1_000_000},
    same_words={
        **dict.fromkeys(_words("kilometre kilometres kilometer kilometers kms"), "km"),
        **dict.fromkeys(_words("metre metres meter meters"), "m"),
        **dict.fromkeys(_words("centimetre centimetres centimeter centimeters"), "cm"),
        **dict.fromkeys(_words("kilogram kilograms kilo kilos kgs"), "kg"),
        **dict.fromkeys(_words("gram grams"), "g"),
        **dict.fromkeys(_words("pound pounds lbs"), "lb"),
        **dict.fromkeys(_words("foot feet"), "ft"),
        **dict.fromkeys(_words("hour hours hrs hr"), "h"),
        **dict.fromkeys(_words("minute minutes mins"), "min"),
        **dict.fromkeys(_words("euro euros €"), "eur"),
        **dict.fromkeys(_words("dollar dollars usd $ bucks"), "usd"),
        **dict.fromkeys(_words("percent per-cent"), "%"),
        **dict.fromkeys(_words("yrs yr years"), "year"),
        **dict.fromkeys(_words("miles mile mi"), "mile"),
        **dict.fromkeys(_words("kid kids children"), "child"),
        **dict.fromkeys(_words("mom mum mama mommy"), "mother"),
        **dict.fromkeys(_words("dad papa daddy"), "father"),
        **dict.fromkeys(_words("movie movies films"), "film"),
        **dict.fromkeys(_words("soccer"), "football"),
        **dict.fromkeys(_words("bike bikes bicycles"), "bicycle"),
        **dict.fromkeys(_words("auto automobile cars"), "car"),
        **dict.fromkeys(_words("tv telly"), "television"),
        **dict.fromkeys(_words("flat flats apartments"), "apartment"),
        **dict.fromkeys(_words("men"), "man"),
        **dict.fromkeys(_words("women"), "woman"),
        **dict.fromkeys(_words("people"), "person"),
        **dict.fromkeys(_words("mice"), "mouse"),
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
        "enrol": "enroll",
        "enrolled": "enrolled",
    },
    suffixes=(
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
    ),
    agents=("er", "r", "or", "ist", "ian", "ing"),
)
