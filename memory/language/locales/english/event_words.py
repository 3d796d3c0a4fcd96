"""English words of the events of somebody's life, by which a question names a time: before I moved."""

from __future__ import annotations

from ..notation import words
from ..pack import EventWord, EventWords

_WORK = frozenset(("employer", "job"))
_HOME = frozenset(("residence", "address"))
_PARTNER = frozenset(("spouse", "marital_status"))
_BEGIN_HOME, _BEGIN_WORK = EventWord(_HOME), EventWord(_WORK)
_MARRY, _PART = EventWord(_PARTNER), EventWord(_PARTNER, "end")
_END = EventWord(_WORK | _HOME | _PARTNER | frozenset(("education", "membership", "project")), "end")
_ANY_END = EventWord(frozenset(), "end")
_END_WORK, _STOP = EventWord(_WORK, "end"), EventWord(frozenset(("habit", "hobby", "membership", "job")), "end")
_PARENT, _PET = EventWord(frozenset(("child",))), EventWord(frozenset(("pet",)))
_LEARN, _DIET = EventWord(frozenset(("education", "language", "skill"))), EventWord(frozenset(("diet",)))

EVENT_WORDS = EventWords(
    relations={"since": "since", "until": "until", "till": "until", "before": "before", "after": "after"},
    of_clauses=frozenset(("i", "we", "my", "our")),
    of_nouns=frozenset(("my", "our")),
    articles=frozenset(("the",)),
    bare=frozenset(
        words(
            """
            moving relocating joining leaving finishing completing graduating graduation resigning retiring retirement
            quitting marrying getting adopting
            """
        )
    ),
    about=frozenset(("to", "into", "from", "at", "of", "as")),
    words={
        **dict.fromkeys(words("moved move moving relocated relocating relocation live lived living"), _BEGIN_HOME),
        **dict.fromkeys(words("joined joining hired promotion promoted work worked working"), _BEGIN_WORK),
        **dict.fromkeys(words("job career"), EventWord(_WORK, None)),
        **dict.fromkeys(words("married marrying marriage wedding"), _MARRY),
        **dict.fromkeys(words("divorced divorce separated separation"), _PART),
        **dict.fromkeys(words("left leave leaving"), _END),
        **dict.fromkeys(words("finished finish finishing completed complete completing end ended"), _ANY_END),
        **dict.fromkeys(words("resigned resigning retired retiring retirement fired quit quitting"), _END_WORK),
        **dict.fromkeys(words("stopped"), _STOP),
        **dict.fromkeys(words("graduated graduating graduation"), EventWord(frozenset(("education",)), "end")),
        **dict.fromkeys(words("baby birth"), _PARENT),
        **dict.fromkeys(words("adopted adopting"), _PET),
        **dict.fromkeys(words("learned learnt studied study studies"), _LEARN),
        **dict.fromkeys(words("vegetarian vegan"), _DIET),
    },
    light=frozenset(
        words(
            """
            got get getting had have having has was were is are did do does became become started start began begin came
            went can could should will would new first second third big
            """
        )
    ),
    ends_at=frozenset(words("what which who whom whose where when why how")),
)
