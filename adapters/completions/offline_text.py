"""English sentences for the offline rules: splitting, expanding contractions, filtering, and the third person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .offline_words import MONTHS, NUMBERS

MAX_SENTENCE: Final = 400
"""Code points. Evidence holds 500, and a longer sentence is not simple."""


@dataclass(frozen=True, slots=True)
class SpokenClause:
    """A part of a sentence with its own subject, unfolded. `sentence` is the whole sentence verbatim, for evidence."""

    text: str
    sentence: str
    wrong: str | None = None
    """What the sentence denies: `Lyon` in "I live in Nantes, not Lyon"."""
    corrects: bool = False
    """The speaker corrects an earlier statement ("I meant", "that's wrong", "sorry")."""
    opens: bool = False
    """True for the first clause of a message, where people introduce themselves."""


# ------------------------------------------------------------------------------------------------ sentences
_END: Final = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_NO_END: Final = re.compile(r"\b(?:mr|mrs|ms|dr|prof|st|mt|e\.g|i\.e|etc|vs|no|approx|[a-z])\.$", re.IGNORECASE)


def sentences(text: str) -> Iterator[str]:
    """Split a text into verbatim, trimmed sentences. A line break ends a sentence, an abbreviation does not."""
    start = 0
    for match in _END.finditer(text):
        part = text[start : match.start()]
        if "\n" not in match.group() and _NO_END.search(part[-12:]):
            continue
        if part.strip():
            yield part.strip()
        start = match.end()
    if text[start:].strip():
        yield text[start:].strip()


# ------------------------------------------------------------------------------------------------ guards
_QUOTED: Final = re.compile(r"[\"“„«][^\"”“»]*[\"”“»]|(?<![\w])['‘][^'’]*\s[^'’]*['’](?!\w)")

_MAKE_BELIEVE: Final = re.compile(
    r"\b(?:imagine|suppose|supposing|assume|assuming|pretend|let us say|let's say|role-?play\w*|hypothetical\w*"
    r"|(?:just |only |i am |i'm )(?:kidding|joking)|as if i|as though i|make-believe|fictional|joke)\b",
    re.IGNORECASE,
)
"""Signs that a message is fiction: nothing in it counts as a statement."""

_TEXT_WORK: Final = re.compile(
    r"(?:(?:please|now|can you|could you|would you|kindly)\s+)*(?:translate|rewrite|write|rephrase|paraphrase|proofread"
    r"|summari[sz]e|edit|improve|continue|complete|finish|compose|draft|check|correct|fix|polish|shorten|analy[sz]e)\b",
    re.IGNORECASE,
)
"""Requests to work on a text: what follows them is material, not a statement."""

_OTHERS: Final = (
    r"(?:he|she|they|someone|somebody|people|everyone|everybody|nobody|(?:my|our|the|a|an|his|her|their)\s+"
    r"(?:[\w-]+\s+){1,3}?)"
)
_BLOCKED: Final = re.compile(
    r"\?\s*[\"'”’)]*$"
    r"|\bif (?:i|we|you|he|she|they|my|it)\b|\bwhether\b|\bunless\b"
    r"|\b(?:wish|maybe|perhaps|guess(?! what\b)|supposedly|allegedly|dream(?:ed|t) (?:that|of|i|about)|had a dream)\b"
    rf"|\b{_OTHERS}\s*(?:often |always |once |also |just |usually |really |kindly )?"
    r"(?:say|says|said|tell|tells|told|think|thinks|thought|claim|claims|claimed|believe|believes|believed|suggests?"
    r"|insists?|ask|asks|asked|wrote|writes|reads|joke[sd]?|assumes?|swears?|reckons?|heard)\b"
    r"|\baccording to\b|\bi (?:never|did not|do not) (?:said|say|tell|told|claim|claimed|think|believe)\b"
    r"|\bin (?:the|my|a|this|that|our) (?:film|movie|book|novel|story|game|play|series|show|song|poem|video|dream)\b"
    r"|\bmy (?:[\w-]+ )?character\b|\blast night i dream",
    re.IGNORECASE,
)
"""Questions, conditions, hearsay, fiction: a sentence with one of these is ignored."""

_LEAD: Final = re.compile(
    r"(?P<told>(?:(?:hi|hey|hello|ok|okay|so|well|and|but|also)[ ,!]+)*(?:i|we|my|our)\b[^,;?]+?)\s*(?:,|;|\s-|–|—)\s*"
    r"(?:(?:so|and|but) )?(?:what|which|who|how|when|where|why|(?:do|does|did|can|could|would|will|is|are"
    r"|should|any|got)\b) .*\?[\"'”’)]*$",
    re.IGNORECASE,
)
"""A statement that leads to a question: "I'm allergic to nuts, can I eat this?"."""

_HEDGED: Final = re.compile(
    r"\b(?:would|could|might|may (?!\d)|should|probably|possibly|likely|almost|nearly|kind of|sort of|not sure|unsure"
    r"|think(?:ing)? (?:about|of)|consider(?:ing)?|plan(?:s|ning)? (?:to|on|for)|hop(?:e|es|ing) (?:to|for)"
    r"|(?:am|are|is|was|were) (?:going|about|supposed|meant) to|gonna|will|wanna|tempted|used to be able"
    r"|someday|some day|one day|next (?:week|month|year|spring|summer|autumn|fall|winter)|tomorrow"
    r"|tried to|failed to|interview(?:ed|ing)? (?:at|with|for)|appl(?:y|ied|ying) (?:to|for|at))\b",
    re.IGNORECASE,
)
"""Plans and hedges: a clause with one of these is ignored."""

CHANGES: Final = re.compile(
    r"\b(?:now|new|switched|changed|moved|joined|started|turned|became|relocated|any ?more|no longer|nowadays"
    r"|these days|got|used to|left|quit)\b",
    re.IGNORECASE,
)
_CORRECTS: Final = re.compile(
    r"\b(?:sorry|correction|i (?:meant|mean)\b|misspoke|mistyped|typo|that (?:is|was) (?:wrong|not right|incorrect)"
    r"|i was wrong|my mistake|my bad|o+ps|let me correct|to correct|i got that wrong|it is spel(?:led|t)"
    r"|scratch that|rather)\b|^no,|^(?:oh,? |well,? |no,? )?actually\b",
    re.IGNORECASE,
)

# ------------------------------------------------------------------------------------------------ unfolding
_CONTRACTIONS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), full)
    for pattern, full in (
        (r"\bi['’]m\b", "I am"),
        (r"\b(i|we|you|they)['’]ve\b", r"\1 have"),
        (r"\b(we|you|they)['’]re\b", r"\1 are"),
        (r"\b(i|we|you|he|she|they|it)['’]ll\b", r"\1 will"),
        (r"\b(i|we|you|he|she|they)['’]d\b", r"\1 would"),
        (r"\b(he|she|it|that|there|here|what|who)['’]s\b", r"\1 is"),
        (r"\b(name)['’]s(?= [^\W\d_])", r"\1 is"),
        (r"\bcan(?:['’]t|not)\b", "can not"),
        (r"\bwon['’]t\b", "will not"),
        (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should)n['’]t\b", r"\1 not"),
        (r"\b([^\W\d_]+)['’]s(?= (?:called|named)\b)", r"\1 is"),
        (r"\blet['’]s\b", "let us"),
    )
)

_FLUFF: Final = re.compile(
    r"^(?:(?:(?:hi|hiya|hey|hello|good (?:morning|evening|afternoon|day))(?: there| everyone| all| again| folks)?"
    r"|oh|ah|um|uh|ok|okay|well|so"
    r"|and|but|or|anyway|anyways|by the way|btw|fyi|for the record|actually|also|plus|yes|yeah|yep|no|nope|sorry|wait"
    r"|o+ps|correction|please|honestly|to be honest|tbh|in fact|you know|as you know|just so you know"
    r"|for your information|currently|right now|nowadays|these days|at the moment|at present|now|recently|lately|today"
    r"|this (?:year|month|week|spring|summer|autumn|fall|winter)|since \w+(?: \w+)?,"
    r"|last (?:year|month|week|spring|summer|autumn|fall|winter)"
    rf"|for (?:the )?(?:last |past )?(?:{NUMBERS}|a few|many|some|several) (?:years|months|weeks)(?: now)?"
    r"|in (?:my (?:free|spare) time|general)|personally|luckily|sadly|unfortunately|fortunately|finally"
    r"|i (?:meant|mean)(?: to say)?(?: that)?|i meant to (?:say|write)|my mistake|my bad|i misspoke|i should say"
    r"|(?:just )?to be clear|guess what|it is that|because|since|though|although|while"
    r"|that (?:is|was) (?:a typo|wrong)(?: too| as well| again)?"
    r"|(?:it |as it )?turn(?:s|ed) out(?: that)?"
    r"|let me correct (?:that|myself)|i must say|i have to say|you should know(?: that)?|thanks|thank you)"
    r"(?:\s*[,:;!.–—-]+\s*|\s+|$))+",
    re.IGNORECASE,
)

_ADVERBS: Final = re.compile(
    r"^((?:i|we|my [\w-]+(?: [\w-]+)?)(?: am| have| was| is| are)?) (?:really|just|also|now|currently|still|recently"
    r"|actually|absolutely|totally|truly|quite|personally|simply|already|finally|only|officially|honestly|definitely|originally"
    r"|both|all|very much|proudly|happily|presently|pretty|so|very|much|kinda|completely|extremely|genuinely)(?= )",
    re.IGNORECASE,
)

_TAIL: Final = re.compile(
    r"[\s,]+(?:now|right now|currently|these days|at the moment|at present|nowadays|today|yesterday|any ?more|recently"
    r"|lately|by the way|btw|too|as well|again|already|though|actually|if you must know|you know|as you know|so far"
    r"|(?:ever )?since .*"
    rf"|for (?:(?:the|about|almost|over|nearly|around|more than) )*(?:last |past )?(?:{NUMBERS}|a|an|a few|many|some"
    r"|several|a couple of|\w+) (?:years?|months?|weeks?|days?|decades?)(?: now)?|for (?:ages|years|a while|now|good)"
    r"|(?:last|this|earlier this) (?:week|month|year|spring|summer|autumn|fall|winter|weekend|morning|night|january"
    rf"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|{MONTHS})"
    rf"|(?:{NUMBERS}|a|an|a few|some|several|a couple of) (?:years?|months?|weeks?|days?) ago|a while ago|long ago"
    rf"|back in .*"
    rf"|in (?:the )?(?:early |late )?(?:spring|summer|autumn|fall|winter|{MONTHS}|[12][0-9]{{3}})(?: [12][0-9]{{3}})?"
    r"|on (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|because .*|full[- ]time|part[- ]time"
    r"|originally|sometimes|occasionally|every .+|most days|on (?:week|mon|tues|wednes|thurs|fri|satur|sun)\w*days?"
    r"|which .*|and (?:i|it|that|we) .*|until .*|lol|haha)$",
    re.IGNORECASE,
)

_WRONG_AFTER: Final = re.compile(
    r"(?:,\s*|\s+(?=and |but ))(?:and |but )?not (?:at |in |with |for |to )?(?P<wrong>[^,.;!?]{1,60})$", re.I
)
_NO_LONGER_AFTER: Final = re.compile(
    r",\s*(?:(?:and |but )?no longer (?:at|in|with|for|on) [^,.;!?]{1,60}"
    r"|(?:and |but )?not (?:at|in|with|for|on) [^,.;!?]{1,60}? any ?more)$",
    re.IGNORECASE,
)
"""What the new value replaces: "I live in Turin, no longer in Rome"."""
_WRONG_BEFORE: Final = re.compile(
    r"^(?:it is |that is )?not (?:at |in |with |for )?(?P<wrong>[^,.;!?]{1,60}?)[,;:–—-]+\s*(?:but |it is |rather )?",
    re.I,
)

_SUBJECTS: Final = r"(?:i|we|my|our|he|she|they|his|her|their|it|you|there|that|this|not)\b"
_FIRST_VERBS: Final = (
    r"(?:work|live|love|like|hate|enjoy|prefer|have|own|run|play|speak|study|teach|drive|joined|moved|started|am|got"
    r"|adopted|come|grew|was born|relocated|switched|use|collect|wear)\b"
)
_SPLIT: Final = re.compile(
    rf"\s*[,;:–—]+\s*(?:(?:and|but|so|because|while|then|since|though)\s+)?(?=(?:now |currently |also )?{_SUBJECTS})"
    rf"|\s+-+\s+|\s*[()]\s*"
    rf"|\s+(?:and|but|so|because|while|then|though|although)\s+(?=(?:now |currently |also )?{_SUBJECTS})"
    rf"|,?\s+(?:and|but)\s+(?:(?:also|now|then)\s+)?(?=(?P<verb>{_FIRST_VERBS}))",
    re.IGNORECASE,
)
_TOGETHER: Final = re.compile(r"^(?P<who>(?:my|our) [^,]{1,40}?) and (?P<rest>i (?!.*\band i\b).+)$", re.IGNORECASE)
_AS_A: Final = re.compile(r"^(?:speaking )?as (?P<what>an? [\w\s-]{2,30}?),? (?P<rest>i\b.*)$", re.IGNORECASE)
_WITH_CHILDREN: Final = re.compile(
    rf"^(?P<head>i am .+?),? with (?P<rest>(?:an?|{NUMBERS}) (?:[\w-]+ )?"
    r"(?:kids?|child(?:ren)?|daughters?|sons?|dogs?|cats?))$",
    re.IGNORECASE,
)


_NAMED_LATER: Final = re.compile(
    r"(?:,| and) (?:(?:his|her|its|their) name is|(?:he|she|it|they) (?:is|are) (?:called|named)) (?=\w)", re.IGNORECASE
)


def unfolded(text: str) -> str:
    """Return `text` without contractions and typographic quotes: "I'm" → "I am"."""
    text = text.replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return _NAMED_LATER.sub(" named ", text)


def clauses(message: str) -> Iterator[SpokenClause]:
    """Return the clauses of a user's message that state something about the speaker."""
    if _MAKE_BELIEVE.search(message):
        return
    corrects, opens = False, True
    for sentence in sentences(message):
        if len(sentence) > MAX_SENTENCE:
            continue
        if _TEXT_WORK.match(sentence):
            return
        plain = unfolded(_QUOTED.sub(" … ", sentence))
        corrects = corrects or _CORRECTS.search(plain) is not None
        if (lead := _LEAD.match(plain)) is not None:
            plain = lead["told"]
        if _BLOCKED.search(plain):
            continue
        for text, wrong in _parts(plain):
            yield SpokenClause(text=text, sentence=sentence, wrong=wrong, corrects=corrects, opens=opens)
            opens = False


