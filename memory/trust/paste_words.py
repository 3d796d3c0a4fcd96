"""Words that identify pasted text, in English, German, Spanish and French.

They are mail headers, attributions (`Ann wrote:`), announcements (`here is the mail:`), verbs of saying, and names of
roles. own_words.py compiles them as parts of case-insensitive regular expressions.
"""

from __future__ import annotations

from typing import Final

HEADER_NAMES: Final = (
    r"from|sent|to|cc|bcc|subject|date|reply-to|von|gesendet|an|betreff|datum|kopie|de|envoyé|envoyée|à|a|objet|date"
    r"|enviado(?: el)?|para|asunto|fecha|copie"
)
STRONG_HEADERS: Final = r"subject|sent|bcc|cc|reply-to|gesendet|betreff|envoyée?|objet|enviado(?: el)?|asunto"
"""Header names that only mails have. The names `from`, `to` and `date` are not listed, because they also occur in texts
about travel."""

SEPARATOR: Final = (
    r"original message|forwarded message|begin forwarded message|original e-?mail|forwarded e-?mail"
    r"|ursprüngliche (?:nachricht|e-?mail)|original-?nachricht|weitergeleitete (?:nachricht|e-?mail)"
    r"|anfang der weitergeleiteten (?:nachricht|e-?mail)"
    r"|mensaje (?:original|reenviado)|inicio del mensaje reenviado|correo (?:original|reenviado)"
    r"|message (?:d['’]origine|original|transféré|initial)|début du message (?:réexpédié|transféré)"
    r"|courriel (?:d['’]origine|transféré)"
)

_UP_TO_80: Final = r"(?:[^:\n]{1,80}|(?<=\s))"
_UP_TO_60: Final = r"(?:[^:\n]{1,60}|(?<=\s))"
"""The beginning of an attribution, up to 80 or 60 characters; it may be empty after white space."""
ATTRIBUTION: Final = (
    rf"(?:on\s.{{4,150}}|{_UP_TO_80}<[^\s<>@]{{1,80}}@[^\s<>@]{{1,80}}>[^:\n]{{0,60}}"
    rf"|{_UP_TO_60}(?:\d{{4}}|\d\d?[./]\d\d?)[^\n]{{0,60}})\bwrote"
    rf"|(?:am|um|on)\s.{{4,150}}\bschrieb\b.{{0,90}}?|{_UP_TO_80}\bschrieb am .{{4,60}}?"
    rf"|el\s.{{4,150}}\bescribi[óo]|{_UP_TO_80}\bescribi[óo] el .{{4,60}}?"
    rf"|le\s.{{4,150}}\b(?:a\sécrit|écrivait)|{_UP_TO_80}\ba\sécrit le .{{4,60}}?"
)

_NOUNS: Final = (
    r"e-?mails?|mails?|messages?|letters?|articles?|(?:web ?)?pages?|web ?sites?|texts?|reviews?|posts?|tweets?|blogs?"
    r"|logs?"
    r"|outputs?|transcripts?|story|stories|chapters?|poems?|quotes?|quotations?|lyrics|passages?|paragraphs?|comments?"
    r"|snippets?|documents?|files?|readme|invoices?|reports?|adverts?|ads?|listings?|dialogues?|chats?|conversations?"
    r"|results?"
    r"|tickets?|newsletters?|flyers?|notices?|sms|pdf"
    r"|nachricht(?:en)?|brief|artikel|seite|web-?seite|text(?:e|es)?|bewertung(?:en)?|beitrag|ausgabe|protokoll|geschichte"
    r"|kapitel|gedicht|zitat|liedtext|absatz|kommentar|dokument|datei|rechnung|bericht|anzeige|inserat|gespräch|ergebnis"
    r"|correos?|mensajes?|carta|artículo|página|texto|reseña|publicación|registro|salida|historia|capítulo|poema|cita|letra"
    r"|párrafo|comentario|documento|archivo|factura|informe|anuncio|conversación|resultado"
    r"|courriels?|lettre|texte|avis|publication|sortie|histoire|chapitre|poème|citation|paroles|paragraphe|commentaire"
    r"|fichier|facture|rapport|annonce|résultat"
)
_CUES: Final = (
    r"this|these|that|following|below|here(?:'s| is| are)|got|received|found|says?|said|states?|reads?|wrote|sent|from"
    r"|copied|pasted|quoted?|forwarded"
    r"|diese[rsnm]?|folgende[rsnm]?|hier|bekommen|erhalten|gefunden|steht|sagt|schreibt|schrieb|lautet|von"
    r"|est[eao]s?|siguientes?|aquí|recibí|recibido|llegó|encontré|dice|escribió|de"
    r"|cet?|cette|ces|suivante?s?|voici|voilà|reçue?|trouvée?|dit|écrit"
)
_TASKS: Final = (
    r"translate|summari[sz]e|proof-?read|paraphrase|rewrite|reword|shorten|correct|edit|analy[sz]e|reply to|respond to"
    r"|übersetze?n?|fasse?|korrigiere?|kürze?|formuliere?|beantworte?|lies"
    r"|traduce|traduzca|resume|corrige|revisa|acorta|reescribe|analiza"
    r"|traduis|traduisez|résume|résumez|corrigez|relis|relisez|raccourcis|réécris|reformule|analyse[zr]?"
)
ANNOUNCED: Final = (
    rf"^(?!.*\b(?:my|mein\w*|mi|mon|ma)\s(?:\w+\s)?(?:{_NOUNS})\b)"
    rf"(?=.*\b(?:{_NOUNS})\b)(?=.*\b(?:{_CUES})\b).*"
    rf"|^(?:please\s|bitte\s|por favor,?\s|(?:can|could|would) you\s|kannst du\s|puedes\s|peux-tu\s)*(?:{_TASKS})\b.*"
)
"""A sentence before a colon that announces a text (`here is the mail`) or asks for a task with a text (`translate`)."""

REPORTED: Final = (
    r"(?:^|[.!?]\s++)(?![^.!?\n]{0,60}\b(?:i|we|ich|wir|yo|je|nous)\s(?:\w+\s)?(?:sa|wr|st|tol|tel|re|cl|schr|be|me|d|é|esc|af))"
    r"[^.!?:\n\"“„«]{2,80}\b(?:says|said|states|stated|reads|writes|wrote|claims|claimed|tells (?:me|us)|told (?:me|us)"
    r"|sagt|sagte|schreibt|schrieb|steht|stand|lautet|behauptet|meint|meinte"
    r"|dice|dijo|decía|pone|escribe|escribió|afirma"
    r"|dit|disait|écrit|affirme|indique)"
    rf"|(?:^|[.!?]\s++)(?:please\s|bitte\s|por favor,?\s)?(?:{_TASKS})\b[^.!?:\n]{{0,60}}"
)
"""A clause before a colon that reports the words of somebody other than the speaker (`she said`), or that asks for a
task with the text after the colon (`translate`)."""

ROLE_NAMES: Final = (
    r"user|assistant|system|tool|human|ai|bot|chat ?bot|model|developer|function|operator|administrator"
    r"|nutzer(?:in)?|benutzer(?:in)?|assistent(?:in)?|werkzeug|usuari[oa]|asistente|sistema|herramienta|utilisateur"
    r"|utilisatrice|assistante|système|outil"
)
