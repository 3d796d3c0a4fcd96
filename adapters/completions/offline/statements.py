"""Statements about the speaker: patterns of first-person clauses with a known meaning.

A pattern reads a whole clause without contractions, or the clause up to a boundary ("and", "but", a comma). It gives
the slot and the statement in the third person. A check decides whether the object is what the slot holds. A
clause that no pattern reads with certainty teaches nothing.
"""
# ruff: noqa: E501 - a pattern stays on one line, with its meaning

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from .attributes import Category
from .values import (
    is_activity,
    is_aim,
    is_ambition,
    is_business,
    is_condition,
    is_dated,
    is_diet,
    is_employer,
    is_field,
    is_food,
    is_home,
    is_kin,
    is_language,
    is_lasting,
    is_level,
    is_marital,
    is_medicine,
    is_missed,
    is_name,
    is_occupation,
    is_origin,
    is_origin_place,
    is_pets,
    is_place,
    is_plain_trade,
    is_plausible,
    is_played,
    is_possession,
    is_practised,
    is_project,
    is_project_name,
    is_proper,
    is_role,
    is_somewhere,
    is_spoken_name,
    is_sport,
    is_subject_of_study,
    is_taste,
    is_tool,
    is_trade_object,
    is_workplace,
    is_worn,
    is_written,
)
from .wording import conjugated, third_person, without_tail
from .words import HOBBYISTS, NUMBERS, SKILLS

IMPORTANCE: Final[dict[Category, float]] = {
    "identity": 0.9, "profession": 0.8, "relationship": 0.75, "preference": 0.65, "belief": 0.6, "attribute": 0.7,
    "pattern": 0.6, "knowledge": 0.65, "goal": 0.75, "event": 0.5,
}  # fmt: skip
CATEGORIES: Final[dict[str, Category]] = {
    "name": "identity", "age": "identity", "birth_date": "identity", "birthplace": "identity", "childhood": "attribute", "origin": "identity",
    "residence": "attribute", "household": "attribute", "employer": "profession", "job": "profession", "field": "profession",
    "business": "profession", "employment": "profession", "education": "attribute", "degree": "knowledge", "likes": "preference",
    "dislikes": "preference", "prefers": "preference", "favourite": "preference", "diet": "preference", "allergy": "attribute",
    "condition": "attribute", "medication": "attribute", "language": "knowledge", "skill": "attribute", "habit": "pattern", "hobby": "attribute",
    "new_hobby": "pattern", "possession": "attribute", "pet": "relationship", "vehicle": "attribute", "marital": "relationship",
    "family": "relationship", "goal": "goal", "project": "attribute", "tool": "attribute", "detail": "identity", "trait": "attribute",
    "qualification": "knowledge", "contact": "relationship", "membership": "attribute",
}  # fmt: skip
PERMANENT: Final = frozenset({"name", "birth_date", "birthplace", "origin"})


@dataclass(frozen=True, slots=True)
class SpokenStatement:
    subject: str
    content: str
    category: Category
    permanent: bool = False


Accept = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Part:
    slot: str
    """The kind of statement, which decides its category."""
    content: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """One pattern. The parts use its groups: {x} the object, {y} a second object, {v} a conjugated verb."""

    pattern: re.Pattern[str]
    parts: tuple[_Part, ...]
    accept: Accept
    whole: bool
    """True when the time and the frequency at the end belong to the statement."""
    own: bool
    """True when the clause begins with "I" or "we"."""


def _always(_value: str) -> bool:
    return True


def _rule(pattern: str, meaning: str, accept: Accept = _always, *, whole: bool = False) -> _Rule:
    """`meaning`: "slot: statement"; several with "; "."""
    parts = tuple(_Part(*each.split(": ", 1)) for each in meaning.split("; "))
    own = pattern.startswith(("i ", _I, "(?:i|we)"))
    return _Rule(re.compile(pattern, re.IGNORECASE), parts, accept, whole, own)


# ------------------------------------------------------------------------------------------------ patterns
_I: Final = r"(?:i|we)"
_AM: Final = r"(?:i|we) (?:am|are|have been)"
_WORK: Final = r"(?:i|we) (?:work|am working|are working|have been working|have worked|keep working)"
_LIVE: Final = r"(?:i|we) (?:live|am living|are living|have lived|have been living|reside|am residing|stay|am staying permanently|am based|are based|settled|have settled)"
_HOUR: Final = r"(?:[0-9]{1,2}(?:[:.][0-9]{2})? ?(?:am|pm)?|(?:half past )?(?:five|six|seven|eight|nine|ten|eleven|twelve|one|two|three|four)|noon|midnight)"
_DAYS: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_OFTEN: Final = (
    rf"(?:(?:every|each) (?:single |other )?(?:day|morning|afternoon|evening|night|week|weekend|month|summer|winter|year|{_DAYS})"
    rf"|(?:once|twice|three times|four times|five times|[2-7]x|[2-7] times) (?:an?|per) (?:day|week|month|year)|on (?:the )?(?:{_DAYS}|weekends?|weekdays)|daily|weekly|at {_HOUR}|in the (?:mornings|evenings))"
)
_DOES: Final = r"(?:go(?= to | [a-z]+ing)|get up|wake up|run|swim|cycle|walk|jog|meditate|read|cook|bake|train|exercise|practi[sc]e|paint|fast|climb|hike|row|box|dance|knit|sew|ski|surf|skate|volunteer|lift|bike|commute|garden|fish)"
_SPORTING: Final = r"(?:swimming|running|jogging|climbing|bouldering|cycling|knitting|painting|drawing|dancing|meditating|gardening|boxing|surfing|skating|rowing|sewing|baking|fencing|crocheting|hiking|kayaking|skiing|sailing|weightlifting|volunteering|fostering|coaching|beekeeping)"
_TRADE: Final = (
    r"(?P<v>sell|repair|restore|guide|curate|design|develop|produce|edit|translate|subtitle|illustrate|photograph|shoot|build|make|grow|breed|raise|import|export|write|compose|brew|distil|roast|train|tutor|coach"
    r"|deliver|drive|fix|tune|cater|organi[sz]e|carve|forge|weld|keep|bake|transcribe|proofread|groom)"
)
_KIND: Final = r"(?:(?:new|small|little|big|own|local|family|second|first|part-time|full-time|permanent|great|dream|proper|real|junior|senior) )*"
_LIKE: Final = (
    r"(?:(?P<love>love|adore)|like|enjoy|am (?:really |so |totally |super )?(?:into|fond of|crazy about|mad about|obsessed with|hooked on|addicted to|keen on)"
    r"|am an? (?:total |huge |big |massive |absolute |real )?(?:sucker for|fan of|lover of|fanatic about))"
)
_PLACE_NAME: Final = r"(?-i:[A-Z])[\w'.-]+(?: (?-i:[A-Z])[\w'.-]+)*"

