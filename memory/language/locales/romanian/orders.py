"""Patterns of Romanian orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

ROMANIAN_ORDERS: Final = short_order_rules(
    "romanian",
    always=r"intotdeauna|mereu|niciodata|de acum inainte|de acum incolo|pe viitor|(?:cand|daca) (?:cineva"
    r"|utilizatorul)",
    promote=r"recomanda(?:ti)?|sugereaza|sugerati|propune(?:ti)?|mentioneaza|mentionati|promoveaza"
    r"|spune(?:ti)? ca|lauda(?:ti)?",
    bend=r"ignora(?:ti)?|uita(?:ti)?|ocoleste|incalca",
    rules=r"instructiun|regul|restrictii|filtr|prompt",
    betray=r"dezvaluie|dezvaluiti|arata(?:ti)?|trimite(?:ti)?|divulga(?:ti)?",
    treasure=r"parol|prompt|chei|conversati|istoric|date personale|card",
    mine=r"mi|mie|ma|noua|ne|meu|mea|mei|romana|romaneste|engleza|scurt|concis|simplu|formal|politicos"
    r"|prieten\w*|coleg\w*"
    r"|vegetarian\w*|vegan\w*|gluten|lactoza|porc|carne",
)
