"""Dutch labels of secrets: words that announce a secret. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

DUTCH_LABELS: Final = SecretLabels(
    language="dutch",
    stems=(
        "wachtwo",
        "code",
        "sleutel",
        "zin",
        "antwoord",
        "inlog",
        "pincode",
        "kaart",
        "pas",
        "openen",
        "woorden",
        "wagtwoord",
        "ww",
        "combinatie",
    ),
    labels={
        "passphrase": (
            r"(?:herstel|geheime|wachtwoord)[ -]?zin|wachtzin|herstelwoorden|geheime? antwoord"
            r"|antwoord op (?:de |mijn )?(?:geheime |beveiligings)vraag"
        ),
        "api_key": r"api[ -]?sleutels?|toegangssleutel|geheime sleutel",
        "pin": (
            r"pin(?:code|nummer)?s? (?:van|voor) (?:de |mijn |je |jouw |onze )?(?:bank|pin|krediet)?(?:kaart|pas)"
            r"|pin(?:code|nummer)s?|(?:toegangs|beveiligings|herstel|verificatie|bevestigings|ontgrendel|deur"
            r"|alarm|kluis"
            r"|backup|back-up|nood|inlog|sms|cvc|cvv|slot|poort)[ -]?codes?|geheime codes?"
            r"|combinatie van (?:de |het )?(?:kluis|slot)"
            r"|code (?:van|voor) (?:de |het |mijn |ons |onze )?(?:voor|garage|achter)?(?:deur|poort|kluis"
            r"|garage|slot|alarm"
            r"|kaart|telefoon|bankpas|pinpas|hek|gebouw)"
            r"|(?:te )?openen [^.!?;:\n]{0,30}?(?:toets|typ|druk)(?: je)?(?: op)?"
        ),
        "password": (
            r"(?:wifi|wlan|mail|e-?mail|netwerk|admin|computer|router)?wa(?:ch|g)t?woord(?:en)?"
            r"|paswoord(?:en)?|toegangswoord|ww(?= ?[:=])|wifi-?code"
        ),
    },
    credentials=r"inloggegevens|logingegevens",
    spelled=("wachtwoord",),
    copulas=r"is|was|zijn|waren|luidt|wordt|werd|heet",
    sure_copulas=r"is|was|luidt",
    changes=r"in|naar|op",
    change_verbs=r"verander|gewijzigd|wijzig|gezet|ingesteld|aangepast",
    marks=r"\b(?:het|een|mijn|voor|ik|wij|niet|onze|jouw|naar)\b",
    about=(
        r"de|het|een|niet|geen|te|heel|erg|zeer|mijn|jouw|je|zijn|haar|ons|onze|ik|hij|wat|hoe|waar|wie|in"
        r"|op|met|voor|van"
        r"|aan|en|of|dat|die|dit|deze|kort|lang|sterk|zwak|fout|juist|goed|slecht|verkeerd|onjuist"
        r"|ongeldig|geldig|verlopen"
        r"|vergeten|kwijt|verloren|nieuw\w*|oud\w*|veilig|onveilig|verplicht|nodig|vereist|geheim"
        r"|belangrijk|makkelijk"
        r"|moeilijk|gewijzigd|veranderd|opgeslagen|hetzelfde|anders|gelijk|moet|geblokkeerd|geduld|weg"
        r"|hier|daar|gestolen"
        r"|uniek|simpel|leeg|onbekend|bekend|al|ook|nog|nooit|altijd|geschreven|lengte|beleid|gehackt"
    ),
    units=(
        r"teken|cijfer|letter|woord|nummer|dag|week|weken|maand|jaar|minu|uur|uren|keer|poging|second|euro"
        r"|procent|kara"
    ),
    joints=r"en|of",
)
