"""German: stop words, words of time, numbers, synonyms, word order, and words that distinguish common nouns from
names."""

from __future__ import annotations

from ..pack import Nouns, WordOrder
from .spelling import phrases, words
from .verbs import PARTICIPLES

REFLEXIVES = frozenset(words("sich mich uns"))
DEFINITE = frozenset(words("der die das dem den des"))
_POSSESSIVES = frozenset(
    words(
        "mein meine meinen meinem meiner meines sein seine seinen seinem seiner seines ihr ihre ihren ihrem ihrer ihres"
        " unser unsere unseren unserem unserer dessen deren"
    )
)
INDEFINITE = frozenset(words("ein eine einen einem einer eines"))
_DENYING = frozenset(words("kein keine keinen keinem keiner keines"))
_QUANTIFIERS = frozenset(
    words(
        "jeden jede jedes jeder alle viele wenige einige mehrere manche manchen beide beiden viel wenig etwas"
        " dieser diese dieses diesen diesem"
    )
)
ADVERBS = frozenset(
    words(
        """
        sehr ganz nur gerade jetzt nun heute derzeit zurzeit momentan aktuell inzwischen mittlerweile kürzlich neulich
        schon bereits noch immer wieder oft häufig meist meistens gewöhnlich normalerweise täglich endlich schließlich
        gern gerne sogar doch eben halt ja eigentlich seitdem da dort hier dann danach dabei dauerhaft endgültig
        offiziell leider glücklicherweise völlig komplett letztlich glücklich frisch neuerdings regelmäßig
        hauptberuflich
        wirklich tatsächlich bisher weiterhin damals zuletzt soeben erneut zusammen selbst selber lange
        """
    )
) - {"zusammen"}
STOP_WORDS = (
    ADVERBS
    | DEFINITE
    | INDEFINITE
    | _POSSESSIVES
    | REFLEXIVES
    | frozenset(
        words(
            """
            er sie es ich wir man ihm ihn ihr nutzer nutzerin user person in im an am auf bei mit nach von zu zum zur
            aus für über unter vor seit um ist sind war waren hat haben hatte und oder so als dass der namens
            genannt neu neue neuen neuer neues neuem
            alt alte alten alter altes altem eigene eigenen jede jeden jedes jeder beruf
            uhr
            """
        )
    )
)
STOP_WORDS = STOP_WORDS - {"alt"}
SEPARATORS = frozenset(
    words(
        """
        in an auf bei mit nach von zu aus für über unter vor seit um als und oder bis durch gegen ohne zwischen neben
        hinter wegen während ab namens nahe statt außer per pro je am im jeden jede jedes
        """
    )
)
WEAK_NOUNS = frozenset(("beruf", "person"))
RECURRING = frozenset(
    words(
        "montags dienstags mittwochs donnerstags freitags samstags sonntags wochenenden morgens abends mittags"
        " nachmittags vormittags nachts"
    )
)
DAYPARTS = frozenset(words("nacht abend mittag wochenende"))
TIMES = frozenset(
    words(
        """
        januar februar märz april mai juni juli august september oktober november dezember montag dienstag mittwoch
        donnerstag freitag samstag sonntag montags dienstags mittwochs donnerstags freitags samstags sonntags
        frühling frühjahr sommer herbst winter wochenende wochenenden gestern heute morgen übermorgen vorgestern früher
        morgens abends mittags nachmittags vormittags nachts abend nacht mittag tag tage tagen woche wochen monat monate
        monaten jahr jahren kurzem längerem langem nächste nächsten nächstes nächster nächstem letzte letzten letztes
        letzter letztem kommende kommenden kommendes vergangenen vergangenes bald demnächst kindheit jugend
        """
    )
)
_UNITS = words("null ein zwei drei vier fünf sechs sieben acht neun")
_TEENS = words("zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn")
_TENS = words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_ORDINALS = words("erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft")
NUMBERS = {
    "null": "0",
    "eins": "1",
    **{word: str(number) for number, word in enumerate(_UNITS) if number > 1},
    **{word: str(number) for number, word in enumerate(_TEENS, start=10)},
    **{word: str(10 * number) for number, word in enumerate(_TENS, start=2)},
    **{
        f"{unit}und{ten}": str(10 * number + place)
        for number, ten in enumerate(_TENS, start=2)
        for place, unit in enumerate(_UNITS)
        if place
    },
    **{
        f"{word}{ending}": str(number)
        for number, word in enumerate(_ORDINALS, start=1)
        for ending in ("e", "en", "er", "es", "em")
    },
    "hundert": "100",
    "einmal": "1",
    "zweimal": "2",
    "dreimal": "3",
    "dutzend": "12",
}
MULTIPLES = {"tausend": 1_000, "k": 1_000, "million": 1_000_000, "millionen": 1_000_000}
SAME_WORDS = {
    **dict.fromkeys(words("kilometer kilometern km"), "km"),
    **dict.fromkeys(words("meter metern m"), "m"),
    **dict.fromkeys(words("zentimeter cm"), "cm"),
    **dict.fromkeys(words("kilo kilos kilogramm kg"), "kg"),
    **dict.fromkeys(words("euro euros eur €"), "eur"),
    **dict.fromkeys(words("prozent %"), "%"),
    **dict.fromkeys(words("stunde stunden std h"), "h"),
    **dict.fromkeys(words("minute minuten min"), "min"),
    **dict.fromkeys(words("jahr jahre jahren"), "jahr"),
    **dict.fromkeys(words("mama mami mutti mutter mütter"), "mutter"),
    **dict.fromkeys(words("papa papi vati vater väter"), "vater"),
    **dict.fromkeys(words("opa großvater"), "grossvater"),
    **dict.fromkeys(words("oma großmutter"), "grossmutter"),
    **dict.fromkeys(words("fahrrad rad fahrräder räder velo"), "fahrrad"),
    **dict.fromkeys(words("auto autos wagen pkw"), "auto"),
    **dict.fromkeys(words("handy smartphone"), "handy"),
    **dict.fromkeys(words("kind kinder kindern"), "kind"),
    **dict.fromkeys(words("frau ehefrau gattin"), "frau"),
    **dict.fromkeys(words("mann ehemann gatte"), "mann"),
    **dict.fromkeys(words("bus busse bussen"), "bus"),
    **dict.fromkeys(words("uni universität hochschule"), "uni"),
    **dict.fromkeys(words("fitnessstudio fitnessstudios"), "fitnessstudio"),
    **dict.fromkeys(words("chefin chef vorgesetzte vorgesetzter"), "chef"),
    **dict.fromkeys(words("veganer veganerin vegan vegane veganes"), "vegan"),
    **dict.fromkeys(words("vegetarier vegetarierin vegetarisch vegetarische"), "vegetarisch"),
    **dict.fromkeys(words("job stelle arbeitsplatz arbeitsstelle"), "stelle"),
    **dict.fromkeys(words("laktose lactose"), "laktose"),
    "name": "name",
}
SUFFIXES = (
    ("innen", "er"),
    ("erin", "er"),
    ("ern", ""),
    ("en", ""),
    ("em", ""),
    ("es", ""),
    ("er", ""),
    ("e", ""),
    ("n", ""),
    ("s", ""),
)
STEM_LETTERS = {"ae": "a", "oe": "o", "ue": "u"}
AGENTS = ("er", "in", "erin", "ler", "ung", "ei")
ALIASES = {
    short: long
    for low, long in (
        ("im", "in dem"),
        ("am", "an dem"),
        ("beim", "bei dem"),
        ("zum", "zu dem"),
        ("zur", "zu der"),
        ("ins", "in das"),
        ("ans", "an das"),
        ("vom", "von dem"),
        ("aufs", "auf das"),
        ("fürs", "fuer das"),
    )
    for short in (low.replace("ü", "ue"), low.capitalize().replace("ü", "ue"))
}
NAME_MAKERS = frozenset(words("bad sankt st san santa new los las neu dr frau herr"))
REASONS = frozenset(words("nach wegen aufgrund während weil da trotz dank"))
BECOMES = phrases(
    "werden {verschieben,verlegen,ändern,erhöhen,senken,umstellen,setzen} auf|{steigen,sinken,fallen} auf"
    "|{verschieben,ändern} auf|wechseln {zu,auf}"
)
SETS = tuple((verb, "auf") for verb in words("ändern setzen verschieben verlegen umstellen erhöhen senken"))
WORD_ORDER = WordOrder(
    particles=frozenset(
        words(
            "ab an auf aus bei ein fort frei her hin kennen los mit nach statt teil um vor weg weiter zu zurück"
            " zusammen fern groß durch fest unter"
        )
    ),
    infinitive_mark="zu",
    perfect=frozenset(("haben", "sein")),
    perfect_of_change=frozenset(("sein",)),
    changing=frozenset(
        words(
            """
            sein werden gehen kommen ziehen fahren laufen fliegen schwimmen reiten steigen bleiben sterben versterben
            wachsen fallen umziehen einziehen ausziehen wegziehen hinziehen zurückziehen zusammenziehen fortziehen
            herziehen aufwachsen austreten eintreten zurücktreten beitreten auswandern einwandern umsiedeln übersiedeln
            aussteigen umsteigen einsteigen aufsteigen aufstehen einschlafen zurückkehren zurückkommen zurückgehen
            herkommen weggehen hingehen reisen wandern joggen klettern emigrieren immigrieren flüchten wechseln
            zurückfahren zusammenkommen genesen verheilen heilen erkranken ausgehen loswerden ausreisen radeln segeln
            rudern tauchen surfen unterkommen auftauchen
            """
        )
    ),
    passive=frozenset(("werden",)),
    modals=frozenset(words("können wollen müssen sollen dürfen mögen möchten würden könnten sollten gehen lassen")),
    participles=PARTICIPLES,
    fillers=DEFINITE | REFLEXIVES,
    time_prepositions=frozenset(words("seit ab vor in an nach während bis von jeden jede jedes")),
    after_negation=frozenset(words("mehr wieder länger")),
    relative=DEFINITE,
    present_announces=True,
)
NOUNS = Nouns(
    known=frozenset(
        words(
            """
            hund katze pferd vogel hamster kaninchen meerschweinchen papagei fisch schildkröte huhn ziege schaf biene
            tier haustier auto motorrad roller fahrrad rennrad boot hausboot haus wohnung zimmer garten balkon computer
            laptop handy tablet fernseher klavier gitarre geige cello flöte trompete schlagzeug orgel harfe saxophon
            bass trommel kaffee tee wasser milch saft bier wein schnaps alkohol sekt whisky limonade cola kakao
            fleisch wurst schinken fisch lachs käse brot butter ei eier obst gemüse apfel birne banane erdbeere kirsche
            orange zitrone tomate gurke zwiebel knoblauch kartoffel nudel nudeln reis pizza pasta suppe salat kuchen
            torte schokolade eis zucker salz honig marmelade nuss mandel erdnuss haselnuss olive sardelle pilz spinat
            brokkoli bohne linse soja weizen gluten laktose pollen staub milbe penizillin latex jazz blues rock pop
            musik klassik oper theater kino film serie roman krimi gedicht buch zeitung comic tennis tischtennis fußball
            handball basketball volleyball golf schach yoga sport ski hockey eishockey judo karate boxen tanz poker
            baby kind sohn tochter bruder schwester mutter vater eltern mann frau freund freundin partner partnerin
            chef chefin kollege kollegin nachbar nachbarin onkel tante neffe nichte cousin cousine enkel oma opa
            diabetes asthma migräne heuschnupfen krebs rheuma grippe depression allergie fieber rücken knie bein arm
            kopf herz zahn auge blutdruck homeoffice büro teilzeit vollzeit schicht rente urlaub elternzeit ruhestand
            stelle job arbeit beruf firma unternehmen betrieb schule universität uni studium ausbildung lehre kurs
            verein
            chor band orchester team mannschaft gruppe partei kirche stadt dorf land küste berg meer wald wg
            wohngemeinschaft stock etage miete schuhgröße blutgruppe lieblingsfarbe lieblingsessen größe gewicht alter
            name nachname vorname geburtstag passwort nummer termin projekt ziel plan hobby interesse sprache
            muttersprache geld gehalt lohn konto vertrag abo abonnement mitgliedschaft führerschein zigarette zigaretten
            pfeife schachtel kilo kilometer meter zentimeter euro jahr monat woche tag stunde minute uhr abend morgen
            nacht mittag januar februar märz april mai juni juli august september oktober november dezember montag
            dienstag mittwoch donnerstag freitag samstag sonntag frühling frühjahr sommer herbst winter geschwister
            zwilling zwillinge familie mensch leute person single kontakt schluss verlobung hochzeit ehe beziehung
            medizin jura physik chemie biologie mathematik informatik geschichte philosophie kunst psychologie
            briefmarke münze stempel puppe modell socke brille fleck fitnessstudio studio umzug beginn ende grundschule
            gymnasium kita kindergarten krankenhaus klinik praxis bank post bahn bäckerei
            astronomie programmieren vegetarier vegetarierin veganer veganerin nichtraucher nichtraucherin raucher
            """
        )
    ),
    endings=words("ung heit keit schaft ismus tion tät"),
    determiners=INDEFINITE | _POSSESSIVES | _DENYING | _QUANTIFIERS,
    articles=DEFINITE,
    heads=frozenset(
        words(
            """
            allergie unverträglichkeit intoleranz angst phobie job abo abonnement kurs mitgliedschaft schein vertrag
            spielen lernen laufen fahren reiten singen tanzen trinken essen
            """
        )
    ),
    before_places=frozenset(("in", "nach", "aus")),
    links=("e", "en", "n", "s", "es"),
)
