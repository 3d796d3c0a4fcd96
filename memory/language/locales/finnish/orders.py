"""Patterns of Finnish orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

FINNISH_ORDERS: Final = short_order_rules(
    "finnish",
    always=r"aina|koskaan|tasta lahtien|jatkossa|(?:kun|jos) (?:joku|kayttaja)",
    promote=r"suosittele|suositelkaa|ehdota|ehdottakaa|mainitse|mainosta|sano etta|kehu",
    bend=r"ohita|unohda|riko|jata huomiotta",
    rules=r"ohje|saanto|saantoj|rajoitu|suodat|prompt",
    betray=r"paljasta|nayta|laheta|jaa|luovuta",
    treasure=r"salasan|prompt|keskusteluhistori|henkilotied",
    mine=r"minulle|minua|minun|meille|suomeksi|englanniksi|lyhyesti|ytimekkaasti|yksinkertaisesti"
    r"|kohteliaasti|kasvis\w*|vegaani\w*"
    r"|gluteeni\w*|laktoosi\w*|sianliha\w*|liha\w*",
)
