"""Patterns of Danish and Norwegian orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

DANISH_ORDERS: Final = short_order_rules(
    "danish and norwegian",
    always=r"altid|alltid|aldrig|aldri|fra nu af|fra na av|fremover|hver gang|(?:nar|hvis) (?:nogen|noen"
    r"|man|brugeren|brukeren)",
    promote=r"anbefal|foresl[aå]|nævn|nevn|sig at|si at|reklamer|ros",
    bend=r"ignorer|glem|bryd|bryt|omga",
    rules=r"instruks|instruktion|regl|retningslinj|begrænsning|begrensning|filter|filtre|prompt",
    betray=r"afslør|avslør|vis|send|videresend|del|røb|utlever|udlever",
    treasure=r"adgangskode|kodeord|passord|prompt|samtalehistorik|personoplysning",
    mine=r"mig|meg|os|oss|min|mit|mitt|mine|dansk|norsk|engelsk|tysk|kort|kortfattet|enkelt|formelt|høfligt"
    r"|list\w+|tabell?\w*"
    r"|emojis?|vegetar\w*|vegan\w*|gluten\w*|laktose\w*|svinekød|kød|kjøtt",
)
