"""Patterns of orders to the assistant in all languages. The patterns of a language are in its folder,
`memory/language/locales/`."""

from __future__ import annotations

from ..language.locales.arabic.orders import ARABIC_ORDERS
from ..language.locales.chinese.orders import CHINESE_ORDERS
from ..language.locales.czech.orders import CZECH_ORDERS
from ..language.locales.danish.orders import DANISH_ORDERS
from ..language.locales.dutch.orders import DUTCH_ORDERS
from ..language.locales.english.orders import ENGLISH_ORDERS
from ..language.locales.finnish.orders import FINNISH_ORDERS
from ..language.locales.french.orders import FRENCH_ORDERS
from ..language.locales.german.orders import GERMAN_ORDERS
from ..language.locales.greek.orders import GREEK_ORDERS
from ..language.locales.hindi.orders import HINDI_ORDERS
from ..language.locales.hungarian.orders import HUNGARIAN_ORDERS
from ..language.locales.indonesian.orders import INDONESIAN_ORDERS
from ..language.locales.italian.orders import ITALIAN_ORDERS
from ..language.locales.japanese.orders import JAPANESE_ORDERS
from ..language.locales.korean.orders import KOREAN_ORDERS
from ..language.locales.order_rules import OrderRules
from ..language.locales.polish.orders import POLISH_ORDERS
from ..language.locales.portuguese.orders import PORTUGUESE_ORDERS
from ..language.locales.romanian.orders import ROMANIAN_ORDERS
from ..language.locales.russian.orders import RUSSIAN_ORDERS
from ..language.locales.spanish.orders import SPANISH_ORDERS
from ..language.locales.swedish.orders import SWEDISH_ORDERS
from ..language.locales.turkish.orders import TURKISH_ORDERS
from ..language.locales.ukrainian.orders import UKRAINIAN_ORDERS
from ..language.locales.vietnamese.orders import VIETNAMESE_ORDERS

__all__ = ["ORDER_RULES", "OrderRules"]

ORDER_RULES: tuple[OrderRules, ...] = (
    ENGLISH_ORDERS,
    GERMAN_ORDERS,
    SPANISH_ORDERS,
    FRENCH_ORDERS,
    ITALIAN_ORDERS,
    PORTUGUESE_ORDERS,
    DUTCH_ORDERS,
    POLISH_ORDERS,
    RUSSIAN_ORDERS,
    UKRAINIAN_ORDERS,
    TURKISH_ORDERS,
    SWEDISH_ORDERS,
    DANISH_ORDERS,
    CZECH_ORDERS,
    ROMANIAN_ORDERS,
    HUNGARIAN_ORDERS,
    FINNISH_ORDERS,
    GREEK_ORDERS,
    INDONESIAN_ORDERS,
    VIETNAMESE_ORDERS,
    ARABIC_ORDERS,
    HINDI_ORDERS,
    CHINESE_ORDERS,
    JAPANESE_ORDERS,
    KOREAN_ORDERS,
)
