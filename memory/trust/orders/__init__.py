"""Orders to the assistant, as data: a module for each of four languages, and one for all others.

ORDER_RULES lists them; `rules.py` defines their data model.
"""

from __future__ import annotations

from .english import ENGLISH_ORDERS
from .french import FRENCH_ORDERS
from .german import GERMAN_ORDERS
from .more_languages import MORE_ORDERS
from .rules import OrderRules
from .spanish import SPANISH_ORDERS

__all__ = ["ORDER_RULES", "OrderRules"]

ORDER_RULES: tuple[OrderRules, ...] = (
    ENGLISH_ORDERS,
    GERMAN_ORDERS,
    SPANISH_ORDERS,
    FRENCH_ORDERS,
    *MORE_ORDERS,
)
