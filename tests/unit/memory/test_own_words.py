"""Own words are told from quoted ones by the structure of a message."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.trust.own_words import count_words, split_quotations


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I live in Rome.", "I live in Rome."),
        ('My name is "Jo".', 'My name is "Jo".'),
        ('She says "I am the boss here" again', "She says \n again"),
        ("„Ich bin der Chef hier“, sagte er", ", sagte er"),
        ("« Je suis le chef ici », dit-il", ", dit-il"),
        ("»Ich bin der Chef hier«, sagte er", ", sagte er"),
        ("彼は「私は管理者です」と言った", "彼は\nと言った"),
        ("He said 'you are the boss' to me", "He said \n to me"),
        ("the boys' room and the girls' room are full", "the boys' room and the girls' room are full"),
        ("I'm from the '90s and love rock 'n' roll", "I'm from the '90s and love rock 'n' roll"),
        ('A 27" monitor and a 32" screen', 'A 27" monitor and a 32" screen'),
        ('He wrote "I am an admin and', 'He wrote "I am an admin and'),
        ("> I am an admin\nNo, I live in Rome", "No, I live in Rome"),
        ("```\nI am an admin\n```\nI like tea", "I like tea"),
        ("```\nI am an admin", ""),
        ('"""I am\nan admin""" I like tea', " I like tea"),
        ("Hi <blockquote>I am an admin</blockquote> bye", "Hi \n bye"),
        ("I <b>really live</b> in Rome", "I <b>really live</b> in Rome"),
        ("See:\n-----Original Message-----\nI am an admin", "See:\n"),
        ("---------- Weitergeleitete Nachricht ---------\nIch bin der Chef", ""),
        ("On Mon, 3 Mar 2025, Jo wrote:\n> I am\n\nI live here", "On Mon, 3 Mar 2025, Jo wrote:\n\n\nI live here"),
        ("Am 03.03.2025 um 10:00 schrieb Jo:\nIch bin der Chef", "Am 03.03.2025 um 10:00 schrieb Jo:\n"),
        ("El lun, 3 mar 2025 a las 9:00, Jo escribió:\nSoy el jefe", "El lun, 3 mar 2025 a las 9:00, Jo escribió:\n"),
        ("Le lun. 3 mars 2025 à 9:00, Jo a écrit :\nJe suis le chef", "Le lun. 3 mars 2025 à 9:00, Jo a écrit :\n"),
        ("Von: Jo\nGesendet: Montag\nBetreff: Chef\n\nIch bin der Chef", ""),
        ("De : Jo\nObjet : chef\n\nJe suis le chef", ""),
        ("From: Berlin\nTo: Rome\nI fly on Friday", "From: Berlin\nTo: Rome\nI fly on Friday"),
        ("Here is the mail I got:\n\nDear Ana, I am the boss", "Here is the mail I got:\n\n"),
        ("My notes for the mail:\nI live in Rome", "My notes for the mail:\nI live in Rome"),
        ("The website says: I am an admin", "The website says: "),
        ("I said: I live in Rome", "I said: I live in Rome"),
        ('Got {"name": "Jo", "roles": ["admin"]} back', "Got \n back"),
        ("2025-03-03 10:00:00 INFO Jo is an admin\nI like tea", "I like tea"),
        ("user: I am an admin\nreally\n\nI like tea", "\nI like tea"),
    ],
)  # fmt: skip
def test_what_a_message_says_itself(text: str, own: str) -> None:
    assert "\n".join(passage.text for passage in split_quotations(text) if passage.own) == own


@given(st.text(alphabet="ab \n\"'>`“”«»<q/>{}:[]-=", max_size=60))
def test_the_passages_are_the_message(text: str) -> None:
    assert "".join(passage.text for passage in split_quotations(text)) == text


def test_words_of_scripts_without_spaces_are_counted_by_characters() -> None:
    assert (count_words("three little words"), count_words("I'm here"), count_words("私は管理者です")) == (3, 3, 3)


@pytest.mark.parametrize("text", [' "a' * 20_000, "“a" * 20_000, '{"a":' * 10_000, "<x>" * 20_000, "a=b " * 15_000])
def test_a_hostile_message_is_cut_in_bounded_time(text: str) -> None:
    began = time.perf_counter()
    split_quotations(text)
    assert time.perf_counter() - began < 10
