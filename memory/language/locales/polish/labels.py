"""Polish labels of secrets: words that announce a secret. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

POLISH_LABELS: Final = SecretLabels(
    language="polish",
    stems=(
        "dane",
        "hasl",
        "hasł",
        "kod",
        "klucz",
        "fraz",
        "odpowied",
        "slowa",
        "słow",
        "otworzyc",
        "kombinac",
        "karty",
    ),
    labels={
        "passphrase": (
            r"fraz[aęe] (?:odzyskiwania|seed|bezpieczeństwa|startowa)|s[lł]owa (?:odzyskiwania|seed)"
            r"|(?:tajna |sekretna )?odpowiedź (?:na )?(?:pytanie |tajne |pomocnicze |sekretne ){1,2}|(?:tajna"
            r"|sekretna) odpowiedź"
        ),
        "api_key": r"klucz(?:e|em|a)? (?:do )?api|tajny klucz|klucz dostępu",
        "pin": (
            r"kod(?:em|u|y)? (?:pin|cvv2?|cvc|sms|dost[eę]pu|bezpiecze[nń]stwa|weryfikacyjn[yae]|zapasow[ye]"
            r"|odzyskiwania"
            r"|odblokowani[ae]|jednorazow[ye]|autoryzacyjn[yae]|potwierdzenia|awaryjn[ye]|ratunkow[ye]"
            r"|do (?:bramy|drzwi|domofonu|alarmu|sejfu|furtki|klatki|gara[zż]u|karty|telefonu|szafki))"
            r"|kombinacja do (?:sejfu|szafki|zamka)|(?:pin|kod|has[lł]o)(?: do| od)?(?: mojej| twojej| naszej)? karty"
            r"|pin(?:em|u)?(?: do (?:karty|telefonu|bankomatu))?"
            r"|otworzy[cć] [^.!?;:\n]{0,30}?(?:wpisz|wci[sś]nij|wstukaj|wybierz)"
        ),
        "password": r"has[lł](?:o|em|a)",
    },
    credentials=r"dane (?:do )?logowania|dane dostępowe",
    spelled=(
        "haslo",
        "hasło",
    ),
    copulas=r"to|jest|brzmi|by[lł]o|by[lł]|b[eę]dzie|są|sa",
    sure_copulas=r"to|brzmi|by[lł]o",
    changes=r"na",
    change_verbs=r"zmieni|ustawi|zmian",
    marks=r"\b(?:moj\w*|jest|sie|dla|nie|karty|konta|twoj\w*|nasz\w*|telefonu)\b|ł|ę|ą|ś|ż|ź",
    about=(
        r"za|bardzo|nie|zbyt|moj\w*|twoj\w*|jego|jej|nasz\w*|co|jak|jaki\w*|gdzie|kto|w|we|z|ze|na|do|od"
        r"|dla|i|oraz|lub"
        r"|albo|a|ten|ta|to|jest|sa|tylko|juz|jeszcze|zawsze|nigdy|krotki\w*|dlugi\w*|dłu\w*|sła\w*|slab\w*|siln\w*"
        r"|mocn\w*|bledn\w*|błędn\w*|poprawn\w*|niepoprawn\w*|prawid\w+|nieprawid\w+|dobr\w*|zł\w*"
        r"|wa[zż]n\w*|niewa[zż]n\w*"
        r"|wygas\w+|zapomn\w*|zgub\w*|now\w*|star\w*|bezpieczn\w*|niebezpieczn\w*|wymagan\w*|potrzebn\w*"
        r"|taj\w+|łatw\w*"
        r"|latw\w*|trudn\w*|zmienion\w*|zapisan\w*|tak\w+|sam\w+|inn\w*|musi|cierpliw\w*|pocztow\w*"
        r"|rabatow\w*|unikaln\w*"
        r"|prost\w*|pust\w*|nieznan\w*|podstawa|klucz\w*|czym[sś]|coś|cos|siln\w+|dłu\w+|polityk\w*|generator"
    ),
    units=r"znak|cyfr|liter|s[lł][oó]w|dni|dzie|tygod|miesi|rok|lat|minut|godz|raz|pr[oó]b|sekund|zl|zł|euro|procent",
    joints=r"i|oraz|lub",
)
