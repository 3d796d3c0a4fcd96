"""German: verbs and their forms.

In the lists, a bar marks the separable first part of a verb. The verb `auf|hören` has forms such as `hört … auf`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .spelling import spelled

_WEAK = """
wohnen leben arbeiten heiraten rauchen spielen lernen studieren kaufen verkaufen kündigen wechseln machen sagen hören
lieben hassen mögen brauchen benutzen nutzen verwenden besuchen sammeln kochen backen tanzen malen zeichnen joggen
wandern reisen schwärmen interessieren engagieren trainieren züchten basteln stricken häkeln gärtnern angeln jagen
surfen tauchen klettern turnen pendeln verdienen kosten wiegen zählen dauern gehören besitzen führen leiten
unterrichten lehren betreuen pflegen verwalten gründen eröffnen schließen beenden abonnieren kündigen löschen
deaktivieren installieren bestellen bezahlen mieten vermieten renovieren bauen reparieren verschenken entsorgen
adoptieren verlieren verzichten hungern fasten ernähren vertragen hoffen planen überlegen wünschen träumen versuchen
erwägen beabsichtigen vorhaben glauben meinen denken fürchten hassen meiden jobben kellnern promovieren habilitieren
absolvieren pensionieren emeritieren emigrieren immigrieren trennen verloben versöhnen scheiden verabreden daten
flirten küssen streiten erwarten gebären feiern begraben beerdigen verstorben kämpfen leiden erkranken heilen
verheilen operieren impfen überwinden besiegen genesen erholen programmieren entwickeln schreiben designen
fotografieren filmen musizieren singen proben üben meditieren beten fluchen schnarchen schlummern frühstücken
grillen naschen vapen dampfen zocken wetten spenden helfen ändern tauschen ersetzen verschieben verlegen erhöhen
senken steigern befördern ernennen versetzen entlassen feuern einstellen beschäftigen engagieren wählen beantragen
bewerben beitragen unterstützen folgen liefern fahren parken radeln rudern segeln reiten skaten boxen ringen fechten
schauen gucken zeigen erzählen reden plaudern telefonieren mailen chatten twittern bloggen streamen podcasten
besichtigen buchen übernachten zelten campen übersiedeln flüchten siedeln verbringen jobben dienen schulden
beziehen bewohnen teilen hausen residieren logieren nennen taufen betragen regieren beraten behandeln bemühen
studieren immatrikulieren exmatrikulieren wollen
um|siedeln auf|hören ab|schaffen ab|legen ab|bestellen ab|melden an|melden aus|wandern ein|wandern zurück|kehren
um|schulen auf|tauchen ein|stellen aus|üben ab|gewöhnen an|schaffen zu|legen ein|kaufen um|bauen an|fangen
zusammen|leben zusammen|wohnen zusammen|arbeiten mit|machen weg|ziehen ein|schulen ab|lehnen aus|reisen zurück|legen
kennen|lernen teil|haben ein|schläfern
um|benennen um|stellen ab|setzen aus|füllen weiter|bilden weiter|arbeiten weiter|machen
auf|wachen ein|richten vor|stellen aus|lernen ab|holen an|stellen um|schauen um|sehen fest|legen durch|führen
"""
_STRONG = """
sein ist war gewesen, haben hat hatte gehabt, werden wird wurde geworden, können kann konnte gekonnt
wollen will wollte gewollt, müssen muss musste gemusst, sollen soll sollte gesollt, dürfen darf durfte gedurft
mögen mag mochte gemocht, möchten möchte möchte gemöchtet, würden würde würde gewürdet, könnten könnte könnte gekönntet
sollten sollte sollte gesolltet, hätten hätte hätte gehättet, wären wäre wäre gewärt
gehen geht ging gegangen, kommen kommt kam gekommen, ziehen zieht zog gezogen, fahren fährt fuhr gefahren
laufen läuft lief gelaufen, fliegen fliegt flog geflogen, schwimmen schwimmt schwamm geschwommen
reiten reitet ritt geritten, steigen steigt stieg gestiegen, bleiben bleibt blieb geblieben
sterben stirbt starb gestorben, wachsen wächst wuchs gewachsen, fallen fällt fiel gefallen
stehen steht stand gestanden, sitzen sitzt saß gesessen, liegen liegt lag gelegen, heißen heißt hieß geheißen
essen isst aß gegessen, trinken trinkt trank getrunken, lesen liest las gelesen, schreiben schreibt schrieb geschrieben
sprechen spricht sprach gesprochen, sehen sieht sah gesehen, singen singt sang gesungen, treffen trifft traf getroffen
geben gibt gab gegeben, nehmen nimmt nahm genommen, lassen lässt ließ gelassen, verlassen verlässt verließ verlassen
verlieren verliert verlor verloren, beginnen beginnt begann begonnen, finden findet fand gefunden
bekommen bekommt bekam bekommen, erhalten erhält erhielt erhalten, behalten behält behielt behalten
halten hält hielt gehalten, tragen trägt trug getragen, vertragen verträgt vertrug vertragen
besitzen besitzt besaß besessen, verbringen verbringt verbrachte verbracht, bringen bringt brachte gebracht
denken denkt dachte gedacht, kennen kennt kannte gekannt, nennen nennt nannte genannt, wissen weiß wusste gewusst
helfen hilft half geholfen, werfen wirft warf geworfen, wiegen wiegt wog gewogen, leiden leidet litt gelitten
entlassen entlässt entließ entlassen, verschieben verschiebt verschob verschoben, brechen bricht brach gebrochen
schlafen schläft schlief geschlafen, waschen wäscht wusch gewaschen, backen backt backte gebacken
betreiben betreibt betrieb betrieben, unterschreiben unterschreibt unterschrieb unterschrieben
erziehen erzieht erzog erzogen, beziehen bezieht bezog bezogen, betragen beträgt betrug betragen
meiden meidet mied gemieden, vermeiden vermeidet vermied vermieden, verstehen versteht verstand verstanden
überwinden überwindet überwand überwunden, bewerben bewirbt bewarb beworben, beraten berät beriet beraten
scheiden scheidet schied geschieden, reißen reißt riss gerissen, schließen schließt schloss geschlossen
gewinnen gewinnt gewann gewonnen, tun tut tat getan, rufen ruft rief gerufen, raten rät riet geraten
ver|leihen verleiht verlieh verliehen, leihen leiht lieh geliehen, stehlen stiehlt stahl gestohlen
ringen ringt rang gerungen, fechten ficht focht gefochten, versterben verstirbt verstarb verstorben
gebären gebiert gebar geboren, werben wirbt warb geworben, begraben begräbt begrub begraben
um|ziehen zieht zog gezogen, ein|ziehen zieht zog gezogen, aus|ziehen zieht zog gezogen, weg|ziehen zieht zog gezogen
hin|ziehen zieht zog gezogen, zurück|ziehen zieht zog gezogen, zusammen|ziehen zieht zog gezogen
groß|ziehen zieht zog gezogen, her|ziehen zieht zog gezogen, fort|ziehen zieht zog gezogen
auf|wachsen wächst wuchs gewachsen, auf|geben gibt gab gegeben, ab|geben gibt gab gegeben, aus|geben gibt gab gegeben
an|fangen fängt fing gefangen, an|nehmen nimmt nahm genommen, ab|nehmen nimmt nahm genommen
zu|nehmen nimmt nahm genommen, teil|nehmen nimmt nahm genommen, auf|nehmen nimmt nahm genommen
aus|treten tritt trat getreten, ein|treten tritt trat getreten, zurück|treten tritt trat getreten
bei|treten tritt trat getreten, an|treten tritt trat getreten, treten tritt trat getreten
auf|treten tritt trat getreten, schmeißen schmeißt schmiss geschmissen, hin|schmeißen schmeißt schmiss geschmissen
ab|brechen bricht brach gebrochen, aus|steigen steigt stieg gestiegen, um|steigen steigt stieg gestiegen
ein|steigen steigt stieg gestiegen, auf|steigen steigt stieg gestiegen, ab|schließen schließt schloss geschlossen
auf|stehen steht stand gestanden, ein|schlafen schläft schlief geschlafen, nach|denken denkt dachte gedacht
vor|haben hat hatte gehabt, weg|geben gibt gab gegeben, her|kommen kommt kam gekommen
zurück|kommen kommt kam gekommen, zurück|gehen geht ging gegangen, aus|gehen geht ging gegangen
weg|gehen geht ging gegangen, hin|gehen geht ging gegangen, fern|sehen sieht sah gesehen, an|sehen sieht sah gesehen
los|werden wird wurde geworden, frei|nehmen nimmt nahm genommen, statt|finden findet fand gefunden
zusammen|kommen kommt kam gekommen, auf|schlagen schlägt schlug geschlagen, ab|sagen sagt sagte gesagt
aus|schlafen schläft schlief geschlafen, zurück|fahren fährt fuhr gefahren, unter|kommen kommt kam gekommen
"""
_WITHOUT_GE = ("be", "ver", "er", "ent", "zer", "ge", "miss", "über", "unter")
_NEEDS_E = ("t", "d", "chn", "ffn", "tm", "gn")
_HYPOTHETICAL = ("möchten", "würden", "könnten", "sollten", "hätten", "wären")


def _weak(verb: str) -> tuple[str, str, str]:
    """Return the present form, the past form and the participle of a regular verb. The verb has no separable part."""
    stem = verb.removesuffix("n").removesuffix("e") if verb.endswith("en") else verb.removesuffix("n")
    extra = "e" if stem.endswith(_NEEDS_E) else ""
    bare = verb.startswith(_WITHOUT_GE) or verb.endswith("ieren")
    return f"{stem}{extra}t", f"{stem}{extra}te", f"{'' if bare else 'ge'}{stem}{extra}t"


def _forms() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield for each verb: the separable part, the verb without that part, its present form, past form and
    participle."""
    strong = [line.split() for line in _STRONG.replace("\n", ",").split(",") if line.strip()]
    irregular = {verb for verb, *_ in strong}
    for verb in dict.fromkeys(_WEAK.split()):
        if verb not in irregular:
            part, _, rest = verb.rpartition("|")
            yield (part, rest, *_weak(rest))
    for verb, present, past, participle in strong:
        part, _, rest = verb.rpartition("|")
        yield part, rest, present, past, participle


