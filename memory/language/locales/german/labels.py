"""German labels of secrets that are not in `lexicon.py`. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

GERMAN_LABELS: Final = SecretLabels(
    language="german",
    stems=(
        "wiederherst",
        "backup",
        "notfall",
        "ersatzcode",
        "kenwort",
        "asw",
        "ssw",
        "zugangscode",
        "kartencode",
        "kartenpin",
        "karte",
        "offnen",
    ),
    labels={
        "pin": (
            r"(?:wiederherstellungs|backup|notfall|ersatz|einmal)[ -]?(?:codes?|schlussel|keys?)|zugangscodes?"
            r"|karten-?(?:code|pin|prufnummer)"
            r"|pin (?:der|fur (?:die|meine)|zur|meiner|deiner|seiner|ihrer|unserer) (?:bank|ec-?|giro|kredit)?karte"
            r"|(?:zum|um) [^.!?;:\n]{0,30}?offnen (?:muss man |musst du |bitte |einfach )?(?:die "
            r"|den )?(?:code |zahl )?"
        ),
        "password": r"(?!passwort(?:e|s|es|er|ern)?\b)pas+w[oe]r?te?s?|passwrot|paswort|kenworte?s?",
    },
    spelled=(
        "passwort",
        "kennwort",
    ),
    copulas=r"ist|war|sind|waren|lautet|lauten|heisst|heißt|wurde|wird",
    changes=r"auf|in|zu",
    change_verbs=r"gander|geander|gesetzt|setze|ander",
    marks=r"(?!)",
    about=(
        r"der|die|das|den|dem|ein|eine|einen|kein|keine|zu|sehr|so|nicht|mein\w*|dein\w*|ich|du|er|sie|es"
        r"|wir|in|auf|fur"
        r"|mit|und|oder|falsch|richtig|lang|kurz|stark|schwach|gut|schlecht|sicher|unsicher|weg|neu|alt"
        r"|vergessen|verloren"
        r"|abgelaufen|ungultig|notig|erforderlich|muss|soll\w*|darf|geheim|wichtig|einfach|schwer|hier"
        r"|dort|was|wie|wo"
        r"|lange|regel\w*|manager|gultig\w*|geandert|gespeichert|gesetzt"
    ),
    units=(
        r"zeichen|stell|ziffer|buchstabe|wort|worter|tag|woche|monat|jahr|minute|stunde|versuch|mal|euro"
        r"|prozent|uhr"
    ),
    joints=r"und|oder",
)
