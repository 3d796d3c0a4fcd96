"""English: phrases about partners, family, friends and animals, and about the beginning and end of relationships."""

from __future__ import annotations

from ..notation import phrases, words
from ..pack import PredicateRule

_STATUS = "partner_is"
RULES = (
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "be marry {to,with}|be {marry,happily marry,newlywed,newly wed}|have {husband,wife,spouse}"
            "|have {husband,wife,spouse} {name,call}"
            "|{husband,wife,spouse} be|{husband,wife,spouse} name be|be {husband,wife} of"
        ),
        value="marry",
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "marry|wed|{get,be} {marry,hitch,wed}|get {marry,hitch,wed} {to,with}|tie knot|tie knot with|elope"
            "|elope with|exchange vow with"
            "|say i do to|walk down aisle with|become {husband,wife} of"
        ),
        value="marry",
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "be engage|be engage to|have {fiance,fiancee,fiancé,fiancée}"
            "|have {fiance,fiancee,fiancé,fiancée} name|{fiance,fiancee,fiancé,fiancée} be|be betroth to"
        ),
        value="engage",
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases("{get,become} engage|{get,become} engage to|say yes to proposal of"),
        value="engage",
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "be in {relationship,long-distance relationship,open relationship}"
            "|be in {relationship,long-distance relationship,open relationship} with"
            "|be {date,together with,in love with,go out with,back together with}|{date,go out with,go steady with}"
            "|have {partner,girlfriend,boyfriend,significant other,life partner}"
            "|have {partner,girlfriend,boyfriend,life partner} {name,call}"
            "|{partner,girlfriend,boyfriend} be|{partner,girlfriend,boyfriend} name be"
            "|live with {partner,girlfriend,boyfriend}|see {someone,somebody}|be {taken,spoken for}"
            "|be {girlfriend,boyfriend,partner} of"
        ),
        value="partner",
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "{get back together,get together,hook up,become couple,couple up,reconcile} with"
            "|{begin,enter,start} {relationship,new relationship} with|fall in love with"
            "|{meet,find} {girlfriend,boyfriend,partner}"
        ),
        value="partner",
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases("be {single,bachelor,unattached,unmarried,unpartnered}|live as {bachelor,single}"),
        value="single",
    ),
    PredicateRule(_STATUS, "unsure", phrases("see"), value="partner", named=True),
    PredicateRule(_STATUS, "single", phrases("become single|find oneself single"), value="single", happened=True),
    PredicateRule(_STATUS, "single", phrases("be {widow,widower,widowed}"), value="widow"),
    PredicateRule(
        _STATUS,
        "single",
        phrases("lose {husband,wife,spouse}|bury {husband,wife}|become {widow,widower}"),
        value="widow",
        happened=True,
    ),
    PredicateRule(
        _STATUS, "single", phrases("remarry|get remarry|remarry to|marry again"), value="remarry", happened=True
    ),
    PredicateRule(_STATUS, "single", phrases("be {divorce,divorcee}"), value="divorce"),
    PredicateRule(
        _STATUS,
        "single",
        phrases("get {divorce,divorced}|become divorce|finalize divorce|finalise divorce|go through divorce"),
        value="divorce",
        happened=True,
    ),
    PredicateRule(_STATUS, "single", phrases("be separate|live separately|live apart"), value="separate"),
    PredicateRule(_STATUS, "single", phrases("get separate"), value="separate", happened=True),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "{break up,split up,split,part way,part ways} with {partner,girlfriend,boyfriend}"
            "|{leave,dump} {partner,girlfriend,boyfriend}"
            "|{partner,girlfriend,boyfriend} {leave,move out}|be {dump,leave} by {partner,girlfriend,boyfriend}"
        ),
        value="partner",
        denied=True,
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "{leave,divorce,separate from,split from,split up with} {husband,wife,spouse}|end marriage"
            "|end marriage {to,with}|be leave by {husband,wife}|have marriage annul"
        ),
        value="marry",
        denied=True,
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases("{call,break} off {engagement,wedding}|break engagement"),
        value="engage",
        denied=True,
        happened=True,
    ),
    PredicateRule(_STATUS, "single", phrases("break up|split up"), value="partner", denied=True, happened=True),
    PredicateRule(
        "knows",
        "multi",
        phrases(
            "know"
            "|be {friend,friends,best friend,best friends,close friend,close friends,close,acquainted,acquaint} with"
            "|be {friend,close friend} of|be in {touch,contact} with|{talk,speak} to|hang out with"
            "|stay in touch with|keep in touch with|be on {speak,good,friendly,best} term with|be on term with"
        ),
    ),
    PredicateRule(
        "knows",
        "multi",
        phrases(
            "make friends with|become {friend,friends} with|befriend|make {up,peace} with|reconcile with"
            "|bury hatchet with|patch {thing,things} up with|patch up {thing,things} with"
        ),
        happened=True,
    ),
    PredicateRule(
        "knows",
        "multi",
        phrases(
            "lose {touch,contact} with|{cut,cut off,break off} {tie,ties,contact} with|be estrange from"
            "|grow apart from|drift apart from|be {no longer,not} on speak term with|go no contact with"
            "|fall out with|stop {talk to,speak to,speak with,talk with}"
        ),
        denied=True,
        happened=True,
    ),
    PredicateRule(
        "is_expecting",
        "single",
        phrases("be {pregnant,expect,expect baby,expect child,with child}|expect {baby,child}"),
        value="baby",
    ),
    PredicateRule(
        "is_expecting",
        "single",
        phrases("give birth|give birth to|{welcome,deliver,lose} baby|{have,suffer} miscarriage"),
        value="baby",
        denied=True,
        happened=True,
    ),
)
ENDS = phrases(
    "break up with|split {up with,with,from}|separate from|be separate from|be divorce from|divorce"
    "|get divorce from|finalize divorce {from,with}|end {thing,relationship,marriage,affair,friendship} with"
    "|break it off with|break {thing,thing off,it off,off} with|break off {relationship,engagement,contact} with"
    "|call it quits with|call off|break off|go separate way from|dump|ditch|be dump by"
    "|cut off|cut {tie,ties,contact} with|cut off contact with|{lose,break} {touch,contact} with|fall out with"
    "|drift apart from|grow apart from|be estrange from|unfriend|disown"
    "|{be,get} {leave,dump,ditch} by|get over|finish with|be done with|{get,receive} annulment from"
    "|give * up for adoption|put * {down,to sleep}|have * put down|have to put * down|rehome|give * away|lose"
)
ENDED = phrases(
    "move out|run away|die|pass away|be {dead,over,gone,deceased}|have pass away|break up|split up|disband"
    "|go {bankrupt,bust,under,out of business}"
    "|shut down|close down"
    "|be {shut down,close down,cancel,discontinue,demolish,steal,sell,destroy,total}"
    "|be {scrap,put down,euthanize,put to sleep,dissolve}"
    "|be {final,over,do,finish,settle,cure,heal}|go away|clear up|heal"
    "|{get,have} {steal,sell,cancel,total}|go {extinct,missing}|have {end,expire,die}|break down for good"
    "|cross rainbow bridge"
)
GONE = phrases(
    "die|pass away|have pass away|have die|be {dead,deceased,put down,euthanize,put to sleep,dissolve,demolish}"
    "|go {bankrupt,bust,out of business,extinct}|disband|cross rainbow bridge"
)
"""Phrases after which no known claim about the subject is true: `died`."""
OVER = frozenset(("divorce", "separate", "widow"))
"""Values that end a state. A person may be divorced from one person and married to another person."""
PEOPLE = frozenset(
    words(
        """
mother father mom mum dad parent parents sister brother sibling son daughter child children kid kids
wife husband spouse partner girlfriend boyfriend fiance fiancee fiancé fiancée friend friends colleague colleagues
boss manager neighbour neighbor aunt uncle cousin niece nephew grandmother grandfather grandma
grandpa grandparents grandson granddaughter roommate flatmate housemate dog cat pet puppy kitten
horse rabbit parrot doctor dentist therapist landlord teacher coach stepmother stepfather stepson
stepdaughter stepsister stepbrother twin ex baby family team-mate teammate mentor in-law in-laws mother-in-law
father-in-law brother-in-law sister-in-law daughter-in-law son-in-law godmother godfather godson goddaughter
granny nan sisters brothers sons daughters cousins uncles aunts nephews nieces friend's hamster bird coworker
coworkers
supervisor tenant nanny babysitter
"""
    )
)
