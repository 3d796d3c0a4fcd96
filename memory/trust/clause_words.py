"""Words that decide whether a clause states something about its speaker, in many languages.

clauses.py uses these lists. It compares words in lower case and without accents.
"""

from __future__ import annotations

from typing import Final

LIGHT_WORDS: Final = """
i me my mine we us our ours am is are be m s re ve a an the have has user users
ich mich mir mein meine meinen meinem meiner wir uns unser unsere unseren unserem bin ist sind der die das den dem
ein eine einen einem einer habe hat haben
yo mi mis nosotros nosotras nuestro nuestra nuestros soy es somos el la los las un una tengo tiene
je j moi mon ma mes nous notre nos suis est sommes le les l une ai
io mio mia miei mie noi nostro sono il lo gli uno ho ha
eu meu minha meus minhas nosso nossa sou o os as um uma tenho tem
ik mijn ons onze ben het een heb heeft
我 们 的 是 私 僕 俺 は
"""
"""Words that carry nothing of a statement: the first person, articles, and the present tense of *be* and *have*."""

STATED_PERSON: Final = "their his her its they he she"
"""Words by which a statement in the third person refers to its subject."""

FIRST_PERSON: Final = """
i me my mine we us our ours
ich mich mir mein meine meinen meinem meiner wir uns unser unsere unseren unserem
yo mi mis nosotros nosotras nuestro nuestra soy estoy tengo vivo trabajo
je j moi mon ma mes nous notre nos
io mio mia miei mie noi nostro sono ho lavoro vivo abito
eu meu minha meus minhas nosso nossa sou tenho moro trabalho
ik mijn ons onze
ja moj moja moje mam jestem mieszkam pracuje
jag min mitt mina jeg mit
我 私 僕 俺
"""
"""Words by which speakers speak about themselves."""

SPEAKERS: Final = "i we ich wir yo nosotros je nous io noi eu ik 我 私"
"""The first person as the subject of a clause."""

LEADS: Final = """
hi hello hey well so and but oh ok okay yes yeah btw fyi ps thanks please
hallo und aber ja naja ubrigens
hola pues y pero bueno si
salut bonjour et mais oui bon
你 好
"""
"""Words before a clause that do not change what it states."""

FILLERS: Final = """
now also currently really just actually
jetzt auch gerade
ahora tambien
maintenant aussi
"""
"""Words inside a clause that do not change what it states."""

JOINTS: Final = """
at in on for with from to as of by since until till near about during after before around into over under through
and or but because while where who which that when though although too also now currently today again still
bei im am an auf als fur mit von zu zum zur seit bis nach vor wahrend aus uber unter und oder aber weil wo auch jetzt
en de del con por para desde hasta como y o pero porque donde tambien ahora hace
dans chez a au aux du des avec pour depuis comme et ou mais car qui que aussi maintenant sur
nel nella di da per e ma perche dove anche em no na do da com desde mas onde tambem
van met voor sinds te bij naar om want ook
"""
"""Words that may follow the words of a statement in its clause. Any other word may change what the clause states, as in
`I live in Lagos time`."""

CUES: Final = """
if unless whether suppose supposing imagine hypothetically would could might wish wished say says said saying told
tells tell claims claimed states thinks thought according kidding joking joke
wenn falls sofern angenommen wurde konnte ware hatte sagt sagte meint meinte behauptet behauptete laut scherz
si ojala supongamos supon seria podria dice dijo decia segun afirma broma
supposons serait serais pourrais dit disait selon affirme blague
fosse potrei secondo detto zou zegt volgens
"""
"""Words of conditions, wishes and reports. A sentence with one of them is not decided by words."""

SUPPOSED: Final = "suppose supposing imagine pretend hypothetically angenommen supongamos supon imagina supposons"
"""Words that begin a supposition."""

CONDITIONS: Final = "if unless wenn falls sofern si 如果 もし"
"""Words that begin a condition."""

ENDS: Final = """
not no never left quit quits stopped stops former formerly ended lost retired moved longer avoids without dislikes hates
vegetarian vegan
"""
"""Words by which a statement in English says that something does not hold."""

UNSPACED_CUES: Final = (
    "如果",
    "假如",
    "假设",
    "要是",
    "说",
    "說",
    "写着",
    "寫著",
    "吗",
    "嗎",
    "と言",
    "もし",
    "ですか",
    "書いて",
    "によると",
    "ถ้า",
    "บอก",
)
"""The same in scripts without spaces between words."""

