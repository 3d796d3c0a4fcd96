"""English sentences for the offline rules: splitting, expanding contractions, and filtering."""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from .spelling import FACE, PICTURE, plainly_spelt
from .voice import CONDITIONAL, MAX_LOOK, REPORTED, Silence, asks_for_text_work, hands_over
from .words import CHILDREN, NUMBERS, PETS, RELATIONS

KEPT_MESSAGE: Final = 1_000
"""Maximum code points of a message whose sentences are cached for the next prompts."""
MAX_READ: Final = 6_000
"""Code points of a turn after which reading stops. The longest conversation in the tests has half of this number."""
MAX_SENTENCES: Final = 60
"""Maximum number of sentences of a message that are read. A longer message is a document, and only a few statements are
kept."""
MAX_SENTENCE: Final = 400
"""Maximum code points of a sentence. A longer sentence is not simple, and evidence has at most 500 code points."""
MAX_CLAUSES: Final = 16
"""Maximum number of clauses of a sentence that are read. People write at most nine; more clauses are an enumeration."""


@dataclass(frozen=True, slots=True)
class SpokenClause:
    """A part of a sentence with its own subject, without contractions. `sentence` is the whole sentence verbatim, for
    the evidence."""

    text: str
    sentence: str
    wrong: str | None = None
    """The value that the sentence denies: `Lyon` in "I live in Nantes, not Lyon"."""
    corrects: bool = False
    """True when the speaker corrects an earlier statement ("I meant", "that's wrong", "sorry")."""
    opens: bool = False
    """True for the first clause of a message, where people introduce themselves."""


# ------------------------------------------------------------------------------------------------ sentences
_END: Final = re.compile(rf"(?<=[.!?…])[\"'”’)]*\s+|\n+|(?:(?<!\s)\s++)?(?:{FACE}|{PICTURE})+\s*")
_NO_END: Final = re.compile(r"\b(?:mr|mrs|ms|dr|prof|st|mt|e\.g|i\.e|etc|vs|no|approx|[a-z])\.$", re.IGNORECASE)


def sentences(text: str) -> Iterator[str]:
    """Split a text into verbatim, trimmed sentences. A line break ends a sentence; an abbreviation does not."""
    start = 0
    for match in _END.finditer(text):
        if "\n" not in match.group() and _NO_END.search(text[max(start, match.start() - 12) : match.start()]):
            continue
        if part := text[start : match.start()].strip():
            yield part
        start = match.end()
    if text[start:].strip():
        yield text[start:].strip()


# ------------------------------------------------------------------------------------------------ guards
_QUOTED: Final = re.compile(r"[\"“„«][^\"”“»]*[\"”“»]|(?<![\w])['‘][^'’\s]*+\s[^'’]*+['’](?!\w)")

_QUOTED_SENTENCES: Final = re.compile(
    r"[\"“„«](?>[^\"”“»„«]{0,4000}?[.!?]\s)[^\"”“»„«]{0,4000}+[\"”“»]"
    r"|(?<!\w)['‘](?:[^'‘’\n]|(?<=\w)['‘’](?=\w)){1,4000}+['’](?!\w)"
)
"""Quotations of several sentences. They are removed before the message is split, because no single sentence has both
quotation marks."""

_LEAD: Final = re.compile(
    r"(?P<told>(?:(?:hi|hey|hello|ok|okay|so|well|and|but|also)[ ,!]+)*(?:i|we|my|our|(?-i:[A-Z][a-z]+) (?:is|has|can not|loves|hates))\b[^,;?]+?)\s*(?:,|;|\s-|–|—)\s*"
    r"(?:(?:so|and|but) )?(?:what|which|who|how|when|where|why|(?:do|does|did|can|could|would|will|is|are"
    r"|should|any|got)\b) .*\?[\"'”’)]*$",
    re.IGNORECASE,
)
"""A statement before a question: "I'm allergic to nuts, can I eat this?"."""

