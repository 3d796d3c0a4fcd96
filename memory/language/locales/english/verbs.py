"""English: verbs and their forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..notation import words

_REGULAR = """
resettle weld donate climb restore coach collect skip digest heal landscape brew mend decorate
discharge dismiss suspend elect force demote elevate rehire poach finalize finalise demolish discontinue dissolve
secure defect boot terminate oblige compel euthanize rehome conquer beg hook couple befriend welcome dispose
abandon abstain accept accompany ache achieve add admire admit adopt adore advise agree aim allow answer appear
apply appoint appreciate argue arrive ask assist attend avoid back bake base bear believe belong bike blame blog
boil book borrow bother breed brew browse bump call camp cancel care carry cease celebrate change chase
chat check chew claim clean climb close code collect combine commute compete complain complete compose
compost confirm connect consider consist contact continue convert cook cover crave crochet cross cure cycle dance
date deactivate deal decide decline delete deliver depend design despise destroy detest develop devote
die digest disable dislike disown ditch divide divorce donate drop dump earn ease elope emigrate
employ end engage enjoy enlist enroll enter escape evict exchange exercise exit expand expect expire
explore fail fancy farm fast fear fill finish fire fish fix flirt follow foster freelance frequent
gain gamble garden graduate guide hail handle happen hate head headhunt help hesitate hike hire hope
host hunt identify ignore immigrate import improve increase inherit injure install intend intern introduce invest
invite involve jog join judge juggle kayak kick kill kiss knit lack land last laugh launch lay lead learn lease
lecture
lend like listen live loathe look love maintain major manage march marry mention mentor migrate miss move munch
name narrate need negotiate observe offer open operate oppose order outgrow own paint park part pass pay perform
phone photograph plan play plead polish possess practice practise prefer prepare present produce promise promote
propose
publish pull purchase push qualify quarrel raise ramble react receive recommend reconcile recover recruit reduce
refuse
regain register reject rejoin relapse relate relax relocate remain remarry remember remove rename renew rent repair
repeat replace report represent rescue reschedule reset reside resign rest restart result resume retain retire retrain
return reunite review row sack sail save schedule search seem separate serve settle sew shape share shave ship shop
show sign skate ski skip smoke smooth snowboard snore spell sponsor start stay step stick stop stream struggle study
subscribe succeed suffer supervise support surf swap switch talk taste teach terminate tie toy trade train
transfer transition translate travel treat trim trust try turn tutor type uninstall unfollow unsubscribe update
upgrade
use vacate value vape vary visit volunteer vote wait wake walk want wash waste watch wave wean weigh welcome widow
wish
withhold wonder work worry worship yearn
"""
_IRREGULAR = """
be is was been being, be are were been, be am was been, be 's was been
have has had had, do does did done, go goes went gone, get gets got gotten, become becomes became become
begin begins began begun, bite bites bit bitten, break breaks broke broken, bring brings brought brought
build builds built built, buy buys bought bought, catch catches caught caught, choose chooses chose chosen
come comes came come, cost costs cost cost, cut cuts cut cut, draw draws drew drawn, drink drinks drank drunk
drive drives drove driven, eat eats ate eaten, fall falls fell fallen, feed feeds fed fed, feel feels felt felt
fight fights fought fought, find finds found found, flee flees fled fled, fly flies flew flown
forget forgets forgot forgotten, forgive forgives forgave forgiven, freeze freezes froze frozen
give gives gave given, grow grows grew grown, hang hangs hung hung, hear hears heard heard, hit hits hit hit
hold holds held held, hurt hurts hurt hurt, keep keeps kept kept, know knows knew known, lay lays laid laid
lead leads led led, leave leaves left left, lend lends lent lent, let lets let let, lose loses lost lost
make makes made made, mean means meant meant, meet meets met met, outgrow outgrows outgrew outgrown
overcome overcomes overcame overcome, pay pays paid paid, put puts put put, quit quits quit quit, read reads read read
rebuild rebuilds rebuilt rebuilt, ride rides rode ridden, run runs ran run, say says said said, see sees saw seen
seek seeks sought sought, sell sells sold sold, send sends sent sent, set sets set set, shut shuts shut shut
sing sings sang sung, sit sits sat sat, sleep sleeps slept slept, speak speaks spoke spoken, spend spends spent spent
split splits split split, stand stands stood stood, steal steals stole stolen, stick sticks stuck stuck
swear swears swore sworn, swim swims swam swum, take takes took taken, teach teaches taught taught
tell tells told told, think thinks thought thought, throw throws threw thrown, undergo undergoes underwent undergone
understand understands understood understood, wake wakes woke woken, wear wears wore worn, wed weds wed wed
win wins won won, withdraw withdraws withdrew withdrawn, write writes wrote written, forgo forgoes forwent forgone
"""
_DOUBLED = frozenset(
    words(
        """
        stop plan drop skip jog prefer travel control knit cancel swap chat step shop ship trim quarrel admit transfer
        get begin cut hit let put quit run set shut sit split swim wed win
        """
    )
)
"""Verbs that double their last letter before an ending: `stopped`, `running`."""
_EITHER_WAY = frozenset(("travel", "cancel", "quarrel"))
"""Verbs with two spellings, one with a doubled last letter: `cancelled`, `canceled`."""
_WITH_Y = {"die": "dying", "lie": "lying", "tie": "tying"}


def _regular_forms(verb: str) -> Iterator[tuple[str, str, str]]:
    """Yield each form of a regular verb, with the base form and the tense."""
    yield verb, verb, "base"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        yield verb[:-1] + "ies", verb, "present"
        yield verb[:-1] + "ied", verb, "past"
    else:
        yield verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s"), verb, "present"
        yield _stem(verb) + "ed", verb, "past"
    yield _ongoing(verb), verb, "ongoing"
    if verb in _EITHER_WAY:
        yield verb + "ed", verb, "past"
        yield verb + "ing", verb, "ongoing"


def _irregular_forms(line: str) -> Iterator[tuple[str, str, str]]:
    base, present, past, *participles = line.split()
    yield base, base, "base"
    yield present, base, "present"
    yield past, base, "past"
    for participle in participles:
        yield participle, base, "past" if participle == past else "participle"
    yield _ongoing(base), base, "ongoing"


def _stem(verb: str) -> str:
    if verb in _DOUBLED:
        return verb + verb[-1]
    return verb.removesuffix("e")


def _ongoing(verb: str) -> str:
    keeps = verb == "be" or verb.endswith(("ee", "ye"))
    return _WITH_Y.get(verb) or (verb if keeps else _stem(verb)) + "ing"


def _verbs() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for verb in _REGULAR.split():
        for form, base, tense in _regular_forms(verb):
            found.setdefault(form, (base, tense))
    for line in _IRREGULAR.replace("\n", ",").split(","):
        for form, base, tense in _irregular_forms(line) if line.strip() else ():
            found[form] = (base, tense)
    return found


VERBS: Mapping[str, tuple[str, str]] = {**_verbs(), "born": ("born", "past"), "can": ("can", "base")}