_RULES: Final = (
    # identity
    _rule(r"my (?:(?:full|first|real|given|legal) )?name is (?:spel(?:led|t) )?(?P<x>.+)", "name: Name is {x}", is_spoken_name),
    _rule(r"(?:full |my )?name:? (?P<x>(?-i:[A-Z]).+)", "name: Name is {x}", is_name),
    _rule(r"(?:you (?:can|may) )?(?:just )?call me (?P<x>.+)", "name: Name is {x}", is_name),
    _rule(r"(?:everyone|everybody|people|(?:(?:all )?my )?(?:friends|family|colleagues)(?: all)?) calls? me (?P<x>.+)", "name: Name is {x}", is_name),
    _rule(r"i (?:go by|am called|am named|(?:have )?changed my name to)(?: the name)? (?P<x>.+)", "name: Name is {x}", is_name),
    _rule(r"(?P<x>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?) here", "name: Name is {x}", is_name),
    _rule(r"(?:my name|it) is now (?P<x>(?-i:[A-Z])[\w'-]+ (?-i:[A-Z])[\w'-]+)", "name: Name is {x}", is_name),
    _rule(r"i am (?P<x>(?-i:[A-Z])[\w'-]+ (?-i:[A-Z])[\w'-]+) now", "name: Name is {x}", is_name, whole=True),
    _rule(r"i (?:am|(?:have )?(?:just )?turned|am turning) (?P<x>[1-9][0-9]|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty)(?:-\w+)?|\w+teen)(?: years old| years of age|yo)?", "age: Is {x} years old"),
    _rule(r"my birthday is (?P<x>[\w ]*[0-9][\w ]*)", "birth_date: Birthday is {x}", whole=True),
    _rule(r"my birthday is (?:in|on) (?P<x>[a-z]+)", "birth_date: Birthday is in {x}", is_dated, whole=True),
    _rule(r"i was born on (?P<x>.*[0-9].*)", "birth_date: Birthday is on {x}", whole=True),
    _rule(r"i was born in (?P<x>(?:19|20)\d\d)", "birth_date: Was born in {x}", whole=True),
    _rule(r"i was born(?: and (?:raised|bred))? in (?P<x>[^0-9]+)", "birthplace: Was born in {x}", is_somewhere),
    _rule(r"i (?:am (?:originally )?|come |hail )from (?P<x>.+)", "origin: Comes from {x}", is_origin_place),
    _rule(rf"{_I} (?:moved|came) (?:here|over) from (?P<x>.+)", "origin: Comes from {x}", is_origin_place),
    _rule(r"my home ?town is (?P<x>.+)", "origin: Comes from {x}", is_origin_place),
    _rule(r"i grew up (?P<y>in|on|near) (?P<x>.+)", "childhood: Grew up {y} {x}", is_somewhere),
    _rule(r"i am (?:an? )?(?P<x>[\w-]+(?: [\w-]+)?)", "origin: Is {x}", is_origin),
    _rule(r"(?:my|our) (?P<y>(?:shoe|ring|shirt|dress) size|blood type|star sign|middle name|wedding anniversary|anniversary) is (?:on )?(?P<x>.+)", "detail: {y} is {x}", whole=True),
    _rule(r"i am (?P<x>[0-9][0-9.,]* ?(?:m|cm|ft|feet|metres?|meters?)(?: [0-9]+)? tall)", "trait: Is {x}"),
    # work
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?),? (?:based|living) (?:in|near|out of) (?P<y>.+)", "job: Works as {z} {x}; residence: Lives in {y}", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?),? in (?P<y>{_PLACE_NAME})(?: and .+)?", "job: Works as {z} {x}; residence: Lives in {y}", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?),? from (?P<y>{_PLACE_NAME})", "job: Works as {z} {x}; origin: Comes from {y}", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?),? (?:working |employed )?(?:at|for|with) (?P<y>.+)", "job: Works as {z} {x}; employer: Works at {y}", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?)(?:,? (?:working|speciali[sz]ing|who|that|currently|mostly|mainly|doing|since|there|here|in|by) .+|,.+| (?:there|here|by (?:trade|training|profession|day)))?", "job: Works as {z} {x}", is_occupation),
    _rule(rf"{_AM} (?:the )?(?P<x>(?:head|director|chief|manager) of .+)", "job: Works as {x}"),
    _rule(r"i am (?P<x>[\w-]+?)(?: (?:in|at) .+)?", "job: Works as a {x}", is_plain_trade),
    _rule(rf"{_AM} (?P<x>an? (?:retired|former) .+)", "employment: Is {x}", lambda value: is_occupation(value.partition(" ")[2].partition(" ")[2])),
    _rule(rf"{_WORK} (?P<z>nights|night shifts|shifts|weekends|part-time|full-time|remotely|from home) as (?P<x>an? [^,]+?)(?: (?:at|for|in) .+)?", "job: Works as {x}; habit: Works {z}", is_role),
    _rule(r"i work (?P<x>nights|night shifts?|nightshifts?|shifts|weekends|part-time|full-time|remotely|from home)(?: .+)?", "habit: Works {x}"),
    _rule(rf"{_WORK} (?:at|for|with|in) (?P<y>.+?) as (?P<x>an? .+)", "employer: Works at {y}; job: Works as {x}", is_role),
    _rule(rf"{_WORK} as (?P<x>an? .+?|(?:head|director|chief) of .+?) (?:at|for) (?P<y>.+)", "job: Works as {x}; employer: Works at {y}", is_role),
    _rule(rf"(?:{_WORK}|{_I} (?:freelance|moonlight|temp)) as (?P<x>.+)", "job: Works as {x}", is_role),
    _rule(rf"{_WORK} (?:at|for) (?P<x>.+)", "employer: Works at {x}", is_employer),
    _rule(rf"{_WORK} in (?P<x>.+)", "field: Works in {x}", is_place),
    _rule(rf"{_AM} (?:working )?in (?P<x>(?:the )?[\w -]+?) (?:at|for) (?P<y>.+)", "field: Works in {x}; employer: Works at {y}", is_field),
    _rule(rf"{_AM} (?:working )?in (?P<x>(?:the )?[\w -]+)", "field: Works in {x}", is_field),
    _rule(rf"{_I} do (?P<x>[\w /-]+?) (?:at|for) (?P<y>(?!a living|work|my job).+)", "field: Works in {x}; employer: Works at {y}", is_field),
    _rule(rf"{_I} do (?P<x>[\w /-]+?)(?: for (?:a living|work|my job))?", "field: Works in {x}", is_field),
    _rule(r"my (?:\w+ ){0,2}?(?:job|work|business|profession|day job) is (?P<x>[\w -]+)", "field: Works in {x}", is_field),
    _rule(rf"{_I} (?:(?:am|are) )?(?:still )?(?:at|with) (?:the )?(?P<x>[\w' -]+)", "employer: Works at the {x}", is_workplace),
    _rule(rf"{_I} (?:(?:am|are) )?(?:work(?:ing)? )?(?:remote|remotely|from home),? ?(?:working |based )?(?:from|in|out of) (?P<x>.+)", "residence: Works remotely from {x}", is_somewhere),
    _rule(rf"{_I} (?:have )?started (?:out )?(?:at|with) (?P<y>.+?),? as (?P<x>an? .+)", "employer: Works at {y}; job: Works as {x}", is_role),
    _rule(rf"{_I} (?:have )?started (?:working |out |a job )?as (?P<x>an? .+?|head of .+?) (?:at|for|with) (?P<y>.+)", "job: Works as {x}; employer: Works at {y}", is_role),
    _rule(rf"{_I} (?:have )?started (?:working |out |a job )?as (?P<x>an? .+)", "job: Works as {x}", is_role),
    _rule(rf"{_I} (?:have )?(?:joined|started (?:working )?(?:at|with|for))(?: the team at)? (?P<x>.+)", "employer: Works at {x}", is_employer),
    _rule(rf"{_I} (?:have )?(?:started|got|landed|accepted|took|found|have) (?:an?|my|the) {_KIND}(?:job|position|role|gig) (?:at|with) (?P<x>.+)", "employer: Works at {x}", is_employer),
    _rule(rf"{_I} (?:have )?(?:started|got|landed|accepted|took|found|have) (?:an?|my|the) {_KIND}(?:job|position|role|gig) as (?P<x>an? .+)", "job: Works as {x}", is_role),
    _rule(rf"{_I} (?:have )?(?:started|got|landed|accepted|took|found|have) (?:an?|my|the) {_KIND}(?:job|position|role|gig) in (?P<x>.+)", "field: Works in {x}", is_field),
    _rule(rf"(?:{_I} (?:(?:got|was|have been) hired (?:by|at)|(?:am|are) (?:now )?employed (?:by|at|with)|am now (?:at|with))) (?P<x>.+)", "employer: Works at {x}", is_employer),
    _rule(r"my (?:new |current )?(?:employer|company|workplace|job) is (?:at |with )?(?P<x>.+)", "employer: Works at {x}", is_proper),
    _rule(r"i (?:got|was|have been|got myself) promoted(?: to)? (?P<x>.+)", "job: Works as {x}", is_role),
    _rule(r"(?:i (?:was|got|have been)|they (?:have )?) ?made(?: me)? (?P<x>(?:the )?(?:[\w-]+ )?(?:head|lead|leader|manager|director|chief|partner)(?: of .+)?)", "job: Works as {x}"),
    _rule(r"(?:i (?:became|have become)|i ended up (?:as|becoming)) (?P<z>an?) (?P<x>.+)", "job: Works as {z} {x}", is_occupation),
    _rule(rf"{_I} (?P<v>run|manage|lead|head) (?P<x>(?:the|an?|our) [\w ]*(?:department|team|office|branch|division|unit|crew)(?: (?:of|at|for|in) .+)?)", "job: {v} {x}"),
    _rule(r"i (?:run|manage|am running) (?P<x>(?:an?|my|the|our|two|three) .+)", "business: Runs {x}", is_business),
    _rule(r"i (?:own|have) (?P<x>(?:an?|my own|the|two|three) .+)", "business: Owns {x}", is_business),
    _rule(r"i (?:teach|am teaching) (?P<x>.+)", "job: Teaches {x}"),
    _rule(r".*\b(?P<x>(?:an?|the) [\w -]*(?:course|class|group|lessons?|workshop|seminar)) (?:that |which )?i teach", "job: Teaches {x}"),
    _rule(rf"{_I} {_TRADE} (?P<x>.+)", "job: {v} {x}", is_trade_object),
    _rule(r"i (?:am|have been) (?:an? )?(?P<x>retired|self-employed|unemployed|freelancing|jobless|freelancer)", "employment: Is {x}"),
    _rule(r"i am (?:between|out of|without) (?:jobs|work|a job)(?: .+)?", "employment: Is unemployed"),
    _rule(r"i am self employed(?:,? .+)?", "employment: Is self-employed"),
    _rule(r"i (?:have )?(?P<x>retired)(?: (?:after|from|at|in|as) .+)?", "employment: Is {x}"),
    _rule(r"i am (?:a )?stay[- ]at[- ]home (?P<x>mum|mom|mother|dad|father|parent)", "employment: Is a stay-at-home {x}"),
    # home
    _rule(rf"(?:{_I} (?:am|are) )?(?:back )?(?:at )?home (?:again )?in (?P<x>{_PLACE_NAME})(?: (?:again|now|at last|finally))?(?: i .+)?", "residence: Lives in {x}", is_somewhere),
    _rule(rf"(?:{_LIVE}|{_I} (?:rent|am renting|share|am sharing|have got|have|got|am|own|bought|have bought)(?: \w+)? (?:in )?(?:an?|my own|the|our own) (?:[\w-]+ ){{0,4}}?(?:room|flat|apartment|house|studio|bedsit|cottage|bungalow|place|houseboat|farmhouse)) in (?P<x>.+?) with (?P<y>.+)", "residence: Lives in {x}", is_somewhere),
    _rule(rf"{_LIVE} (?:alone|on my own|by myself) in (?P<x>.+)", "residence: Lives in {x}; household: Lives alone", is_somewhere),
    _rule(rf"{_LIVE} (?:alone|on my own|by myself)", "household: Lives alone"),
    _rule(rf"{_LIVE} (?:just |right |up |down |out |over |here )?(?:(?P<y>on|near|outside|close to|at)|in) (?P<x>.+)", "residence: Lives {y|in} {x}", is_somewhere),
    _rule(rf"{_LIVE} (?:together )?with (?P<x>.+)", "household: Lives with {x}", lambda value: value.startswith(("their ", "his ", "her ")) or is_name(value)),
    _rule(rf"{_I} (?:am |are )?(?:rent|rents|renting|share|sharing|have got|have|got|own|bought|have bought)(?: \w+)? (?:an?|my own|our own) (?:[\w-]+ ){{0,4}}?(?:room|flat|apartment|house|studio|bedsit|cottage|bungalow|place|houseboat|farmhouse) in (?P<x>.+)", "residence: Lives in {x}", is_somewhere),
    _rule(rf"{_I} am (?:\w+ )?in an? (?:[\w-]+ ){{0,4}}(?:flat|apartment|house|studio|bedsit|cottage) in (?P<x>.+)", "residence: Lives in {x}", is_somewhere),
    _rule(rf"{_I} (?:have )?(?:re-?located|moved|settled)(?: (?:away|house|home|back|over|here|all the way|recently|together|out|abroad))* from (?P<y>.+?) to (?P<x>.+)", "residence: Lives in {x}", is_home),
    _rule(rf"{_I} (?:have )?(?:re-?located|moved|emigrated)(?: (?:away|house|home|back|over|here|down|up|out|all the way|recently|together))* (?:to|into) (?P<x>.+?)(?: (?:from|with|for|when|where|to be|because) .+)?", "residence: Lives in {x}", is_home),
    _rule(rf"{_I} (?:have )?moved in(?:to (?:an?|the) .+)? with (?P<x>.+)", "household: Lives with {x}"),
    _rule(r"(?:my|our) (?:new )?(?:home|house|flat|apartment|place|studio) is (?:now )?in (?P<x>.+)", "residence: Lives in {x}", is_somewhere),
    # tastes
    _rule(r"(?:my|our) (?P<w>(?:absolute |all-time )?favou?rite) (?P<y>[\w\s-]{2,30}?) (?:is|are|was always|has always been) (?P<x>.+)", "favourite: {w} {y} is {x}", is_taste),
    _rule(r"(?P<x>[\w' -]{2,40}) (?:is|are) (?:my|our) (?:absolute |all-time )?favou?rite(?: (?P<y>[\w\s-]{2,30}))?", "favourite: Favourite {y|thing} is {x}", is_taste),
    _rule(rf"{_I} (?:can not (?:stand|bear)|hate|loathe|detest|despise|dislike|am not (?:a (?:big )?fan of|into|fond of|keen on)|do not (?:really )?(?:like|enjoy|care for))(?: the (?:taste|smell) of)? (?P<x>.+)", "dislikes: Dislikes {x}", is_taste),
    _rule(rf"{_I} (?:have always )?{_LIKE} (?P<x>.+)", "likes: {love} {x}", is_taste),
    _rule(r"i am an? (?:(?:big|huge|massive|lifelong|die-hard|total) )?(?P<x>[\w' -]*?) (?:fan|fanatic|nerd|enthusiast|lover|buff|aficionado)", "likes: Likes {x}", is_taste),
    _rule(r"i (?:much |strongly |generally |usually )?prefer (?P<x>.+)", "prefers: Prefers {x}", is_taste),
    _rule(rf"{_I} support (?P<x>{_PLACE_NAME})", "likes: Supports {x}"),
    # food, health
    _rule(r"i (?:am|have been|became|went|have gone|turned|am now)(?: an?| strictly| fully| mostly)? (?P<x>[\w-]+(?: intolerant)?)", "diet: Is {x}", is_diet),
    _rule(rf"{_I} do not (?P<y>eat|drink|smoke) (?P<x>.+)", "diet: Does not {y} {x}", is_taste),
    _rule(rf"{_I} do not (?P<x>drink|smoke|eat (?:meat|fish|pork|beef|dairy|gluten|nuts|eggs|sugar|seafood))", "diet: Does not {x}"),
    _rule(rf"{_I} can not (?:eat|have|drink|tolerate|digest) (?P<x>.+)", "diet: Cannot eat {x}", is_food),
    _rule(r"i (?:am|have been|have always been) (?:(?P<y>severely|deathly|very|slightly|highly) )?allergic to (?P<x>.+)", "allergy: Is {y|} allergic to {x}"),
    _rule(r"i am not allergic to (?P<x>.+?)(?: after all)?", "allergy: Is not allergic to {x}"),
    _rule(r"i have (?:got )?(?P<x>(?:an? )?(?:type [12] )?[\w -]*(?:allergy|intolerance|disease|syndrome|disorder|diabetes|asthma))", "condition: Has {x}"),
    _rule(r"i (?:have (?:got )?|suffer from |was diagnosed with |have been diagnosed with |got diagnosed with |was born with |get )(?P<x>(?:an? )?(?:[\w-]+ ){0,2}[\w'-]+)", "condition: Has {x}", is_condition),
    _rule(r"i have (?P<x>(?:high|low) blood (?:pressure|sugar)|an? (?:bad|weak) (?:back|knee|hip|heart|shoulder|stomach)|an? (?:heart|thyroid|kidney|liver) (?:condition|problem))", "condition: Has {x}"),
    _rule(r"i am (?P<x>(?:deaf|blind|hard of hearing|colou?r-?blind|(?:left|right)-handed|dyslexic|autistic|an introvert|an extrovert|(?:a |an )?(?:coeliac|celiac|diabetic|asthmatic|epileptic|insomniac))(?: (?:in|on) .+)?)", "condition: Is {x}"),
    _rule(r"i am (?:(?P<x>\w+ (?:weeks|months)) )?pregnant", "condition: Is pregnant"),
    _rule(r"i take (?P<x>[a-z-]+ (?:every|each|daily|twice a day|once a day|in the (?:morning|evening)s?|at night|for my .+).*)", "medication: Takes {x}", is_medicine, whole=True),
    _rule(r"i (?:wear|use) (?P<x>.+)", "trait: Wears {x}", is_worn),
    # habits, hobbies
    _rule(r"i (?P<y>always|usually|often|never|rarely|normally|typically) (?P<v>eat|drink|have|cook|wear|sleep|walk|cycle|drive|read|watch|listen|travel|work|run|train|shop|buy|skip|take|use|play|go|get up|wake up|bike|swim) (?P<x>.+)", "habit: {y} {v} {x}", whole=True),
    _rule(rf"{_I} (?P<v>{_DOES})(?P<x>(?: .*)? {_OFTEN})(?:,? (?:mostly|usually|with|before|after|for|in|at|to) .+)?", "habit: {v} {x}", whole=True),
    _rule(rf"{_I} (?:have )?(?:took|taken|picked|ended up taking|ended up picking|been taking) up (?P<x>.+)", "new_hobby: Has taken up {x}", is_activity, whole=True),
    _rule(rf"{_I} (?:have )?(?:got|gotten) into (?P<x>.+)", "new_hobby: Has taken up {x}", is_activity, whole=True),
    _rule(rf"{_I} (?:have )?(?:started|begun|began) (?P<x>{_SPORTING}(?: .+)?|(?:learning|playing|doing) .+)", "new_hobby: Has taken up {x}", whole=True),
    _rule(rf"{_I} (?:have been|am|are) (?P<x>{_SPORTING}(?: .+)?)", "new_hobby: Has been {x}", is_lasting, whole=True),
    _rule(rf"{_I} go (?P<x>[a-z]+ing(?: .+)?)", "hobby: Goes {x}", is_sport, whole=True),
    _rule(rf"{_I} (?:do|practi[sc]e) (?P<x>.+)", "hobby: Does {x}", is_practised, whole=True),
    _rule(rf"{_I} (?:play|have been playing|have played|am playing) (?P<x>.+)", "hobby: Plays {x}", is_played),
    _rule(rf"{_I} (?P<v>{SKILLS})", "hobby: {v}"),
    _rule(rf"{_I} (?P<v>hike|swim|run|cycle|climb|paint|knit|sew|draw|dance|sail|fish|ski|surf|garden|bake|travel) (?P<x>a lot|all the time|competitively|semi-professionally)", "hobby: {v} {x}", whole=True),
    _rule(rf"{_I} ride (?P<x>horses|a motorbike|a motorcycle)", "hobby: Rides {x}"),
    _rule(rf"{_I} (?P<v>collect|coach|foster|mentor) (?P<x>.+)", "hobby: {v} {x}", is_taste),
    _rule(rf"{_I} volunteer (?P<x>(?:at|for|with|as|in) .+)", "hobby: Volunteers {x}"),
    _rule(rf"{_I} (?P<v>play|sing|dance|act) in (?P<x>(?:an?|the|my|our) (?:[\w-]+ )*(?:band|choir|orchestra|quartet|ensemble|group|team|theatre|theater))", "membership: {v} in {x}"),
    _rule(rf"{_I} (?:am|are) (?:in|part of|a member of) (?P<x>an? (?:[\w-]+ ){{0,3}}(?:club|band|choir|team|league|orchestra|society|troupe))", "membership: Is in {x}"),
    _rule(rf"{_I} (?:have )?joined (?P<x>(?:an?|the|our) (?:[\w-]+ ){{0,3}}(?:club|band|choir|team|league|orchestra|society|troupe|group|gym))", "membership: Is in {x}"),
    _rule(rf"i am (?P<x>an? (?:(?:avid|keen|passionate|big|total|real|serious|huge) )?(?:{HOBBYISTS}))", "trait: Is {x}"),
    _rule(r"i write (?P<x>.+)", "hobby: Writes {x}", is_written),
    # things
    _rule(r"i drive (?P<x>an? [^,]+)(?:,.*)?", "vehicle: Drives {x}"),
    _rule(r"i (?P<v>drive|commute|cycle|travel) (?P<x>from (?-i:[A-Z]).+? to (?-i:[A-Z]).+)", "habit: {v} {x}", whole=True),
    _rule(r"my (?:own )?(?P<y>car|bike|motorbike|van|phone|laptop|computer|camera|guitar|piano|boat) is (?P<x>an? .+)", "possession: {y} is {x}", lambda value: len(value.split()) > 1),
    _rule(rf"{_I} own (?P<x>(?:an?|{NUMBERS}) .+)", "pet: Owns {x}", is_pets),
    _rule(r"i own (?P<x>an? .+)", "possession: Owns {x}"),
    _rule(rf"{_I} (?:have )?(?:bought|got|inherited|own|have|built) (?:myself |ourselves )?(?P<x>an? .+)", "possession: Has {x}", is_possession),
    _rule(rf"{_I} (?:have got|have bought|bought) (?P<x>an? (?:(?:new|used|second-hand|old|electric|hybrid|red|blue|white|black|small|big) ){{0,2}}(?-i:[A-Z])[\w-]+(?: (?-i:[A-Z0-9])[\w-]*)*)", "possession: Has {x}"),
    _rule(rf"{_I} use (?P<x>.+)", "tool: Uses {x}", is_tool),
    _rule(rf"{_I} use (?P<x>.+ (?:for (?:everything|work|notes|my notes|all my .+)|at work|every day|daily))", "tool: Uses {x}", whole=True),
    _rule(rf"{_I} (?P<v>keep|track|store|take|write) (?P<x>(?:everything|(?:all )?my [\w ]+?|notes) (?:in|with|on) (?-i:[A-Z]).*)", "tool: {v} {x}"),
    _rule(rf"{_I} (?:code|program|develop) (?:mostly |mainly |only )?in (?P<x>[\w+#. ]+)", "skill: Codes in {x}"),
    _rule(rf"{_I} (?:am|are) on (?P<x>linux|windows|macos|mac os|a mac|ubuntu|debian|fedora|arch|android|ios|an iphone)", "tool: Uses {x}"),
    _rule(rf"{_I} do not (?:own|have) (?P<x>(?:an? |any )?[\w -]+)", "possession: Does not have {x}", is_missed, whole=True),
    _rule(rf"{_I} (?:do not|can not) (?P<x>drive|swim|cook)", "skill: Does not {x}"),
    _rule(rf"{_I} (?:am|are|have been) (?P<y>building|restoring|renovating|making|sewing|knitting|designing|developing|converting|recording) (?P<x>.+)", "project: Is {y} {x}", is_project),
    _rule(r"(?:(?:the|my|our) )?(?P<x>[\w -]{2,40}) is (?:finally |now )?(?:finished|complete|completed|done)", "project: Finished the {x}", is_project_name),
    # languages, learning
    _rule(rf"{_I} (?:can )?speak (?:a (?:bit|little)(?: of)?|some|basic|broken|rudimentary) (?P<x>[\w-]+)", "language: Speaks some {x}", is_language),
    _rule(rf"{_I} (?:can )?(?:speak|understand) (?P<x>.+)", "language: Speaks {x}", is_language),
    _rule(r"my (?:native|first|mother) (?:language|tongue) is (?P<x>\w+)", "language: Speaks {x} natively", is_language),
    _rule(r"i am (?:an? )?(?:native|fluent|bilingual)(?: (?:speaker of|in))? (?P<x>.+?)(?: speaker)?", "language: Speaks {x}", is_language),
    _rule(rf"{_I} (?:am learning|have been learning|learn|am teaching myself|am taking up) (?P<x>.+)", "education: Is learning {x}", is_subject_of_study),
    _rule(rf"{_I} (?:have )?(?:started|begun|began|taken up|took up) learning (?P<x>.+)", "education: Is learning {x}", is_subject_of_study),
    _rule(r"i (?:study|am studying|have been studying) (?P<x>.+)", "education: Studies {x}", is_subject_of_study),
    _rule(r"i (?:have )?(?:switched|changed) (?:my )?(?:major|degree|studies|course|subject)(?: from .+?)? to (?P<x>.+)", "education: Studies {x}"),
    _rule(r"i am (?P<x>an? (?:[\w-]+ ){0,3}student(?: (?:at|of|in) .+)?)", "education: Is {x}"),
    _rule(r"i am (?P<y>doing|taking) (?P<x>(?:an?|my) (?:[\w-]+ )*(?:phd|doctorate|master's|masters|bachelor's|mba|degree|apprenticeship|internship|class|course)(?: in .+| at .+| as .+)?)", "education: Is {y} {x}"),
    _rule(rf"{_I} (?:have )?(?:started|begun|began) (?P<x>an? (?:[\w-]+ )?(?:internship|apprenticeship|traineeship|phd|postdoc|master's|residency|degree|course|class)(?: .+)?)", "education: Is doing {x}"),
    _rule(rf"{_I} (?:have )?enrolled (?:in|for|on) (?P<x>.+)", "education: Is enrolled in {x}"),
    _rule(r"i (?:go to|attend) (?P<x>.*(?:school|university|college|academy|high|institute|elementary|kindergarten|nursery|daycare).*)", "education: Goes to {x}", is_proper),
    _rule(r"my (?P<x>phd|doctorate|thesis|dissertation|master's thesis|apprenticeship) is .+", "education: Is working on their {x}"),
    _rule(r"i have (?P<x>an? (?:[\w'-]+ )?(?:degree|phd|doctorate|master's|diploma|mba) in .+)", "degree: Has {x}"),
    _rule(r"i (?:have )?(?P<y>graduated from|majored in) (?P<x>.+)", "degree: {y} {x}"),
    _rule(r"i am (?P<x>(?:certified|licensed|qualified|trained) (?:in|as|to|for) .+)", "qualification: Is {x}"),
    _rule(r"i (?:have )?passed (?:my|the) (?P<x>.+)", "qualification: Passed their {x}", is_level),
    _rule(r"i (?:have )?got my (?P<x>.+?(?:certificate|diploma|degree|licen[cs]e)(?: in .+)?)", "qualification: Has their {x}", is_level),
    # goals
    _rule(r"(?:my|our) (?:(?:main|big|biggest|new|current|personal) )?(?P<y>goal|dream|aim|ambition|resolution)(?: (?:for|this) .+?)? is (?P<x>to .+|[a-z]+ing .+)", "goal: {y} is {x}", whole=True),
    _rule(r"i have set (?:myself )?(?:the|a) goal (?:of|to) (?P<x>.+)", "goal: Goal is {x}", whole=True),
    _rule(r"i am (?P<y>training for|preparing for|saving(?: up| money)? for|working towards?|determined to) (?P<x>.+)", "goal: Is {y} {x}", is_aim),
    _rule(r"i want to (?P<x>(?:become|be) an? .+)", "goal: Wants to {x}", is_ambition),
    _rule(r"i am trying to (?P<x>(?:lose|quit|stop|give up|cut down|cut back|get (?:fit|fitter|healthy|healthier|in shape)|eat (?:less|more|healthier)|save (?:up|money)|learn|become) ?.*)", "goal: Is trying to {x}"),
    _rule(r"i am writing (?P<x>(?:an?|my) (?:[\w-]+ )?(?:novel|book|thesis|dissertation|memoirs?|screenplay)(?: .+)?)", "goal: Is writing {x}"),
    # relations and animals
    _rule(rf"{_I} (?:have )?(?:got|gotten|became|become) (?P<x>married|engaged|divorced|separated|widowed)(?: .+)?", "marital: Is {x}"),
    _rule(rf"{_I} are (?P<x>expecting(?: (?:a baby|twins|a boy|a girl|our .+ child))?)(?: in .+)?", "family: Is expecting a baby"),
    _rule(rf"{_I} (?:am|are|got|have got|have been) (?P<x>(?:happily )?(?:married|engaged|divorced|widowed|separated)(?: to .+)?)", "marital: Is {x}", is_marital),
    _rule(r"i am (?P<x>single)(?: (?:again|now))?", "marital: Is {x}"),
    _rule(r"i am a widow(?:er)?", "marital: Is widowed"),
    _rule(rf"{_I} (?:have )?married (?P<x>.+)", "marital: Is married to {x}", is_name),
    _rule(r"i am (?:an? )?(?P<x>(?:proud |single |new )?(?:mum|mom|mother|dad|father|parent|grandmother|grandfather)) (?:of|to) (?P<y>[^,]+?)(?:, .+)?", "family: Is a {x} of {y}"),
    _rule(r"i am (?P<x>the (?:oldest|eldest|youngest|middle)(?: child)? of (?:\w+)(?: siblings| children)?)", "family: Is {x}"),
    _rule(rf"{_I} (?:have|have got|got|adopted|own|bought|rescued)(?: also)? (?P<z>an?) (?P<x>.+?)[, ]+(?:named|called|whose name is|(?:his|her|its) name is) (?P<y>.+)", "pet: Has {z} {x} named {y}", is_kin),
    _rule(rf"{_I} (?:have )?(?:adopted|rescued|bought|got) (?P<x>an? (?:[\w-]+ ){{0,2}}?[\w-]+?)(?:,? (?:too|as well|to|from|at|for|because|so) ?.*)?", "pet: Has {x}", is_pets),
    _rule(rf"{_I} (?:have|have got|adopted|got)(?: also)? (?P<z>an?|{NUMBERS}) (?P<x>(?:[\w-]+ )?(?:guinea )?[\w-]+)(?: (?:and|at home|at my place) ?.*)?", "family: Has {z} {x}", is_kin),
    _rule(r"my (?P<y>[\w-]+'s) birthday is (?P<x>[\w ]*[0-9][\w ]*)", "family: {y} birthday is {x}", is_dated, whole=True),
    _rule(r"(?:my|our) (?P<y>parents|grandparents|kids|children|siblings|in-laws|brothers|sisters) live in (?P<x>.+)", "family: {y} live in {x}", is_somewhere),
    _rule(r"my (?:new )?(?P<y>doctor|dentist|gp|therapist|physiotherapist|optician|vet|boss|manager|landlord|landlady|teacher|tutor|coach|hairdresser|accountant|lawyer) is (?:called |named )?(?P<x>(?:Dr\.?|Mr\.?|Mrs\.?|Ms\.?|Professor) [^\W\d_]+)", "contact: {y} is {x}"),
    _rule(r"i am (?:really |very )?(?:scared|afraid|terrified|frightened) of (?P<x>.+)", "dislikes: Is afraid of {x}", is_taste),
)  # fmt: skip
_OWN: Final = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_BOUNDARY: Final = re.compile(
    r"\s*(?:[;:(–—]|\s-\s|,(?!\s*(?:and|or)\b)|,?\s+(?:and|but|so|because|since|which|who|where|when|while|until|till|though|although|after|before|as)\b)",
    re.I,
)
_OBJECT_ENDS: Final = re.compile(
    r"(?:\s*[;:(–—]|\s+-\s"
    r"|,?\s+(?:but|so(?! (?:much|far|many|called)\b)|because|since|when(?:ever)?|while|although|though|which|who|where|until|till|unless|if|cause"
    r"|as (?:i|we|it|he|she|my|soon|long as)|like (?:crazy|mad|hell)|and (?:i|we|it|that|this|he|she|they|my|our|the|there|now|then|so|also|just|even|am|is|are|was|have|has|had|can|will|want|need|got|went|always|never|not|very|really|someone|everyone|nobody|people)"
    r"|or (?:so|something|whatever)|and (?:all that|stuff|such|everything|so on)|that is|which is|at least|except|already and|now (?:with|and|that|at|in))\b).*$",
    re.IGNORECASE,
)
_SOFTENED: Final = re.compile(
    r"(?:normally|usually|mostly|mainly|definitely|still|always|basically|actually) ", re.IGNORECASE
)
MAX_CUTS: Final = 4
"""Maximum number of boundaries of a clause before which the patterns look for a statement."""


