"""The built-in detector against its corpus: recall and precision of each half, by kind and by language."""

from __future__ import annotations

import pytest

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets import BuiltInDetector, protect
from tests.support.secret_corpus import DetectorScore, MarkedText, scores, texts

KEYS = ("api_key", "token", "jwt", "private_key", "card", "iban", "connection_string")
TOLD = ("password", "pin", "passphrase")


def score_of(chosen: list[MarkedText], kinds: tuple[str, ...]) -> DetectorScore:
    by_kind, _ = scores(BuiltInDetector(), chosen)
    found = [by_kind[kind] for kind in kinds if kind in by_kind]
    return DetectorScore(*(sum(each) for each in zip(*map(_counts, found), strict=True)))


def _counts(score: DetectorScore) -> tuple[int, int, int, int]:
    return score.found, score.secrets, score.right, score.findings


@pytest.fixture(scope="module")
def half() -> dict[bool, list[MarkedText]]:
    read = texts()
    return {tunes: [each for each in read if each.tunes is tunes] for tunes in (True, False)}


@pytest.mark.parametrize("tunes", [True, False], ids=["tune", "test"])
def test_keys_cards_and_accounts_are_found(half: dict[bool, list[MarkedText]], tunes: bool) -> None:
    score = score_of(half[tunes], KEYS)
    assert score.secrets > 50
    assert score.recall >= 0.97
    assert score.precision >= 0.97


@pytest.mark.parametrize("tunes", [True, False], ids=["tune", "test"])
def test_told_passwords_are_found(half: dict[bool, list[MarkedText]], tunes: bool) -> None:
    score = score_of(half[tunes], TOLD)
    assert score.secrets > 50
    assert score.recall >= 0.9
    assert score.precision >= 0.97


@pytest.mark.parametrize("tunes", [True, False], ids=["tune", "test"])
def test_of_all_that_is_found_little_is_wrong(half: dict[bool, list[MarkedText]], tunes: bool) -> None:
    by_kind, problems = scores(BuiltInDetector(), half[tunes])
    assert by_kind["all"].precision >= 0.97, problems
    assert by_kind["all"].recall >= 0.95, problems


@pytest.mark.parametrize(("language", "lines"), [("english", 300), ("german", 60), ("spanish", 60), ("french", 60)])
def test_each_language_has_its_lines_and_its_recall(language: str, lines: int) -> None:
    read = texts(language)
    assert len(read) >= lines
    assert score_of(read, TOLD).recall >= 0.9
    assert sum(not each.secrets for each in read) >= 30


@pytest.mark.parametrize(
    "language",
    ["italian", "portuguese", "dutch", "polish", "turkish", "russian", "chinese", "japanese", "forms", "labels"],
)
def test_labels_of_other_languages_and_layouts(language: str) -> None:
    read = texts(language)
    by_kind, problems = scores(BuiltInDetector(), read)
    assert by_kind["all"].recall >= 0.9, problems
    harmless = [each for each in read if not each.secrets]
    assert len(harmless) >= 15
    policy = PrivacyPolicy()
    masked = [each.text for each in harmless if protect(each.text, policy).text != each.text]
    assert masked == []


def test_ids_are_unique() -> None:
    names = [each.id for each in texts()]
    assert len(set(names)) == len(names)
