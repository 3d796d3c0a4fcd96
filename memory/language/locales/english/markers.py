"""English: markers, which are phrases that change the meaning of a statement: negations, plans and guesses, additions,
contrasts."""

from __future__ import annotations

from ..notation import phrases
from ..pack import Markers

MARKERS = Markers(
    negations=("not", "no", "hardly ever", "hardly", "scarcely"),
    never=("never",),
    endings=phrases(
        "no longer|not any more|not anymore|any more|anymore|any longer|used to|formerly|previously"
        "|not longer|be former|be a former|be an ex"
    ),
    hedges=phrases(
        "might|may|maybe|perhaps|possibly|probably|could|would like to|would like|would love to|would rather"
        "|would|will|plan to|plan on|plan|be plan to|be plan on|hope to|hope for|intend to|be go to|want to"
        "|wish to|dream of|think about|think of|be think about|be think of|consider|be consider|try to"
        "|be try to|almost|nearly|be about to|look to|be look to|apply for|apply to"
        "|have apply to|interview at|interview with|be tempt to|toy with|decide whether|be curious to|should"
        "|talk about|talk of|look into|be open to|be unsure|be not sure|promise to|aim to|expect to"
        "|be set to|be due to|ought to|need to|be prepare to|be schedule to|flirt with|if|wonder|decide to"
        "|vow to|resolve to|agree to|long to|be likely to|be suppose to|be expect to|be ready to|swear to"
        "|threaten to|pretend to|refuse to|fail to|turn down|get offer from|receive offer from"
        "|have offer from|have interview|be interview|have interview with|have interview at|wait to"
        "|be wait to|be eager to|dread|be eye|be in talk with|be in talk to|file for|feel like|be close to"
        "|fantasize about|daydream about|joke about|suggest|once thought of|be torn between|weigh up|debate"
        "|be debate|be ask to|be invite to|get invite to"
    ),
    additive=phrases(
        "also|too|as well|besides|in addition|in addition to|on top of|apart from|additionally|on the side"
    ),
    another=("another", "a second", "a third", "a further", "an additional", "one more", "an extra"),
    contrasts=phrases(
        "not|instead of|rather than|and not|after {years,many years,# years,decades,a decade,a lifetime} of"
    ),
    until=frozenset(("until", "till")),
    former=(
        ("not", "no"),
        ("until", "till"),
        ("leave", "for"),
        ("quit", "for"),
        ("increase from", "to"),
        ("decrease from", "to"),
        ("rise from", "to"),
        ("fall from", "to"),
        ("drop from", "to"),
        ("go up from", "to"),
        ("go down from", "to"),
        ("grow from", "to"),
        ("be raise from", "to"),
        ("switch from", "to"),
        ("change from", "to"),
        ("move from", "to"),
        ("move from", "into"),
        ("move out of", "into"),
        ("move out of", "to"),
        ("move on from", "to"),
        ("go from", "to"),
        ("transfer from", "to"),
        ("relocate from", "to"),
        ("replace", "with"),
        ("swap", "for"),
        ("trade", "for"),
        ("trade in", "for"),
        ("exchange", "for"),
        ("give up", "for"),
        ("upgrade from", "to"),
        ("downgrade from", "to"),
        ("convert from", "to"),
        ("transition from", "to"),
        ("swap from", "to"),
        ("pivot from", "to"),
        ("come over from", "to"),
        ("ditch", "for"),
        ("drop", "for"),
        ("dump", "for"),
        ("abandon", "for"),
        ("give up on", "for"),
        ("swap out", "for"),
        ("turn in", "for"),
        ("step down from", "to"),
        ("be promote from", "to"),
        ("get promote from", "to"),
        ("be transfer from", "to"),
    ),
    instead=phrases("now|nowadays|from now on|change {mind,my mind,their mind,his mind,her mind}"),
    changes=frozenset(("now", "nowadays", "again", "back", "new", "finally", "meanwhile", "anymore")),
    others=frozenset(("who", "whose", "which", "that", "because", "although", "when", "while", "since", "unless")),
)
CONTRACTIONS = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "n't": " not",
    "square metres": " sqm",
    "square meters": " sqm",
    "two times": " twice",
    "these days": " now",
    "after all": " actually",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "'d": " would",
    "'m": " am",
}
