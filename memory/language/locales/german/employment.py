"""German: phrases about employers and occupations, and about the beginning and end of work."""

from __future__ import annotations

from ..pack import Implied, PredicateRule
from .spelling import phrases, words

_POST = "{stelle,job,teilzeitjob,posten,position,anstellung,arbeit,vertrag,ausbildung,ausbildungsplatz,praktikum}"
RULES = (
    PredicateRule(
        "works_at",
        "single",
        phrases(
            f"{{arbeiten,jobben}} {{bei,für}}"
            f"|sein {{anstellen,beschäftigen,angestellt,beschäftigt,tätig}} {{bei,für}}"
            "|sein {angestellte,angestellter,mitarbeiter,mitarbeiterin} {bei,von}"
            f"|haben {_POST} {{bei,in,an}}|{{arbeitgeber,firma}} sein"
            f"|sein {{auszubildender,auszubildende,azubi}} {{bei,in}}"
        ),
    ),
    PredicateRule("works_at", "single", phrases("arbeiten {in,an,auf,beim}"), named=True),
    PredicateRule(
        "works_at",
        "single",
        phrases(
            f"{{anfangen,beginnen,einsteigen,unterkommen}} {{bei,in,an}}|anfangen arbeiten {{bei,für}}"
            f"|{{finden,bekommen,annehmen,antreten,erhalten,beginnen}} {_POST} {{bei,in,an}}"
            "|werden {einstellen,anstellen,engagieren,übernehmen} {von,bei}"
            "|unterschreiben {vertrag,arbeitsvertrag} bei"
        ),
        happened=True,
    ),
    PredicateRule(
        "works_at", "single", phrases("wechseln {zu,nach}|gehen zu|wechseln arbeitgeber zu"), happened=True, named=True
    ),
    PredicateRule(
        "works_at",
        "single",
        phrases(
            "sein {selbstständig,selbständig,freiberuflich,freiberufler,freiberuflerin}"
            "|arbeiten {selbstständig,selbständig,freiberuflich}|haben firma"
        ),
        value="self",
    ),
    PredicateRule(
        "works_at",
        "single",
        phrases("machen {selbstständig,selbständig}|gründen firma|werden {selbstständig,selbständig}"),
        value="self",
        happened=True,
    ),
    PredicateRule(
        "works_as",
        "single",
        phrases("{arbeiten,jobben} als|sein tätig als|beruf sein|sein von beruf|{sein,arbeiten} angestellt als"),
    ),
    PredicateRule(
        "works_as",
        "single",
        phrases(
            "werden {befördern,ernennen,wählen,machen} zu|aufsteigen zu|{anfangen,beginnen} als"
            f"|{{bekommen,finden,annehmen,antreten}} {_POST} als|umschulen zu|machen umschulung zu"
        ),
        happened=True,
    ),
    PredicateRule(
        "works_from",
        "single",
        phrases("arbeiten {in homeoffice,von zuhause,von zu hause,remote,aus homeoffice}"),
        value="home",
    ),
    PredicateRule("works_from", "single", phrases("arbeiten {in büro,vor ort}"), value="office"),
    PredicateRule("reports_to", "single", phrases("{vorgesetzter,vorgesetzte} {sein,heißen}|berichten an")),
)
ENDS = phrases(
    "verlassen|kündigen bei|{werden,sein} {entlassen,kündigen,feuern} {bei,von}|aufhören {bei,als}"
    f"|{{verlieren,aufgeben,kündigen,schmeißen,hinschmeißen}} {_POST} {{bei,in,an,als}}|ausscheiden {{bei,aus}}"
    "|{zurücktreten,ausscheiden} {von,als}|{abschließen,beenden,abbrechen} ausbildung {bei,in}"
    "|aufhören arbeiten {bei,für,als}"
    f"|{{verlieren,aufgeben,kündigen}} {_POST}"
)
ENDS_WORK = phrases(
    "gehen in {rente,pension,ruhestand}|sein {arbeitslos,arbeitssuchend,pensioniert,verrentet,in rente,in ruhestand}"
    "|sein {rentner,rentnerin,pensionär,pensionärin}"
    "|{werden,sein} {arbeitslos,pensionieren,entlassen,kündigen,feuern}"
    "|werden {rentner,rentnerin}|aufhören arbeiten|kündigen"
    f"|{{verlieren,aufgeben,kündigen}} {_POST}|{{haben,finden,antreten}} neu stelle"
    f"|wechseln {{arbeitgeber,stelle,job,beruf}}"
)
IMPLIED = (
    Implied("works_at", frozenset(("als",)), "works_as"),
    Implied("works_as", frozenset(("bei", "fuer")), "works_at"),
)
OCCUPATION = "works_as"
_MALE = words(
    """
    lehrer schulleiter arzt oberarzt assistenzarzt zahnarzt tierarzt pfleger krankenpfleger altenpfleger kellner koch
    bäcker metzger fleischer schreiner tischler maurer maler elektriker klempner installateur dachdecker zimmermann
    gärtner landwirt bauer förster fischer jäger friseur schneider schuster verkäufer kassierer händler kaufmann
    buchhalter steuerberater anwalt rechtsanwalt richter staatsanwalt notar polizist soldat feuerwehrmann sanitäter
    pilot kapitän busfahrer taxifahrer lokführer zugbegleiter fahrer mechaniker mechatroniker ingenieur architekt
    informatiker programmierer softwareentwickler entwickler designer grafiker fotograf journalist redakteur autor
    schriftsteller übersetzer dolmetscher musiker sänger schauspieler regisseur tänzer künstler trainer erzieher
    sozialarbeiter psychologe therapeut physiotherapeut apotheker chemiker physiker biologe mathematiker forscher
    wissenschaftler professor dozent student schüler praktikant azubi auszubildender lehrling geselle meister
    teamleiter abteilungsleiter projektleiter filialleiter leiter geschäftsführer manager direktor chef berater makler
    sekretär sachbearbeiter angestellter beamter bibliothekar kurator archivar hausmeister reinigungskraft lagerist
    imker winzer brauer barista optiker uhrmacher goldschmied hebamme krankenschwester arzthelferin stewardess
    hausfrau hausmann freiberufler unternehmer gründer pfarrer priester politiker bürgermeister diplomat referent
    schornsteinfeger
    """
)
OCCUPATIONS = frozenset(
    (
        *_MALE,
        *(f"{each}in" for each in _MALE),
        *words(
            """
            ärztin oberärztin assistenzärztin zahnärztin tierärztin köchin anwältin rechtsanwältin bäuerin kauffrau
            psychologin biologin beamtin angestellte auszubildende feuerwehrfrau therapeutin pädagogin pädagoge
            soziologe soziologin geologe geologin
            """
        ),
    )
)
OCCUPATION_ENDINGS = words(
    "leiter leiterin lehrer lehrerin arzt ärztin fahrer fahrerin entwickler entwicklerin ist istin"
)
NOT_OCCUPATIONS = frozenset(
    words(
        "rentner rentnerin vegetarier vegetarierin veganer veganerin single christ christin optimist optimistin"
        " pessimist pessimistin realist realistin muslim muslimin jude jüdin buddhist buddhistin atheist atheistin"
        " deutscher deutsche österreicher schweizer einzelkind linkshänder linkshänderin frühaufsteher langschläfer"
        " nichtraucher raucher"
    )
)
DEPARTMENTS = frozenset(
    words("vertrieb einkauf marketing personalabteilung entwicklung buchhaltung forschung logistik it")
)
