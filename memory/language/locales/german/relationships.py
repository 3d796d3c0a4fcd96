"""German: phrases about partners, family, friends and animals, and about the beginning and end of relationships."""

from __future__ import annotations

from ..pack import PredicateRule
from .spelling import phrases, words

_STATUS = "partner_is"
RULES = (
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "sein verheiratet|sein verheiratet mit|sein glücklich verheiratet|haben {frau,mann,ehefrau,ehemann}"
            "|{mann,frau,ehemann,ehefrau} {sein,heißen}"
        ),
        value="marry",
    ),
    PredicateRule(_STATUS, "single", phrases("heiraten|trauen|{geben,sagen} jawort"), value="marry", happened=True),
    PredicateRule(
        _STATUS,
        "single",
        phrases("sein {verlobt,verloben}|sein {verlobt,verloben} mit|{verlobter,verlobte} {sein,heißen}"),
        value="engage",
    ),
    PredicateRule(_STATUS, "single", phrases("verloben|verloben mit"), value="engage", happened=True),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "sein zusammen mit|sein {liiert,vergeben} mit|sein {liiert,vergeben}|sein in beziehung mit"
            "|sein in beziehung|führen beziehung mit"
            "|haben {freundin,freund,partner,partnerin}|{freundin,freund,partner,partnerin} {sein,heißen}"
        ),
        value="partner",
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases("zusammenkommen mit|kommen zusammen mit|verlieben in"),
        value="partner",
        happened=True,
    ),
    PredicateRule(_STATUS, "single", phrases("sein {single,ledig,alleinstehend,solo,unverheiratet}"), value="single"),
    PredicateRule(_STATUS, "single", phrases("sein {verwitwet,witwe,witwer}"), value="widow"),
    PredicateRule(
        _STATUS,
        "single",
        phrases("werden {witwe,witwer}|verlieren {mann,frau,ehemann,ehefrau}"),
        value="widow",
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases("sein {geschieden,scheiden}|sein {geschieden,scheiden} von|leben getrennt|leben von * getrennt"),
        value="divorce",
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "werden scheiden|werden scheiden von|lassen scheiden|lassen scheiden von|scheiden lassen"
            "|scheiden lassen von"
        ),
        value="divorce",
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases("{lösen,auflösen} verlobung|trennen von {verlobter,verlobten,verlobte}"),
        value="engage",
        denied=True,
        happened=True,
    ),
    PredicateRule(
        _STATUS,
        "single",
        phrases(
            "{trennen von,verlassen} {freund,freundin,partner,partnerin}"
            "|machen schluss mit {freund,freundin}|machen mit {freund,freundin} schluss"
        ),
        value="partner",
        denied=True,
        happened=True,
    ),
    PredicateRule(
        "knows",
        "multi",
        phrases(
            "kennen|sein {befreundet,befreunden} mit|sein {freund,freundin} von|haben kontakt {zu,mit}|kennenlernen"
        ),
    ),
    PredicateRule(
        "knows",
        "multi",
        phrases("{abbrechen,verlieren} kontakt {zu,mit}|abbrechen freundschaft mit|zerstreiten mit"),
        denied=True,
        happened=True,
    ),
    PredicateRule("is_expecting", "single", phrases("sein schwanger|erwarten {baby,kind,nachwuchs}"), value="baby"),
    PredicateRule(
        "is_expecting",
        "single",
        phrases("{bekommen,gebären} {baby,kind,sohn,tochter}|entbinden"),
        value="baby",
        denied=True,
        happened=True,
    ),
)
ENDS = phrases(
    "trennen von|machen * schluss|machen mit * schluss|machen schluss mit"
    "|{beenden,auflösen,lösen} {beziehung,ehe,freundschaft} {mit,zu}"
    "|scheiden {von,lassen von}|lassen scheiden von|verlassen"
    "|{verlieren,abbrechen} kontakt {zu,mit}|werden verlassen von"
    "|sein geschieden von|sein {getrennt,trennen} von|leben getrennt von"
)
ENDED = phrases(
    "sterben|versterben|sein {tot,vorbei,weg,gestorben,verstorben}|davonlaufen|weglaufen|eingehen|kaputtgehen"
    "|werden {einschläfern,stehlen,verkaufen,absagen,auflösen,abreißen,schließen,einstellen}"
    "|verheilen|heilen|ausziehen"
)
PEOPLE = frozenset(
    words(
        """
        mutter vater mama papa eltern elternteil schwester bruder geschwister sohn tochter kind kinder frau mann ehefrau
        ehemann partner partnerin freund freundin freunde verlobte verlobter kollege kollegin kollegen chef chefin
        vorgesetzter vorgesetzte nachbar nachbarin nachbarn tante onkel cousin cousine neffe nichte großmutter
        großvater oma opa großeltern enkel enkelin mitbewohner mitbewohnerin hund katze haustier kater pferd hase
        kaninchen papagei arzt ärztin zahnarzt zahnärztin hausarzt hausärztin therapeut therapeutin vermieter
        vermieterin lehrer lehrerin trainer trainerin stiefmutter stiefvater stiefbruder stiefschwester zwilling
        zwillingsbruder zwillingsschwester baby familie schwager schwägerin schwiegermutter schwiegervater
        schwiegereltern schwiegersohn schwiegertochter patenkind patin pate söhne töchter brüder schwestern ex
        ex-mann ex-frau exfreund exfreundin exmann exfrau
        """
    )
)
