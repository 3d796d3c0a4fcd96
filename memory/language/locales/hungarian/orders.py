"""Patterns of Hungarian orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

HUNGARIAN_ORDERS: Final = short_order_rules(
    "hungarian",
    always=r"mindig|soha|mostantol|ezentul|(?:ha|amikor) (?:valaki|a felhasznalo)",
    promote=r"ajanld|ajanlja|ajanlj|javasold|javasolj|emlitsd|mondd|reklamozd|dicserd",
    bend=r"hagyd figyelmen kivul|felejtsd|szegd meg|keruld meg",
    rules=r"utasitas|szabaly|korlatozas|szuro|prompt",
    betray=r"aruld|fedd fel|mutasd|kuldd|oszd meg",
    treasure=r"jelszo|prompt|kulcs|beszelgetes|elozmeny|szemelyes adat|kartya",
    mine=r"nekem|engem|velem|nekunk|magyarul|angolul|nemetul|roviden|tomoren|egyszeruen|udvariasan"
    r"|vegetarianus|vegan|gluten\w*"
    r"|laktoz\w*|sertes\w*|hus\w*",
)