_HEDGED: Final = re.compile(
    r"\b(?:would|could|might|maybe|perhaps|(?<!of )(?<!in )(?<!since )(?<!from )(?<!until )(?<!\d )may (?!\d)|should|probably|possibly|likely|almost|nearly|kind of|sort of|not sure|unsure"
    r"|think(?:ing)? (?:about|of)|consider(?:ing)?|plan(?:s|ning)? (?:to|on|for)|hop(?:e|es|ing) (?:to|for)"
    r"|(?:am|are|is|was|were) (?:going|about|supposed|meant) to|gonna|will|wanna|tempted|used to be able"
    r"|someday|some day|one day|next (?:week|month|year|spring|summer|autumn|fall|winter)|tomorrow"
    r"|tried to|failed to|interview(?:ed|ing)? (?:at|with|for)|appl(?:y|ied|ying) (?:to|for|at))\b",
    re.IGNORECASE,
)
"""Signs of plans and hedges. A clause with such a sign is ignored."""

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
    r"^(?:(?:(?:hi|hiya|hey|hello|helo|hallo|heya|yo|howdy|greetings|good (?:morning|evening|afternoon|day))(?: there| everyone| all| again| folks)?"
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
    r"|that (?:is|was) (?:a typo|wrong)(?: too| as well| again)?|back (?:to|in|on) (?:reality|earth|real life)|(?:un)?til(?:l)? then|for now|seriously(?: though)?|jokes aside"
    r"|good news|great news|bad news|quick one|heads up|update|fun fact|side note|not much|nothing decided yet"
    r"|(?:please |pls )?(?:also )?(?:add|note|remember|mention|include|keep in mind|bear in mind|do not forget|write down|save)"
    r"(?: this| it| the fact)?(?: that)?:?(?= (?:i|we|my|our)\b)"
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

_WRONG_AFTER: Final = re.compile(
    r"(?:,\s*|\s+(?=and |but ))(?:and |but )?not (?:at |in |with |for |to )?(?P<wrong>[^,.;!?]{1,60})$", re.I
)
_THIS_NOT_THAT: Final = re.compile(r"(?P<right>.*?(?-i:[A-Z]\w*|\d+)) not (?P<wrong>(?-i:[A-Z]\w*|\d+))")
"""A correction without a comma: "it's Leeds not Luton"."""
_NO_LONGER_AFTER: Final = re.compile(
    r",\s*(?:(?:and |but )?no longer (?:at|in|with|for|on) [^,.;!?]{1,60}"
    r"|(?:and |but )?not (?:at|in|with|for|on) [^,.;!?]{1,60}? any ?more)$",
    re.IGNORECASE,
)
"""The old value that the new value replaces: "I live in Turin, no longer in Rome"."""
_NO_MORE: Final = re.compile(
    r"^(?:am )?not (?P<what>[\w-]+(?: [\w-]+){0,3}?) any ?(?:more|longer)\b(?: (?:btw|by the way))?", re.I
)
"""An ended state without a subject: "not vegan any more"."""
_WRONG_BEFORE: Final = re.compile(
    r"^(?:it is |that is )?not (?:at |in |with |for )?(?P<wrong>[^,.;!?]{1,60}?)[,;:–—-]+\s*(?:but |it is |rather )?",
    re.I,
)

