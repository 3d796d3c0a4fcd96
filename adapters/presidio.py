"""Presidio's analyzer as a recognizer of entities (`memstream[presidio]`). It is loaded when it is made.

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
    """A place in a text that Presidio found, with Presidio's name of its kind."""

    name: str
    start: int
    end: int


class Analyzer(Protocol):
    """What is used of `presidio_analyzer.AnalyzerEngine`."""

    supported_languages: list[str]

    def analyze(self, text: str, language: str, *, score_threshold: float) -> Sequence[Any]: ...


class PresidioRecognizer:
    """Recognizer over one analyzer, in each of its languages."""

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
    """Make an analyzer from a YAML file of Presidio, or from Presidio's own one (`default`).

    Raises ValueError if the package, the file or a model that it names is missing.
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
        if not is_configuration:  # Presidio would take its own configuration in its place
            raise ValueError(f"{setting}: the file is no configuration of an analyzer")
    try:
        analyzer: Analyzer = AnalyzerEngineProvider(
            analyzer_engine_conf_file=None if file is None else str(file)
        ).create_engine()
    except (Exception, SystemExit) as error:
        raise ValueError(f"{setting}: Presidio cannot make this analyzer: {_told(error)}") from error
    return analyzer


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
