"""Patterns of orders to the assistant, as data. Four languages have a module each; one module has all other languages.

`ORDER_RULES` contains the rules of all languages. `rules.py` defines the data model.
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
