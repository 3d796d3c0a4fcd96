"""Data model of the frequent words of a language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonWords:
    """Frequent words of a language, separated by white space. They are compared in lower case and without accents,
    except `frequent`."""

    tag: str
    """The language tag."""
    function: str = ""
    """Words that are no content words, also frequent verbs in the first person, such as `wohne`."""
    frequent: str = ""
    """Words of statements in the third person. They show that a text is in another language than the configured packs,
    which would misread the text: Portuguese `no` is not a negation."""
    first_person: str = ""
    """Words by which speakers speak about themselves or ask for something."""
    short_answers: str = ""
    """Words that begin a short answer to an earlier message."""