def _parts(sentence: str) -> Iterator[tuple[str, str | None]]:
    """Return the clauses of an unfolded sentence without filler words and without hedged clauses, each with what it
    denies."""
    text = _NO_LONGER_AFTER.sub("", sentence.rstrip(" .!…)\"'"))
    wrong: str | None = None
    if match := _WRONG_AFTER.search(text):
        wrong, text = match["wrong"].strip(), text[: match.start()]
    text = _bare(text)
    if wrong is None and (match := _WRONG_BEFORE.match(text)):
        wrong, text = match["wrong"].strip(), text[match.end() :]
    for part in _split(text):
        bare = _bare(part)
        if bare and not _HEDGED.search(bare):
            yield bare, wrong


def _split(text: str) -> Iterator[str]:
    if match := _TOGETHER.match(text):
        yield match["who"]
        yield from _split(match["rest"])
        return
    if match := _AS_A.match(text):
        yield f"I am {match['what']}"
        yield from _split(match["rest"])
        return
    start, prefix = 0, ""
    for match in _SPLIT.finditer(text):
        yield from _with_children(prefix + text[start : match.start()])
        start, prefix = match.end(), "I " if match["verb"] else ""
    yield from _with_children(prefix + text[start:])


def _with_children(text: str) -> Iterator[str]:
    if match := _WITH_CHILDREN.match(text):
        yield match["head"]
        yield f"I have {match['rest']}"
    else:
        yield text


