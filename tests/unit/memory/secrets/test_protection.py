"""`protect`: what is masked, labelled or dropped, and that protecting again changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from pydantic import JsonValue

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets import Finding, Protected, detector, protect
from memstream.memory.secrets.protection import AROUND
from memstream.memory.secrets.secret_filter import SecretFilter

DEFAULT = PrivacyPolicy()


@dataclass(frozen=True)
class WordDetector:
    """Finds one word, everywhere."""

    finding: str
    word: str

    def find(self, text: str) -> Sequence[Finding]:
        places = (place for place in range(len(text)) if text.startswith(self.word, place))
        return [Finding(self.finding, place, place + len(self.word)) for place in places]  # type: ignore[arg-type]


def test_a_masked_kind_leaves_only_its_name() -> None:
    protected = protect("My password is hunter2, and I prefer tea.", DEFAULT)
    assert protected.text == "My password is [password], and I prefer tea."
    assert protected.findings == (Finding("password", 15, 22),)
    assert (protected.sensitivity, protected.dropped) == (None, False)


def test_a_labelled_kind_makes_the_record_secret_and_stays() -> None:
    protected = protect("Mail me at bob@example.com.", DEFAULT)
    assert (protected.text, protected.sensitivity) == ("Mail me at bob@example.com.", "secret")


def test_a_dropped_kind_leaves_nothing() -> None:
    protected = protect("Mail me at bob@example.com.", PrivacyPolicy(email="drop"))
    assert (protected.text, protected.dropped) == ("", True)


def test_an_allowed_kind_is_no_finding() -> None:
    text = "My password is hunter2."
    assert protect(text, PrivacyPolicy(password="allow")) == Protected(text, (), None, False)


def test_a_text_without_a_secret_is_the_same_text() -> None:
    text = "Zoë \u200b lives in ｎｏ１ — “here”.\r\n"
    protected = protect(text, DEFAULT)
    assert protected.text is text
    assert protected.findings == ()


def test_invisible_signs_and_look_alikes_hide_nothing() -> None:
    protected = protect("pass\u200bword: ｈunter２ \u2014 ok", DEFAULT)
    assert protected.text == "pass\u200bword: [password] \u2014 ok"


@pytest.mark.parametrize("text", ["[password]", "my password is [password]", "to [iban], from [card]"])
def test_placeholders_are_never_findings(text: str) -> None:
    assert protect(text, DEFAULT).text == text
    assert protect(text, DEFAULT, [WordDetector("token", word) for word in ("[password", "card]", "ban")]).text == text


def test_a_masked_text_is_searched_again() -> None:
    """The second finding stands only in the text that the first one leaves."""
    detectors = (WordDetector("pin", "ab"), WordDetector("token", "[pin]cd"))
    protected = protect("xabcd", DEFAULT, detectors)
    assert protected.text == "x[pin][token]"
    assert protected.findings == (Finding("pin", 1, 3), Finding("token", 3, 5))


@dataclass
class CountingDetector:
    """Finds what the built-in detector finds, and counts the characters that it reads."""

    read: int = 0

    def find(self, text: str) -> Sequence[Finding]:
        self.read += len(text)
        return detector.BuiltInDetector().find(text)


def test_a_long_text_is_searched_again_only_around_its_masks() -> None:
    text = "I prefer tea to coffee. " * 2_500 + "My password is hunter2. " + "I prefer tea to coffee. " * 2_500
    counting = CountingDetector()
    assert protect(text, DEFAULT, [counting]).text.count("[password]") == 1
    assert counting.read < len(text) + 8 * AROUND


def test_a_mask_that_mends_a_table_reveals_all_its_rows() -> None:
    rows = [f"service{number},Otter{number}xx" for number in range(200)]
    table = "\n".join(["service,password", "db,Server=tcp:a,1433;User ID=bob;Password=Hunter22x;", *rows])
    protected = protect(table, DEFAULT)
    assert "Otter" not in protected.text
    assert protect(protected.text, DEFAULT).text == protected.text


def test_labels_without_a_value_are_no_password() -> None:
    assert protect("password: " * 12, DEFAULT).findings == ()
    assert protect("password: password", DEFAULT).text == "password: [password]"


def test_overlapping_findings_become_one_span_of_the_stronger_kind() -> None:
    detectors = (WordDetector("pin", "abc"), WordDetector("token", "cde"))
    assert protect("xabcdey", DEFAULT, detectors).text == "x[token]y"


def test_a_label_below_a_mask_goes_with_its_text() -> None:
    detectors = (WordDetector("email", "bcd"), WordDetector("token", "abcde"))
    protected = protect("xabcdey", DEFAULT, detectors)
    assert (protected.text, protected.sensitivity) == ("x[token]y", None)


@pytest.mark.parametrize("action", ["hide", "", "Mask"])
def test_an_unknown_action_is_refused_by_name(action: str) -> None:
    with pytest.raises(ValueError, match=r"privacy\.card must be one of mask, label, drop, allow"):
        PrivacyPolicy(card=action)  # type: ignore[arg-type]


def test_a_text_with_a_secret_is_never_among_those_that_are_remembered() -> None:
    clean, secret = "I live in Lisbon.", "My password is hunter2."
    detector._require_clean.cache_clear()
    first = [detector.BuiltInDetector().find(each) for each in (clean, secret)]
    again = [detector.BuiltInDetector().find(each) for each in (clean, secret)]
    assert first == again
    assert [bool(each) for each in first] == [False, True]
    known = detector._require_clean.cache_info()
    assert (known.currsize, known.hits) == (1, 1)


@dataclass(frozen=True)
class NotingDetector:
    """Finds nothing, and notes the texts."""

    texts: list[str]

    def find(self, text: str) -> Sequence[Finding]:
        self.texts.append(text)
        return []


def test_a_record_is_searched_once_for_each_text_and_not_for_times_and_hashes() -> None:
    noting = NotingDetector([])
    record = {"content": "Has a dog", "at": "2026-11-20T10:01:00.5Z", "content_hash": "0" * 64, "fact_id": "f1"}
    value: list[JsonValue] = [record, {**record, "hash": "1" * 64, "when": "2026-11-20 10:01"}]
    assert SecretFilter(DEFAULT, (noting,)).value(value).value == value
    names = {"content", "at", "content_hash", "fact_id", "hash", "when"}
    searched = {"Has a dog", "content: Has a dog", "1" * 64, f"hash: {'1' * 64}"}
    assert sorted(noting.texts) == sorted(names | searched | {"2026-11-20 10:01", "when: 2026-11-20 10:01"})


def test_a_secret_that_comes_twice_is_masked_and_labelled_everywhere() -> None:
    found = SecretFilter(DEFAULT).value([{"pin": "4711"}, {"pin": "4711"}, "bob@example.com", "bob@example.com"])
    assert found.value == [{"pin": "[pin]"}, {"pin": "[pin]"}, "bob@example.com", "bob@example.com"]
    assert found.sensitivity == "secret"
