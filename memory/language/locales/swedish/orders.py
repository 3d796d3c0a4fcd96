"""Patterns of Swedish orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

SWEDISH_ORDERS: Final = short_order_rules(
    "swedish",
    always=r"alltid|aldrig|hadanefter|fran och med nu|fran nu|i framtiden|varje gang|(?:nar|om) (?:nagon"
    r"|man|anvandaren)",
    promote=r"rekommendera|foresla|sag att|marknadsfor|tipsa",
    bend=r"ignorera|strunta|glom|bryt|kringga",
    rules=r"instruktion|regl|riktlinj|begransning|filter|prompt",
    betray=r"avsloja|visa|skicka|vidarebefordra|dela|rob|lamna ut",
    treasure=r"losenord|prompt|inloggning|samtalshistorik|personuppgift",
    mine=r"mig|mej|oss|min|mitt|mina|svenska|engelska|tyska|kort|kortfattat|enkelt|formellt|artigt|list\w+"
    r"|tabell\w*|emojis?"
    r"|vegetarisk\w*|vegansk\w*|gluten\w*|laktos\w*|flask\w*|kott\w*",
)