def _bare(text: str) -> str:
    """Remove greetings and fillers at the beginning, and adverbs after the subject that change nothing."""
    text = _FLUFF.sub("", text.strip(" ,;:-–—"))
    while (shorter := _ADVERBS.sub(r"\1", text)) != text:
        text = shorter
    return text.strip()


# ------------------------------------------------------------------------------------------------ third person
_PERSONS: Final = tuple(
    (re.compile(rf"\b{first}\b", re.IGNORECASE), third)
    for first, third in (
        ("my own", "their own"), ("my", "their"), ("our", "their"), ("mine", "theirs"), ("myself", "themselves"),
        ("ourselves", "themselves"), ("me", "them"), ("us(?!A)", "them"), ("i am", "they are"), ("we", "they"),
    )
)  # fmt: skip


def third_person(text: str) -> str:
    """Turn `text` into the third person: "with my wife" → "with their wife"."""
    for pattern, third in _PERSONS:
        text = pattern.sub(third, text)
    return re.sub(r"\bI\b", "they", text)


def without_tail(text: str) -> str:
    """Remove since when, until when or why something holds. That belongs to the turn, not to the statement."""
    text = text.strip(" ,;:.!…-–—\"'")
    while (shorter := _TAIL.sub("", text)) != text:
        text = shorter.strip(" ,;:.!…-–—\"'")
    return text


_IRREGULAR: Final = {"have": "has", "go": "goes", "do": "does", "am": "is", "are": "is", "be": "is"}


def conjugated(verb: str) -> str:
    """Return the third person singular of a base form: take → takes, get up → gets up."""
    if " " in verb:
        first, _, rest = verb.partition(" ")
        return f"{conjugated(first)} {rest}"
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
