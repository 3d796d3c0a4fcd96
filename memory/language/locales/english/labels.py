"""English labels of secrets that are not in `lexicon.py`. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

ENGLISH_LABELS: Final = SecretLabels(
    language="english",
    stems=(
        *("recovery", "backup", "back-up", "rescue", "emergency", "scratch", "restore", "phrase", "card"),
        *(
            "asw",
            "ssw",
            "psw",
            "azw",
            "@sw",
            "a$w",
            "$$w",
            "s$w",
            "asow",
            "ssow",
            "ssaw",
            "asaw",
            "psasw",
            "assowr",
            "passwor",
        ),
        *("apssw", "pasdw", "become", "became", "disarm", "unlock", "type", "press", "dial", "punch", "enter", "safe"),
        *("vault", "keypad"),
    ),
    labels={
        "passphrase": r"(?:master|vault|keystore|wallet|unlock) (?:pass)?phrases?",
        "pin": (
            r"(?:account |two-factor |2fa |mfa |google |github |apple |bitlocker )?"
            r"(?:recovery|backup|back-up|rescue|emergency|scratch|restore)[ -](?:codes?|keys?|pins?)"
            r"|(?:bank |debit |credit )?card (?:pin ?)?codes?"
            r"|pin (?:for|of|to|on) (?:the|my|our|your|his|her) (?:bank |debit |credit )?card"
            r"|(?:open|unlock|disarm|enter|get in(?:to)?|access) (?:\w+ ){0,2}"
            r"(?:door|gate|garage|safe|vault|building|flat|apartment|house|office|phone|ipad|tablet|laptop"
            r"|alarm|locker|lock"
            r"|lockbox|key ?box|barrier|entrance|room|lobby|shed)(?: [\w,']{1,12}){0,6}? "
            r"(?:with|type|enter|punch in|dial|press)(?: in)?(?: the (?:code|digits|numbers?))?"
        ),
        "password": (
            r"(?!passwords?\b)p[ae@4]{0,2}(?:[s$5z][aeou]?){1,3}w[aeiou0]{0,3}r[aeiou0]{0,2}[dt]{1,2}s?"
            r"|(?:apssword|passwor|passwodr|pasdword|passwprd|passwird|passwotd|passworf|passworld|psword)s?"
        ),
    },
    spelled=(
        "password",
        "passcode",
        "passphrase",
        "pin",
    ),
    copulas=r"is|are|was|were|(?:has |have |had )?(?:become|became|been)|(?:will|should|must) be|reads|goes",
    changes=r"to",
    change_verbs=r"chang|set|reset|updat|switch|rotat|renam|made",
    marks=r"\bbec[oa]me\b",
    about=(
        r"a|an|the|this|that|it|no|not|too|very|so|my|your|our|his|her|their|i|you|we|they|in|on|at|for|of"
        r"|to|with|and"
        r"|or|but|if|when|what|how|where|why|who|wrong|long|short|strong|weak|bad|good|easy|hard|invalid"
        r"|valid|expired"
        r"|required|missing|forgot\w*|lost|safe|secure|ready|gone|here|there|below|above|stored|saved"
        r"|printed|used|new"
        r"|old|same|different|important|useful|available|optional|mandatory|must|should|need\w*|unique|manager|policy"
        r"|never|always|still|only|broken|stuck|best|better|path|week|day|month|process|length|generator|worker|plan"
    ),
    units=(
        r"char|letter|digit|sign|word|number|day|week|month|year|minute|hour|second|time|bit|byte|percent|attempt|tr"
        r"|page|euro|dollar|pound|point|people|user|item|file|line|more|form|door|cm|km|mm|kg"
    ),
    joints=r"and|or",
)
