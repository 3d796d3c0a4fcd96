"""Frequent words of English."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

ENGLISH_WORDS: Final = CommonWords(
    tag="en",
    function="""
    i me my mine we us our you your he him his she her it its they them their this that these those the a an and
    or but so if of to in on at by for with from as into about over than then too also am is are was were be been
    being do does did done have has had having will would shall should can could may might must not no yes there
    here what which who whom when where why how all any some just very really m s re ve ll d t don't i'm i've it's
    user users currently now get gets got
    """,
    frequent="""
    the a an of to in is and at has with for on not from as by his her no was lives works likes plays speaks
    """,
    first_person="""
    i me my mine myself we us our ours please
    """,
    short_answers="""
    yes yeah yep yup sure right correct exactly indeed true ok okay fine please that this those these it one first
    second latter former last same agreed absolutely definitely course no nope not never neither both all none
    mine me too
    """,
)
