"""Conversion of hastily typed text to plain spelling, which the offline rules can read.

"im maya n this is my dog rex 🐶" → "I am maya and this is my dog Rex". A name gets a capital only next to a word that
marks a name ("called", "my sister", "live in"). There is no list of names.
"""
# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import re
from typing import Final

from .words import CHILDREN, COMMON_WORDS, KIN_PLURALS, PET_PLURALS, PETS, RELATIONS

PICTURE: Final = r"[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]"
FACE: Final = r"(?<![\w:;])(?:[:;=]-?['’]?[()DPpO/|\\*3]+|\^\^|<3|xD+|XD+)(?!\w)"

_SHORT: Final = {
    "im": "I am", "ive": "I have", "iam": "I am", "dont": "do not", "doesnt": "does not", "didnt": "did not",
    "dev": "developer", "isnt": "is not", "arent": "are not", "wasnt": "was not", "werent": "were not", "cant": "can not",
    "wont": "will not", "couldnt": "could not", "wouldnt": "would not", "shouldnt": "should not",
    "havent": "have not", "hasnt": "has not", "hadnt": "had not", "shes": "she is", "hes": "he is",
    "theyre": "they are", "theyve": "they have", "weve": "we have", "youre": "you are", "youve": "you have",
    "thats": "that is", "whats": "what is", "theres": "there is", "whos": "who is",
    "gonna": "going to", "gotta": "have to", "tho": "though", "cuz": "because",
    "cos": "because", "coz": "because", "bc": "because", "u": "you", "ur": "your", "w": "with", "w/": "with",
    "n": "and", "&": "and", "bf": "boyfriend", "gf": "girlfriend", "bff": "best friend", "hubby": "husband",
    "wifey": "wife", "sis": "sister", "missus": "wife", "bday": "birthday", "fav": "favourite", "fave": "favourite",
    "yrs": "years", "yr": "year", "yo": "years old", "pls": "please", "plz": "please", "atm": "at the moment",
    "rn": "right now", "uni": "university", "doggo": "dog", "pup": "puppy", "kiddo": "child", "kiddos": "kids",
    "prob": "probably", "probs": "probably", "def": "definitely", "luv": "love", "omw": "on my way",
}  # fmt: skip
_SHORT_WORD: Final = re.compile(r"(?<![\w'’.@/-])(?:w/|&|[a-z]{1,8})(?![\w'’@/-])", re.IGNORECASE)
_ITS: Final = re.compile(
    r"\bits(?= (?:an?|the|my|our|called|named|not|been|just|so|really|also|still|now|actually|only|in|on|at|from|\d)\b)",
    re.I,
)
_ILL: Final = re.compile(r"(?:^|(?<=[,;.!?] )|(?<=\band )|(?<=\bso )|(?<=\bbut ))ill(?= [a-z]+)", re.IGNORECASE)
_ID: Final = re.compile(r"\bid(?= (?:like|love|rather|say|be|go|never|prefer|have to)\b)", re.IGNORECASE)
_IS_AFTER_NAME: Final = re.compile(
    r"\b(?!(?:let|it|that|what|who|here|there)['’])([^\W\d_]{2,})['’]s(?= (?:an?|my|our|from|in|into|not|been|allergic"
    r"|turning|mad|crazy|obsessed|moving|getting|finally|also|still|now|already|just|called|named|vegan|vegetarian|pregnant"
    r"|afraid|scared|great|good|over|gone|dead|ill|sick|back|fine|finished|done|\d+)\b)",
    re.IGNORECASE,
)
_LAUGHTER: Final = re.compile(r"[ ,]*\b(?:l+o+l+|lmao+|rofl|(?:ha){2,}h?|(?:he){2,}|omg|ugh+|smh|xx+)\b", re.IGNORECASE)
_ONE_I: Final = re.compile(r"(?<![\w.'’])i(?![\w.])")

