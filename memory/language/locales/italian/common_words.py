"""Frequent words of Italian."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

ITALIAN_WORDS: Final = CommonWords(
    tag="it",
    function="""
    io mi mio mia miei mie noi ci nostro tu ti tuo lui lei lo la gli le si suo sua il i un uno una e o ma se di
    del della da dal a al in nel nella con per su sono sei è siamo era ho hai ha abbiamo hanno non sì che chi dove
    quando come più molto anche vivo abito lavoro chiamo piace faccio
    """,
    frequent="""
    il lo la gli le un uno una di del della dei delle da dal a al alla e o in nel nella con senza per su che è
    sono era ha non più si suo sua suoi vive abita lavora piace mangia beve parla gioca studia chiama preferisce
    anni guadagna misura pesa fuma odia vuole suona legge cucina nato nata
    """,
    first_person="""
    io mio mia sono ho lavoro
    """,
)