_SUBJECTS: Final = r"(?:i|we|my|our|he|she|they|his|her|their|it|you|there|that|this|not)\b"
_FIRST_VERBS: Final = (
    r"(?:work|live|love|like|hate|enjoy|prefer|have|own|run|play|speak|study|teach|drive|joined|moved|started|am|got"
    r"|adopted|come|grew|was born|relocated|switched|use|collect|wear)\b"
)
_PERSON_DOES: Final = r"(?-i:[A-Z][\w'-]+ (?:is|has|was|works|lives|loves|likes|hates|plays|studies|teaches|can not|does not|turns|turned)\b)"
_PAST: Final = (
    r"(?:moved|started|began|got|bought|adopted|quit|sold|joined|married|became|switched|graduated|retired|finished|came (?:to|here)|cancelled|canceled|dropped"
    r"|passed|relocated|took up|gave up|stopped|lost|left|grew up|was born|learnt|learned|enrolled|signed up|broke up"
    r"|split up|turned|found|renovated|built)\b"
)
_ADVERB: Final = r"(?:also|now|then|just|recently|finally|currently|still|already|only|even|mostly)"
_SPLIT: Final = re.compile(
    rf"\s*(?:[,;:–—]+|\.{{2,}})\s*(?:(?:and|but|so)\s+)?(?={_PERSON_DOES})"
    rf"|\s+(?:and|but|so|because|while)\s+(?={_PERSON_DOES})"
    rf"|,\s*(?:(?:and|but|so|then)\s+)*(?:{_ADVERB}\s+)*(?=(?P<past>{_PAST}|(?:live|work|love|hate|speak|teach|own|can not (?:stand|bear)|do not (?:like|eat|drink))\b))"
    rf"|\s+(?:and|but)\s+(?:{_ADVERB}\s+)*(?=(?P<past2>{_PAST}))"
    rf"|,\s*(?=still\b)"
    rf"|,\s*(?:(?:and|but|so)\s+)?(?:{_ADVERB}\s+)*(?=(?P<going>(?:baking|cooking|learning|studying|teaching|coaching|working"
    r" (?:as|at|for)|living (?:in|with)|building|restoring|training for|volunteering)\b))"
    rf"|\s*[,;:–—]+\s*(?:(?:and|but|so|because|while|then|since|though)\s+)?(?=(?:now |currently |also )?{_SUBJECTS})"
    rf"|\s+-+\s+|\s*[()]\s*"
    rf"|\s+(?:and|but|so|because|while|then|though|although)\s+(?=(?:now |currently |also )?{_SUBJECTS})"
    rf"|,?\s+(?:and|but)\s+(?:(?:also|now|then)\s+)?(?=(?P<verb>{_FIRST_VERBS}))",
    re.IGNORECASE,
)
_OF_ANOTHER: Final = re.compile(r"(?!(?:i|we)\b)(?:he|she|they|(?:my|our) [\w-]+|(?-i:[A-Z])[\w-]+)\b", re.IGNORECASE)
_GOES_ON: Final = re.compile(r"(?:and|also|plus|but)\b", re.IGNORECASE)
_ASIDE: Final = re.compile(
    r",\s*(?:does|do|did|is|are|can|could|should|would|will|what|how|why|where|any|right|ok|you know)\s+(?:that|it|this|i|we|you"
    r"|he|she|they|there|one|else|ideas?|tips?|recommendations?|suggestions?|advice)\b[^,;]*$",
    re.IGNORECASE,
)
"""A question after a statement, with or without a question mark."""
_OWN: Final = re.compile(
    r"(?:(?:and|but|so|oh|also|yes|yeah|well) )*(?:i|we)\b|(?!(?:my|our|the|his|her|their)\b)[a-z]+\b", re.IGNORECASE
)
_FIRST_ADVERB: Final = re.compile(rf"(?:just|recently|finally|already|officially)\s+(?={_PAST})", re.IGNORECASE)
_NO_SUBJECT: Final = re.compile(
    rf"(?:{_PAST}|(?:live|lived) (?:in|with|alone)\b|work (?:as|at|for|from home)\b|(?:love|hate|own|prefer|speak|teach"
    r"|can not stand|do not (?:like|eat|drink|smoke))\b|have (?:an?|two|three|four) |"
    r"(?P<been>been \w+ing\b)|(?P<was>(?:promoted to|diagnosed with|hired (?:by|at)|born (?:and raised )?in)\b)"
    r"|(?P<ongoing>(?:working (?:as|at|for)|living (?:in|with)|learning|studying|teaching|coaching|training for|building"
    r"|renting (?:an?|my)|sharing an?|freelancing as|restoring|renovating|baking|allergic to|addicted to|obsessed with|married|divorced|originally from|no longer|not [\w-]+ any ?more|not an? (?:big |huge )?fan of|self-employed|unemployed|still (?:at|with|in|working|living))\b))",
    re.IGNORECASE,
)
_NO_POSSESSIVE: Final = re.compile(
    rf"(?:{'|'.join(sorted(RELATIONS, key=len, reverse=True))}) (?:is|has|does|works|lives|loves|likes|hates|plays|can not)\b"
    r"|(?:shoe size|ring size|blood type|birthday|native language|mother tongue|favourite [\w-]+) is\b",
    re.IGNORECASE,
)
"""A relative or an attribute without "my": "husband is a bricklayer"."""
_WHERE_I_LIVE: Final = re.compile(
    r"\b(?:in|from|to) (?:[a-z]+ )?(?P<place>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?), where (?:i|we) (?:now |currently )?"
    r"(?:live\b|am living|are living|have (?:been living|lived)\b)",
    re.IGNORECASE,
)
_AT_HOME: Final = re.compile(r"(?P<home>(?:back )?home in (?-i:[A-Z])[\w'-]+)(?= (?:i|we|it)\b)", re.IGNORECASE)
_TOGETHER: Final = re.compile(
    r"^(?P<who>(?:my|our) [^,]{1,40}?) and (?P<rest>i (?!.*\band i\b|(?:have )?(?:broke|broken|split|separated|divorced|are no longer)\b).+)$",
    re.IGNORECASE,
)
_PARTED: Final = re.compile(
    r"[\w' -]{1,40} and i (?:have |are )?(?:broke|broken|split|separated|no longer)\b", re.IGNORECASE
)
_AS_A: Final = re.compile(r"^(?:speaking )?as (?P<what>an? [\w\s-]{2,30}?),? (?P<rest>i\b.*)$", re.IGNORECASE)
_WITH_CHILDREN: Final = re.compile(
    rf"^(?P<head>i am .+?),? with (?P<rest>(?:an?|{NUMBERS}) (?:[\w-]+ )?"
    r"(?:kids?|child(?:ren)?|daughters?|sons?|dogs?|cats?))$",
    re.IGNORECASE,
)


