"""Patterns of Polish orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

POLISH_ORDERS: Final = short_order_rules(
    "polish",
    always=r"zawsze|nigdy|od teraz|odtad|w przyszlosci|za kazdym razem|(?:gdy|kiedy|jesli) (?:ktos|kto"
    r"|uzytkownik)",
    promote=r"polecaj(?:cie)?|polec(?:cie)?|rekomenduj(?:cie)?|sugeruj(?:cie)?|proponuj(?:cie)?|mow(?:cie)?"
    r"|wspominaj(?:cie)?"
    r"|zachwalaj(?:cie)?|promuj(?:cie)?|wymieniaj(?:cie)?",
    bend=r"ignoruj(?:cie)?|zignoruj(?:cie)?|zapomnij(?:cie)?|pomin(?:cie)?|obejdz(?:cie)?|lam(?:cie)?",
    rules=r"instrukcj|polece[nń]|zasad|regul|ogranicze[nń]|wytyczn|prompt",
    betray=r"ujawnij(?:cie)?|ujawniaj(?:cie)?|zdradz(?:cie)?|pokaz(?:cie)?|wyslij(?:cie)?|wysylaj(?:cie)?"
    r"|udostepnij(?:cie)?",
    treasure=r"has[lł]|prompt|klucz|dane|rozmow|histori|instrukcj|kart",
    mine=r"mi|mnie|mna|nam|nas|moj\w*|moich|po polsku|po angielsku|po niemiecku|krotko|zwiezle|prosto"
    r"|formalnie|uprzejmie"
    r"|list\w*|tabel\w*|emoji|wegetarian\w+|wegan\w+|gluten\w*|laktoz\w*|wieprzowin\w*|mies\w*",
)
