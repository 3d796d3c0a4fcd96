"""Rules that convert first-person English clauses into statements in the third person. They read simple sentences only.
When in doubt, they return nothing.

A rule has a pattern for a clause without contractions, the statement in the third person, and the category of the
statement. Rules are general: no rule may exist for a single sentence of a test.
"""
# ruff: noqa: E501 - a rule stays on one line, with its pattern and its meaning

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .offline_attributes import Category
from .offline_objects import (
    is_activity,
    is_aim,
    is_ambition,
    is_business,
    is_condition,
    is_dated,
    is_described_workplace,
    is_diet,
    is_employer,
    is_field,
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
    is_past_occupation,
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
    is_workplace,
    is_worn,
    is_written,
)
from .offline_third_person import conjugated, third_person, without_tail
from .offline_words import HOBBYISTS, NUMBERS, SKILLS

IMPORTANCE: Final[dict[Category, float]] = {
    "identity": 0.9, "profession": 0.8, "relationship": 0.75, "preference": 0.65, "belief": 0.6, "attribute": 0.7,
    "pattern": 0.6, "knowledge": 0.65, "goal": 0.75, "event": 0.5,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpokenStatement:
    subject: str
    content: str
    category: Category
    permanent: bool = False


Accept = Callable[[str], bool]


def _always(_value: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SentenceRule:
    """One rule. `content` uses the groups of `pattern`: {x} the object, {y} a second object, {v} a conjugated verb."""

    pattern: re.Pattern[str]
    content: str
    category: Category
    accept: Accept = _always
    permanent: bool = False
    keep_tail: bool = False
    own: bool = False
    """True when the pattern matches only clauses that begin with "I" or "we"."""


# ------------------------------------------------------------------------------------------------ rules
_I: Final = r"(?:i|we)"
_AM: Final = r"(?:i|we) (?:am|are|have been)"
_WORK: Final = rf"(?:{_I} (?:work|am working|are working|have been working|have worked))"
_HABITS: Final = (
    r"go|get up|wake up|run|swim|cycle|walk|jog|meditate|read|cook|bake|train|exercise|practise|practice|paint|fast"
)
_HOUR: Final = r"(?:[0-9]{1,2}(?:[:.][0-9]{2})? ?(?:am|pm)?|(?:half past )?(?:five|six|seven|eight|nine|ten|eleven|twelve|one|two|three|four)|noon|midnight)"
_OWN: Final = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_KIND: Final = r"(?:(?:new|small|little|big|own|local|family|second|first|part-time|full-time|permanent|great|dream) )*"


def _rule(
    pattern: str,
    content: str,
    category: Category,
    accept: Accept = _always,
    *,
    permanent: bool = False,
    keep_tail: bool = False,
) -> SentenceRule:
    own = pattern.startswith(("i ", _I))
    return SentenceRule(re.compile(pattern, re.IGNORECASE), content, category, accept, permanent, keep_tail, own)


_RULES: Final = (
    # identity
    _rule(r"my (?:(?:full|first|real|given) )?name is (?:spel(?:led|t) )?(?P<x>.+)", "Name is {x}", "identity", is_spoken_name, permanent=True),
    _rule(r"(?:you (?:can|may) )?call me (?P<x>.+)", "Name is {x}", "identity", is_name, permanent=True),
    _rule(r"(?:everyone|everybody|people|(?:(?:all )?my )?(?:friends|family|colleagues)(?: all)?) calls? me (?P<x>.+)", "Name is {x}", "identity", is_name, permanent=True),
    _rule(r"i (?:go by|am called|am named|(?:have )?changed my name to)(?: the name)? (?P<x>.+)", "Name is {x}", "identity", is_name, permanent=True),
    _rule(r"i (?:am|(?:have )?turned|am turning) (?P<x>[0-9]{1,3}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty)(?:-\w+)?|\w+teen)(?: years old| years of age)?", "Is {x} years old", "identity"),
    _rule(r"my birthday is (?P<x>[\w ]*[0-9][\w ]*)", "Birthday is {x}", "identity", permanent=True, keep_tail=True),
    _rule(r"i was born on (?P<x>.*[0-9].*)", "Birthday is on {x}", "identity", permanent=True, keep_tail=True),
    _rule(r"i was born(?: and raised)? in (?P<x>[^0-9]+)", "Was born in {x}", "identity", is_somewhere, permanent=True),
    _rule(r"i (?:am (?:originally )?|come |hail )from (?P<x>.+)", "Comes from {x}", "identity", is_origin_place, permanent=True),
    _rule(r"i grew up (?P<y>in|on|near) (?P<x>.+?)(?: and .+)?", "Grew up {y} {x}", "identity", is_somewhere, permanent=True),
    _rule(r"i am (?:an? )?(?P<x>[\w-]+(?: [\w-]+)?)", "Is {x}", "identity", is_origin, permanent=True),
    _rule(r"(?P<x>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?) here", "Name is {x}", "identity", is_name, permanent=True),
    _rule(r"(?:my name|it) is now (?P<x>(?-i:[A-Z])[\w'-]+ (?-i:[A-Z])[\w'-]+)", "Name is {x}", "identity", is_name, permanent=True),
    _rule(r"i am (?P<x>(?-i:[A-Z])[\w'-]+ (?-i:[A-Z])[\w'-]+) now", "Name is {x}", "identity", is_name, permanent=True, keep_tail=True),
    # work
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?) in (?P<y>(?-i:[A-Z])[\w' -]+?)(?: and (?:very |so |really |quite )?\w+(?: here)?)?", "Works as {z} {x}|Lives in {y}", "profession", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>.+?) and (?:on|at|in|very|so|really|quite) .+", "Works as {z} {x}", "profession", is_occupation),
    _rule(rf"{_AM} (?:working )?in (?P<x>(?:the )?[\w -]+)", "Works in {x}", "profession", is_field),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?) from (?P<y>(?-i:[A-Z])[\w' -]+)", "Works as {z} {x}|Comes from {y}", "profession", is_occupation),
    _rule(rf"{_I} (?P<v>run|manage|lead|head) (?P<x>(?:the|an?|our) [\w ]*(?:department|team|office|branch|division|unit|crew)(?: (?:of|at|for|in) .+)?)", "{v} {x}", "profession"),
    _rule(rf"{_I} do (?P<x>[\w /-]+?)(?: for (?:a living|work|my job))?", "Works in {x}", "profession", is_field),
    _rule(rf"{_I} (?:am )?(?:still )?(?:at|with) (?:the )?(?P<x>[\w' -]+)", "Works at the {x}", "profession", is_workplace),
    _rule(rf"{_I} am (?:at|with) (?P<x>an? (?:[\w-]+ ){{0,3}}[\w-]+(?: in [\w' -]+)??)(?: now)?(?:,.*)?", "Works at {x}", "profession", is_described_workplace),
    _rule(rf"{_I} (?:am )?(?:work(?:ing)? )?(?:remote|remotely|from home),? ?(?:working |based )?(?:from|in|out of) (?P<x>.+)", "Works remotely from {x}", "profession", is_somewhere),
    _rule(rf"{_I} (?:have )?started (?:out )?(?:at|with) (?P<y>.+?),? as (?P<x>an? .+)", "Works at {y}|Works as {x}", "profession", is_role),
    _rule(rf"{_I} (?:have )?started (?:working |out )?as (?P<x>an? .+?|head of .+?) (?:at|for|with) (?P<y>.+)", "Works as {x}|Works at {y}", "profession", is_role),
    _rule(rf"{_I} (?:have )?started (?:working |out )?as (?P<x>an? .+)", "Works as {x}", "profession", is_role),
    _rule(r"my (?:\w+ )?(?:job|work|business|profession) is (?P<x>[\w -]+)", "Works in {x}", "profession", is_field),
    _rule(r".*\b(?P<x>(?:an?|the) [\w -]*(?:course|class|group|lessons?|workshop|seminar)) (?:that |which )?i teach", "Teaches {x}", "profession"),
    _rule(r"i (?P<v>drive|commute|cycle|travel) (?P<x>from (?-i:[A-Z]).+? to (?-i:[A-Z]).+)", "{v} {x}", "pattern", keep_tail=True),
    _rule(r"i work (?P<z>nights|night shifts|shifts|weekends|part-time|full-time|remotely|from home) as (?P<x>an? [^,]+?)(?: (?:at|for|in) .+)?", "Works as {x}|Works {z}", "profession", is_role),
    _rule(rf"{_WORK} (?:at|for) (?P<y>.+?) as (?P<x>an? .+)", "Works at {y}|Works as {x}", "profession", is_role),
    _rule(rf"{_WORK} as (?P<x>an? .+?|(?:head|director|chief) of .+?) (?:at|for) (?P<y>.+)", "Works as {x}|Works at {y}", "profession", is_role),
    _rule(rf"{_WORK} as (?P<x>.+)", "Works as {x}", "profession", is_role),
    _rule(rf"{_WORK} (?:at|for) (?P<x>.+)", "Works at {x}", "profession", is_employer),
    _rule(rf"{_WORK} in (?P<x>.+)", "Works in {x}", "profession", is_place),
    _rule(rf"{_AM} (?P<x>an? .+)", "Is {x}", "profession", is_past_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?),? (?:working|specialising|specializing|who|that|but|currently|mostly|mainly|doing|since|,) .+", "Works as {z} {x}", "profession", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>[^,]+?),? (?:based|living) in (?P<y>.+)", "Works as {z} {x}|Lives in {y}", "profession", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>.+?) (?:at|for|with) (?P<y>.+)", "Works as {z} {x}|Works at {y}", "profession", is_occupation),
    _rule(rf"{_AM} (?P<z>an?) (?P<x>.+)", "Works as {z} {x}", "profession", is_occupation),
    _rule(rf"{_I} (?:have )?(?:joined|started (?:working )?(?:at|with|for))(?: the team at)? (?P<x>.+)", "Works at {x}", "profession", is_employer),
    _rule(rf"{_I} (?:have )?(?:started|got|landed|accepted|took|have) (?:an?|my) {_KIND}(?:job|position|role) (?:at|with) (?P<x>.+)", "Works at {x}", "profession", is_place),
    _rule(rf"{_I} (?:(?:got|was|have been) hired (?:by|at)|am employed (?:by|at|with)|am now (?:at|with)) (?P<x>.+)", "Works at {x}", "profession", is_employer),
    _rule(r"my (?:new |current )?(?:employer|company|workplace) is (?P<x>.+)", "Works at {x}", "profession"),
    _rule(r"my (?:new |current )?job is (?:at|with) (?P<x>.+)", "Works at {x}", "profession"),
    _rule(r"i (?:got|was|have been) promoted to (?P<x>.+)", "Works as {x}", "profession", is_role),
    _rule(r"(?:i (?:was|got|have been)|they (?:have )?) ?made(?: me)? (?P<x>(?:the )?(?:[\w-]+ )?(?:head|lead|leader|manager|director|chief|partner)(?: of .+)?)", "Works as {x}", "profession"),
    _rule(rf"{_AM} (?:the )?(?P<x>(?:head|director|chief|manager) of .+)", "Works as {x}", "profession"),
    _rule(r"i (?:have )?(?P<x>retired)(?: (?:after|from|at|in|as) .+)?", "Is {x}", "profession"),
    _rule(rf"{_I} (?:have )?(?:started|began|begun) (?P<x>an? (?:[\w-]+ )?(?:internship|apprenticeship|traineeship|phd|postdoc|master's|residency|degree|course)(?: .+)?)", "Is doing {x}", "attribute"),
    _rule(rf"{_I} (?:moved|came) (?:here|over) from (?P<x>.+)", "Comes from {x}", "identity", is_origin_place, permanent=True),
    _rule(r"my home ?town is (?P<x>.+)", "Comes from {x}", "identity", is_origin_place, permanent=True),
    _rule(r"i was born in (?P<x>(?:19|20)\d\d)", "Was born in {x}", "identity", permanent=True, keep_tail=True),
    _rule(r"i work (?P<x>nights|night shifts|shifts|weekends|part-time|full-time|remotely|from home)(?: .+)?", "Works {x}", "profession"),
    _rule(r"i (?:became|have become) (?P<z>an?) (?P<x>.+)", "Works as {z} {x}", "profession", is_occupation),
    _rule(r"i (?:run|manage|am running) (?P<x>(?:an?|my|the|our|two|three) .+)", "Runs {x}", "profession", is_business),
    _rule(r"i own (?P<x>(?:an?|my own|the|two|three) .+)", "Owns {x}", "profession", is_business),
    _rule(rf"i own (?P<x>(?:an?|{NUMBERS}) .+)", "Owns {x}", "relationship", is_pets),
    _rule(r"i own (?P<x>an? .+)", "Owns {x}", "attribute"),
    _rule(r"i (?:teach|am teaching) (?P<x>.+)", "Teaches {x}", "profession"),
    _rule(r"i (?:am|have been) (?P<x>retired|self-employed|unemployed|freelancing)", "Is {x}", "profession"),
    _rule(r"i am (?:between|out of|without) (?:jobs|work|a job)(?: .+)?", "Is unemployed", "profession"),
    _rule(r"i am self employed(?:,? .+)?", "Is self-employed", "profession"),
    _rule(r"i am (?:a )?stay[- ]at[- ]home (?P<x>mum|mom|mother|dad|father|parent)", "Is a stay-at-home {x}", "profession"),
    _rule(r"i am (?P<x>[\w-]+?)(?: (?:in|at) .+)?", "Works as a {x}", "profession", is_plain_trade),
    _rule(r"my (?P<x>phd|doctorate|thesis|dissertation|master's thesis|apprenticeship) is .+", "Is working on their {x}", "attribute"),
    _rule(rf"{_I} (?:have )?enrolled (?:in|for|on) (?P<x>.+)", "Is enrolled in {x}", "attribute"),
    _rule(r"i write (?P<x>.+)", "Writes {x}", "attribute", is_written),
    _rule(r"(?:(?:the|my|our) )?(?P<x>[\w -]{2,40}) is (?:finally |now )?(?:finished|complete|completed|done)", "Finished the {x}", "attribute", is_project_name),
    # home
    _rule(rf"(?:{_I} am )?(?:back )?(?:at )?home (?:again )?in (?P<x>(?-i:[A-Z])[\w' -]*?)(?: (?:again|now|at last|finally))?(?: i .+)?", "Lives in {x}", "attribute", is_somewhere),
    _rule(rf"{_I} am (?:\w+ )?in an? (?:[\w-]+ ){{0,4}}(?:flat|apartment|house|studio|bedsit|cottage) in (?P<x>.+)", "Lives in {x}", "attribute", is_somewhere),
    _rule(rf"{_I} (?:have )?moved in(?:to (?:an?|the) .+)? with (?P<x>.+)", "Lives with {x}", "attribute"),
    _rule(rf"{_I} (?:live|am living|are living) (?:alone|on my own) in (?P<x>.+)", "Lives in {x}|Lives alone", "attribute", is_somewhere),
    _rule(rf"{_I} (?:live|am living|are living) (?P<x>alone|on my own)(?: (?:with|in) .+)?", "Lives alone", "attribute"),
    _rule(rf"{_I} (?:rent|am renting|are renting) (?P<x>an? (?:[\w-]+ )?(?:flat|apartment|house|room|studio)(?: .+)?)", "Rents {x}", "attribute"),
    _rule(rf"{_I} (?:live|am living|are living|have been living|have lived|am based|are based|reside|have settled) in (?P<x>.+?)(?: with .+)?", "Lives in {x}", "attribute", is_somewhere),
    _rule(rf"{_I} (?:live|am living|are living) (?P<y>on|near|at|by) (?P<x>.+?)(?: with .+)?", "Lives {y} {x}", "attribute", is_somewhere),
    _rule(rf"{_I} (?:(?:have )?(?:moved|relocated)|have settled)(?: (?:back|over|away|out|house))?(?: from .+?)? to (?P<x>.+?)(?: with .+| for (?:work|love|my .+))?", "Lives in {x}", "attribute", is_somewhere),
    _rule(rf"{_I} (?:live|am living|are living) (?:together )?with (?P<x>.+)", "Lives with {x}", "attribute"),
    _rule(r"(?:my|our) (?:new )?(?:flat|apartment|house|home|place) is in (?P<x>.+)", "Lives in {x}", "attribute", is_somewhere),
    _rule(r"home (?:for me )?is (?P<x>.+)", "Lives in {x}", "attribute", is_somewhere),
    _rule(r"i share (?P<x>an? (?:flat|apartment|house|room) with .+)", "Shares {x}", "attribute"),
    # tastes
    _rule(r"(?P<x>[\w' -]{2,40}?) (?:is|are) my (?:all-time |absolute )?favou?rite (?P<y>[\w -]{2,30}?)(?:,.*)?", "Favourite {y} is {x}", "preference", is_taste),
    _rule(r"(?P<x>[\w' -]{2,40}?) (?:is|are) not (?:for me|my thing|my cup of tea)", "Dislikes {x}", "preference", is_taste),
    _rule(rf"{_I} am (?:an? )?(?:addicted to|obsessed with|hooked on|mad about|crazy about|passionate about|really into) (?P<x>.+)", "Loves {x}", "preference", is_taste),
    _rule(rf"{_I} can not (?:eat|have|tolerate|digest) (?P<x>.+)", "Cannot eat {x}", "preference", is_taste),
    _rule(rf"{_I} (?P<v>collect) (?P<x>.+)", "{v} {x}", "preference", is_taste),
    _rule(r"my (?P<y>(?:all-time )?favou?rite [\w -]{2,30}?) (?:is|are) (?P<x>.+)", "{y} is {x}", "preference", is_taste),
    _rule(rf"{_I} (?:do not like|can not stand|can not bear|hate|dislike|detest|loathe) (?P<x>.+)", "Dislikes {x}", "preference", is_taste),
    _rule(r"i am not (?:an? (?:big |great |huge )?fan of|into|fond of|keen on) (?P<x>.+)", "Dislikes {x}", "preference", is_taste),
    _rule(r"i am (?:an? (?:big |great |huge )?fan of|into|fond of|keen on|crazy about) (?P<x>.+)", "Likes {x}", "preference", is_taste),
    _rule(rf"{_I} (?:love|adore) (?P<x>.+)", "Loves {x}", "preference", is_taste),
    _rule(rf"{_I} like (?P<x>.+)", "Likes {x}", "preference", is_taste),
    _rule(rf"{_I} enjoy (?P<x>.+)", "Enjoys {x}", "preference", is_taste),
    _rule(r"i (?:much |strongly |generally |usually )?prefer (?P<x>.+)", "Prefers {x}", "preference", is_taste),
    _rule(r"i (?:am|have been|became) (?:an? )?(?P<x>[\w-]+(?: intolerant)?)", "Is {x}", "preference", is_diet),
    _rule(r"i do not (?P<x>(?:drink|eat|smoke|use) .+|smoke|drink)", "Does not {x}", "preference", is_taste),
    _rule(r"i (?P<y>always|usually|often|never|rarely|normally|typically) (?P<v>(?!know|see|get|got|said|had|was|went|thought|did|knew|mean|think|understand|forget|remember|liked|wanted|been)[a-z]+(?<!ed)) (?P<x>.+)", "{y} {v} {x}", "pattern"),
    _rule(rf"i (?P<v>{_HABITS}) (?P<x>.*\b(?:(?:every|each) (?:single )?(?:day|morning|afternoon|evening|night|week|weekend|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:once|twice|three times) an? (?:day|week|month)|on (?:week|mon|tues|wednes|thurs|fri|satur|sun)\w*days|at {_HOUR}))", "{v} {x}", "pattern", keep_tail=True),
    _rule(rf"{_I} (?:have )?(?:took|taken|picked|ended up taking|ended up picking) up (?P<x>.+)", "Has taken up {x}", "pattern", is_activity, keep_tail=True),
    _rule(rf"{_I} (?:have )?(?:got|gotten) into (?P<x>.+)", "Has taken up {x}", "pattern", is_activity, keep_tail=True),
    _rule(rf"{_I} (?:have )?started (?P<x>(?:swimming|running|jogging|climbing|bouldering|cycling|knitting|painting|drawing|dancing|meditating|gardening|boxing|surfing|skating|rowing|sewing|learning|playing|doing)(?: .+)?)", "Has taken up {x}", "pattern", keep_tail=True),
    _rule(rf"{_I} (?:have been|am|are) (?P<x>(?:swimming|running|jogging|climbing|bouldering|cycling|knitting|dancing|meditating|boxing|surfing|rowing|sewing|skating|painting|volunteering|fostering|coaching|baking)(?: .+)?)", "Has been {x}", "pattern", is_lasting, keep_tail=True),
    _rule(rf"{_I} go (?P<x>[a-z]+ing(?: .+)?)", "Goes {x}", "pattern", is_sport, keep_tail=True),
    _rule(rf"{_I} (?:do|practi[sc]e) (?P<x>.+)", "Does {x}", "pattern", is_practised, keep_tail=True),
    _rule(rf"{_I} (?P<v>coach|foster|volunteer|mentor) (?P<x>.+)", "{v} {x}", "attribute"),
    # attributes and other categories
    _rule(rf"{_I} (?:am|are|have been) (?P<y>building|restoring|renovating|making|sewing|knitting|designing|developing|converting|recording) (?P<x>.+)", "Is {y} {x}", "attribute", is_project),
    _rule(rf"{_I} (?:have )?(?:bought|got|inherited|own) (?:myself |ourselves )?(?P<x>an? .+)", "Has {x}", "attribute", is_possession),
    _rule(rf"{_I} (?:have )?(?:adopted|rescued|bought|got) (?P<x>an? (?:[\w-]+ ){{0,2}}?[\w-]+?)(?:,? (?:too|as well|to|from|at|for|because|so) ?.*)?", "Has {x}", "relationship", is_pets),
    _rule(rf"{_I} (?P<v>keep|track|store|take|write) (?P<x>(?:everything|(?:all )?my [\w ]+?|notes) (?:in|with|on) (?-i:[A-Z]).*)", "{v} {x}", "attribute"),
    _rule(rf"{_I} use (?P<x>.+)", "Uses {x}", "attribute", is_tool),
    _rule(r"i am (?P<x>(?:certified|licensed|qualified|trained) (?:in|as|to|for) .+)", "Is {x}", "knowledge"),
    _rule(r"i (?:have )?passed my (?P<x>.+)", "Passed their {x}", "knowledge", is_level),
    _rule(r"i (?:have )?got my (?P<x>.+?(?:certificate|diploma|degree|licen[cs]e)(?: in .+)?)", "Has their {x}", "knowledge", is_level),
    _rule(rf"{_I} (?:code|program|develop) (?:mostly |mainly |only )?in (?P<x>[\w+#. ]+)", "Codes in {x}", "attribute"),
    _rule(rf"{_I} am on (?P<x>linux|windows|macos|mac os|a mac|ubuntu|debian|fedora|arch|android|ios|an iphone)", "Uses {x}", "attribute"),
    _rule(rf"{_I} (?:have got|have bought|bought) (?P<x>an? (?:(?:new|used|second-hand|old|electric|hybrid|red|blue|white|black|small|big) ){{0,2}}(?-i:[A-Z])[\w-]+(?: (?-i:[A-Z0-9])[\w-]*)*)", "Has {x}", "attribute"),
    _rule(rf"{_I} use (?P<x>.+ (?:for (?:everything|work|notes|my notes|all my .+)|at work|every day|daily))", "Uses {x}", "attribute", keep_tail=True),
    _rule(rf"{_I} (?P<v>hike|swim|run|cycle|climb|paint|knit|sew|draw|dance|sail|fish|ski|surf|garden|bake|travel) (?P<x>a lot|all the time|competitively|semi-professionally)", "{v} {x}", "pattern", keep_tail=True),
    _rule(r"my (?P<y>[\w-]+'s) birthday is (?P<x>[\w ]*[0-9][\w ]*)", "{y} birthday is {x}", "relationship", is_dated, keep_tail=True),
    _rule(r"my (?:native|first|mother) (?:language|tongue) is (?P<x>\w+)", "Speaks {x} natively", "knowledge", is_language),
    _rule(r"i am (?:an? )?(?:native|fluent|bilingual)(?: (?:speaker of|in))? (?P<x>.+?)(?: speaker)?", "Speaks {x}", "knowledge", is_language),
    _rule(r"i am (?P<x>(?:deaf|blind|hard of hearing|colou?r-?blind)(?: (?:in|on) .+)?)", "Is {x}", "attribute"),
    _rule(r"i am (?P<x>(?:a |an )?(?:coeliac|celiac|diabetic|asthmatic|epileptic|dyslexic|insomniac))", "Is {x}", "attribute"),
    _rule(r"i have (?:got )?(?P<x>(?:type [12] )?[\w -]*(?:allergy|intolerance|disease|syndrome|disorder|diabetes|asthma))", "Has {x}", "attribute"),
    _rule(r"i am (?P<x>\w+ (?:weeks|months) pregnant)", "Is pregnant", "attribute"),
    _rule(r"(?:my|our) (?P<y>(?:shoe|ring|shirt|dress) size|blood type|star sign|middle name|wedding anniversary|anniversary) is (?:on )?(?P<x>.+)", "{y} is {x}", "identity", keep_tail=True),
    _rule(r"i am not allergic to (?P<x>.+?)(?: after all)?", "Is not allergic to {x}", "attribute"),
    _rule(r"i have (?P<x>(?:high|low) blood (?:pressure|sugar)|an? (?:bad|weak) (?:back|knee|hip|heart|shoulder|stomach)|an? (?:heart|thyroid|kidney|liver) (?:condition|problem))", "Has {x}", "attribute"),
    _rule(r"my (?:new )?(?P<y>doctor|dentist|gp|therapist|physiotherapist|optician|vet|boss|manager|landlord|landlady|teacher|tutor|coach|hairdresser|accountant|lawyer) is (?:called |named )?(?P<x>(?:Dr\.?|Mr\.?|Mrs\.?|Ms\.?|Professor) [^\W\d_]+)", "{y} is {x}", "relationship"),
    _rule(r"i (?P<v>play|sing|dance|act) in (?P<x>(?:an?|the|my|our) (?:[\w-]+ )*(?:band|choir|orchestra|quartet|ensemble|group|team|theatre|theater))", "{v} in {x}", "attribute"),
    _rule(r"i (?:am|have been) (?P<x>(?:severely |deathly |very |slightly )?allergic to .+)", "Is {x}", "attribute"),
    _rule(r"i (?:have (?:got )?|suffer from |was diagnosed with |have been diagnosed with |got diagnosed with )(?P<x>(?:an? )?(?:[\w-]+ )?[\w-]+)", "Has {x}", "attribute", is_condition),
    _rule(r"i am (?P<x>(?:left|right)-handed|colou?r-?blind|deaf|blind|dyslexic|diabetic|autistic|pregnant|an introvert|an extrovert)", "Is {x}", "attribute"),
    _rule(r"i am (?P<x>[0-9][0-9.,]* ?(?:m|cm|ft|feet|metres?|meters?)(?: [0-9]+)? tall)", "Is {x}", "attribute"),
    _rule(rf"{_I} (?:can )?speak (?:a (?:bit|little)(?: of)?|some|basic|broken|rudimentary) (?P<x>[\w-]+)", "Speaks some {x}", "knowledge", is_language),
    _rule(rf"{_I} (?:can )?speak (?P<x>.+)", "Speaks {x}", "knowledge", is_language),
    _rule(r"i (?:play|have been playing) (?P<x>.+)", "Plays {x}", "attribute", is_played),
    _rule(r"i wear (?P<x>.+)", "Wears {x}", "attribute", is_worn),
    _rule(r"i drive (?P<x>an? [^,]+)(?:,.*)?", "Drives {x}", "attribute"),
    _rule(r"i (?P<v>collect|coach|practise|practice|brew) (?P<x>.+)", "{v} {x}", "attribute"),
    _rule(r"i take (?P<x>[a-z-]+ (?:every|each|daily|twice a day|once a day|in the (?:morning|evening)s?|at night|for my .+).*)", "Takes {x}", "attribute", is_medicine, keep_tail=True),
    _rule(rf"i am (?P<x>an? (?:(?:avid|keen|passionate|big|total|real|serious|huge) )?(?:{HOBBYISTS}))", "Is {x}", "attribute"),
    _rule(r"i am (?P<x>the (?:oldest|eldest|youngest|middle)(?: child)? of (?:\w+)(?: siblings| children)?)", "Is {x}", "relationship"),
    _rule(r"i am an? (?:(?:big|huge|massive|lifelong|die-hard) )?(?P<x>(?-i:[A-Z])[\w' -]*?) fan", "Likes {x}", "preference", is_taste),
    _rule(rf"{_I} support (?P<x>(?-i:[A-Z])[\w' -]+)", "Supports {x}", "preference"),
    _rule(rf"{_I} (?P<v>{SKILLS})", "{v}", "attribute"),
    _rule(rf"{_I} ride (?P<x>horses|a motorbike|a motorcycle)", "Rides {x}", "attribute"),
    _rule(r"i am (?:in|part of|a member of) (?P<x>an? (?:[\w-]+ ){0,3}(?:club|band|choir|team|league|orchestra|society|troupe))", "Is in {x}", "attribute"),
    _rule(r"i am (?:really |very )?(?:scared|afraid|terrified|frightened) of (?P<x>.+)", "Is afraid of {x}", "attribute", is_taste),
    _rule(rf"{_I} do not (?:own|have) (?P<x>(?:an? |any )?[\w -]+)", "Does not have {x}", "attribute", is_missed, keep_tail=True),
    _rule(rf"{_I} do not (?P<x>drive|swim|cook)", "Does not {x}", "attribute"),
    _rule(r"my (?P<y>car|bike|motorbike|van|phone|laptop|computer|camera|guitar|piano|boat) is (?P<x>an? .*(?-i:[A-Z0-9]).*)", "{y} is {x}", "attribute"),
    _rule(r"my birthday is (?:in|on) (?P<x>[a-z]+)", "Birthday is in {x}", "identity", is_dated, permanent=True, keep_tail=True),
    _rule(r"(?:my|our) (?P<y>parents|grandparents|kids|children|siblings|in-laws|brothers|sisters) live in (?P<x>.+)", "{y} live in {x}", "relationship", is_somewhere),
    _rule(r"i am a widow(?:er)?", "Is widowed", "relationship"),
    # study
    _rule(r"i am in my (?P<x>(?:first|second|third|fourth|fifth|final|last|1st|2nd|3rd|4th|5th) (?:year|semester)(?: (?:of|at|studying) .+)?)", "Is in their {x}", "attribute"),
    _rule(r"i (?:study|am studying|have been studying) (?P<x>.+)", "Studies {x}", "attribute", is_subject_of_study),
    _rule(r"i (?:have )?(?:switched|changed) (?:my )?(?:major|degree|studies|course|subject)(?: from .+?)? to (?P<x>.+)", "Studies {x}", "attribute"),
    _rule(r"i am (?P<x>an? (?:[\w-]+ ){0,3}student(?: (?:at|of|in) .+)?)", "Is {x}", "attribute"),
    _rule(r"i am (?P<y>doing|taking) (?P<x>(?:an?|my) (?:[\w-]+ )*(?:phd|doctorate|master's|masters|bachelor's|mba|degree|apprenticeship|internship|class|course)(?: in .+| at .+| as .+)?)", "Is {y} {x}", "attribute"),
    _rule(r"i have (?P<x>an? (?:[\w'-]+ )?(?:degree|phd|doctorate|master's|diploma|mba) in .+)", "Has {x}", "knowledge"),
    _rule(r"i (?:have )?(?P<y>graduated from|majored in) (?P<x>.+)", "{y} {x}", "knowledge", permanent=True),
    _rule(r"i (?:am learning|have been learning|learn) (?P<x>.+)", "Is learning {x}", "attribute", is_subject_of_study),
    _rule(r"i (?:have )?(?:started|begun|began|taken up|took up) learning (?P<x>.+)", "Is learning {x}", "attribute", is_subject_of_study),
    _rule(r"i (?:go to|attend) (?P<x>.*(?:school|university|college|academy|high|institute|elementary|kindergarten|nursery|daycare).*)", "Goes to {x}", "attribute", is_proper),
    # goals
    _rule(r"(?:my|our) (?:(?:main|big|biggest|new|current|personal) )?(?P<y>goal|dream|aim|ambition|resolution)(?: (?:for|this) .+?)? is (?P<x>to .+|[a-z]+ing .+)", "{y} is {x}", "goal", keep_tail=True),
    _rule(r"i have set (?:myself )?(?:the|a) goal (?:of|to) (?P<x>.+)", "Goal is {x}", "goal", keep_tail=True),
    _rule(r"i am (?P<y>training for|preparing for|saving(?: up| money)? for|working towards?|determined to) (?P<x>.+)", "Is {y} {x}", "goal", is_aim),
    _rule(r"i want to (?P<x>(?:become|be) an? .+)", "Wants to {x}", "goal", is_ambition),
    _rule(r"i am trying to (?P<x>(?:lose|quit|stop|give up|cut down|cut back|get (?:fit|fitter|healthy|healthier|in shape)|eat (?:less|more|healthier)|save (?:up|money)|learn|become) ?.*)", "Is trying to {x}", "goal"),
    _rule(r"i am writing (?P<x>(?:an?|my) (?:[\w-]+ )?(?:novel|book|thesis|dissertation|memoirs?|screenplay)(?: .+)?)", "Is writing {x}", "goal"),
    # relations and animals
    _rule(rf"{_I} (?:have )?(?:got|gotten|became|become) (?P<x>married|engaged|divorced|separated|widowed)(?: .+)?", "Is {x}", "relationship"),
    _rule(rf"{_I} are (?P<x>expecting(?: (?:a baby|twins|a boy|a girl|our .+ child))?)(?: in .+)?", "Is expecting a baby", "relationship"),
    _rule(r"i am (?:an? )?(?P<x>(?:proud |single |new )?(?:mum|mom|mother|dad|father|parent|grandmother|grandfather)) of (?P<y>[^,]+?)(?:, .+)?", "Is a {x} of {y}", "relationship"),
    _rule(rf"{_I} (?:am|are|got|have got|have been|was|were) (?P<x>(?:happily )?(?:married|engaged|divorced|widowed|separated)(?: to .+)?)", "Is {x}", "relationship", is_marital),
    _rule(r"i (?:have )?married (?P<x>.+)", "Is married to {x}", "relationship", is_name),
    _rule(rf"{_I} (?:have|have got|got|adopted|own|bought)(?: also)? (?P<z>an?) (?P<x>.+?)[, ]+(?:named|called|whose name is|(?:his|her|its) name is) (?P<y>.+)", "Has {z} {x} named {y}", "relationship", is_kin),
    _rule(rf"{_I} (?:have|have got|adopted|got) (?P<z>an?|{NUMBERS}) (?P<x>(?:[\w-]+ )?(?:guinea )?[\w-]+)(?: and (?:an?|one|two|three) .+)?", "Has {z} {x}", "relationship", is_kin),
)  # fmt: skip


def statements(clause: str, *, introduces: bool = False) -> list[SpokenStatement]:
    """Return the statements about the speaker in a clause; empty when no rule fits. Clauses with plans and doubts
    ("maybe", "will") must be filtered before.

    `introduces`: the clause may introduce the speaker, so "I am Maria" counts as a name.
    """
    if (
        introduces
        and (match := re.fullmatch(r"(?:i am|this is) (?P<x>[^,]+)(?:,.*)?", clause, re.IGNORECASE))
        and is_name(match["x"])
    ):
        return [SpokenStatement(subject="user", content=f"Name is {match['x']}", category="identity", permanent=True)]
    short = without_tail(clause)
    own = _OWN.match(clause) is not None
    for rule in _RULES:
        if rule.own and not own:
            continue
        if (match := rule.pattern.fullmatch(clause if rule.keep_tail else short)) and (found := _filled(rule, match)):
            return found
    return []


def _filled(rule: SentenceRule, match: re.Match[str]) -> list[SpokenStatement]:
    """Fill the groups into the rule's statements. Return nothing when a check rejects a group."""
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    if "v" in groups:
        groups["v"] = conjugated(groups["v"].lower())
    for name in groups.keys() & {"x", "y"}:
        value = _cut(groups[name].strip(" ,;:.!…")) if rule.keep_tail else without_tail(groups[name])
        groups[name] = third_person(value)
        if not is_plausible(groups[name]):
            return []
    if "x" in groups and not rule.accept(groups["x"]):
        return []
    if "named" in rule.content and not is_name(groups["y"]):
        return []
    if "Works at {y}" in rule.content and not is_employer(groups["y"]):
        return []
    return [
        SpokenStatement(
            subject="user", content=capitalised(part.format(**groups)), category=rule.category, permanent=rule.permanent
        )
        for part in rule.content.split("|")
    ]


def _cut(value: str) -> str:
    """Shorten a text at its commas until it is plausible."""
    while not is_plausible(value) and "," in value:
        value = value.rpartition(",")[0].strip()
    return value


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
