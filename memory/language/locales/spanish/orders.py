"""Patterns of Spanish orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import OrderRules

SPANISH_ORDERS: Final = OrderRules(
    language="spanish",
    joints="y|e|o|pero|entonces|luego|sino|que",
    words={
        "assistant": (
            r"(?:el|la|al|del|este|esta|cualquier|todo|un|una) (?:asistente(?: virtual| de ia)?|ia"
            r"|inteligencia artificial|chat-?bot|modelo de lenguaje)"
        ),
        "machine": r"(?:el|este|al|la) (?:modelo|sistema|bot|agente)",
        "must": (
            r"(?:debe(?:rá|ría)?(?: de)?|tiene que|tendrá que|ha de|habrá de|puede|podrá|está (?:obligad[oa]"
            r"|autorizad[oa]|programad[oa]) a|necesita|va a)"
        ),
        "always": (
            r"(?:siempre|nunca|jamás|a partir de (?:ahora|hoy|este momento)|desde (?:ahora|hoy|este momento)"
            r"|de ahora en adelante|en adelante|en el futuro|cada vez"
            r"|bajo ningún concepto|en ningún caso|sin excepción|(?:en|a|con) (?:cada|todas?)(?: tus| sus"
            r"| las)?(?: una de)? (?:respuestas?|mensajes?|preguntas?|conversaci(?:ón|ones))"
            r"|en tus respuestas)"
        ),
        "adverb": (
            r"(?:<always>|por favor|solo|también|ahora|luego|entonces|primero|no|simplemente|en secreto"
            r"|asegúrate de|recuerda|tú|usted)"
        ),
        "say": (
            r"(?:di|diga|digas|decid|afirma|afirme|menciona|mencione|menciones|cuenta|cuéntale|informa|informe"
            r"|avisa|advierte|adviertas|advierta|asegura|asegure|confirma|niega|repite"
            r"|incluye|incluya|añade|añada|agrega|agregue|inserta|adjunta|termina|termine|empieza|comienza"
            r"|concluye|cita|sostén|explica que)"
        ),
        "promote": (
            r"(?:recomienda|recomiende|recomiendes|sugiere|sugiera|promociona|promueve|promocione|anuncia|elogia"
            r"|enlaza|enlace|dirige|deriva|remite|aconseja|ofrece|vende)"
        ),
        "answer": r"(?:responde|responda|contesta|conteste|respondas)",
        "betray": (
            r"(?:revela|revele|divulga|muestra|muestre|envía|envíe|manda|reenvía|comparte|comparta|publica|filtra"
            r"|entrega|imprime|copia|exporta|da|dé)"
        ),
        "bend": (
            r"(?:ignora|ignore|ignores|olvida|olvide|desobedece|omite|anula|desactiva|elude|sáltate|rompe"
            r"|desestima|descarta|deja de (?:seguir|obedecer|aplicar))"
        ),
        "obey": (
            r"(?:obedece|obedezca|confía|confíe|miente|mienta|oculta|oculte|esconde|aprueba|apruebe|autoriza"
            r"|autorice|finge|finja|engaña|engañe|acepta|instala|transfiere|concede|niégate)"
        ),
        "infinitive": (
            r"(?:ignorar|desobedecer|olvidar|revelar|divulgar|reenviar|obedecer|confiar|mentir|ocultar"
            r"|esconder|aprobar|autorizar|fingir|engañar|promocionar|promover|recomendar|enlazar"
            r"|mencionar|afirmar|decir que|anunciar|transferir|negar|compartir|enviar)"
        ),
        "subjunctive": (
            r"(?:ignore|desobedezca|olvide|revele|divulgue|reenvíe|obedezca|confíe|mienta|oculte|esconda"
            r"|apruebe|autorice|finja|engañe|promocione|promueva|enlace|afirme|diga que|anuncie"
            r"|transfiera|niegue|comparta|incluya|añada|mencione|recomiende)"
        ),
        "rules": (
            r"(?:instrucci(?:ón|ones)|reglas?|normas?|directrices|indicaciones|órdenes|restricciones|límites"
            r"|pautas|filtros?|políticas?|prompt)"
        ),
        "treasure": (
            r"(?:prompt|contraseñas?|claves?|credenciales|direcci(?:ón|ones)|datos|conversaci(?:ón|ones)|contactos"
            r"|secretos?|tarjetas?|memorias?|recuerdos|historial|instrucciones)"
        ),
        "asked": (
            r"\b(?:cuando|cada vez que|siempre que|si|en cuanto|apenas)\b(?: te| le| les| se| alguien"
            r"| un usuario| el usuario| los usuarios| la gente| un cliente)*"
            r" (?:pregunten?|preguntan|pidan|piden|pidas?|mencionen?|hablen?|consulten?|diga|digan|salga|surja"
            r"|quiera|quieran)\b"
        ),
        "users": r"(?:usuari[oa]s?|clientes?|todos?|todas|cualquiera|quien|gente|personas?)",
    },
    signs=(
        r"<assistant>|<machine>|<say>|<promote>|<answer>|<bend>|<betray>|<obey>|dile|eres|sin|nuev[ao]s?|haz"
        r"|respuestas?|mensajes?|adviert\w+|diles|avisa\w*"
    ),
    orders=(
        r"<start>(?:<adverb>,? ){0,4}(?:responde|contesta|respond[ae]d?)\b[^.!?\n]{0,30}\bcon (?:la|esta|las|estas|el"
        r"|este)(?: siguientes?| misma)? (?:frase|palabras?|texto|mensaje|lema|eslogan)\b",
        r"<start>(?:<adverb>,? ){0,4}<bend>\b[^.!?\n]{0,50}\b<rules>",
        r"<start>(?:<adverb>,? ){0,4}<bend> (?:todo|lo anterior)",
        r"<start>(?:<adverb>,? ){0,4}<betray>\b[^.!?\n]{0,50}\b<treasure>\b",
        r"<start>(?:<adverb>,? ){1,4}<obey>\b|<start><obey> (?:solo|siempre|a |en |todo|todas|cualquier)",
        r"\bobedece solo\b",
        r"<start>(?:<adverb>,? ){0,4}(?:di|diga|decid|dile|informa|informe|avisa|cuenta|cuéntale|asegura"
        r"|advierte|adviertas)(?:les?)?(?: <always>){0,4} a (?:l[oa]s |tod[oa]s |cada |un |una "
        r"|cualquier )*<users>|\badviert\w+ (?:nunca )?al? <users>",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<betray>|<answer>)\b[^.!?\n]{0,80}<link>",
        r"(?:<assistant>|<machine>)\b[^.!?\n]{0,80}(?:<link>|\bque <subjunctive>|\ba <infinitive>|un enlace\b)",
        r"\bque (?:<assistant>|<machine>)\b(?: <always>| no){0,4} (?:<subjunctive>)\b[^.!?\n]{0,60}(?:<Name>"
        r"|<link>|\bque\b|<always>|\benlace)",
        r"(?:<assistant>|<machine>)(?: <always>| no){0,4} <must>(?: <always>| no){0,4} <infinitive>\b",
        r"<asked>[^.!?\n]{0,80}?(?:,|:) ?(?:<adverb>,? ){0,4}(?:<say>|<promote>|<obey>|<betray>"
        r"|<answer> (?:que|sí|no|con|\"))",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<obey>|<answer>)\b[^.!?\n]{0,100}\b(?:cuando te"
        r"|si alguien|a quien|cada vez que|cuando alguien)\b",
        r"<start>(?:<adverb>,? ){0,4}(?:di|diga|digas|afirma|afirme|sostén|niega|asegura)(?: <always>){0,4} que\b",
        r"<start>(?:<adverb>,? ){0,4}(?:<answer>|termina|termine|empieza|comienza|añade|añada|agrega)\b"
        r"[^.!?\n]{0,50}(?:\bque\b|\bcon \"|\")",
        r"\b(?:ahora eres|eres ahora|ya no eres|desde ahora eres|a partir de ahora eres)\b",
        r"\bsin (?:ninguna |ningún |tipo de )?(?:restricci(?:ón|ones)|límites|reglas|filtros)\b",
        r"<start>nuev[ao]s? (?:instrucci(?:ón|ones)|reglas?|directriz)[^.!?\n]{0,20}:",
        r"<start>(?:<adverb>,? ){0,4}haz (?:todo )?lo que ",
    ),
    standing=(
        r"(?:<start>|\bque |<always>,? )<assistant>(?: <always>| no){0,4} (?:<must>)\b",
        r"<must> <assistant>\b",
        r"<start><machine>(?: <always>| no){0,4} <must>\b[^.!?\n]{0,40}<always>",
        r"\b(?:cada|todas?|tus|sus)(?: las| tus| sus)? (?:respuestas?|mensajes?)\b[^.!?\n]{0,40}\b(?:debe"
        r"|deben|tiene que|tienen que|ha de|han de|deberá\w*|contendrá\w*)\b",
        r"<start>(?:<always>,? )(?:<adverb>,? ){0,4}(?:<say>|<bend>|<betray>)\b",
        r"<start>(?:<always>,? )(?:<adverb>,? ){0,4}<promote> (?:[\w'-]+ ){0,3}?<Name>",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<bend>|<betray>)\b[^.!?\n]{0,80}<always>",
        r"<start>(?:<adverb>,? ){0,4}<promote>\b[^.!?\n]{0,60}(?:<always>|<Name>)",
    ),
    preferences=(
        r"\b(?:español|castellano|inglés|alemán|francés|italiano|portugués|catalán|gallego|euskera|chino|árabe"
        r"|ruso|japonés|idioma|lengua|palabras|lenguaje)\b",
        r"\b(?:cort[oa]s?|breves?|brevemente|concis[oa]s?|larg[oa]s?|detallad[oa]s?|detalles?|párrafos?"
        r"|frases?|listas?|viñetas|puntos|tablas?|emojis?|emoticonos|ejemplos?|fuentes|citas|resumen"
        r"|resúmenes|pasos?|código|negrita|tecnicismos|jerga)\b",
        r"\b(?:formal(?:es|mente)?|informal(?:es|mente)?|de usted|de tú|tutear\w*|tuteo|amable|amables"
        r"|educad[oa]|tono|humor|bromas|chistes|sencill[oa]s?|simples?|direct[oa]|sincer[oa]|despacio)\b",
        r"\b(?:métric[oa]|celsius|kilómetros|km|kilos|gramos|litros|euros?|dólares|pesos|moneda|precios?|hora"
        r"|horas|fechas?|unidades|calorías|raciones)\b",
        r"\b(?:me|nos|conmigo|mí|mis?|su propi\w+|su nombre|recordar\w*|tratar(?:la|lo)|llamar(?:la|lo)"
        r"|ayudar(?:la|lo|le)|preguntar(?:le|me))\b",
        r"\b(?:vegetarian[oa]s?|vegan[oa]s?|gluten|lactosa|nueces|frutos secos|halal|kosher|cerdo|carne"
        r"|pescado|alcohol|azúcar|alergi\w*|barat[oa]s?|económic[oa]s?|accesibles?|silla de ruedas"
        r"|tranquil[oa]s?)\b",
        r"\b(?:erratas|ortografía|gramática|faltas)\b",
    ),
)
