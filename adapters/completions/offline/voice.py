"""Separation of the speaker's own words from the words of a game, a story, a text to work on or another person.

Only the speaker's own words teach. A game or a story goes on in the next messages until the speaker leaves it.
"""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

MAX_LOOK: Final = 16_384
"""Maximum code points of a message that are read. A longer message is a pasted document."""


class Silence(Enum):
    """The reason why a message teaches nothing, in at most three words."""

    QUESTION = "question"
    QUOTED = "quoted"
    MADE_UP = "made up"
    REPORTED = "another person's words"
    UNCERTAIN = "plan or guess"
    UNKNOWN = "not understood"


_POLITE: Final = (
    r"(?:(?:please|pls|plz|now|then|just|and|ok|okay|so|hey|hi|quick|kindly|can (?:you|u)|could (?:you|u)|would (?:you|u)|will you|help me"
    r"|let us|let's|lets|i (?:want|need|would like)(?: you)? to|i'd like(?: you)? to|(?:do|maybe) you)[ ,:]+){0,5}"
)
"""At most five, because a search tries them at each place of a text."""
_FICTION: Final = (
    r"(?:story|tale|novel|novella|chapter|poem|poetry|limerick|haiku|sonnet|ballad|song|lyrics|verse|rap|scene|script|screenplay|dialogue|monologue"
    r"|sketch|skit|fairy ?tale|fan ?fic(?:tion)?|diary entry|joke|riddle|play|fable|legend|myth)"
)
_STARTS: Final = re.compile(
    rf"(?:^|[.!?:;,–—-]\s*){_POLITE}(?:write|tell|continue|compose|invent|make up|start|begin|finish|draft|do|try|create|improvise)"
    rf"(?: me| us)?\b[^.!?\n]{{0,60}}\b{_FICTION}s?\b"
    r"|\brole-?\s?play\w*|\b(?:d&d|dnd|rpg|larp|improv|text adventure|in character|fan ?fic(?:tion)?)\b|\bdungeons (?:and|&|n) dragons\b"
    r"|\bpretend(?:ing)? (?:to be|that|you|i|we|like|this)\b|\blet(?:'s| us|s)? (?:play|pretend|act|improvise|imagine)\b(?! (?:chess|cards|football|tennis|golf|it safe))"
    r"|\b(?:practi[sc]e|mock|rehearse|simulate|act out|run through)\b[^.!?\n]{0,30}\b(?:interview|dialogue?|conversation|phone call|date|speech|scene|pitch|exam)\b"
    r"|\b(?:you be|you play|you'll be|you will be|act as|you act|you are|you're|ur|u r|be) (?:the|my|an?) [\w -]{2,40}?(?:,| and|;|\.)+ (?:and )?(?:i|i'm|im|i'll|ill)\b"
    r"|\b(?:act|answer|talk|speak|respond) (?:as|like) (?:if|though|an?|the)\b|\bas if i (?:was|were|am|had|have|did|lived|worked)\b|\bmy (?:character|persona|oc|alter ego)\b"
    r"|\bin (?:the )?(?:first|third) person\b|\bonce upon a time\b|\bchapter (?:\d|one|two|three)\b"
    r"|\bfrom (?:(?:his|her|its|their|the|my) )?(?:[\w']+ ){0,3}(?:view|viewpoint|perspective|point of view|pov)\b|\b(?:his|her|its|their) (?:view|perspective|pov):"
    r"|\bimagine (?:that |this|you|we|i|a )",
    re.IGNORECASE,
)
_LEAVES: Final = re.compile(
    r"\b(?:out of character|ooc|back (?:to|in|on) (?:reality|real life|earth|the real world|normal)|(?:jokes?|kidding|games?|fun|fiction|story) (?:aside|over)"
    r"|in (?:truth|reality|real life|actual life)|irl|for real now|seriously(?: though| now)?|no,? seriously|the real me|end (?:of )?(?:the )?(?:scene|game|story|role-?play)"
    r"|(?:ok(?:ay)?,? |yes,? |let's |lets |please )?stop(?: here| now| there| it| the \w+)?(?= |[.,!]|$)|my (?:actual|real|own|true)\b|i(?:'m| am|m) (?:really|actually)\b|actually,? (?:i(?:'m| am|m)|my)\b"
    r"|(?:that|this|it) was (?:fun|great|nice|good|awesome)|(?:finished|done with|sent|published|submitted) (?:the|my) (?:story|novel|poem|song|game|script|chapter))",
    re.IGNORECASE,
)
_WORK: Final = re.compile(
    rf"{_POLITE}(?:translate|translation|rewrite|write|rephrase|reword|paraphrase|proofread|summari[sz]e|edit|improve|continue|complete|finish|compose|draft|correct|fix|polish"
    r"|shorten|analy[sz]e|reply|respond|tl;?dr|grammar|expand|make (?:this|it)|turn (?:this|it)|answer this|(?:do )?the same|same (?:with|for)"
    r"|how do (?:i|you) say|help with my (?:novel|story|script|essay)"
    r"|(?:check|classify|rate|explain|format|convert|review|read|look at|what do you think (?:of|about)|is) (?:this|the following|these)(?: \w+)?(?::|[.!?]? [\"“]|$))(?!\w)",
    re.IGNORECASE,
)
"""A request to work on a text. The following text is material, not a statement."""
_GOES_ON: Final = re.compile(
    r"(?:(?:merci|thanks|thx|ty|great|nice|good|ok|okay|cool|perfect|haha|lol|yes|brilliant|wow)[ ,.!]+)*(?:and|now|then|next|another|one more|same|or|this one|how about|what about|second|third|plus|also this)\b[^.!?]{0,60}(?::|[\"“„«]|\bthis\b)",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[.!?\n]+\s*")
_HANDED_OVER: Final = re.compile(
    r"\b(?:mail|e-?mail|text|essay|letter|message|review|post|article|transcript|story|poem|lyrics|paragraph|quote|this|these|following|comment|tweet|bio|ad|speech|page|website|online"
    r"|says?|said|wrote|writes|reads?|goes|went|tells?|told|asks?|asked|replie[sd]|answers?|answered|paste|pasted|copied|view|perspective|line|sentence|example|version"
    r"|opening|intro|caption|part|headline|quoting|slogan|motto|joke|meme|prompt|template|chat|log|subtitle)\b[^.!?:\n]{0,30}:(?=\s|$)"
    r"|(?:^|[.!?] )(?:then|next|after that|and then|finally|plot|summary|premise|idea|act \w+|act|once):(?=\s|$)",
    re.IGNORECASE,
)
"""Words that hand over to text of another person. The rest of the message is not the speaker's own."""
_KEEPS: Final = re.compile(
    r"\b(?:remember|note|keep in mind|bear in mind|forget|save|about (?:me|myself|us))\b[^.!?:]{0,30}:", re.IGNORECASE
)
_MAKE_BELIEVE: Final = re.compile(
    r"\b(?:imagine|suppose|supposing|assume|assuming|say (?:i|we) (?:had|have|am|was|were)|what if|let us say|let's say|hypothetical\w*|borrowing (?:his|her|their|my)|using (?:his|her|their) account"
    r"|this is [A-Z][a-z]+, [A-Z][a-z]+'s|(?:just |only |was |i am |i'm |im )(?:kidding|joking)|jk|as if i|as though i|make-believe|fictional|joke"
    r"|yeah,? right|(?:sure|of course),? because|oh (?:great|joy|yay|wonderful|fantastic|brilliant|lovely)|(?:best|worst) \w+ ever"
    r"|just what i (?:needed|wanted)|what a (?:joy|treat|surprise not)|sarcasm|lucky me|queen of england|king of)\b|(?:^|\s)/s(?:\s|$)|\bjust LOVE\b",
    re.IGNORECASE,
)
"""Signs of fiction, a joke or sarcasm. A message with one of these signs contains no statements."""
_OTHERS: Final = r"(?:he|she|they|someone|somebody|people|everyone|everybody|nobody|(?:my|our|the|a|an|one|some|this|that|his|her|their)\s+(?:[\w-]+\s+){1,5}?|(?-i:[A-Z][\w'-]+)\s+)"
_SAYING: Final = (
    r"(?:say|says|said|tell|tells|told|think|thinks|thought|claim|claims|claimed|believe|believes|believed|suggests?|insists?|ask|asks|asked|wrote|writes|reads|joke[sd]?|assumes?"
    r"|swears?|reckons?|heard|keeps? (?:saying|telling)|guess(?:es|ed)?|pretends?|sings?|sang|lied)"
)
REPORTED: Final = re.compile(
    rf"\b{_OTHERS}\s*(?:often |always |once |also |just |usually |really |kindly |still |even )?{_SAYING}\b"
    rf"|\b{_OTHERS}\s*(?:goes|went|(?:is|was|are|were) (?:all )?like|be like)\s*[:,…]"
    r"|\b(?:according to|rumou?r|allegedly|supposedly|apparently|i (?:read|heard|saw)(?: somewhere| online)? (?:that|how|about)|read that|heard that|saw that|did you (?:hear|read|know))\b"
    r"|\bi (?:have |just |always |once |jokingly )?(?:said|say|tell|told|claimed|pretended?|lied|introduced myself|texted|wrote|answered|replied)\b(?! (?:you|u)\b)"
    r"|\bi (?:never|did not|do not|was not|am not) (?:said|say|saying|tell|told|claim|claimed|think|believe)\b"
    r"|\bin (?:the|my|a|this|that|our) (?:film|movie|book(?! club)|novel|story|game|play|series|show|song|poem|video|dream)\b"
    r"|\b(?:film|movie|book|novel|story|song|series|episode|game|dream)s? (?:where|in which|about (?:a|an|the)|called|with)\b"
    r"|\bcharacter\b|\blast night i dream|\b(?:dream(?:ed|t) (?:that|of|i|about)|had a dream)\b",
    re.IGNORECASE,
)
"""Signs of hearsay and of fiction in one sentence."""
CONDITIONAL: Final = re.compile(
    r"\bif (?:i|we|you|he|she|they|my|it)\b|\bwhether\b|\bunless\b|\b(?:wish|guess(?! (?:what|who)\b))\b|\bwhen i (?:grow up|am old|retire|win)\b|\bas soon as\b|\bonce i\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """Activity that the speaker's messages belong to."""

    fiction: bool = False
    text_work: bool = False


def own_part(message: str, setting: Setting) -> tuple[str, Setting, Silence | None]:
    """Return the part of a message that may be the speaker's own, the setting after the message, and the reason when
    this part is empty."""
    text = message[:MAX_LOOK]
    plain = text.replace("’", "'")
    left = _LEAVES.search(plain)
    if setting.fiction and left is None:
        return "", setting, Silence.MADE_UP
    if setting.fiction and left is not None:
        start = max(plain.rfind(mark, 0, left.start()) for mark in ".!?\n") + 1
        return text[start:], Setting(), None
    if _STARTS.search(plain):
        return "", Setting(fiction=True), Silence.MADE_UP
    if _MAKE_BELIEVE.search(plain):
        return "", setting, Silence.MADE_UP
    if setting.text_work and _GOES_ON.match(plain):
        return "", setting, Silence.QUOTED
    works = any(_WORK.match(each) for each in _SENTENCE.split(plain))
    return text, Setting(text_work=works), None


def asks_for_text_work(sentence: str) -> bool:
    return _WORK.match(sentence) is not None


def hands_over(sentence: str) -> int | None:
    """Return the end of the words that hand over to another person's text."""
    match = _HANDED_OVER.search(sentence)
    return None if match is None or _KEEPS.search(sentence) else match.end()
