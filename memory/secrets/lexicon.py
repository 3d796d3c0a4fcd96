"""Words around a secret in a sentence, in English, German, Spanish and French, in lower case and without accents.

`NOUNS` name a secret. Connectors are between the noun and its value. `TOPIC` words are not values: they show that the
text only talks about a password.
"""

from __future__ import annotations

import re
from typing import Final

from ..language.locales.secret_labels import SecretKind

NOUNS: Final[tuple[tuple[SecretKind, str], ...]] = (
    (
        "passphrase",
        r"pass[ _-]?phrases?|passphrase[ns]?|(?:recovery|seed|secret|backup|mnemonic|wallet) phrase|"
        r"(?:security|secret) answer|answer to (?:my|the|his|her) (?:security|secret) question|"
        r"sicherheitsantwort|wiederherstellungsphrase|"
        r"frase (?:de (?:contrasena|paso|recuperacion|seguridad)|secreta|semilla)|respuesta secreta|"
        r"phrase (?:secrete|de passe|de recuperation|mnemonique)|reponse secrete",
    ),
    (
        "api_key",
        r"api[ _-]?keys?|api[ _-]?secrets?|(?:secret|access|client|account|app|application|signing|shared|encryption|"
        r"auth|license|licence|service|subscription|storage|webhook)[ _-]?(?:access[ _-]?)?(?:key|secret)s?|"
        r"secret_key_base|api-?schlussel|zugriffsschlussel|geheimschlussel|geheimer schlussel|"
        r"(?:clave|llave) (?:de )?(?:la )?api|clave secreta de api|cle (?:d'|de l')?api|cle secrete d'api|secrets?",
    ),
    ("token", r"tokens?|bearer|zugriffstokens?|jetons?(?: d'acces)?"),
    (
        "pin",
        r"nip|(?:use|enter|type|using) (?:the )?code|(?:lock|locker|safe|vault|bike lock|padlock) combo|"
        r"code (?:you|they|we|i|he|she) (?:just )?(?:sent|got|gave|received|texted)(?: me| you| us)?|"
        r"pins?(?:[ _-]?(?:codes?|numbers?|nummern?|nr))?|otp|totp|cvv2?|cvc2?|csc|puk2?|tan|mtan|"
        r"(?:door|gate|garage|alarm|security|entry|entrance|access|lock|locker|keypad|key ?code|safe|vault|building|"
        r"verification|one[ -]time|unlock|sms|2fa|mfa|otp|authentication|authenticator|login|log-?in|sign[ -]?in|"
        r"backup|recovery|lockbox|key ?box|burglar alarm)[ _-]?(?:pass)?codes?|"
        r"(?:safe|lock|locker|vault) combination|combination (?:to|for|of) (?:the|my|our) (?:\w+ )?(?:safe|"
        r"lock|locker|vault)|"
        r"code (?:to|for|of) (?:the|my|our|his|her) (?:\w+ )?(?:door|gate|garage|safe|alarm|lock|locker|"
        r"building|house|"
        r"vault|flat|apartment|office|entrance|card|phone)|"
        r"geheimzahl(?:en)?|geheimnummer|(?:tur|haustur|tor|garagen|alarm|sicherheits|zugangs|safe|tresor|entsperr|"
        r"bestatigungs|verifizierungs|einmal|anmelde|freischalt|sperr|schloss|schliessfach|"
        r"prufziffern?)-?(?:code|zahl|pin)s?|"
        r"code (?:fur|von|vom|zum|zur) (?:\w+ )?(?:tur|haustur|tor|garage|safe|tresor|alarmanlage|schloss|"
        r"schliessfach)|"
        r"codigo (?:pin|secreto|de (?:la |el |mi )?(?:seguridad|verificacion|acceso|desbloqueo|puerta|alarma|tarjeta|"
        r"garaje|entrada|un solo uso)|del (?:porton|portal|garaje|candado|edificio)|de mi (?:puerta|tarjeta|"
        r"casa))|numero secreto|"
        r"code (?:secret|pin|confidentiel|a usage unique|d'acces|d'entree|de (?:la |l'|ma |mon )?(?:porte|"
        r"alarme|securite|"
        r"verification|carte|deverrouillage|validation|entree)|du (?:portail|coffre|garage|cadenas|"
        r"portillon|batiment)|"
        r"de l'immeuble)|digicode|cryptogramme",
    ),
    (
        "password",
        r"p[a@4][s$5]{2}[ _-]?w[o0]rds?|pass[ _-]?codes?|passwds?|pwds?|psswrd|psw|pw|pass|"
        r"(?:wi-?fi|wlan|wpa2?3?|network|wireless|router)[ -]?(?:key|pass|code)|"
        r"passworter[ns]?|passwort(?:e?s)?|passwoerter|kennworter|kennwort(?:e?s)?|losungswort|zugangswort|"
        r"(?:wlan|wi-?fi|wpa2?|netzwerk|netzwerksicherheits)-?schlussel|"
        r"contrasenas?|palabra (?:de paso|clave|secreta)|claves?(?: de (?:acceso|usuario|seguridad))?(?: "
        r"(?:secreta|wifi|personal))?|"
        r"mots? de passe|mdp|code (?:du |de la )?wi-?fi|codigo (?:del |de la )?wi-?fi|cle (?:wi-?fi|wpa2?|"
        r"de securite|reseau)",
    ),
)
"""Names of secrets, by kind. The first kind that matches at a position wins."""
SHORT_NOUN: Final = 6
"""Maximum length of a noun that counts only as a whole word: `pin` does not count in `spinning`."""
AMBIGUOUS: Final = re.compile(r"claves?|cle .*|llave .*|tan|pass")
"""Nouns that also have another meaning. The value after such a noun must look like a secret."""
ANOTHER_ONE: Final = re.compile(
    r"(?:\b(?:old|new|previous|former|current|other|second|first|last|next|backup|work|home) (?:ones?|password|pin)|"
    r"\bbefore that it|"
    r"\b(?:das|die) (?:alte|neue|andere|vorige|zweite)|\b(?:la|el) (?:antigua|anterior|vieja|nueva|otra|segunda)|"
    r"\bl'(?:ancien|autre)|\ble (?:nouveau|precedent|deuxieme))(?: (?:is|was|ist|war|lautet|es|era|est|etait)|:) "
)
"""Phrases that announce a further value, in a text that already contains a value."""
STEMS: Final = (
    "pass", "pw", "psw", "pin", "otp", "cvv", "cvc", "csc", "puk", "tan", "code", "codigo", "crypto", "combination",
    "combo", "key", "secret", "token", "bearer", "jeton", "schlussel", "kennw", "losungs", "zugangswort", "geheim",
    "contrasena", "clave", "palabra", "mdp", "cle ", "phrase", "frase", "answer", "antwort", "respuesta", "reponse",
    "llave", "pa$", "pa5", "p@s", "p@$", "p@5", "p4s", "p4$", "p45", "pas5", "pssw", "w0rd", "zahl", "cred", "login",
    "log-in", "zugangs", "anmelde", "acceso", "identifiant", "nip",
)  # fmt: skip
"""Parts of words. A text without any of them names no secret."""

