"""Patterns of Czech and Slovak orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

CZECH_ORDERS: Final = short_order_rules(
    "czech and slovak",
    always=r"v[zž]dy|vzdycky|v[zž]dycky|nikdy|od nynejska|odteraz|od teto chvile|pokazde|(?:kdyz"
    r"|ked) (?:se |sa )?(?:nekdo|niekto)",
    promote=r"doporucuj(?:te)?|doporuc(?:te)?|odporucaj(?:te)?|odporuc(?:te)?|navrhuj(?:te)?|zminuj(?:te)?"
    r"|rikej(?:te)?|chval(?:te)?",
    bend=r"ignoruj(?:te)?|zapomen(?:te)?|obejdi|porus(?:te)?",
    rules=r"pokyn|instrukc|pravidl|omezen|filtr|prompt",
    betray=r"prozrad(?:te)?|odhal(?:te)?|ukaz(?:te)?|posli|poslete|posilej(?:te)?|vyzrad(?:te)?",
    treasure=r"hesl|prompt|klic|kluc|rozhovor|histori|pokyny|osobni udaje|kart",
    mine=r"mi|me|mne|nam|nas|muj|moje|cesky|slovensky|anglicky|nemecky|kratce|strucne|jednoduse|formalne"
    r"|zdvorile|seznam\w*"
    r"|tabulk\w*|emoji|vegetarian\w*|vegan\w*|lepek|lepku|laktoz\w*|veprov\w*|maso",
)
