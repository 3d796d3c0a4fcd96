"""Forms in which a secret is told, one of each, and sentences that only look like them."""

from __future__ import annotations

import pytest

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets import protect

DEFAULT = PrivacyPolicy()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("pw: dragon", "pw: [password]"),
        ("passcode 9931", "passcode [password]"),
        ("here are my creds: bob / Tr3ehouse!", "here are my creds: bob / [password]"),
        ("My old password, hunter2, was leaked", "My old password, [password], was leaked"),
        ("hunter2! (my password)", "[password] (my password)"),
        ("My password – kitten33", "My password – [password]"),
        ("The password is\nkitten33", "The password is\n[password]"),
        ("my pin code is 4 4 3 2", "my pin code is [pin]"),
        ("2fa backup codes: 8213-9921 and 7712-0031", "2fa backup codes: [pin] and [pin]"),
        ("mi contraseña nueva es Barca2010", "mi contraseña nueva es [password]"),
        ("Mon mot de passe Netflix, c'est Serie99", "Mon mot de passe Netflix, c'est [password]"),
        ("Ich hab das Passwort zu Sommer2024 geändert", "Ich hab das Passwort zu [password] geändert"),
        ("4111 1111 1111 1111 12/26 123", "[card] 12/26 123"),
        ("order 5512 and 4111 1111 1111 1111", "order 5512 and [card]"),
        ("ref AB12 DE89 3704 0044 0532 0130 00", "ref AB12 [iban]"),
    ],
)
def test_a_form_is_read(text: str, kept: str) -> None:
    assert protect(text, DEFAULT).text == kept


@pytest.mark.parametrize(
    "text",
    [
        "I keep my passwords in 1Password.",
        "The most common password is 123456.",
        'Never use "password" as your password.',
        "password123 is a common password",
        "My password is in bitwarden",
        "My passphrase is the first line of my favourite poem.",
        "Mi contraseña está guardada en el móvil.",
        "Das Passwort ist leicht zu erraten.",
        "Mon mot de passe est enregistré dans Firefox.",
        "token_count = 4096",
        "api_key is None",
        "The key is to practice 10000 hours.",
    ],
)
def test_a_topic_is_no_secret(text: str) -> None:
    protected = protect(text, DEFAULT)
    assert (protected.text, protected.findings) == (text, ())
