"""Frequent words of French."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

FRENCH_WORDS: Final = CommonWords(
    tag="fr",
    function="""
    je j m me moi mon ma mes nous notre nos tu te toi ton ta tes il elle on lui leur ils elles se son sa ses ce c
    cet cette ces le la les l un une des du de d et ou mais si à au aux en dans sur avec pour par sans chez comme
    plus très aussi suis es est sommes sont étais était ai as a avons ont avait être avoir fais fait ne n pas non
    oui que qu qui quoi où quand pourquoi y habite travaille vis appelle
    """,
    frequent="""
    le la les un une des du de et ou en au aux avec sans pour par dans sur chez que qui est sont était a ont ne
    pas plus n' l' d' il elle son sa ses se depuis habite vit travaille aime mange boit parle joue étudie préfère
    ans mesure pèse gagne fume déteste veut lit cuisine né née
    """,
    first_person="""
    je moi mon ma mes nous notre nos suis ai plaît
    """,
    short_answers="""
    oui ouais exactement voilà bien sûr d'accord correct non celui celle ceux ça cela premier première deuxième
    dernier dernière
    """,
)
