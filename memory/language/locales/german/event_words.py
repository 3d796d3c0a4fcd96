"""German words of the events of somebody's life, by which a question names a time: bevor ich umgezogen bin."""

from __future__ import annotations

from ..notation import words
from ..pack import EventWord, EventWords

_WORK = frozenset(("employer", "job"))
_HOME = frozenset(("residence", "address"))
_PARTNER = frozenset(("spouse", "marital_status"))
_BEGIN_HOME, _BEGIN_WORK = EventWord(_HOME), EventWord(_WORK)
_MARRY, _PART = EventWord(_PARTNER), EventWord(_PARTNER, "end")
_END = EventWord(_WORK | _HOME | _PARTNER | frozenset(("education", "membership", "project")), "end")
_ANY_BEGIN, _ANY_END = EventWord(frozenset()), EventWord(frozenset(), "end")
_END_WORK, _STOP = EventWord(_WORK, "end"), EventWord(frozenset(("habit", "hobby", "membership", "job")), "end")
_PARENT, _PET = EventWord(frozenset(("child",))), EventWord(frozenset(("pet",)))
_LEARN, _DIET = EventWord(frozenset(("education", "language", "skill"))), EventWord(frozenset(("diet",)))

EVENT_WORDS = EventWords(
    relations={
        **dict.fromkeys(words("bevor ehe vor"), "before"),
        **dict.fromkeys(words("nachdem nach"), "after"),
        **dict.fromkeys(words("seit seitdem"), "since"),
        "bis": "until",
    },
    between=frozenset(("zu",)),
    of_clauses=frozenset(words("ich wir mein meine unser unsere")),
    of_nouns=frozenset(words("meinem meinen meiner meines unserem unseren unserer unseres")),
    articles=frozenset(words("der dem den des zum zur")),
    bare=frozenset(words("beginn anfang ende abschluss")),
    about=frozenset(words("nach von vom bei beim aus zu zum zur an am als in ins des der")),
    words={
        **dict.fromkeys(
            words("umgezogen umzog umziehen umzug gezogen zog wohne wohnte wohnen lebe lebte"), _BEGIN_HOME
        ),
        **dict.fromkeys(words("angefangen eingestellt befördert beförderung arbeite arbeitete"), _BEGIN_WORK),
        **dict.fromkeys(words("job arbeit stelle beruf"), EventWord(_WORK, None)),
        **dict.fromkeys(words("geheiratet heiratete heirateten verheiratet hochzeit heirat"), _MARRY),
        **dict.fromkeys(words("geschieden scheidung getrennt trennung"), _PART),
        **dict.fromkeys(words("verlassen verließ weggegangen"), _END),
        **dict.fromkeys(words("fertig beendet beendete beendeten beendigung ende"), _ANY_END),
        **dict.fromkeys(words("beginn beginns anfang start wechsel"), _ANY_BEGIN),
        **dict.fromkeys(words("gekündigt kündigte kündigung entlassen rente ruhestand"), _END_WORK),
        **dict.fromkeys(words("aufgehört aufhörte"), _STOP),
        **dict.fromkeys(words("abgeschlossen abschloss abschluss"), EventWord(frozenset(("education",)), "end")),
        **dict.fromkeys(words("baby geburt geboren"), _PARENT),
        **dict.fromkeys(words("adoptiert"), _PET),
        **dict.fromkeys(words("gelernt lernte studiert studierte studium studiums studien"), _LEARN),
        **dict.fromkeys(words("vegetarier vegetarierin vegetarisch veganer veganerin vegan"), _DIET),
    },
    light=frozenset(
        words(
            """
            bin bist ist sind war waren habe hast haben hat hatte hatten wurde wurden worden geworden gewesen bekam
            bekamen bekommen kam kamen ging gingen begonnen begann
            """
        )
    ),
    ends_at=frozenset(words("was welche welcher welches welchen wer wen wem wo wohin woher wann warum wie womit")),
)