def _first_person(verb: str) -> str:
    return verb.removesuffix("n") if verb.endswith("en") else verb


def _all() -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    participles: dict[str, str] = {}
    for part, rest, present, past, participle in _forms():
        base = part + rest
        participles[part + participle] = base
        found.setdefault(part + participle, (base, "participle"))
        found[base] = (base, "base")
        if part:
            found[f"{part}zu{rest}"] = (base, "ongoing")
            continue
        found[present] = (base, "present")
        found.setdefault(_first_person(rest), (base, "present"))
        if rest not in _HYPOTHETICAL:
            found[past] = (base, "past")
            found.setdefault(past + ("n" if past.endswith("e") else "en"), (base, "past"))
    found |= {"sind": ("sein", "present"), "waren": ("sein", "past"), "bin": ("sein", "present")}
    found |= {"habe": ("haben", "present"), "hatten": ("haben", "past"), "wurden": ("werden", "past")}
    found |= {"worden": ("werden", "participle")}
    participles["worden"] = "werden"
    return found, participles


_VERBS, _PARTICIPLES = _all()
VERBS: Mapping[str, tuple[str, str]] = {spelled(form): (spelled(base), tense) for form, (base, tense) in _VERBS.items()}
PARTICIPLES: Mapping[str, str] = {spelled(form): spelled(base) for form, base in _PARTICIPLES.items()}
