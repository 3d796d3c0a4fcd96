"""Patterns of Turkish orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

TURKISH_ORDERS: Final = short_order_rules(
    "turkish",
    always=r"her zaman|daima|hep|asla|bundan sonra|bundan boyle|artik|\w+(?:dugunda|diginda|duklarinda"
    r"|diklarinda|uldugunda"
    r"|uldugu zaman|unca|ince|ersa|arsa)",
    promote=r"oner(?:in|iniz)?|tavsiye et(?:in|iniz)?|soyle(?:yin)?|bahset(?:in)?|reklamini yap(?:in)?",
    bend=r"yok say(?:in)?|gormezden gel(?:in)?|unut(?:un)?|dikkate alma(?:yin)?|atla(?:yin)?"
    r"|devre disi birak(?:in)?",
    rules=r"talimat|kural|yonerge|kisitlama|filtre|prompt",
    betray=r"acikla(?:yin)?|ifsa et(?:in)?|goster(?:in)?|gonder(?:in)?|ilet(?:in)?|paylas(?:in)?|ver(?:in)?",
    treasure=r"parola|sifre|prompt|anahtar|konusma|gecmis|kisisel veri|talimatlari|kart",
    mine=r"bana|beni|benim|bize|bizim|turkce|ingilizce|almanca|kisa|oz|basit|resmi|kibar\w*|liste\w*"
    r"|tablo\w*|emoji|vejetaryen"
    r"|vegan|gluten\w*|laktoz\w*|domuz|etli|etsiz",
)
