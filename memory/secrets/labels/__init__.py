"""Labels of secrets, as data: one module per language. LABELS lists them; `words.py` defines their data model."""

from __future__ import annotations

from .chinese import CHINESE
from .dutch import DUTCH
from .english import ENGLISH
from .french import FRENCH
from .german import GERMAN
from .italian import ITALIAN
from .japanese import JAPANESE
from .polish import POLISH
from .portuguese import PORTUGUESE
from .russian import RUSSIAN
from .spanish import SPANISH
from .turkish import TURKISH
from .words import SecretLabels

__all__ = ["LABELS", "SecretLabels"]

LABELS: tuple[SecretLabels, ...] = (
    ENGLISH,
    GERMAN,
    SPANISH,
    FRENCH,
    ITALIAN,
    PORTUGUESE,
    DUTCH,
    POLISH,
    TURKISH,
    RUSSIAN,
    CHINESE,
    JAPANESE,
)