_KIN_WORDS: Final = "|".join(
    sorted(
        (re.escape(word) for word in RELATIONS | PETS | PET_PLURALS | CHILDREN | KIN_PLURALS.keys()),
        key=len,
        reverse=True,
    )
)
_ME_AND: Final = re.compile(
    rf"\b(?:me and|i and) (?P<who>my (?:[\w-]+ )?(?:{_KIN_WORDS})(?: (?-i:[A-Z])\w+)?|(?-i:[A-Z])\w+|\w+(?= (?:broke|split|separated|divorced)\b)) (?=[a-z])",
    re.IGNORECASE,
)
_IN_LAW: Final = re.compile(r"\b(brother|sister|mother|father|son|daughter) in law\b", re.IGNORECASE)
_SMALL: Final = r"(?-i:(?P<name>[^\W\d_A-Z][\w’'-]*))"
_NAME_FOLLOWS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:called|named|name is|name was|call me) {_SMALL}",
        rf"\b(?:my|our|with) (?:[\w-]+ )?(?:{_KIN_WORDS}),? {_SMALL}(?=$|\s*[,.!?;:()/…-]|\s+(?:and|is|has|was|who|or|too|mostly"
        r"|usually|just|now|at|in|on|with|for|from|as|by|loves|likes|hates|works|lives|plays|wants|got|says|said|told|thinks"
        r"|needs|bought|does|went|goes|turns|will|can|would|already|came|comes|made|makes|moved|broke|gave|had|split)\b)",
        rf"\b{_SMALL}(?= (?:is )?the (?:{_KIN_WORDS})\b)",
        rf"^{_SMALL}(?= (?:is|=) (?:my|our) (?:[\w-]+ )?(?:{_KIN_WORDS})\b)",
        rf"\b(?:live|living|based|move|moved|moving|relocated|home|house|flat|place|born|raised|grew up) (?:back |over )?"
        rf"(?:in|to) {_SMALL}(?=$|\s*[,.!?;()/…-]|\s+(?:[a-z]+\s*)?$|\s+(?:and|with|now|since|last|for|but|because|though)\b)",
        rf"\b(?:am|is|originally|but|,) from {_SMALL}(?=$|\s*[,.!?;()/…-]|\s+(?:and|but|though)\b)",
        rf"^(?:(?:hi|hey|hello|hiya|yo|heya)[ ,!.]*(?:there|all|everyone)?[ ,!.]*)?(?:I am|this is|it is) {_SMALL}"
        rf"(?=$|\s*[,.!;(…]|\s+(?:and|from|here)\b)",
    )
)


def plainly_spelt(sentence: str) -> str:
    """Return the sentence with full words and capitals. Its meaning and word order stay the same."""
    text = re.sub(rf"(?:{PICTURE}|{FACE})+", " ", sentence)
    text = _LAUGHTER.sub("", text)
    text = _IS_AFTER_NAME.sub(r"\1 is", text)
    text = _ITS.sub("it is", text)
    text = _ILL.sub("I will", text)
    text = _ID.sub("I would", text)
    text = _SHORT_WORD.sub(_full, text)
    text = _ONE_I.sub("I", text)
    text = _IN_LAW.sub(r"\1-in-law", text)
    text = _ME_AND.sub(_me_and, text)
    return with_names(" ".join(text.split()))


def _me_and(match: re.Match[str]) -> str:
    who = match["who"]
    return f"{who if ' ' in who else who[:1].upper() + who[1:]} and I "


def _full(match: re.Match[str]) -> str:
    return _SHORT.get(match[0].lower(), match[0])


def with_names(text: str) -> str:
    """Capitalise names, when the words next to them mark them as names."""
    for pattern in _NAME_FOLLOWS:
        text = pattern.sub(_capital, text)
    return text


def _capital(match: re.Match[str]) -> str:
    word = match["name"]
    if not may_be_name(word):
        return match[0]
    start = match.start("name") - match.start()
    return match[0][:start] + word[:1].upper() + match[0][start + 1 :]


def may_be_name(word: str) -> bool:
    """Return whether a word in small letters may be a name: it is not a common word, a verb form or an adverb."""
    plain = word.lower().removesuffix("'s")
    return (
        len(plain) > 1
        and plain not in COMMON_WORDS
        and plain not in RELATIONS | PETS | PET_PLURALS | CHILDREN
        and not plain.endswith(("ing", "ed", "ly", "ful", "less", "ous", "ish", "tion"))
    )
