"""Frequent words of Spanish."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

SPANISH_WORDS: Final = CommonWords(
    tag="es",
    function="""
    yo me mi mis mí nosotros nos nuestro nuestra tú te tu tus él ella lo la le les se su sus ello ellos ellas este
    esta esto ese esa eso el los las un una unos unas y e o u pero si de del a al en con por para sin sobre como
    más muy también ya soy eres es somos son era fue estoy estás está están he has ha hemos han había tengo tiene
    ser estar haber no sí que qué quién cuándo dónde hay aquí vivo trabajo llamo gusta
    """,
    frequent="""
    el la los las un una unos unas de del al y e o en con sin por para que es está son era fue no ya se le les lo
    su sus más muy hace desde tiene vive trabaja gusta come bebe habla juega estudia llama prefiere años gana mide
    pesa fuma odia quiere necesita toca lee cocina nació
    """,
    first_person="""
    yo mi mis nosotros nuestro nuestra soy estoy tengo vivo trabajo quiero prefiero llamo favor
    """,
    short_answers="""
    sí si claro exacto correcto vale cierto eso ese esa esos aquel no ambos primera primero segunda segundo última
    """,
)
