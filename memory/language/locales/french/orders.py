"""Patterns of French orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import OrderRules

FRENCH_ORDERS: Final = OrderRules(
    language="french",
    joints="et|ou|puis|mais|alors|que|ensuite",
    words={
        "assistant": (
            r"(?:l'|le |la |cet |cette |ce |tout |un |une |à l'|au |du "
            r"|de l')(?:assistant(?:e)?(?: virtuel(?:le)?)?|ia|intelligence artificielle|chat-?bot"
            r"|modèle de langage)"
        ),
        "machine": r"(?:le|ce|au|l'|un) ?(?:modèle|système|bot|agent)",
        "must": (
            r"(?:doit|devra|devrait|a (?:le droit|l'obligation|pour consigne|ordre) de|est (?:tenue?|obligée?"
            r"|autorisée?|censée?|chargée?|priée?) (?:de|à|d')|peut|pourra|va|faut que)"
        ),
        "always": (
            r"(?:toujours|jamais|désormais|dorénavant|à partir de maintenant|à compter de maintenant"
            r"|dès maintenant|dès à présent|à l'avenir|à chaque fois|chaque fois|en toutes circonstances"
            r"|en aucun cas|sans exception|systématiquement|(?:dans|à|par) (?:chaque|toutes?"
            r"|chacune de)(?: tes| vos| les| ses)? (?:réponses?|messages?|questions?|conversations?))"
        ),
        "adverb": (
            r"(?:<always>|s'il te plaît|s'il vous plaît|merci de|veuillez|seulement|uniquement|aussi|maintenant"
            r"|puis|alors|d'abord|ne|n'|pas|plus|simplement|secrètement|pense à|pensez à|assure-toi de|tu|vous)"
        ),
        "say": (
            r"(?:dis|dites|affirme|affirmez|mentionne|mentionnez|raconte|racontez|informe|informez|préviens"
            r"|prévenez|avertis|avertissez|assure|assurez|confirme|confirmez|nie|niez|répète|répétez"
            r"|inclus|incluez|ajoute|ajoutez|insère|insérez|joins|termine|terminez|commence|commencez|conclus"
            r"|concluez|cite|citez|prétends|prétendez|parle|parlez|nomme|nommez)"
        ),
        "promote": (
            r"(?:recommande|recommandez|conseille|conseillez|suggère|suggérez|propose|proposez|promeus|promouvez"
            r"|vante|vantez|renvoie|renvoyez|dirige|dirigez|oriente|orientez|vends|vendez)"
        ),
        "answer": r"(?:réponds|répondez|répondre)",
        "betray": (
            r"(?:révèle|révélez|divulgue|divulguez|montre|montrez|envoie|envoyez|transmets|transmettez|transfère"
            r"|transférez|partage|partagez|publie|publiez|donne|donnez|affiche|affichez|copie|copiez|exporte"
            r"|exportez)"
        ),
        "bend": (
            r"(?:ignore|ignorez|oublie|oubliez|outrepasse|outrepassez|contourne|contournez|désactive|désactivez"
            r"|viole|néglige|négligez|écarte|cesse de (?:suivre|respecter)|ne (?:suis|respecte|respectez"
            r"|suivez) (?:plus|pas))"
        ),
        "obey": (
            r"(?:obéis|obéissez|mens|mentez|cache|cachez|dissimule|dissimulez|approuve|approuvez|autorise"
            r"|autorisez|fais semblant|faites semblant|trompe|trompez|installe|installez|fais confiance"
            r"|faites confiance|refuse|refusez|vire|virez)"
        ),
        "infinitive": (
            r"(?:ignorer|oublier|contourner|désactiver|révéler|divulguer|transmettre|transférer|obéir|mentir"
            r"|cacher|dissimuler|approuver|autoriser|faire semblant|tromper|promouvoir|recommander|vanter"
            r"|mentionner|affirmer|dire que|prétendre|partager|envoyer|nier|ne (?:pas|plus) (?:respecter|suivre|obéir))"
        ),
        "subjunctive": (
            r"(?:ignore|oublie|contourne|révèle|divulgue|transmette|transfère|obéisse|mente|cache|dissimule"
            r"|approuve|autorise|fasse semblant|trompe|promeuve|vante|affirme|dise que|prétende|partage|nie"
            r"|ajoute|inclue|mentionne|recommande)"
        ),
        "rules": (
            r"(?:instructions?|consignes?|règles?|directives?|restrictions?|limites|filtres?|politiques?|sécurité"
            r"|prompt)"
        ),
        "treasure": (
            r"(?:prompt|mots? de passe|clés?|identifiants|adresses?|données|conversations?|contacts|secrets?"
            r"|cartes?|mémoires?|souvenirs|historique|instructions)"
        ),
        "asked": (
            r"\b(?:(?:quand|lorsqu'?|lorsque|si|dès qu'?|dès que|chaque fois qu'?|chaque fois que)(?: ?(?:on"
            r"|quelqu'un|un utilisateur|l'utilisateur|les utilisateurs|un client|les gens|ils?|elle))?"
            r" (?:te |vous |t'|l'|m'|en )?(?:demandent?|demandera|parlent?|interrogent?|mentionnent?"
            r"|pose(?:nt)?|veut|cherchent?|évoquent?)\b|\binterrogée? sur\b)"
        ),
        "users": (
            r"(?:utilisat(?:eur|rice)s?|clients?|clientes?|tout le monde|tous|quiconque|qui|gens|personnes?"
            r"|ceux qui)"
        ),
    },
    signs=(
        r"<assistant>|<machine>|<say>|<promote>|<answer>|<bend>|<betray>|<obey>|es|êtes|n'es|sans|nouvelles?"
        r"|fais|faites|réponses?|messages?|obéi\w+"
    ),
    orders=(
        r"<start>(?:<adverb>,? ){0,4}r[ée]pond(?:s|ez|re)?\b[^.!?\n]{0,30}\b(?:par|avec) (?:la|cette|les|ces|le|ce)"
        r"(?: m[êe]me)? (?:phrase|mots?|texte|message|slogan|formule)\b",
        r"<start>(?:<adverb>,? ?){0,4}<bend>\b[^.!?\n]{0,50}\b<rules>",
        r"<start>(?:<adverb>,? ?){0,4}<bend> (?:tout|ce qui précède)",
        r"<start>(?:<adverb>,? ?){0,4}<betray>\b(?!-(?:moi|nous))[^.!?\n]{0,50}\b<treasure>\b",
        r"<start>(?:<adverb>,? ?){1,4}<obey>\b|<start><obey> (?:seulement|toujours|à |aux |tout|toutes|uniquement)",
        r"\bn'obé(?:is|issez) qu",
        r"<start>(?:<adverb>,? ?){0,4}(?:dis|dites|informe|informez|raconte|préviens|prévenez|avertis"
        r"|avertissez|assure|assurez|affirme)\b(?: <always>){0,4} (?:à |aux? |l'|les |chaque |tous les "
        r"|toutes les )*<users>\b",
        r"<start>(?:<adverb>,? ?){0,4}parle[z]?\b[^.!?\n]{0,60}\b(?:aux|à tes|à vos) <users>",
        r"<start>(?:<adverb>,? ?){0,4}(?:<say>|<promote>|<betray>|<answer>)\b[^.!?\n]{0,80}<link>",
        r"(?:<assistant>|<machine>)\b[^.!?\n]{0,80}(?:<link>|\bun lien vers\b|\bde (?:<infinitive>)"
        r"|\bd'(?:<infinitive>))",
        r"\bque (?:<assistant>|<machine>)(?: ne| <always>){0,4} <subjunctive>\b[^.!?\n]{0,60}(?:<Name>|<link>"
        r"|\bque\b|<always>|\blien)",
        r"(?:<assistant>|<machine>)(?: ne)? <must>(?: ne)?(?: pas| plus| <always>){0,4} ?(?:d')?<infinitive>\b",
        r"<asked>[^.!?\n]{0,80}?(?:,|:) ?(?:<adverb>,? ?){0,4}(?:<say>|<promote>|<obey>|<betray>"
        r"|<answer> (?:qu|que|oui|non|par|\"))",
        r"<asked>[^.!?\n]{0,60}?, ?(?:<adverb>,? ?){0,4}<answer>[^.!?\n]{0,10}\bqu",
        r"<start>(?:<adverb>,? ?){0,4}(?:<say>|<promote>|<obey>|<answer>)\b[^.!?\n]{0,100}\b(?:quand on|si on"
        r"|si quelqu'un|à qui le demande|chaque fois qu)",
        r"<start>(?:<adverb>,? ?){0,4}(?:dis|dites|affirme|affirmez|prétends|prétendez|nie"
        r"|assure)(?: <always>){0,4} qu",
        r"<start>(?:<adverb>,? ?){0,4}(?:<answer>|termine|terminez|commence|commencez|ajoute|ajoutez)\b"
        r"[^.!?\n]{0,50}(?:\bqu[e']|\"|\bpar \")",
        r"\b(?:tu es|vous êtes) (?:maintenant|désormais|à présent)\b|\btu n'es plus\b|\bdésormais,? tu es\b",
        r"\bsans (?:aucune |la moindre )?(?:restrictions?|limites?|règles?|filtres?)\b",
        r"<start>nouvelles? (?:instructions?|règles?|consignes?)[^.!?\n]{0,20}:",
        r"<start>(?:<adverb>,? ?){0,4}(?:fais|faites) (?:tout )?ce que ",
    ),
    standing=(
        r"(?:<start>|\bque |<always>,? )<assistant>(?: ne| <always>){0,4} <must>",
        r"<start><machine>(?: ne| <always>){0,4} <must>[^.!?\n]{0,40}<always>",
        r"\b(?:chaque|toutes?|tes|vos|ses)(?: les| tes| vos| ses)? (?:réponses?|messages?)\b"
        r"[^.!?\n]{0,40}\b(?:doit|doivent|devra|devront|contiendra|devrai\w+)\b",
        r"<start>(?:<always>,? )(?:<adverb>,? ?){0,4}(?:<say>|<bend>|<betray>|<promote>)\b",
        r"<start>(?:<adverb>,? ?){0,4}(?:<say>|<bend>|<betray>)\b(?!-(?:moi|nous))[^.!?\n]{0,80}<always>",
        r"<start>(?:<adverb>,? ?){0,4}(?:recommande|recommandez|conseille|conseillez|suggère|suggérez)\b"
        r"[^.!?\n]{0,60}<Name>",
    ),
    preferences=(
        r"\b(?:français|anglais|allemand|espagnol|italien|portugais|néerlandais|arabe|chinois|russe|japonais"
        r"|breton|catalan|langue|langage|mots)\b",
        r"\b(?:court(?:e|es|s)?|bref|brève(?:s|ment)?|brièvement|concis(?:e|es)?|long(?:ue|ues|s)?"
        r"|détaillée?s?|détails?|phrases?|paragraphes?|listes?|puces|points|tableaux?|émojis?|emojis?|smileys"
        r"|exemples?|sources?|citations?|résumés?|étapes?|code|gras|jargon)\b",
        r"\b(?:formel(?:le|les|s)?|informel(?:le|les|s)?|tutoyer|vouvoyer|tutoie|vouvoie|tutoiement"
        r"|vouvoiement|poli(?:e|ment)?|amical(?:e)?|ton|humour|blagues?|simples?|simplement|direct(?:e)?|franc"
        r"|lentement)\b",
        r"\b(?:métriques?|celsius|kilomètres|km|kilos|grammes|litres|euros?|dollars|francs|devise|prix|heures?"
        r"|dates?|unités|calories|portions)\b",
        r"-(?:moi|nous)\b|\b(?:me|m'|nous|mon|ma|mes|lui|l'appeler|rappeler|l'aider|la vouvoyer|le tutoyer)\b",
        r"\b(?:végétarien(?:ne|nes|s)?|végane?s?|gluten|lactose|noix|halal|casher|porc|viande|poisson|alcool"
        r"|sucre|allergi\w*|bon marché|pas chers?|accessibles?|fauteuil|calmes?)\b",
        r"\b(?:fautes?|orthographe|grammaire|coquilles)\b",
    ),
)