def statements(clause: str, *, introduces: bool = False) -> list[SpokenStatement]:
    """Return the statements about the speaker in a clause; empty when no pattern reads it. Clauses with plans and
    doubts ("maybe", "will") must be filtered before.

    `introduces`: the clause may introduce the speaker, so "I am Maria" counts as a name.
    """
    if (
        introduces
        and (match := re.fullmatch(r"(?:i am|this is) (?P<x>[^,]+)(?:,.*)?", clause, re.IGNORECASE))
        and is_name(match["x"])
    ):
        return [SpokenStatement("user", f"Name is {match['x']}", "identity", permanent=True)]
    own = _OWN.match(clause) is not None
    for text in _beginnings(clause):
        short = without_tail(text)
        for rule in _RULES:
            if rule.own and not own:
                continue
            if (match := rule.pattern.fullmatch(text if rule.whole else short)) and (found := _filled(rule, match)):
                return found
    return []


def _beginnings(clause: str) -> Iterator[str]:
    """Yield the clause, and its beginnings up to each boundary, longest first."""
    yield clause
    ends = [match.start() for match in _BOUNDARY.finditer(clause) if match.start() > 3]
    for end in reversed(ends[:MAX_CUTS]):
        yield clause[:end]


def bounded(value: str) -> str:
    """Return the object up to the end of its phrase. A list keeps its commas: "cats, dogs and horses"."""
    value = _SOFTENED.sub("", _OBJECT_ENDS.sub("", value).strip(" ,;:.!…"))
    pieces = value.split(", ")
    if len(pieces) > 1 and not (
        all(len(each.split()) <= 3 for each in pieces[:-1])
        and (re.search(r"\b(?:and|or)\b", pieces[-1]) or all(len(each.split()) == 1 for each in pieces))
    ):
        return pieces[0]
    return value


