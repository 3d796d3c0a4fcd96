"""Patterns of Dutch orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

DUTCH_ORDERS: Final = short_order_rules(
    "dutch",
    always=r"altijd|nooit|voortaan|vanaf nu|van nu af aan|in de toekomst|telkens (?:als|wanneer)|(?:als"
    r"|wanneer) (?:iemand|men|er"
    r"|de gebruiker)",
    promote=r"beveel|adviseer|noem|vermeld|promoot|zeg (?:dat|tegen)|raad(?=[^.!?\n]{0,60}\baan\b)"
    r"|stel(?=[^.!?\n]{0,60}\bvoor\b)",
    bend=r"negeer|vergeet|omzeil|overtreed",
    rules=r"instructie|regel|richtlijn|beperking|filter|prompt",
    betray=r"onthul|verraad|toon|stuur|verstuur|deel|geef",
    treasure=r"wachtwoord|prompt|sleutel|inloggegevens|instructies|gesprek|geschiedenis"
    r"|persoonlijke gegevens|creditcard",
    mine=r"me|mij|ons|mijn|nederlands|engels|duits|frans|kort|bondig|beknopt|eenvoudig\w*|formeel"
    r"|beleefd\w*|lijst\w*|tabel\w*"
    r"|emoji'?s?|vrienden|collega'?s|vegetarisch\w*|vegan\w*|gluten\w*|lactose\w*|varkensvlees|vlees",
)
