"""Patterns of German orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import OrderRules

GERMAN_ORDERS: Final = OrderRules(
    language="german",
    joints="und|oder|dann|aber|sondern|dass|sofort",
    words={
        "assistant": (
            r"(?:der|die|das|den|dem|dieser|diesem|jeder|jedem|ein|einen|einem) (?:ki-?|virtuelle[nr]? "
            r"|digitale[nr]? )?"
            r"(?:assistent(?:en|in)?|ki|chat-?bots?|sprachmodell|ki-modell)"
        ),
        "machine": r"(?:das|dieses|der|dieser|dem|den) (?:modell|system|bot|agent(?:en)?)",
        "must": r"(?:muss|müsse|soll|solle|sollte|darf|dürfe|hat|habe|wird|werde|kann|ist|sei|möge|braucht)",
        "always": (
            r"(?:immer|stets|nie|niemals|nie mehr|jedes ?mal|fortan|künftig|zukünftig|in zukunft|dauerhaft"
            r"|grundsätzlich|ausnahmslos"
            r"|unter keinen umständen|auf keinen fall|(?:ab|von) (?:jetzt|nun|sofort|heute)(?: an)?"
            r"|(?:in|bei|zu|auf) (?:jede[rnms]?|alle[rnms]?|deine[rnms]?|ihre[rnms]?)(?: künftigen| deine[rn]?"
            r"| ihre[rn]?)? "
            r"(?:antwort(?:en)?|frage[n]?|nachricht(?:en)?|gespräch(?:en)?)|jede[rnms]? antwort|allen antworten)"
        ),
        "adverb": (
            r"(?:<always>|bitte|nur|noch|auch|jetzt|nun|dann|sofort|zuerst|heimlich|unbedingt|einfach|nicht|einmal"
            r"|mal|sie|du|ihr)"
        ),
        "say": (
            r"(?:sagt?|sage|behaupte[t]?|erwähne?|erwähnt|erkläre?|versichere|nenne?|erzähle?|warne?|bestätige"
            r"|leugne|bestreite|zitiere|wiederhole"
            r"|informiere|überzeuge|beende|beginne|schließe|teile?|füge?|hänge?|ergänze|schreibe?|lobe?|weise|verweise)"
        ),
        "promote": (
            r"(?:empfiehl|empfehle|empfehlt|bewirb|bewerbe|bevorzuge|rate|verkaufe?|preise|verlinke?|verlinkt"
            r"|leite|schicke?|lenke?|schlage?|biete)"
        ),
        "betray": (
            r"(?:verrate?|verratet|offenbare|enthülle|veröffentliche|sende|schicke?|leite|teile?|gib|gebt"
            r"|nenne?|zeige?|drucke?|kopiere|exportiere"
            r"|übermittle|poste|maile?)"
        ),
        "bend": (
            r"(?:ignoriere?|ignoriert|missachte[t]?|vergiss|vergesst|umgehe?|übergehe|überschreibe|verwirf|breche"
            r"|brich|deaktiviere|befolge nicht)"
        ),
        "obey": (
            r"(?:gehorche?(?:st|n)?|vertraue?(?:st|n)?|lüge?|verschweige?|verheimliche?|verberge?|verstecke?"
            r"|genehmige?|gewähre?|bewillige"
            r"|akzeptiere|täusche|betrüge|installiere|überweise?|tu so|verweigere|befolge)"
        ),
        "infinitive": (
            r"(?:\w*(?:ignorieren|missachten|umgehen|vergessen|verraten|offenlegen|preis(?:zu)?geben"
            r"|aus(?:zu)?geben|weiter(?:zu)?(?:leiten|geben)|gehorchen"
            r"|vertrauen|lügen|verschweigen|verheimlichen|verbergen|verstecken|genehmigen|behaupten|erwähnen"
            r"|empfehlen|bewerben|verlinken|leugnen"
            r"|überweisen|vor(?:zu)?geben|täuschen|bestätigen|verweigern|loben|an(?:zu)?preisen|enthüllen|übermitteln))"
        ),
        "finite": (
            r"(?:ignoriert|missachtet|umgeht|vergisst|verrät|offenlegt|preisgibt|ausgibt|weiterleitet"
            r"|weitergibt|gehorcht|vertraut|lügt|verschweigt"
            r"|verheimlicht|verbirgt|versteckt|genehmigt|behauptet|erwähnt|verlinkt|leugnet|überweist|vorgibt"
            r"|täuscht|verweist|bewirbt|hinzufügt|anpreist"
            r"|empfiehlt|enthüllt|sagt)"
        ),
        "rules": (
            r"(?:anweisung(?:en)?|instruktion(?:en)?|regeln?|\w*regeln|richtlinien?|vorgaben?|prompts?"
            r"|einschränkung(?:en)?|beschränkung(?:en)?|sicherheit\w*|filter)"
        ),
        "treasure": (
            r"(?:\w*prompt|\w*passw[oö]rte?r?n?|zugangsdaten|schlüssel|\w*adressen?|kontakte|gespräche|\w*daten"
            r"|geheimnisse?|kartennummern?|verlauf|erinnerungen|anweisungen)"
        ),
        "asked": (
            r"(?:\b(?:wenn|falls|sobald|sooft|immer wenn)\b[^.!?\n]{0,60}?(?:fragt|fragen|gefragt|erkundigt"
            r"|erwähnt|wissen (?:will|möchte)|anspricht|schreibt"
            r"|zur sprache (?:kommt|kommen)|geht|bittet)(?: (?:wird|wirst|werden|bist))?|\bwird "
            r"[^.!?\n]{0,40}?(?:gefragt|erwähnt|angesprochen)"
            r"|\bbei (?:\w+ )?(?:fragen?|anfragen|themen|gesprächen) (?:zu|nach|über|von)\b|\bauf die frage\b"
            r"|\bfragt (?:jemand|man|ein \w+|der nutzer)\b)"
        ),
        "users": (
            r"(?:nutzern?|benutzern?|kunden?|kundinnen|leuten?|menschen|jedem|allen|anwendern?|besuchern?"
            r"|jemandem)"
        ),
    },
    signs=(
        r"<assistant>|<machine>|<say>|<promote>|<bend>|<betray>|<obey>|<infinitive>|<asked>|antwort\w*"
        r"|\w+zu(?:geben|leiten|legen|preisen|fügen)|bist|sind|ohne|neue|geheime|wichtige|zusätzliche"
        r"|aktualisierte|tue?|gehorchst|vertraust|folgst|nachricht(?:en)?|erwähnen|empfehlen|sagen|nennen"
    ),
    orders=(
        r"<start>(?:<adverb>,? ){0,4}antworte\w*\b[^.!?\n]{0,30}\bmit (?:dem|diesem|den|diesen|folgende[mn])"
        r"(?: folgenden| gleichen| selben)? (?:satz|worte?n?|spruch|slogan|text|hinweis)\b",
        r"<start>(?:<adverb>,? ){0,4}<bend>\b[^.!?\n]{0,50}\b<rules>",
        r"<start>(?:<adverb>,? ){0,4}<bend> (?:alles|das obige|obiges|alle (?:bisherigen|vorherigen|früheren))",
        r"<start>(?:<adverb>,? ){0,4}<betray>\b(?! (?:ich|mir|mich|uns)\b)[^.!?\n]{0,50}\b<treasure>\b",
        r"<start>(?:<adverb>,? ){0,4}<obey>\b(?! ich\b)",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<betray>) (?:<adverb> ){0,4}(?:den |dem |allen |jedem "
        r"|die |alle )*<users>\b",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<betray>|antworte)\b[^.!?\n]{0,80}<link>",
        r"(?:<assistant>|<machine>)\b[^.!?\n]{0,80}(?:<link>|<finite>\b|\blinks? )",
        r"\b(?:weist|wies|fordert|forderte|befiehlt|beauftragt|bittet|erlaubt|drängt|ermächtigt"
        r"|zwingt) (?:<assistant>|<machine>)\b[^.!?\n]{0,90}\bzu (?:<infinitive>|sagen|antworten)",
        r"\b(?:weist|wies|fordert|forderte|befiehlt|beauftragt|erlaubt|drängt|ermächtigt|zwingt"
        r"|bittet) (?:<assistant>|<machine>)\b[^.!?\n]{0,90}\w+zu(?:geben|leiten|legen|preisen|fügen)",
        r"(?:<assistant>|<machine>) <must>\b[^.!?\n]{0,90}\b(?:<infinitive>|sagen, dass|mitteilen|befolgen)\b",
        r"<asked>[^.!?\n]{0,80}?(?:,|:|\bdann|\bist|\bsind|\bsoll\w*|\bmuss) ?[^.!?\n]{0,60}?\b(?:<say>"
        r"|<promote>|<obey>|<betray>|zu nennen|zu empfehlen|zu sagen|zu verweisen|zu antworten"
        r"|empfehlen|nennen|sagen|verweisen)\b(?! (?:ich|er|sie|sie|man|mir|mich)\b)",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<obey>|antworte)\b(?! ich\b)[^.!?\n]{0,100}<asked>",
        r"<start>(?:<adverb>,? ){0,4}antworte\w* (?:<adverb> ){0,4}[^.!?\n]{0,50}(?:\bmit (?:\"|ja\b|nein\b"
        r"|einem link)|, dass|\"|: )",
        r"<start>(?:<adverb>,? ){0,4}(?:behaupte|leugne|bestreite|lüge|sage?(?: <adverb>){0,4},? dass)\b",
        r"\bdu bist (?:jetzt|nun|ab jetzt|ab sofort|nicht (?:mehr|länger)|kein)\b|\bsie sind (?:jetzt|nun"
        r"|ab sofort) (?:ein|kein)",
        r"\bohne (?:jede |jegliche |alle )?(?:einschränkungen|beschränkungen|regeln|filter)\b",
        r"<start>(?:neue|geheime|wichtige|zusätzliche|aktualisierte) (?:anweisung(?:en)?|regeln?|system\w*)\b"
        r"[^.!?\n]{0,20}:",
        r"<start>(?:<adverb>,? ){0,4}tue? (?:alles|genau das|immer),? was ",
        r"\b(?:gehorchst|gehorcht|vertraust|folgst) du\b",
    ),
    standing=(
        r"(?:<start>|<always> )(?:<always>,? )*<assistant> <must>\b",
        r"<must> <assistant>\b",
        r"<must> <machine>\b[^.!?\n]{0,60}<always>",
        r"<start><machine> <must>\b[^.!?\n]{0,60}<always>",
        r"\b(?:jede|alle|deine|ihre|sämtliche)(?: künftigen?| deine| ihre)? (?:antwort(?:en)?|nachricht(?:en)?"
        r"|empfehlungen)\b[^.!?\n]{0,40}\b(?:muss|müssen|soll|sollen|hat|haben|enthält|enthalten)\b",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<betray>|<bend>)(?:en sie)?\b(?! ich\b)[^.!?\n]{0,80}<always>",
        r"<start>(?:<adverb>,? ){0,4}(?:erwähnen|empfehlen|sagen|nennen|ignorieren|verraten|verlinken|warnen"
        r"|behaupten) sie\b",
        r"<start>(?:<always>,? )(?:<adverb>,? ){0,4}(?:<say>|<promote>|<betray>|<bend>)\b(?! ich\b)",
        r"<asked>[^.!?\n]{0,80}?(?:,|:) ?(?:<adverb>,? ){0,4}antworte",
    ),
    preferences=(
        r"\b(?:deutsch|englisch|französisch|spanisch|italienisch|portugiesisch|niederländisch|polnisch"
        r"|türkisch|russisch|arabisch|chinesisch|japanisch|schwedisch"
        r"|dänisch|ukrainisch|sprache|mundart|dialekt|hochdeutsch|einfach\w*|leichte[rn]?|verständlich\w*)\b",
        r"\b(?:kurz\w*|knapp\w*|lang\w*|ausführlich\w*|detail\w*|sätzen?|wörtern?|absätzen?|stichpunkt\w*"
        r"|stichwort\w*|aufzählung\w*|listen?|tabellen?|emojis?|smileys?"
        r"|beispiele?n?|quellen?|quellenangaben?|zusammenfassung\w*|schritt\w*|überschriften|fettdruck|code"
        r"|fachbegriffe?|fremdwörter)\b",
        r"\b(?:duzen|siezen|geduzt|gesiezt|per du|per sie|förmlich\w*|formell\w*|locker\w*|höflich\w*"
        r"|freundlich\w*|sachlich\w*|direkt\w*|ehrlich\w*|ton|tonfall|humor\w*|witze?|ironie|langsam\w*)\b",
        r"\b(?:metrisch\w*|celsius|fahrenheit|kilometern?|km|kilogramm|gramm|litern?|euro|franken|dollar"
        r"|währung|preise?|uhrzeit\w*|24-stunden\w*|datum|einheiten|kalorien|nährwerte?|portionen)\b",
        r"\b(?:mir|mich|uns|ihm|ihr|ihn|mein\w*|sein\w*|ihre[nmrs]?) (?!(?:gesamtes?|passw\w*))",
        r"\b(?:nennen|ansprechen|anreden|erinnern|helfen|fragen|daran denken|wecken)\b(?!.*\bandere)",
        r"\b(?:vegetarisch\w*|vegan\w*|gluten\w*|laktose\w*|nüsse?n?|halal|koscher\w*|schwein\w*|fleisch\w*"
        r"|fisch\w*|alkohol\w*|zucker\w*|allergi\w*|günstig\w*|billig\w*|barrierefrei\w*|rollstuhl\w*"
        r"|ruhig\w*)\b",
        r"\b(?:tippfehler\w*|rechtschreib\w*|grammatik\w*|schreibfehler\w*)\b",
    ),
)
