"""Entity recognizer that uses Presidio's analyzer (`memstream[presidio]`). `load_analyzer` imports Presidio.

Source: https://microsoft.github.io/presidio/analyzer/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

DEFAULT: Final = "default"
SETTING: Final = "memory.privacy.presidio.analyzer"


@dataclass(frozen=True, slots=True)
class RecognizedEntity:
    """Position of an entity in a text, with Presidio's name of the entity type."""

    name: str
    start: int
    end: int


class Analyzer(Protocol):
    """The part of `presidio_analyzer.AnalyzerEngine` that is used here."""

    supported_languages: list[str]

    def analyze(self, text: str, language: str, *, score_threshold: float) -> Sequence[Any]: ...


class PresidioRecognizer:
    """Recognizer that runs one analyzer once for each language that the analyzer supports."""

    def __init__(self, *, analyzer: Analyzer, score: float) -> None:
        self._analyzer = analyzer
        self._score = score

    def recognize(self, text: str) -> list[RecognizedEntity]:
        return [
            RecognizedEntity(result.entity_type, result.start, result.end)
            for language in self._analyzer.supported_languages
            for result in self._analyzer.analyze(text, language, score_threshold=self._score)
        ]


def load_analyzer(configuration: str) -> Analyzer:
    """Create an analyzer from a YAML file for Presidio, or with Presidio's own configuration (`default`).

    Raise ValueError if the package or the file is missing, or a model that the file names.
    """
    setting = f"{SETTING} = {configuration!r}"
    file = None if configuration == DEFAULT else Path(configuration).expanduser()
    if file is not None and not file.is_file():
        raise ValueError(f'{setting}: there is no such file; give the YAML file of an analyzer, or "{DEFAULT}"')
    try:
        import yaml  # comes with Presidio
        from presidio_analyzer import AnalyzerEngineProvider
    except ModuleNotFoundError as error:
        raise ValueError(f"{setting} needs {error.name}: pip install 'memstream[presidio]'") from error
    if file is not None:
        try:
            is_configuration = isinstance(yaml.safe_load(file.read_text(encoding="utf-8")), dict)
        except (yaml.YAMLError, ValueError):
            is_configuration = False
        if not is_configuration:  # Presidio would silently use its own configuration
            raise ValueError(f"{setting}: the file is not a valid configuration of an analyzer")
    try:
        analyzer: Analyzer = AnalyzerEngineProvider(
            analyzer_engine_conf_file=None if file is None else str(file)
        ).create_engine()
    except (Exception, SystemExit) as error:
        raise ValueError(f"{setting}: Presidio cannot create this analyzer: {_reason(error)}") from error
    return analyzer


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