def _filled(rule: _Rule, match: re.Match[str]) -> list[SpokenStatement]:
    """Fill the groups into the rule's statements. Return nothing when a check rejects a group."""
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    if "v" in groups:
        groups["v"] = conjugated(groups["v"].lower())
    for name in groups.keys() & {"x", "y"}:
        value = bounded(groups[name])
        groups[name] = third_person(value if rule.whole else without_tail(value))
        if not is_plausible(groups[name]):
            return []
    if "x" in groups and not rule.accept(groups["x"]):
        return []
    groups["love"] = "Loves" if "love" in groups else "Enjoys" if "enjoy" in match[0].lower().split()[:4] else "Likes"
    found = []
    for part in rule.parts:
        if part.slot == "employer" and "{y}" in part.content and not is_employer(groups["y"]):
            continue
        if part.slot == "residence" and part.content == "Lives in {y}" and not is_somewhere(groups["y"]):
            continue
        if "named {y}" in part.content and not is_name(groups["y"]):
            return []
        slot = part.slot
        if slot == "family" and is_pets(groups.get("x", "")):
            slot = "pet"
        found.append(
            SpokenStatement(
                subject="user",
                content=capitalised(_fill(part.content, groups)),
                category=CATEGORIES[slot],
                permanent=slot in PERMANENT,
            )
        )
    return found


_GROUP: Final = re.compile(r"\{(\w+)(?:\|([^}]*))?\}")


def _fill(template: str, groups: dict[str, str]) -> str:
    """Fill `{name}` and `{name|other}`; `other` stands for a group that is missing."""
    filled = _GROUP.sub(lambda each: groups.get(each[1], each[2] or ""), template)
    return " ".join(filled.split())


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
