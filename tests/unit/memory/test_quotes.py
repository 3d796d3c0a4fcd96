"""A quote in a record that is not secret tells nothing secret."""

from __future__ import annotations

import pytest

from memstream.memory.secrets.quotes import cut_quote
from memstream.memory.secrets.secret_filter import SecretFilter

SECRETS = SecretFilter()


@pytest.mark.parametrize(
    ("quote", "statement", "kept"),
    [
        ("I prefer tea, and coffee makes me nervous", "Prefers tea", "I prefer tea, and coffee makes me nervous"),
        ("My password is [password], and I prefer tea", "Prefers tea", "I prefer tea"),
        ("I prefer tea. My password is [password]", "Prefers tea", "I prefer tea"),
        ("I moved to Lisbon, my mail is ana@example.com", "Lives in Lisbon", "I moved to Lisbon"),
        ("Mein Passwort ist [password] und ich trinke gern Tee", "Trinkt gern Tee", "ich trinke gern Tee"),
        ("Mi clave es [password], vivo en Madrid desde 2020", "Lives in Madrid", "vivo en Madrid desde 2020"),
        ("the wifi password is [password]", "Has a wifi password", "the wifi password is [password]"),
        ("mail me about Lisbon at ana@example.com", "Lives in Lisbon", "mail me about Lisbon at [email]"),
        ("Earns 1,500 euros, card [card]", "Earns 1,500 euros", "Earns 1,500 euros"),
    ],
)
def test_a_quote_is_cut_to_the_clause_that_carries_its_statement(quote: str, statement: str, kept: str) -> None:
    assert cut_quote(quote, statement, SECRETS) == kept


@pytest.mark.parametrize(
    ("quote", "statement", "told", "kept"),
    [
        ("I have lupus and take pills daily", "Takes pills daily", "I have lupus", "take pills daily"),
        ("I have lupus and take pills daily", "Takes pills", "I have lupus and take pills daily", "[secret]"),
        ("I live in Bern", "Lives in Bern", "I have lupus", "I live in Bern"),
        ("Yes, I live in Bern", "Lives in Bern", "yes", "I live in Bern"),
    ],
)
def test_it_tells_nothing_of_what_a_secret_statement_quotes(quote: str, statement: str, told: str, kept: str) -> None:
    assert cut_quote(quote, statement, SECRETS, told=(told,)) == kept
