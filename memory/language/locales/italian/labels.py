"""Italian labels of secrets: words that announce a secret. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

ITALIAN_LABELS: Final = SecretLabels(
    language="italian",
    stems=(
        "dati",
        "parol",
        "codic",
        "chiav",
        "frase",
        "credenzial",
        "rispost",
        "aprire",
        "passw",
        "numero s",
        "combinaz",
    ),
    labels={
        "passphrase": (
            r"frase (?:di )?(?:recupero|seed|segreta|mnemonica|d'accesso|di sicurezza)|parole di recupero"
            r"|risposta (?:segreta|di sicurezza|alla domanda (?:segreta|di sicurezza))"
        ),
        "api_key": r"chiav[ei] (?:dell[ae']? ?)?api|chiave segreta|chiave di accesso",
        "pin": (
            r"codic[ei] (?:pin|segret[oi]|cvv2?|cvc|otp|sms|di (?:accesso|sicurezza|sblocco|verifica|recupero"
            r"|backup|emergenza"
            r"|conferma|ripristino)|del(?:la|l'|lo)? ?(?:portone|porta|cancello|allarme|garage|cassaforte"
            r"|carta|bancomat"
            r"|citofono|lucchetto|telefono|sim|armadietto|casa)|(?:di )?autenticazione|d'accesso)"
            r"|combinazione d(?:ella|el|i) (?:cassaforte|lucchetto|armadietto)|pin (?:del|della"
            r"|di)(?: (?:bancomat|carta|telefono|sim))?"
            r"|(?:per )?aprire [^.!?;:\n]{0,40}?(?:digita|digitare|premi|inserisci|componi|scrivi)"
        ),
        "password": (
            r"pas+w?[ow]r?ds?|parol[ae] (?:d'ordine|di accesso|d'accesso|chiave|segreta)|parola d ordine|passw"
        ),
    },
    credentials=r"credenziali|dati (?:di|d') ?(?:accesso|login)",
    spelled=("parola",),
    copulas=r"e|era|sono|sarebbe|sara|diventa|e diventata|rimane",
    sure_copulas=r"e|era",
    changes=r"in|con|a",
    change_verbs=r"cambi|impost|mess|modific|aggiorn",
    marks=r"\b(?:il|gli|mia|mio|mie|della|che|nel|sono|questa|perche|e'|casella)\b|è",
    about=(
        r"il|lo|la|le|gli|un|una|uno|non|molto|troppo|piu|meno|mia|mio|tua|tuo|sua|suo|che|come|cosa|dove"
        r"|di|da|del\w*"
        r"|per|con|su|in|a|al\w*|e|o|sbagliat\w+|corrett\w+|err\w+|scadut\w+|cort\w+|lung\w+|debol\w+"
        r"|fort\w+|dimentic\w+"
        r"|pers\w+|nuov\w+|vecchi\w*|necessari\w+|obbligatori\w+|richiest\w+|scritt\w+|salvat\w+|ugual\w+|divers\w+"
        r"|facil\w+|difficil\w+|sicur\w+|segret\w+|valid\w+|invalid\w+|cambiat\w+|cifrat\w+|important\w+"
        r"|stess\w+|quell\w+"
        r"|quest\w+|deve|devono|scade|ogni|pazienza|username|user|nome|pin|email|mail|login|utente|password|lunghezza"
        r"|semplic\w+|compless\w+|protett\w+|bloccat\w+|rubat\w+|vuot\w+|unic\w+|buon\w+|pessim\w+"
        r"|inutil\w+|postale|client\w+"
        r"|stat\w+|fondamentale|tutto|niente|sempre|mai|ancora|qui|li|tent\w+"
    ),
    units=(
        r"caratter|cifr|letter|parol|numer|giorn|settiman|mes|ann|minut|or[ae]\b|volt|tentativ|second|euro"
        r"|simbol|per cento"
    ),
    joints=r"e|ed|o",
)
