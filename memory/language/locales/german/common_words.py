"""Frequent words of German."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

GERMAN_WORDS: Final = CommonWords(
    tag="de",
    function="""
    ich mich mir mein meine meinen meinem meiner wir uns unser unsere du dich dir dein deine er ihn ihm sein seine
    sie ihr ihre es man der die das den dem des ein eine einen einem einer eines und oder aber wenn dass weil von
    zu zum zur in im an am auf aus bei mit nach für über um als wie auch noch schon nur bin bist ist sind war
    waren habe hast hat haben hatte werde wird werden wurde kann muss will soll darf mag nicht kein keine keinen
    ja nein da hier was wer wo wann warum sehr so jetzt heiße wohne arbeite lebe
    """,
    frequent="""
    der die das den dem des ein eine einen einem einer und ist hat nicht kein keine keinen mit bei nach von zu zum
    zur im am aus auf für seit wohnt lebt arbeitet mag heißt spielt spricht trinkt isst raucht mehr war wird sich
    in an als geht fährt geboren hatte ihr ihre seine früher gern
    """,
    first_person="""
    ich mich mir wir uns mein meine meinen meinem meiner unser unsere bin habe bitte
    """,
    short_answers="""
    ja jawohl genau stimmt richtig klar gern gerne korrekt nein nee beide beides das dies diese dieser jener erste
    zweite letzte
    """,
)
