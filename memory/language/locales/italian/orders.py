"""Patterns of Italian orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

ITALIAN_ORDERS: Final = short_order_rules(
    "italian",
    always=r"sempre|mai|d'ora in poi|da ora in poi|da adesso|in futuro|ogni volta che|(?:quando|se) (?:si"
    r"|qualcuno|l'utente)"
    r" (?:ti |te lo )?(?:chied|parl|domand)\w+",
    promote=r"raccomanda(?:te)?|raccomandi|consiglia(?:te)?|suggerisci|suggerite|suggerisca|proponi"
    r"|proponete|promuovi"
    r"|promuovete|menziona(?:te)?|dite che|di' che",
    bend=r"ignora(?:te|re)?|ignori|dimentica(?:te|re)?|dimentichi|trascura(?:te)?|aggira(?:te)?|disattiva(?:te)?",
    rules=r"istruzion|regol|direttiv|restrizion|filtr|linee guida|prompt",
    betray=r"rivela(?:te)?|riveli|divulga(?:te)?|divulghi|mostra(?:te)?|invia(?:te)?|invii|manda(?:te)?"
    r"|inoltra(?:te)?"
    r"|condividi|condividete",
    treasure=r"password|prompt|chiav[ei]|credenzial|istruzioni|conversazion|cronologia|dati personali"
    r"|carta di credito",
    mine=r"mi|me|noi|nostr\w+|mi[oaei]|mie[il]?|italiano|inglese|tedesco|francese|spagnolo|brev[ei]|corto"
    r"|conciso|semplic[ei]"
    r"|formale|gentil[ei]|elenchi|tabelle|emoji|amic[io]\w*|collegh\w+|vegetarian\w+|vegan\w+|glutine"
    r"|lattosio|maiale|carne",
)