_ASKS: Final = re.compile(r"\?\s*[\"'”’)]*$")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_ITEM: Final = re.compile(r"\s*(?:[-*•–]|\(?\d{1,2}[.)])\s+(?=\S)")
_LIST_HEAD: Final = re.compile(r"(?:^|\W)(?:i|we|my|our)\b[^.!?]{0,60}:$", re.IGNORECASE)

_NAMED_LATER: Final = re.compile(
    rf"(?P<kin>\b(?:{'|'.join(sorted(RELATIONS | PETS | CHILDREN, key=len, reverse=True))}))(?:,| and) (?:(?:his|her|its|their) name is|(?:he|she|it|they) (?:is|are) (?:called|named)) (?=\w)",
    re.IGNORECASE,
)


def unfolded(text: str) -> str:
    """Expand contractions and short forms: "I'm" → "I am", "im" → "I am"."""
    text = plainly_spelt(text.replace("’", "'"))
    for pattern, full in _CONTRACTIONS if "'" in text or "cannot" in text else ():
        text = pattern.sub(full, text)
    return _NAMED_LATER.sub(r"\g<kin> named ", text)


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence in the speaker's own words. `plain` is its text without contractions and quotations."""

    verbatim: str
    plain: str
    asks: bool
    """True when the sentence ends with a question mark."""
    clauses: tuple[SpokenClause, ...]
    """Statements in the sentence; none in a question, a condition or hearsay."""
    silence: Silence | None = None
    """The reason why the sentence has no clauses."""


def spoken_sentences(message: str) -> Sequence[SpokenSentence]:
    """Return the sentences of a message in the user's own words. Short messages are cached, because the next prompts
    show them again as context."""
    return _lately_read(message) if len(message) <= KEPT_MESSAGE else tuple(_read(message))


@lru_cache(maxsize=256)
def _lately_read(message: str) -> tuple[SpokenSentence, ...]:
    return tuple(_read(message))


def _read(message: str) -> Iterator[SpokenSentence]:
    """Yield the sentences in the user's own words, without quotations and material to work on."""
    message = _QUOTED_SENTENCES.sub(" … ", message[:MAX_LOOK])
    corrects, opens, of_another = False, True, False
    read = 0
    for sentence, said in islice(_own_lines(message), MAX_SENTENCES):
        if len(sentence) > MAX_SENTENCE:
            continue
        read += len(sentence)
        if read > MAX_READ:
            return
        plain = unfolded(_QUOTED.sub(" … ", said))
        ends = hands_over(said)
        if asks_for_text_work(sentence) or (ends is not None and "\n" not in said):
            yield SpokenSentence(sentence, plain, False, (), Silence.QUOTED)
            return
        asks = _ASKS.search(plain) is not None
        corrects = corrects or _CORRECTS.search(plain) is not None
        lead = _LEAD.match(plain) or _LEAD.match(_FLUFF.sub("", plain))
        told = plain if lead is None else lead["told"]
        silence = _why_silent(told)
        found: list[SpokenClause] = []
        if silence is None:
            for text, wrong in islice(_parts(told, of_another=of_another), MAX_CLAUSES):
                of_another = _OF_ANOTHER.match(text) is not None
                found.append(SpokenClause(text=text, sentence=sentence, wrong=wrong, corrects=corrects, opens=opens))
                opens = False
            silence = None if found else Silence.UNCERTAIN if _HEDGED.search(told) else Silence.UNKNOWN
        yield SpokenSentence(sentence, plain, asks, tuple(found), silence)


def _why_silent(told: str) -> Silence | None:
    if _ASKS.search(told) or CONDITIONAL.search(told):
        return Silence.QUESTION
    if REPORTED.search(told):
        return Silence.REPORTED
    return Silence.QUOTED if told.strip(" .!") == "…" else None


