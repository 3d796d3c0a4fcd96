"""English: phrases about likes, diets, hobbies and other habits, and about the beginning and end of habits."""

from __future__ import annotations

from ..notation import phrases, words
from ..pack import PredicateRule

_DIETS = words("vegetarian vegan pescatarian omnivore carnivore flexitarian keto paleo halal kosher")
_DIET = (
    "{be,become,turn,go,eat,keep} *|{follow,adopt} * diet|be on * diet|have * diet|keep to * diet"
    "|{switch,convert,change} to * diet|switch to being *"
)
_SEVERAL = words(
    "cook bake grow climb follow donate sing paint draw write build sew knit brew restore hunt ski dance coach"
    " breed admire sell repair donate attend sponsor foster photograph weld"
)
"""Verbs of habits that may have several objects at a time, such as `cooks`. The predicate is the verb with an `s`."""
_WAYS = "commute by *|{go,get,travel} to {work,office,school} by *|take * to {work,office,school}"
_COMMUTES = {
    "bicycle": "|{cycle,bike,bicycle} to {work,office,school}|commute by bike|ride bike to {work,office,school}"
    "|go to {work,office,school} by bike|take bike to {work,office,school}",
    "car": "|drive to {work,office,school}",
    "foot": "|walk to {work,office,school}|{go,get} to {work,office,school} on foot|commute on foot",
    "train": "",
    "bus": "",
    "tram": "",
    "metro": "|commute by {underground,tube,subway}|take {underground,tube,subway} to {work,office,school}",
}
RULES = (
    *(PredicateRule("diet", "single", phrases(_DIET.replace("*", kind)), value=kind, happened=True) for kind in _DIETS),
    PredicateRule("eats", "multi", phrases("be {meat eater,meat-eater}|be back on meat"), value="meat"),
    PredicateRule(
        "likes",
        "multi",
        phrases(
            "like|love|enjoy|adore|be * {lover,fan,enthusiast}"
            "|be fond of|be {fan,big fan,huge fan,lover} of|be into|be {keen,hooked,hook} on"
            "|be {crazy,mad} about"
            "|be passionate about|{like,love,enjoy} to|appreciate|can stand|can bear|stand|bear"
            "|have soft spot for|be enthusiastic about|can tolerate"
        ),
    ),
    PredicateRule(
        "likes",
        "multi",
        phrases(
            "{fall in love,become obsessed} with|{develop,acquire} taste for|{get,grow} to {like,love}"
            "|come to {like,love,enjoy}|warm to"
        ),
        happened=True,
    ),
    PredicateRule(
        "likes",
        "multi",
        phrases(
            "dislike|hate|detest|loathe|have aversion to|despise|be {tired,sick,bored,weary} of|be {fed up,bored} with"
        ),
        denied=True,
    ),
    PredicateRule(
        "likes",
        "multi",
        phrases(
            "{get,grow} {tired,sick,bored,weary} of|{grow,come,start,begin} to {hate,dislike,detest}"
            "|{get,grow} {bored,fed up} with|fall out of love with"
            "|{take dislike,develop aversion} to"
        ),
        denied=True,
        happened=True,
    ),
    PredicateRule(
        "allergic_to", "multi", phrases("be allergic to|have allergy to|have * allergy|suffer from * allergy")
    ),
    PredicateRule(
        "allergic_to",
        "multi",
        phrases("outgrow * allergy|outgrow allergy to|{get over,be over} * allergy"),
        denied=True,
        happened=True,
    ),
    PredicateRule("intolerant_of", "multi", phrases("be intolerant to|be intolerant of|have * intolerance")),
    PredicateRule("afraid_of", "multi", phrases("be {afraid,scared,terrified,frighten} of|fear|have {fear,phobia} of")),
    PredicateRule(
        "afraid_of",
        "multi",
        phrases("{overcome,conquer,get over,lose,beat} fear of|be over fear of"),
        denied=True,
        happened=True,
    ),
    PredicateRule("speaks", "multi", phrases("speak|be fluent in|can speak|speak fluent")),
    PredicateRule(
        "learns",
        "multi",
        phrases("learn|be take lesson in|take * {lesson,class,course}|take {lesson,class,course} in|be study"),
    ),
    PredicateRule("studies", "multi", phrases("study")),
    PredicateRule("teaches", "multi", phrases("teach|give lesson in")),
    PredicateRule("plays", "multi", phrases("play|be * player")),
    PredicateRule(
        "does",
        "multi",
        phrases("{take up,pick up,resume,restart,get into,get back into,go back to}"),
        happened=True,
    ),
    *(
        PredicateRule("commutes_by", "single", phrases(_WAYS.replace("*", way) + more), value=way)
        for way, more in _COMMUTES.items()
    ),
    PredicateRule("commutes_by", "single", phrases("commute by|commute on|{go,get,travel} to {work,office,school} by")),
    PredicateRule("eats", "multi", phrases("eat")),
    PredicateRule("drinks", "multi", phrases("drink"), absent="alcohol"),
    PredicateRule(
        "drinks",
        "multi",
        phrases(
            "be {sober,teetotal,teetotaller,teetotaler,dry,alcohol-free}|abstain from alcohol|lead sober life"
            "|live sober"
        ),
        value="alcohol",
        denied=True,
    ),
    PredicateRule(
        "drinks", "multi", phrases("{get,go,become} {sober,teetotal,dry}"), value="alcohol", denied=True, happened=True
    ),
    PredicateRule("drinks", "multi", phrases("{relapse,fall off wagon,be off wagon}"), value="alcohol", happened=True),
    PredicateRule("smokes", "multi", phrases("smoke|be smoker")),
    PredicateRule(
        "smokes",
        "multi",
        phrases("be {non-smoker,nonsmoker,smoke-free,smoke free,ex-smoker,former smoker}"),
        denied=True,
    ),
    PredicateRule(
        "smokes",
        "multi",
        phrases("{become,go} {non-smoker,nonsmoker,smoke-free,smoke free}"),
        denied=True,
        happened=True,
    ),
    PredicateRule("drives", "multi", phrases("drive")),
    PredicateRule("uses", "multi", phrases("use|be use|be user of|be active on|have account {on,with}")),
    PredicateRule(
        "subscribes_to",
        "multi",
        phrases(
            "subscribe to|have subscription to|have * subscription|be subscriber {of,to}|be subscribe to"
            "|pay for * subscription"
        ),
    ),
    PredicateRule("reads", "multi", phrases("read")),
    *(PredicateRule(f"{verb}s", "multi", phrases(verb)) for verb in _SEVERAL),
    PredicateRule("watches", "multi", phrases("watch")),
    PredicateRule("listens_to", "multi", phrases("listen to")),
    PredicateRule("visited", "multi", phrases("visit|have be to|be to|travel to"), happened=True),
    PredicateRule(
        "volunteers_at",
        "multi",
        phrases("volunteer {at,for,with,in}|help {out at,at,out in}|do volunteer work {at,for,with}"),
    ),
    PredicateRule(
        "member_of", "multi", phrases("be member of|belong to|be part of|have * membership|have membership {at,in,of}")
    ),
    PredicateRule("supports", "multi", phrases("support|be supporter of|root for")),
    PredicateRule("interested_in", "multi", phrases("be interested in|be curious about")),
    PredicateRule("believes", "multi", phrases("believe|believe in|think that|believe that")),
    PredicateRule("wants", "multi", phrases("want|need|wish")),
    PredicateRule("prefers", "unsure", phrases("prefer")),
    PredicateRule(
        "wakes_up_at", "single", phrases("{wake up,get up,rise} at|{wake up,get up} around|alarm be set for")
    ),
    PredicateRule("goes_to_bed_at", "single", phrases("go to {bed,sleep} at")),
)
ENDS = phrases(
    "give up|give up on|give * up|give up {habit,practice,addiction} of|stop|cease|quit|cut out|cut * out"
    "|cut {out,* out} of {diet,life}|cut {out,* out,*} from {diet,life}|swear off|swear * off"
    "|{kick,break,shake,drop,lose,beat,overcome,ditch} habit of|{kick,shake,beat,overcome} addiction to"
    "|get out of habit of|{kick,break,beat,overcome,ditch,drop,conquer}"
    "|lay off|go off|be off|come off|get off|wean off|wean * off|be {done,finish,through} with|be over|get over"
    "|recover from|{lose,have no} {interest,appetite} {in,for}|have no {use,time,desire} for"
    "|outgrow|have outgrow|abandon|renounce|forgo|abstain from|refrain from|steer clear of"
    "|stay {off,away from,clear of}|keep {off,away from}|eliminate|have quit|let go of|put an end to|put end to"
    "|be free of|discontinue|take break from"
    "|end|drop|drop out of|drop out from|withdraw from|pull out of|back out of|step back from|opt out of|bow out of"
    "|leave|graduate from|finish|complete"
    "|sell|sell off|lose|cancel|terminate|get rid of|give away|throw {out,away}|throw * {out,away}|toss|trade in"
    "|donate|scrap|dump|part with|dispose of|get * steal|have * steal|crash|total|write off|wreck|break"
    "|unsubscribe from|end subscription to|let {subscription,membership} to"
    "|let * {subscription,membership} {lapse,expire}|shut down|close|close down|delete|deactivate|disable|remove"
    "|uninstall|unfollow|log off|sign off|get off of"
    "|shave off|shave|cut off|hang up|pack in|pack up|knock off|fall out of habit of|fall out of love with"
    "|break with|break away from|stop go to|quit go to"
    "|let * {run out,lapse,expire,go}|have * {remove,take off,take out,amputate}|get * {remove,take off,take out}"
    "|{be,get,come,return} {back,home,back home} from|return from|hand over|hand over role of|pass on"
    "|{be,have be} cure of|heal from|be rid of"
)
BEGINS = phrases(
    "{start,begin,resume,restart,continue,take to,go back to,get back to,get back into}"
    "|{return to,revert to,get into,get into habit of,fall back into,get used to}"
    "|{start,begin,continue} to|{take up,pick up}"
)
"""Phrases before a verb whose action begins: `started` in `started dating`."""
CARRIERS = phrases(
    "have to|manage to|end up|be force to|be make to|go ahead and|have finally|choose to|be compel to"
    "|be oblige to|succeed in|go on to"
)
"""Phrases before a verb whose action was done: `had to` in `had to give up`."""
SWITCHES = phrases(
    "{switch,change,convert,go over,move over,swap over,upgrade,downgrade,transition,cross over,defect,move on} to"
    "|switch over to|make switch to|trade up to|{revert,change back,switch back} to"
)
"""Phrases before a thing that replaces an earlier thing of the same kind: `switched to` in `switched to tea`."""
SHELLS = frozenset(
    words(
        "habit addiction membership subscription account collection course courses class classes lesson lessons"
        " routine profile plan contract app practice hobby"
    )
)
"""Words that may be left out when a thing ends: `membership` in `the gym membership`, `habit` in `the smoking
habit`."""
