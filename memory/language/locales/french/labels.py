"""French labels of secrets that are not in `lexicon.py`. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

FRENCH_LABELS: Final = SecretLabels(
    language="french",
    stems=(
        "carte",
        " cb",
        "secours",
        "recuperation",
        "de pas",
        "du pas",
        "motdepas",
        "mot-de-pas",
        "mdp",
        "ouvrir",
        "sauvegarde",
    ),
    labels={
        "passphrase": r"phrase (?:maitresse|de (?:secours|sauvegarde|mon portefeuille))",
        "pin": (
            r"codes? (?:de )?(?:la |ma |sa |ta |notre |votre )?(?:carte|cb)(?: (?:bleue|bancaire|de credit"
            r"|bleu|visa))?"
            r"|(?:codes?|cles?) de (?:secours|recuperation|sauvegarde|restauration|depannage)"
            r"|pour ouvrir [^.!?;:\n]{0,40}?(?:tape|tapez|taper|compose|composez|composer|entre|entrez)"
        ),
        "password": r"(?!mots? de passe\b)mots? d[eu] pas+e?s?|mot-de-passe|motdepasse",
    },
    copulas=r"est|etait|c'est|sont|cest|sera",
    changes=r"en|par|pour",
    change_verbs=r"chang|mis |modifi",
    marks=r"(?!)",
    about=(
        r"le|la|les|l|un|une|des|du|de|mon|ma|ton|ta|son|sa|ne|pas|tres|trop|plus|moins|qui|que|quoi"
        r"|comment|pour|avec"
        r"|sans|et|ou|long\w*|court\w*|faible|fort\w*|sur\w*|incorrect\w*|correct\w*|faux|fausse|bon\w*|mauvais\w*"
        r"|obligatoire|necessaire|requis\w*|valide|invalide|facile|difficile|oubli\w+|perdu\w*|expire\w*|change\w*"
        r"|bloque\w*|longueur|politique|grave\w*|mere|postal"
    ),
    units=r"caractere|chiffre|lettre|mot|jour|semaine|mois|an\b|ans\b|annee|minute|heure|fois|essai|tentative|euro",
    joints=r"et|ou",
)