def clauses(message: str) -> Iterator[SpokenClause]:
    """Yield the clauses of a user's message that state something about the speaker."""
    for sentence in spoken_sentences(message):
        yield from sentence.clauses


def _own_lines(message: str) -> Iterator[tuple[str, str]]:
    """Yield two forms of each sentence: verbatim, and the form that the rules read. Quoted lines and code are left out.
    List items get the words that introduce the list: "I speak:" and "- Urdu" are read as "I speak Urdu"."""
    head = shown = ""
    for line in _CODE.sub("\n", message).splitlines():
        item = _ITEM.match(line)
        if line.lstrip().startswith((">", "|")):
            continue
        if item is not None:
            text = line[item.end() :].strip()
            if head:  # the evidence quotes the introducing words too
                shown = f"{shown} {line.strip()}"
                yield shown if len(shown) <= MAX_SENTENCE else line.strip(), f"{head} {text}"
            else:
                yield line.strip(), text
            continue
        head = shown = ""
        for sentence in sentences(line):
            yield sentence, sentence
            if _LIST_HEAD.search(sentence):
                head, shown = sentence.rstrip(" :"), sentence


def _parts(sentence: str, *, of_another: bool = False) -> Iterator[tuple[str, str | None]]:
    """Yield the clauses of a sentence, each with the value that it denies. `sentence` is without contractions. Filler
    words and clauses with plans or doubts are left out. `of_another`: the previous clause was about another person, who
    may also be the subject of the next clauses without a subject."""
    goes_on = _GOES_ON.match(sentence) is not None
    if match := _WHERE_I_LIVE.search(sentence):
        yield f"I live in {match['place']}", None
    sentence = _ASIDE.sub("", sentence)
    text = _NO_LONGER_AFTER.sub("", sentence.rstrip(" .!…)\"'"))
    wrong: str | None = None
    if match := _WRONG_AFTER.search(text):
        wrong, text = match["wrong"].strip(), text[: match.start()]
    elif match := _THIS_NOT_THAT.fullmatch(text):
        wrong, text = match["wrong"], match["right"]
    text = _NO_MORE.sub(r"I am not \g<what> any more", _bare(text))
    if wrong is None and (match := _WRONG_BEFORE.match(text)):
        wrong, text = match["wrong"].strip(), text[match.end() :]
    if match := _AT_HOME.match(text):
        yield match["home"], wrong
    for place, part in enumerate(_split(text)):
        bare = _bare(part)
        if place == 0 and of_another and (left_out := _NO_SUBJECT.match(bare)) is not None:
            if not (goes_on and left_out["ongoing"]):
                continue
            bare = f"she is {bare}"
        bare = _with_subject(bare)
        if bare and not _HEDGED.search(bare):
            yield bare, wrong


def _split(text: str) -> Iterator[str]:
    if match := _TOGETHER.match(text):
        yield match["who"]
        yield from _split(match["rest"])
        return
    if _PARTED.match(text):
        yield text
        return
    if match := _AS_A.match(text):
        yield f"I am {match['what']}"
        yield from _split(match["rest"])
        return
    start, prefix = 0, ""
    for match in _SPLIT.finditer(text):
        left_out = match["verb"] or match["past"] or match["past2"]
        if (left_out or match["going"]) and not _OWN.match(prefix + text[start:]):
            continue
        yield from _with_children(prefix + text[start : match.start()])
        start, prefix = match.end(), "I am " if match["going"] else "I " if left_out else ""
    yield from _with_children(prefix + text[start:])


def _with_subject(text: str) -> str:
    """Add the omitted "I" or "my": "moved to Lisbon" → "I moved to Lisbon"."""
    text = _FIRST_ADVERB.sub("", text)
    if match := _NO_SUBJECT.match(text):
        verb = "am " if match["ongoing"] else "have " if match["been"] else "was " if match["was"] else ""
        return f"I {verb}{text}"
    return f"my {text}" if _NO_POSSESSIVE.match(text) else text


def _with_children(text: str) -> Iterator[str]:
    if match := _WITH_CHILDREN.match(text):
        yield match["head"]
        yield f"I have {match['rest']}"
    else:
        yield text


def _bare(text: str) -> str:
    """Remove greetings and fillers at the beginning, and adverbs after the subject that do not change the meaning."""
    text = _FLUFF.sub("", text.strip(" ,;:-–—"))
    while (shorter := _ADVERBS.sub(r"\1", text)) != text:
        text = shorter
    return text.strip()
