"""German: phrases about likes, diets, hobbies and other habits, and about the beginning and end of habits."""

from __future__ import annotations

from ..pack import PredicateRule
from .spelling import phrases, words

_DIETS = {
    "vegetarian": "{vegetarier,vegetarierin,vegetarisch}",
    "vegan": "{veganer,veganerin,vegan}",
    "pescatarian": "{pescetarier,pescetarierin,pescetarisch}",
    "flexitarian": "{flexitarier,flexitarierin,flexitarisch}",
    "halal": "halal",
    "kosher": "koscher",
    "keto": "{keto,ketogen}",
}
RULES = (
    *(
        PredicateRule("diet", "single", phrases(f"{{sein,leben,essen,ernähren}} {kind}|leben als {kind}"), value=diet)
        for diet, kind in _DIETS.items()
    ),
    *(
        PredicateRule("diet", "single", phrases(f"werden {kind}|umsteigen auf {kind}"), value=diet, happened=True)
        for diet, kind in _DIETS.items()
    ),
    PredicateRule(
        "likes",
        "multi",
        phrases("mögen|lieben|schätzen|haben * gern|{sein fan,schwärmen} von|stehen auf|sein {begeistert,fan} von"),
    ),
    PredicateRule(
        "likes", "multi", phrases("hassen|verabscheuen|sein {leid,überdrüssig}|können nicht leiden"), denied=True
    ),
    PredicateRule(
        "allergic_to",
        "multi",
        phrases("sein allergisch {gegen,auf}|haben * allergie|haben allergie {gegen,auf}|leiden an * allergie"),
    ),
    PredicateRule("allergic_to", "multi", phrases("{überwinden,verlieren} * allergie"), denied=True, happened=True),
    PredicateRule(
        "intolerant_of",
        "multi",
        phrases("haben * {unverträglichkeit,intoleranz}|haben {unverträglichkeit,intoleranz} gegen"),
    ),
    PredicateRule("intolerant_of", "multi", phrases("vertragen"), denied=True),
    PredicateRule("intolerant_of", "multi", phrases("sein laktoseintolerant"), value="laktos"),
    PredicateRule("intolerant_of", "multi", phrases("sein glutenintolerant"), value="glut"),
    PredicateRule("afraid_of", "multi", phrases("haben angst vor|haben * angst|haben * phobie|fürchten vor|fürchten")),
    PredicateRule(
        "afraid_of", "multi", phrases("{überwinden,verlieren,besiegen} angst vor"), denied=True, happened=True
    ),
    PredicateRule("speaks", "multi", phrases("sprechen|können sprechen|beherrschen|sprechen fließend|können fließend")),
    PredicateRule(
        "learns", "multi", phrases("lernen|{besuchen,machen} * kurs|besuchen kurs {in,für}|haben unterricht in")
    ),
    PredicateRule("teaches", "multi", phrases("unterrichten|lehren")),
    PredicateRule("plays", "multi", phrases("spielen")),
    PredicateRule("eats", "multi", phrases("essen")),
    PredicateRule("drinks", "multi", phrases("trinken"), absent="alkohol"),
    PredicateRule(
        "drinks",
        "multi",
        phrases("sein {trocken,abstinent,abstinenzler}|leben abstinent"),
        value="alkohol",
        denied=True,
    ),
    PredicateRule("smokes", "multi", phrases("rauchen|sein {raucher,raucherin}")),
    PredicateRule(
        "smokes", "multi", phrases("sein {nichtraucher,nichtraucherin,rauchfrei,ex-raucher,ex-raucherin}"), denied=True
    ),
    PredicateRule("smokes", "multi", phrases("werden {nichtraucher,nichtraucherin}"), denied=True, happened=True),
    PredicateRule("drives", "multi", phrases("fahren")),
    PredicateRule("uses", "multi", phrases("{nutzen,benutzen,verwenden}|sein aktiv auf|haben konto bei")),
    PredicateRule("takes", "multi", phrases("nehmen|einnehmen")),
    PredicateRule(
        "subscribes_to", "multi", phrases("abonnieren|haben * {abo,abonnement}|haben {abo,abonnement} {von,bei}")
    ),
    PredicateRule("reads", "multi", phrases("lesen")),
    PredicateRule("watches", "multi", phrases("schauen|gucken|ansehen")),
    PredicateRule("listens_to", "multi", phrases("hören")),
    PredicateRule("visited", "multi", phrases("besuchen|sein in|reisen nach|sein nach"), happened=True, named=True),
    PredicateRule(
        "member_of",
        "multi",
        phrases("sein mitglied {in,von,bei}|gehören zu|haben mitgliedschaft {in,bei}|haben * mitgliedschaft"),
    ),
    PredicateRule("interested_in", "multi", phrases("interessieren für|sein interessiert an")),
    PredicateRule(
        "wakes_up_at",
        "single",
        phrases("{aufstehen,aufwachen} um"),
    ),
    PredicateRule("goes_to_bed_at", "single", phrases("gehen um # {bett,schlafen}|gehen in bett um|gehen schlafen um")),
    PredicateRule("prefers", "unsure", phrases("bevorzugen|vorziehen")),
    PredicateRule("wants", "multi", phrases("brauchen|benötigen")),
)
ENDS = phrases(
    "aufhören mit|aufhören|aufgeben|verzichten auf|abgewöhnen|lassen|ablegen|abschaffen"
    "|absetzen|beenden|abbrechen|abschließen"
    "|verkaufen|verschenken|weggeben|abgeben|verlieren|loswerden|entsorgen|spenden|löschen"
    "|deaktivieren|kündigen|abbestellen"
    "|abmelden {von,bei}|austreten aus|aussteigen {aus,bei}|zurücktreten {von,aus}|ausscheiden aus|verlassen|meiden"
    "|{überwinden,besiegen}|genesen von|{kündigen,beenden} {abo,abonnement,mitgliedschaft,vertrag} {in,bei,von}"
    "|{kündigen,beenden} * {abo,mitgliedschaft,vertrag}|{sein,haben} fertig mit"
)
BEGINS = phrases("anfangen|beginnen|anfangen mit|beginnen mit|wieder anfangen")
CARRIERS = phrases("müssen|schaffen")
SWITCHES = phrases("{wechseln,umsteigen} {auf,zu}|umstellen auf")
SHELLS = frozenset(
    words("mitgliedschaft abo abonnement konto kurs vertrag gewohnheit training unterricht hobby sucht spielen")
)
ENDING_VERBS = frozenset(words("aufhören aufgeben verzichten kündigen beenden abbrechen meiden"))
