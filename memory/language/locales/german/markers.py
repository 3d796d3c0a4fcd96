"""German: markers, which are phrases that change the meaning of a statement: negations, plans and guesses, additions,
contrasts."""

from __future__ import annotations

from ..pack import Markers
from .spelling import phrases, words

_NO = "{kein,keine,keinen,keinem,keiner,keines}"
MARKERS = Markers(
    negations=("nicht", *words("kein keine keinen keinem keiner keines kaum selten weder")),
    never=words("nie niemals"),
    endings=phrases(
        f"nicht mehr|nicht länger|{_NO} mehr|nie mehr|nie wieder|nicht wieder|früher|ehemals|vormals|damals|einst"
        "|{ehemalig,ehemalige,ehemaliger,ehemaligen,ehemaliges,früherer,frühere,früheren}"
    ),
    hedges=phrases(
        "vielleicht|eventuell|möglicherweise|wahrscheinlich|vermutlich|womöglich|wohl|hoffentlich|fast|beinahe"
        "|wollen|möchten|würden|könnten|sollten|hätten|wären|sollen|planen|vorhaben|überlegen|erwägen|beabsichtigen"
        "|hoffen|träumen|träumen davon|träumen von|denken über|nachdenken|nachdenken darüber|nachdenken über"
        "|denken daran|versuchen|wünschen|liebäugeln mit|spielen mit gedanken|bewerben|bewerben bei|sich bewerben"
        "|haben plan|haben vorstellungsgespräch|vorstellungsgespräch haben|suchen|haben bewerbung|falls|wenn"
        "|haben absicht|haben lust|glauben|sein kurz davor|kurz davor|haben angebot|ablehnen|weigern"
    ),
    additive=phrases(
        "auch|außerdem|zusätzlich|nebenbei|daneben|ebenfalls|ebenso|zudem|obendrein|darüber hinaus|nebenher"
        "|noch ein|noch eine|noch einen|weitere|weiteren|weiterer|weiteres|neben"
    ),
    contrasts=("nicht", "statt", "anstatt", "und nicht"),
    instead=phrases("jetzt|nun|inzwischen|mittlerweile|von nun an|{es,ich,sich} anders ueberlegen"),
    until=frozenset(("bis",)),
    former=tuple(
        (before, after)
        for before, after in (
            ("wechseln von", "zu"),
            ("umziehen von", "nach"),
            ("ziehen von", "nach"),
            ("umsteigen von", "auf"),
            ("wechseln von", "nach"),
            ("tauschen", "gegen"),
            ("ersetzen", "durch"),
            ("steigen von", "auf"),
            ("sinken von", "auf"),
            ("eintauschen", "gegen"),
            ("erhoehen von", "auf"),
            ("senken von", "auf"),
            ("verlassen", "fuer"),
            ("aufgeben", "fuer"),
        )
    ),
    others=frozenset(
        words(
            "dass weil obwohl wenn während damit sodass nachdem bevor sobald welche welcher welches deren dessen ob wo"
        )
    ),
)
CONTRACTIONS = {"nicht nur": "auch", "sondern auch": "auch"}
