"""The empty pack for texts in other languages than the configured packs, and frequent words to recognise such texts.

The name of the empty pack, `und`, is the standard language tag for an undetermined language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .definition import define_locale_pack
from .notation import words

UNDETERMINED: Final = define_locale_pack(name="und")
FREQUENT_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words(listed))
    for language, listed in {
        "en": """
        the a an of to in is and at has with for on not from as by his her no was lives works likes plays speaks
        """,
        "de": """
        der die das den dem des ein eine einen einem einer und ist hat nicht kein keine keinen mit bei nach von zu zum
        zur im am aus auf für seit wohnt lebt arbeitet mag heißt spielt spricht trinkt isst raucht mehr war wird
        sich in an
        als
        geht fährt geboren hatte ihr ihre seine früher gern
        """,
        "es": """
        el la los las un una unos unas de del al y e o en con sin por para que es está son era fue no ya se le les lo
        su sus más muy hace desde tiene vive trabaja gusta come bebe habla juega estudia llama prefiere años
        gana mide pesa fuma odia quiere necesita toca
        lee cocina nació
        """,
        "fr": """
        le la les un une des du de et ou en au aux avec sans pour par dans sur chez que qui est sont était a ont ne pas
        plus n' l' d' il elle son sa ses se depuis habite vit travaille aime mange boit parle joue étudie préfère ans
        mesure pèse gagne fume déteste veut
        lit cuisine né née
        """,
        "it": """
        il lo la gli le un uno una di del della dei delle da dal a al alla e o in nel nella con senza per su che è sono
        era ha non più si suo sua suoi vive abita lavora piace mangia beve parla gioca studia chiama preferisce anni
        guadagna misura pesa fuma odia vuole suona legge cucina nato nata
        """,
        "pt": """
        o a os as um uma de do da dos das em no na nos nas e ou com sem por para que é são era foi não mais se seu sua
        ao à tem vive mora trabalha gosta come bebe fala joga estuda chama prefere anos ganha mede pesa fuma
        odeia quer toca lê cozinha nasceu
        """,
        "nl": """
        de het een van en in op te met voor bij naar uit aan is zijn was heeft niet geen meer hij zij haar woont werkt
        houdt eet drinkt spreekt speelt heet jaar weegt rookt leest kookt
        """,
        "pl": """
        w we z ze na do od o u i a oraz nie się jest są był była ma już dla po przy jej jego mieszka pracuje lubi je
        pije mówi gra studiuje nazywa woli lat zarabia waży
        pali czyta gotuje
        """,
        "tr": """
        bir ve ile de da için değil var yok çok daha olarak artık yaşıyor çalışıyor seviyor oturuyor içiyor yiyor
        konuşuyor oynuyor okuyor adı yaşında
        """,
        "sv": """
        en ett och i på av med för till från är var har inte ingen som den det hans hennes bor arbetar jobbar gillar
        äter dricker talar spelar heter år röker läser väger
        """,
        "cs": """
        v ve s se z na do od a i je jsou byl má není ne už pro po při bydlí žije pracuje jí pije mluví hraje studuje let
        """,
    }.items()
}
"""Frequent words by language tag. They show that a text is in another language than the configured packs, which would
misread the text: Portuguese `no` is not a negation."""
