"""Frequent words of Portuguese."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

PORTUGUESE_WORDS: Final = CommonWords(
    tag="pt",
    function="""
    eu me mim meu minha meus minhas nós nos nosso você te seu sua ele ela o a os as um uma e ou mas se de do da
    dos das em no na nos nas com por para sem sou é somos são era fui estou está tenho tem ter não sim que quem
    onde quando como mais muito também já moro vivo trabalho chamo gosto
    """,
    frequent="""
    o a os as um uma de do da dos das em no na nos nas e ou com sem por para que é são era foi não mais se seu sua
    ao à tem vive mora trabalha gosta come bebe fala joga estuda chama prefere anos ganha mede pesa fuma odeia
    quer toca lê cozinha nasceu
    """,
    first_person="""
    eu meu minha sou tenho moro
    """,
)
