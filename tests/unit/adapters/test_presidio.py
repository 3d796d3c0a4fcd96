"""Presidio beside the built-in rules: which of its entities count, and what is said where something is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from memstream.adapters.presidio import PresidioRecognizer, load_analyzer
from memstream.cli.errors import CommandFailed
from memstream.cli.wiring.secret_detectors import new_detectors
from memstream.memory.policies import PresidioPolicy, PrivacyPolicy, SecretKind
from memstream.memory.secrets import BuiltInDetector, Finding, protect
from memstream.memory.secrets.entities import EntityDetector

PATTERNS = Path(__file__).resolve().parents[2] / "data" / "presidio" / "patterns.yaml"
IS_INSTALLED = importlib.util.find_spec("presidio_analyzer") is not None


@dataclass(frozen=True)
class Result:
    entity_type: str
    start: int
    end: int
    score: float


class FakeAnalyzer:
    """Finds given words, as Presidio's analyzer returns them."""

    def __init__(self, words: dict[str, tuple[str, float]], languages: Sequence[str] = ("en",)) -> None:
        self.supported_languages = list(languages)
        self.asked: list[str] = []
        self._words = words

    def analyze(self, text: str, language: str, *, score_threshold: float) -> list[Result]:
        self.asked.append(language)
        return [
            Result(entity, text.index(word), text.index(word) + len(word), score)
            for word, (entity, score) in self._words.items()
            if word in text and score >= score_threshold
        ]


def detector(
    words: dict[str, tuple[str, float]], kinds: dict[str, SecretKind] | None = None, score: float = 0.5
) -> EntityDetector:
    recognizer = PresidioRecognizer(analyzer=FakeAnalyzer(words), score=score)
    return EntityDetector(recognizer=recognizer, kinds=kinds or {})


@pytest.mark.parametrize(
    ("entity", "kind"),
    [
        ("CREDIT_CARD", "card"),
        ("IBAN_CODE", "iban"),
        ("EMAIL_ADDRESS", "email"),
        ("PHONE_NUMBER", "phone"),
        ("US_SSN", "national_id"),
        ("IT_FISCAL_CODE", "national_id"),
        ("API_KEY", "api_key"),
    ],
)
def test_an_entity_has_a_kind(entity: str, kind: SecretKind) -> None:
    assert detector({"abc": (entity, 0.9)}).find("x abc") == [Finding(kind, 2, 5)]


@pytest.mark.parametrize(
    "entity", ["PERSON", "LOCATION", "DATE_TIME", "URL", "NRP", "AU_ABN", "US_BANK_NUMBER", "IT_VAT_CODE"]
)
def test_what_is_no_secret_is_passed_over(entity: str) -> None:
    assert detector({"abc": (entity, 0.9)}).find("x abc") == []


def test_an_operator_gives_kinds_to_entities() -> None:
    found = detector(
        {"Ana": ("PERSON", 0.9), "a@b.c": ("EMAIL_ADDRESS", 0.9)}, {"PERSON": "national_id", "EMAIL_ADDRESS": "token"}
    )
    assert set(found.find("Ana a@b.c")) == {Finding("national_id", 0, 3), Finding("token", 4, 9)}


def test_a_low_score_does_not_count() -> None:
    assert detector({"abc": ("US_SSN", 0.4)}).find("abc") == []


def test_each_language_of_the_analyzer_is_asked() -> None:
    analyzer = FakeAnalyzer({}, ("en", "es"))
    PresidioRecognizer(analyzer=analyzer, score=0.5).recognize("hola")
    assert analyzer.asked == ["en", "es"]


def test_it_works_beside_the_built_in_rules() -> None:
    detectors = (BuiltInDetector(), detector({"abc-99": ("TOKEN", 0.9)}))
    text = "My password is hunter2 and the ticket abc-99."
    assert protect(text, PrivacyPolicy(), detectors).text == "My password is [password] and the ticket [token]."


def test_without_a_setting_the_built_in_rules_are_alone() -> None:
    assert [type(each) for each in new_detectors(PresidioPolicy())] == [BuiltInDetector]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CommandFailed, match=r"presidio\.analyzer = '/no/such\.yaml': there is no such file"):
        new_detectors(PresidioPolicy(analyzer="/no/such.yaml"))


@pytest.mark.skipif(IS_INSTALLED, reason="presidio-analyzer is installed")
def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(CommandFailed, match=r"pip install 'memstream\[presidio\]'"):
        new_detectors(PresidioPolicy(analyzer="default"))


def test_a_score_and_kinds_are_checked() -> None:
    with pytest.raises(ValueError, match=r"privacy\.presidio\.score must be between 0 and 1"):
        PresidioPolicy(score=2)
    with pytest.raises(ValueError, match=r"privacy\.presidio\.kinds\.PERSON must be one of"):
        PresidioPolicy(kinds={"PERSON": "person"})  # type: ignore[dict-item]


@pytest.mark.skipif(not IS_INSTALLED, reason="needs presidio-analyzer: pip install 'memstream[presidio]'")
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(": [")
    with pytest.raises(CommandFailed, match="not a valid configuration of an analyzer"):
        new_detectors(PresidioPolicy(analyzer=str(tmp_path / "a.yaml")))


@pytest.mark.skipif(not IS_INSTALLED, reason="needs presidio-analyzer: pip install 'memstream[presidio]'")
def test_presidio_itself_with_patterns_alone() -> None:
    recognizer = PresidioRecognizer(analyzer=load_analyzer(str(PATTERNS)), score=0.5)
    found = EntityDetector(recognizer=recognizer, kinds={}).find(
        "card 4111111111111111, mail ana@example.com, TKT-123456"
    )
    assert {(each.kind, each.start) for each in found} >= {("card", 5), ("email", 28), ("token", 45)}
