"""Spanish labels of secrets that are not in `lexicon.py`. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

SPANISH_LABELS: Final = SecretLabels(
    language="spanish",
    stems=("contra", "tarjeta", "recuperaci", "respaldo", "contase", "frase", "abrir", "codigo de"),
    labels={
        "passphrase": r"frase (?:maestra|de (?:respaldo|la cartera|la billetera))",
        "pin": (
            r"(?:codigos?|claves?|llaves?) (?:de )?(?:recuperacion|respaldo|emergencia|seguridad)"
            r"|(?:codigo|pin|clave|contrasena) (?:de )?(?:la |mi |tu |su )?tarjeta"
            r"|para abrir [^.!?;:\n]{0,40}?(?:marca|marque|teclea|teclee|pulsa|pulse|introduce|introduzca|escribe)"
        ),
        "password": r"contra|contrasnas?|contrsena|contrasenia|contaseña",
    },
    spelled=(
        "contrasena",
        "clave",
    ),
    copulas=r"es|era|son|eran|sera|fue",
    changes=r"a|por|en",
    change_verbs=r"cambi|puse|puest|actualiz|modific",
    marks=r"(?!)",
    about=(
        r"el|la|los|las|lo|un|una|no|muy|mas|menos|mi|tu|su|que|como|cual|de|del|para|por|con|sin|y|o|larg\w+|cort\w+"
        r"|segur\w+|insegur\w+|incorrect\w+|correct\w+|necesari\w+|obligatori\w+|valid\w+|invalid\w+|olvid\w+|perd\w+"
        r"|nuev\w+|viej\w+|mism\w+|igual|facil|dificil|debil|fuerte|buen\w*|mal\w*|longitud|politica|caduca\w*"
    ),
    units=r"caracter|cifra|digito|letra|palabra|dia|semana|mes|ano|minuto|hora|vez|veces|intento|euro|por ciento",
    joints=r"y|o",
)
