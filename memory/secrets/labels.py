"""Labels of secrets in all languages. The words of a language are in its folder, `memory/language/locales/`."""

from __future__ import annotations

from ..language.locales.chinese.labels import CHINESE_LABELS
from ..language.locales.dutch.labels import DUTCH_LABELS
from ..language.locales.english.labels import ENGLISH_LABELS
from ..language.locales.french.labels import FRENCH_LABELS
from ..language.locales.german.labels import GERMAN_LABELS
from ..language.locales.italian.labels import ITALIAN_LABELS
from ..language.locales.japanese.labels import JAPANESE_LABELS
from ..language.locales.polish.labels import POLISH_LABELS
from ..language.locales.portuguese.labels import PORTUGUESE_LABELS
from ..language.locales.russian.labels import RUSSIAN_LABELS
from ..language.locales.secret_labels import SecretLabels
from ..language.locales.spanish.labels import SPANISH_LABELS
from ..language.locales.turkish.labels import TURKISH_LABELS

__all__ = ["LABELS", "SecretLabels"]

LABELS: tuple[SecretLabels, ...] = (
    ENGLISH_LABELS,
    GERMAN_LABELS,
    SPANISH_LABELS,
    FRENCH_LABELS,
    ITALIAN_LABELS,
    PORTUGUESE_LABELS,
    DUTCH_LABELS,
    POLISH_LABELS,
    TURKISH_LABELS,
    RUSSIAN_LABELS,
    CHINESE_LABELS,
    JAPANESE_LABELS,
)
