"""What the offline model takes for a request to memory."""

from __future__ import annotations

import pytest

from memstream.adapters.completions.offline.requests import to_forget, to_remember


@pytest.mark.parametrize(
    ("plain", "what"),
    [
        ("remember that the spare key is under the pot", "the spare key is under the pot"),
        ("Please remember: my sister visits on Friday.", "my sister visits on Friday"),
        ("keep in mind that I eat no nuts", "I eat no nuts"),
        ("do not forget that my car is red", "my car is red"),
        ("can you note that we close at five", "we close at five"),
        ("I remember that the summer was hot", None),
        ("remember when we met", None),
        ("remember me", None),
        ("do you remember that I moved", None),
    ],
)
def test_to_remember(plain: str, what: str | None) -> None:
    assert to_remember(plain) == what


@pytest.mark.parametrize(
    ("plain", "what"),
    [
        ("forget that I work at St. Mary's", "I work at St. Mary's"),
        ("please forget my old address", "my old address"),
        ("forget everything about my cat Tom.", "my cat Tom"),
        ("forget what I said about Stripe", "Stripe"),
        ("delete from your memory that I live in Oslo", "I live in Oslo"),
        ("remove my phone number from your memory please", "my phone number"),
        ("do not remember that I smoke", "I smoke"),
        ("forget it", None),
        ("I forgot my keys", None),
        ("do not forget that my car is red", None),
        ("delete the file on my desk", None),
    ],
)
def test_to_forget(plain: str, what: str | None) -> None:
    assert to_forget(plain) == what