_QUALIFIERS = (
    "for|to|of|on|at|in|from|into|that|which|here|fur|furs|von|vom|zu|zum|zur|meiner|meines|unseres|unserer|"
    "des|der|am|im|bei|"
    "de|del|para|al?|en|du|d'|pour|sur|au|dans|(?:i|we|you) (?:use|have|chose|gave|set)"
)
_MARKS = r"[\"'`*_)\]]{0,3}"
SYMBOL: Final = re.compile(
    rf"(?: ?\([^()\n]{{1,40}}\)| [\w.'&-]{{1,24}}){{0,4}}?{_MARKS}[ \t]{{0,4}}"
    r"(?::=|=>|->|==?|:|\||\u2192|\u27a1|>(?=[^\s=])|(?<=[ \t])-(?=[ \t]))[ \t]{0,4}(?:\r?\n[ \t]{0,8})?[*_]{0,3}"
)
"""`:`, `=` or an arrow, after up to four words."""
_COPULAS = (
    r"(?:is|was|are|were|be|equals|reads|remains|isn't it|"
    r"ist|war|lautet|lautete|heisst|hei\u00dft|hiess|hie\u00df|sind|waren|ware|"
    r"es|era|son|fue|sera|seria|eran|est|etait|c'est|sera|sont|serait|cest|stays)"
)
_ADVERBS = (
    r"(?: (?:now|currently|still|always|again|just|simply|actually|probably|also|only|literally|basically|"
    r"jetzt|nun|aktuell|derzeit|immer noch|noch|immer|einfach|nur|ubrigens|auch|"
    r"ahora|actualmente|todavia|siempre|simplemente|solo|tambien|maintenant|toujours|encore|simplement|juste|aussi))?"
)
_CHANGES = (
    r"(?:set|changed|reset|updated|switched|rotated|renamed|geandert|gesetzt|cambiada?|change|mis a jour|modifie)"
)
VERB: Final = re.compile(
    rf"(?:'s|(?:,? (?:(?:{_QUALIFIERS}) ?[^,.;:!?=\n]{{0,60}}?))?,?(?: (?:must|should|will|would|has to|"
    rf"used to|might|may|can))?"
    rf" {_COPULAS}){_ADVERBS}(?: (?:being|been))?(?: {_CHANGES} (?:to|auf|a|en|por|par))?"
    r"(?: as)?[:,]?(?:[ \t]+|[ \t]*\r?\n[ \t]*)"
)
"""A copula, optionally after the purpose of the secret."""
NAMED_VERB: Final = re.compile(
    r"(?: (?!reset|manager|length|policy|policies|rules?|strength|hash|expir|change|field|box|prompt|check|"
    r"recovery|hint|generator|"
    r"protect|entry|attempt|limit|size|format|tool|app|page|link|safe|security|zuruck|wechsel|"
    r"manag)[\w.@&-]{1,20}){1,2}"
    rf",? {_COPULAS}{_ADVERBS}:?[ \t]+"
)
"""A copula after one or two words for the service of the password: `mot de passe gmail est`. The value must look like a
secret."""
CHANGE: Final = re.compile(
    r"(?: (?:for|of|on|fur|de|del|du|pour) [^,.;:!?=\n]{1,40}?)? (?:(?:was |is |got |has been |have been )?"
    rf"(?:{_CHANGES} ))?(?:to|auf|zu|a|por|en|par):? +|(?: has been| wurde| ha sido| a ete)? (?:auf|"
    rf"{_CHANGES} (?:to|auf|a|en|por|par)):? +"
)
"""The words before a changed value: `changed my password to`. The value must look like a secret."""
FOLLOW_UP: Final = re.compile(
    r"[?.!,;:]{0,2} {1,2}(?:it'?s|it is|it was|that'?s|this is|here it is|here you go|es ist|sie ist|er ist|"
    r"es lautet|sie lautet|"
    r"das ist|namlich|es|c'est|la voici|le voici|voici|aqui (?:esta|va|tienes)|i\.?e\.?|namely):? "
)
"""The beginning of a separate sentence with the value."""
BESIDE: Final = re.compile(r",?[ \t]{1,3}(?:#|no\.?|nr\.?|num\.?)?[ \t]?")
"""The characters between a noun and a value that directly follows it."""
_OWNERS = (
    r"my|the|our|your|his|her|their|its|mein|meine|das|unser|dein|sein|ihr|die|mi|la|el|su|tu|nuestra|mon|"
    r"ma|le|notre|ton|"
    r"son|\w{2,16}'s"
)
BEFORE_NOUN: Final = re.compile(
    r"(?:^|(?<=[\s\"'`(,]))(?P<value>\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'|`[^`\n]{1,64}`|[^\s\"'`]{3,64}),? "
    r"(?:(?:is|was|'s|are|for|"
    r"ist|war|fur|lautet|es|era|para|de|est|etait|pour)"
    r"(?: (?:now|still|also|jetzt|noch|auch|ahora|tambien|maintenant|aussi))?"
    rf"(?: (?:{_OWNERS}))?|(?:as|als|como|comme)(?: (?:a|an|ein|una|un|{_OWNERS}))?|\((?:{_OWNERS}))(?: "
    rf"[\w'-]{{1,16}}){{0,2}}?[ -]$"
)
"""A value before the noun: `hunter2 is my password`, `use hunter2 as the password`."""
GENERIC: Final = re.compile(
    r"(?:common|popular|typical|good|bad|strong|weak|worst|example|sample|haufigste|beliebteste|gutes|"
    r"schlechtes|typisches|comun|"
    r"tipica|buena|mala|courant|typique|bon|mauvais)(?: (?:wifi|banking|admin))? $"
)
"""Words before a noun. They show that the noun means no specific password."""
OF_A_DAY: Final = re.compile(
    r" (?:of the (?:day|week|month|year)|des (?:tages|monats)|del (?:dia|mes)|du (?:jour|mois))\b"
)
"""Words after a noun. They show that the noun means the password of a game."""
STORY: Final = re.compile(
    r"\b(?:in|of|from|im|aus|de|en|dans) (?:the|that|this|dem|einem|la|el|le|une?|un) "
    r"(?:novel|film|movie|story|book|show|series|episode|tale|fairy tale|roman|marchen|buch|novela"
    r"|pelicula|serie|cuento|libro"
    r"|conte|livre)\b"
)
"""Words that show that the text is about a story."""
AND: Final = re.compile(r"(?:,| and| or| und| oder| y| o| et| ou|/| /) ?")
"""Words and punctuation between two values."""
UNITS: Final = re.compile(
    r"[ -]?(?:more |weitere |mas |plus )?(?:char|letter|digit|sign|symbol|word|number|day|week|month|year|"
    r"minute|hour|second|time|"
    r"bit|byte|percent|attempt|tr(?:y|ies)\b|user|account|people|"
    r"lines?\b|zeichen|stell|ziffer|buchstabe|wort|tag|woche|monat|jahr|minute|stunde|versuch|"
    r"caracter|cifra|digito|letra|palabra|dia|semana|mes|ano|minuto|hora|vez|veces|intento|"
    r"chiffre|lettre|mot|jour|semaine|mois|an\b|ans\b|annee|heure|fois|essai|tentative|euro|dollar)"
)
"""Beginnings of counted things. A number before one of them is not a value."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: Final = _words(
    # English: determiners, prepositions, pronouns, conjunctions, adverbs, auxiliaries
    "a an the this that these those my your his her its our their mine yours hers ours theirs it he she we "
    "they i you me us them "
    "in on at under behind with without from by to for of between over up down about after before below "
    "above near inside "
    "and or but if when while because since so than then as what which who whose where why how whether "
    "not no yes too very quite rather pretty really only just still already always never also again here "
    "there now today "
    "tomorrow yesterday soon often sometimes maybe perhaps probably almost exactly enough some any all both "
    "each every either "
    "neither one two three four five six seven eight nine ten something anything nothing everything someone "
    "anyone nobody "
    "is are was were be been being am do does did done has have had having can could will would shall "
    "should may might must "
    "going gonna supposed meant made kept gone got get gets given written taken known lost sent set unset "
    "seen shown found held "
)  # fmt: skip
"""English function words. A sequence of words that contains one of them is a sentence, not a secret."""
QUALITIES: Final = _words(
    # English: descriptions of passwords
    "long short longer shorter weak strong stronger weaker secure insecure safe unsafe safer wrong right "
    "correct incorrect "
    "invalid valid required needed necessary optional mandatory missing empty blank void old older new "
    "newer same different "
    "easy easier hard harder difficult simple complicated complex unique good bad better worse best worst "
    "fine ok okay great "
    "awful horrible ugly stupid dumb silly funny cool nice secret private public important confidential "
    "sensitive personal "
    "visible hidden clear plain plaintext default temporary permanent random generic common obvious due "
    "similar identical "
    "none null nil true false undefined unknown string str text bool boolean int integer number object "
    "varchar char todo tbd n/a "
    "na redacted masked removed hidden see ask tell none. please thanks sorry later again somewhere "
    "anywhere everywhere nowhere "
    "broken useless worthless garbage rubbish crap shared case top sort kind part full half ready available "
    "active inactive off "
    "reset change policy manager expired stored leaked ours up-to-date told said read "
    "put let cut bought thought felt left met "
    "paid sold built stolen chosen frozen forgotten spoken worn mask label drop allow "
    # German
    "der die das den dem des ein eine einer einem einen eines mein meine meinem dein deine sein seine ihr "
    "ihre unser unsere kein "
    "keine ich du er sie es wir man auf bei beim im in am an unter uber hinter mit ohne von vom fur zu zum "
    "zur aus nach vor "
    "und oder aber wenn weil dass ob als wie was wer wo warum nicht nie immer nur noch schon auch sehr ganz "
    "zu so ziemlich "
    "wirklich leider jetzt nun hier dort da heute morgen gestern uberall nirgends irgendwo etwas nichts "
    "alles gleich dasselbe "
    "derselbe dieselbe lang kurz langer kurzer falsch richtig sicher unsicher schwach stark notig weg "
    "geheim einfach schwer "
    "leicht neu alt gut schlecht leer bekannt unbekannt dumm doof super egal privat streng fest drin dran "
    "ok besser schlechter "
    "wurde wird war ist sind hat hatte kann muss soll sollte darf zwei drei vier funf sechs acht "
    # Spanish
    "el la los las lo un una unos unas mi mis tu tus su sus nuestra nuestro yo ella ellos en de del al con "
    "sin por para desde "
    "sobre bajo entre tras hasta y o pero si cuando porque que cual quien donde como no ni nunca siempre "
    "solo ya aun todavia "
    "tambien muy mas menos demasiado bastante tan ahora hoy ayer aqui alli algo nada todo toda misma mismo "
    "igual otra otro larga "
    "largo corta corto segura seguro insegura incorrecta incorrecto correcta correcto necesaria obligatoria "
    "obligatorio valida "
    "valido invalida facil dificil debil fuerte nueva nuevo vieja viejo antigua buena bueno mala malo mejor "
    "peor secreta secreto "
    "simple sencilla compleja unica distinta diferente comun privada privado personal vacia importante "
    "falsa erronea dos tres "
    "cuatro cinco seis ocho esta estaba fue ha tiene debe puede hay "
    # French
    "le la les l un une des du de d au aux mon ma mes ton ta tes son sa ses notre nos votre vos leur je tu "
    "il elle on nous vous ils "
    "dans sur sous chez avec sans pour par entre vers et ou mais si quand parce que qui quoi dont ne pas "
    "jamais toujours "
    "encore deja aussi tres trop assez plus moins si bien mal ici la-bas maintenant partout nulle quelque "
    "rien tout toute meme "
    "long longue court courte faible fort forte sur sure incorrect incorrecte faux fausse correct correcte "
    "bon bonne mauvais "
    "mauvaise obligatoire necessaire requis valide invalide facile difficile different differente expire "
    "oublie perdu perdue "
    "stocke enregistre change vole volee compromis compromise bloque note ecrit ecrite cache cachee partage "
    "nouveau nouvelle "
    "vieux ancien ancienne secret secrete simple complique complexe unique commun vide important prive "
    "inconnu connu pire "
    "meilleur deux trois quatre cinq huit a ete est etait sera doit peut"
)  # fmt: skip
"""Words that describe a password, and the function words of German, Spanish and French."""
TOPIC: Final = FUNCTION_WORDS | QUALITIES
TOPIC_ENDINGS: Final = re.compile(
    r".{2,}(?:ly|ed|ing|able|ible|less|wise|lich|ig|bar|haft|sam|isch|iert|mente|ada|ado|ida|ido)$|"
    r"ge\w{3,}(?:t|en)$|"
    r"(?:ver|ab|zuruck|auf|aus)\w{3,}(?:t|en)$"
)
"""Endings of adjectives, adverbs and participles."""
CREDENTIALS: Final = re.compile(
    r"(?:credentials?|creds?|log-?ins?(?: details| data)?|user(?:name)? ?(?:and|/|&) ?pass(?:word)?|"
    r"zugangsdaten|anmeldedaten|"
    r"credenciales|datos de acceso|identifiants)(?: (?:for|to|fur|zum|para|pour|de) [^:=\n]{1,40}?)?"
    r"(?: ?[:=] ?| (?:is|are|sind|lauten|son|sont|with|as|mit|con|avec) | )[\"'`]?(?P<user>[^\s/|:,]{1,64}) ?[/|:,] "
    r"?(?P<value>[^\s,;\"'`]{4,64})"
)
"""A user name and a password after one word, such as `login`."""
CREDENTIAL_STEMS: Final = ("cred", "login", "log-in", "user", "zugangsd", "anmelded", "acceso", "identifiant")
"""Parts of words. A text without any of them does not match `CREDENTIALS`."""
