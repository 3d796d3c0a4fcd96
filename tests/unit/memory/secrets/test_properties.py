"""What holds for every text: protecting twice is protecting once, nothing else changes, and time grows with length."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets import BuiltInDetector, protect
from memstream.memory.secrets.findings import PLACEHOLDER
from tests.support.secret_corpus import texts

DEFAULT = PrivacyPolicy()
PIECES = [each.text for each in texts()]
SECRETS = [each.text[secret.start : secret.end] for each in texts() for secret in each.secrets]
GLUE = st.sampled_from(
    [" ", "\n", ". ", ", ", "", "\u200b", " is ", ": ", "=", " and ", "[password]", "[card]", '"', ";"]
)
MIXED = st.lists(st.tuples(st.sampled_from(PIECES + SECRETS) | st.text(max_size=20), GLUE), max_size=6).map(
    lambda parts: "".join(text + glue for text, glue in parts)
)
LENGTH = 32 * 1024
CPU_SECONDS = 2.5
"""Far above what linear work needs, far below what quadratic work takes at this length."""
HOSTILE = [
    "a", "1", "1 ", "4111 ", "DE89 ", "password ", "password is ", "password: ", 'password is "', "pin ",
    "my password is x1 ", "password for ", "password to ", "<password>", "ghp_\n", "sk-", "xoxb-", "a@", "a@a.a",
    "a(at)", "://", "a://b:c", "a=b;", "password=;", "jdbc:", "eyJabcdefgh.abcd.", "-----BEGIN PRIVATE KEY-----",
    "call 123 ", "call ", "+1 ", "ssn ", "passport ", "[password] ", "login is a/", "mysql -", "M.", "M", "\u200b",
    "\uff50\u200b", "\n", " ", "[", ";", "password 1 ",
    "phrase ", "seed: ", "12 words ", "acc 73812245 sort code 20-44-91 ", "| password ", "password,", "password:\n",
    "|password|\n|--|\n|ab1!cd|\n", "|password|\n|--|\n|[password]|\n", "p a s s w o r d ", "p ",
    "\u043f\u0430\u0440\u043e\u043b\u044c: ", "\u5bc6\u7801\u662f",
    "senha e ",
    "has\u0142o to ", "open the door and ", "- password:\n- ", "recovery codes: 8f3k-22ld, ", "credenziali: a/", "AAA-",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(MIXED)
@example("my password is [password] and sword9fish is my pin 4432")
def test_protecting_twice_is_protecting_once(text: str) -> None:
    protected = protect(text, DEFAULT).text
    assert protect(protected, DEFAULT).text == protected


@settings(max_examples=30, deadline=None)
@given(st.lists(MIXED, min_size=10, max_size=40), GLUE)
def test_protecting_a_long_text_twice_is_protecting_once(texts: list[str], glue: str) -> None:
    protected = protect(glue.join(texts), DEFAULT).text
    assert protect(protected, DEFAULT).text == protected


@pytest.mark.parametrize("piece", HOSTILE)
def test_protecting_a_hostile_run_twice_is_protecting_once(piece: str) -> None:
    for ending in ("", "x", " my pin is 4432", ": hunter2"):
        protected = protect(piece * (LENGTH // 4 // len(piece)) + ending, DEFAULT).text
        assert protect(protected, DEFAULT).text == protected


@settings(max_examples=200, deadline=None)
@given(MIXED)
def test_what_is_not_masked_stays_as_it_is(text: str) -> None:
    protected = protect(text, DEFAULT)
    masked = [each for each in protected.findings if DEFAULT.action(each.kind) == "mask"]
    read, parts = 0, []
    for each in masked:
        parts += [text[read : each.start], f"[{each.kind}]"]
        read = each.end
    assert "".join([*parts, text[read:]]) == protected.text
    assert all(0 <= each.start < each.end <= len(text) for each in protected.findings)


@settings(max_examples=200, deadline=None)
@given(MIXED)
def test_no_finding_covers_a_placeholder(text: str) -> None:
    kept = [match.span() for match in PLACEHOLDER.finditer(text)]
    for each in protect(text, DEFAULT).findings:
        assert all(each.end <= start or end <= each.start for start, end in kept)


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_length_alone(piece: str) -> None:
    text = piece * (LENGTH // len(piece))
    started = time.process_time()
    BuiltInDetector().find(text)
    assert time.process_time() - started < CPU_SECONDS


def test_many_placeholders_and_secrets_take_linear_time() -> None:
    text = "[password] my pin is 4432, " * (LENGTH // 26)
    started = time.process_time()
    protect(text, DEFAULT)
    assert time.process_time() - started < 4 * CPU_SECONDS