PLAY: Final = (
    r"\b(?:role ?-?play(?:ing)?|let'?s (?:play|pretend)|pretend|make[- ]believe|(?:in|for|of) (?:this|the|my|a|our) "
    r"(?:story|novel|game|play|scene|poem|song|film|movie|script|dream)|write (?:me )?(?:a|an|the) \w+|my character"
    r"|act as|speak as|imagine|suppose|lyrics|dream(?:t|ed)?"
    r"|rollenspiel|stell dir vor|tu so|spielen wir|lass uns spielen"
    r"|in (?:dieser|der|meiner) geschichte|schreibe? (?:mir )?ein\w*"
    r"|juego de rol|imagina|finge|juguemos|en (?:esta|la|mi) historia|escribe (?:me )?un\w*"
    r"|jeu de role|imagine[zr]?|faisons semblant|dans (?:cette|l'|mon) histoire|ecris (?:moi )?un\w*)\b"
    r"|角色扮演|假装|假裝|故事|ロールプレイ|物語"
)
"""Words that open a role play, a story or a song."""

PLAY_ENDS: Final = (
    r"^(?:(?:ok|okay|yes|no|now|please|so|and|well|alright),? )*(?:let'?s )?(?:stop|end|quit|leave|drop) "
    r"(?:it|this|that|here|now|(?:the |this |our |my )?(?:\w+ )?(?:game|story|play|scene|role ?-?play|act|song|dream"
    r"|pretending|playing))\b"
    r"|\b(?:game over|end of (?:the |this |our )?(?:\w+ )?(?:game|story|play|scene|role ?-?play|song)|out of character"
    r"|back (?:to|in) (?:reality|real life|the real world)"
    r"|(?:jokes?|kidding|games?|fiction) aside|in (?:reality|real life)|irl"
    r"|for real now|seriously now|(?:the |this |our )?(?:game|story|play|scene|role ?-?play|song) is over"
    r"|(?:spass|scherz) beiseite|genug gespielt|ende (?:der geschichte|des spiels|vom spiel)|in wirklichkeit|im ernst"
    r"|(?:das spiel|die geschichte) ist (?:aus|vorbei|zu ende)|hor(?:en wir)? (?:jetzt )?auf damit"
    r"|fuera de broma|bromas aparte|fin del (?:juego|cuento)|en (?:realidad|la vida real)|se acabo el juego"
    r"|blague a part|fin (?:du jeu|de l'histoire)|en realite|dans la vraie vie)\b"
    r"|(?:游戏|遊戲|故事)(?:结束|結束)|说真的|說真的|現実では|本当は"
)
"""Words that end it."""

NEGATIONS: Final = """
not no never cannot none nobody nothing neither nor without
nicht kein keine keinen keinem keiner nie niemals ohne
no nunca jamas ni sin ningun ninguna tampoco
ne n pas jamais aucun aucune sans
non nessun nao nunca nem niet geen nooit nie inte ikke
не нет никогда 不 没 沒 别 未 ない ません
"""
"""Words that deny."""

ASKING: Final = """
what who whom whose which when where why how is are am was were do does did can could should would may might must
will shall have has had
was wer wen wem wessen wann wo warum wieso wie ist sind bin kann konnte soll sollte darf muss habe hat wird werde
que quien cual cuando donde porque como es soy puede puedo debo tengo hay
qui quoi quel quelle quand ou pourquoi comment est suis peut peux dois ai combien
"""
"""Words that begin a question."""

OTHERS: Final = """
boss manager chief landlord landlady tenant flatmate roommate housemate neighbour neighbor friend mate colleague
coworker teacher doctor client customer partner wife husband spouse fiance fiancee girlfriend boyfriend ex brother
sister sibling mother father mum mom dad parent son daughter kid child baby uncle aunt cousin nephew niece grandma
grandpa grandmother
grandfather he she they him his her their
chef chefin vermieter nachbar nachbarin freund freundin kollege kollegin frau mann bruder schwester mutter vater sohn
tochter kind onkel tante er sie
jefe jefa casero vecino vecina amigo amiga esposa esposo marido hermano hermana madre padre hijo hija
patron patronne voisin voisine ami amie femme mari frere soeur mere pere fils fille il elle
"""
"""People other than the speaker."""
