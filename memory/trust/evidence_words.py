"""Words to compare a quote with a statement, in many languages: function words, concepts, numbers, short answers.

evidence.py uses these lists. It compares words in lower case and without accents. In the concepts, `*` at the end of a
word matches any ending.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FUNCTION_WORDS: Final[Mapping[str, str]] = {
    "en": """
    i me my mine we us our you your he him his she her it its they them their this that these those the a an and
    or but so if of to in on at by for with from as into about over than then too also am is are was were be
    been being do does did done have has had having will would shall should can could may might must not no yes
    there here what which who whom when where why how all any some just very really m s re ve ll d t don't i'm
    i've it's user users currently now get gets got
    """,
    "de": """
    ich mich mir mein meine meinen meinem meiner wir uns unser unsere du dich dir dein deine er ihn ihm sein
    seine sie ihr ihre es man der die das den dem des ein eine einen einem einer eines und oder aber wenn dass
    weil von zu zum zur in im an am auf aus bei mit nach für über um als wie auch noch schon nur bin bist ist
    sind war waren habe hast hat haben hatte werde wird werden wurde kann muss will soll darf mag nicht kein
    keine keinen ja nein da hier was wer wo wann warum sehr so jetzt heiße wohne arbeite lebe
    """,
    "es": """
    yo me mi mis mí nosotros nos nuestro nuestra tú te tu tus él ella lo la le les se su sus ello ellos ellas
    este esta esto ese esa eso el los las un una unos unas y e o u pero si de del a al en con por para sin sobre
    como más muy también ya soy eres es somos son era fue estoy estás está están he has ha hemos han había tengo
    tiene ser estar haber no sí que qué quién cuándo dónde hay aquí vivo trabajo llamo gusta
    """,
    "fr": """
    je j m me moi mon ma mes nous notre nos tu te toi ton ta tes il elle on lui leur ils elles se son sa ses ce
    c cet cette ces le la les l un une des du de d et ou mais si à au aux en dans sur avec pour par sans chez
    comme plus très aussi suis es est sommes sont étais était ai as a avons ont avait être avoir fais fait ne n
    pas non oui que qu qui quoi où quand pourquoi y habite travaille vis appelle
    """,
    "it": """
    io mi mio mia miei mie noi ci nostro tu ti tuo lui lei lo la gli le si suo sua il i un uno una e o ma se di
    del della da dal a al in nel nella con per su sono sei è siamo era ho hai ha abbiamo hanno non sì che chi
    dove quando come più molto anche vivo abito lavoro chiamo piace faccio
    """,
    "pt": """
    eu me mim meu minha meus minhas nós nos nosso você te seu sua ele ela o a os as um uma e ou mas se de do da
    dos das em no na nos nas com por para sem sou é somos são era fui estou está tenho tem ter não sim que quem
    onde quando como mais muito também já moro vivo trabalho chamo gosto
    """,
    "nl": """
    ik me mij mijn wij we ons onze jij je jouw hij hem zijn zij haar het de een en of maar als dat van te in op
    aan met bij voor naar uit over ben bent is was heb hebt heeft had kan moet wil niet geen ja nee ook nog heel
    woon werk heet
    """,
    "pl": """
    ja mnie mi mój moja moje my nas ty twój on jego ona jej to ten ta te i lub ale że w we z ze na do od o po
    dla przy jest jestem są był była mam ma mieć nie tak co kto gdzie kiedy jak też już bardzo mieszkam pracuję
    lubię
    """,
    "sv": """
    jag mig min mitt mina vi oss vår du dig din han honom hans hon henne hennes det den en ett och eller men om
    att av i på till från med för är var har hade kan måste vill inte ingen ja nej också mycket bor jobbar heter
    """,
    "da": """
    jeg mig min mit mine vi os vores du dig din han ham hans hun hende hendes det den en et og eller men at af i
    på til fra med for er var har havde kan skal vil ikke ingen ja nej også meget bor arbejder hedder
    """,
    "fi": """
    minä minun minulla minua olen on oli ovat ja tai mutta että ei en se tämä hän kanssa asun työskentelen
    nimeni
    """,
    "cs": """
    já mě mi můj moje my jsem jsi je jsme jsou byl byla mám má a nebo ale že v ve z ze na do od s se pro ne ano
    bydlím
    """,
    "tr": """
    ben bana benim biz bizim sen o bir ve ile için ama da de değil var yok çok adım yaşıyorum çalışıyorum
    """,
    "hu": """
    én nekem az a egy és vagy de hogy nem igen van vagyok volt nagyon lakom dolgozom
    """,
    "ro": """
    eu mă îmi meu mea noi tu el ea un o și sau dar că de la în pe cu din pentru sunt este am are nu da locuiesc
    lucrez
    """,
    "id": """
    saya aku ku kami kita kamu dia ini itu yang dan atau tapi di ke dari dengan untuk adalah bukan tidak ada
    punya tinggal
    """,
}
"""Function words by language tag: frequent words that are no content words. They include frequent verbs in the first
person, such as `wohne`."""

CONCEPTS: Final = """
vegetar* vegan* meat fleisch* carne viande fish fisch* pescado poisson diet* plant-based eat eats eating esse
    isst como manger mange
pregnan* schwanger* embaraza* enceinte expecting erwarte* espero attends baby due
widow* witwe* viud* veuf veuve verwitwet
marri* wife husband spouse wed* hochzeit* verheirat* ehe* frau mann casad* esposa esposo marido mujer boda mari
    femme époux épouse mariage knot fiancé* verlobt* engaged prometid* novi*
divorc* ex separat* split geschieden* scheid* getrennt separad* séparé*
child* kid* son sons daughter* mum mom mother dad father parent* kind kinder sohn söhne tochter töchter mama
    papa mutter vater eltern* hijo* hija* niñ* madre padre mamá papá enfant* fils fille* mère père bab* toddler*
    twin* zwilling* gemelo* jumeau*
sibling* brother* sister* bruder brüder schwester* geschwister* herman* frère* sœur* soeur*
grand* großmutter* großvater* oma opa enkel* abuel* niet* grand-*
job* work* employ* career boss office hired fired quit resign* position profession* occupation arbeit* beruf*
    job* angestellt* stelle firma kündig* gekündigt trabaj* empleo* jefe renunci* despedid* travaill* emploi* métier
    patron embauch* démission*
live* living home house flat apartment move* moving resid* based rent* relocat* wohn* leb* zuhause haus
    umgezogen umzieh* ziehe zog miete* viv* casa piso mud* mudé residen* habit* vis maison appartement déménag* lou*
birth* born age aged year* old turn* geburt* geboren jahr* alt nac* cumple* edad año* naissance né née ans âge
    anniversaire
allerg* intoleran* react* alerg* coeliac* celiac* zöliak* celíac* cœliaque
dislik* hate* loath* stand avoid* hass* mag abneig* verabscheu* odi* detest* soport* déteste* supporte* horreur
like* love* enjoy* fan favourite* favorite* prefer* keen fond mag gern* gerne lieb* lieblings* bevorzug* gust*
    encant* favorit* prefier* ador* aim* préfér* préf* amo
name* call* nickname* goes heiß* name* nenn* spitzname* llam* nombre* apodo* appel* nom prénom surnom*
retir* pension* rente* ruhestand* rentner* jubil* retrait*
student* stud* univers* uni college school degree hochschul* schule* semester carrera estudi* escuela étud* fac
    école
teach* school class* professor* lehr* unterricht* schul* maestr* profesor* enseñ* docen* prof* enseign*
nurs* hospital krankenschwester* pfleg* krankenhaus* enfermer* infirm* hôpital
doctor* physician* gp medic* arzt ärzt* médic* médecin* doctor*
lawyer* attorney* law legal anwalt* anwält* jura abogad* derecho avocat* droit
engineer* develop* programm* software cod* ingenieur* entwickl* ingenier* desarroll* ingénieur* développeu*
cook* chef* kitchen koch* küche cociner* cocin* cuisin*
driv* car truck bus fahr* auto wagen conduc* coche camion* voiture condui*
pet pets dog* cat* puppy kitten hund* katze* haustier* perr* gat* mascota* chien* chat* animal*
smok* cigarette* rauch* zigarette* fum* cigarr*
drink* alcohol* sober beer wine trink* nüchtern bier wein beb* cerveza vino sobri* boi* bière vin
run* jog* marathon* lauf* läuf* corr* cour*
swim* pool schwimm* nad* piscina nag* piscine
cycl* bike* bicycle* rad* fahrrad* bici* ciclis* vélo*
travel* trip* journey* fly flight* holiday* vacation* reis* flieg* flug* urlaub* viaj* vuel* vacacion* voyag*
    vol vacances
learn* study* studies studying lern* aprend* apprend*
language* speak* sprach* sprech* sprich* idioma* lengua* habl* langue* parl*
music* band sing* song* guitar* piano musik* gitarre* klavier* músic* cant* guitarra* musique* chant* guitare*
read* book* novel* les* buch büch* lee* leer libro* novela* lis lit livre* lire roman*
ill* sick* diseas* diagnos* condition health krank* erkrank* gesund* enferm* salud malad* santé
die* dead death pass* passed lost tot tod starb gestorben verstorben muert* murió falleci* mort* décéd*
buy* bought purchas* own* kauf* gekauft besitz* compr* achet* possèd*
sell* sold verkauf* vend*
start* begin* began begun new join* joined anfang* begonnen beginn* neu* empez* empiez* comenz* nuev* commenc*
    nouv* rejoi*
stop* quit* finish* end* gave given aufgehör* aufgegeben beend* dej* termin* arrêt* fini*
plan* want* goal* hope* going intend* will möchte* vorhab* ziel* quier* voy plane* espero objetivo veux vais
    projet* espèr*
duz* geduz* siez* gesiez* tutoi* tutoy* vouv* tute* usted formal* informal*
need* must requir* brauch* muss* necesit* besoin faut
wear* glasses dress* trag* brille* llev* gafas port* lunettes
money salary earn* paid pay* debt gehalt verdien* geld schuld* dinero suel* gan* deuda argent salaire gagn*
    dette*
friend* mate* buddy freund* amig* ami* copain* copine*
colleague* coworker* teammate* kolleg* compañer* collègue*
neighbo* nachbar* vecin* voisin*
relig* church* christian* muslim* jew* buddhis* kirche* christ* jüd* iglesia cristian* judí* église chrétien*
    juif*
morning* early morgen* früh* mañana* tempran* matin* tôt
evening* night* late abend* nacht* spät* noche* tarde* soir* nuit* tard
german* deutsch* alemán* allemand*
english* englisch* inglés anglais*
spanish spanisch* español* espagnol*
french französ* francés* français*
italian* italien* italian*
germany deutschland alemania allemagne
spain spanien españa espagne
france frankreich francia
italy italien italia italie
switzerland schweiz suiza suisse
austria österreich autriche
england britain uk großbritannien inglaterra angleterre
left links izquierd* gauch*
january januar enero janvier
february februar febrero février
march märz marzo mars
may mai mayo
june juni junio juin
july juli julio juillet
august agosto août
october oktober octubre octobre
december dezember diciembre décembre
monday* montag* lunes lundi*
tuesday* dienstag* martes mardi*
wednesday* mittwoch* miércoles mercredi*
thursday* donnerstag* jueves jeudi*
friday* freitag* viernes vendredi*
saturday* samstag* sonnabend* sábado* samedi*
sunday* sonntag* domingo* dimanche*
one eins uno once 1 single
two both twins zwei dos deux 2 couple pair
three drei tres trois 3
four vier cuatro quatre 4
five fünf cinco cinq 5
six sechs seis 6
seven sieben siete sept 7
eight acht ocho huit 8
nine neun nueve neuf 9
ten zehn diez dix 10
eleven elf once onze 11
twelve zwölf doce douze 12 dozen
twenty zwanzig veinte vingt 20
thirty dreißig treinta trente 30
forty vierzig cuarenta quarante 40
fifty fünfzig cincuenta cinquante 50
hundred hundert cien* cent* 100
left leave* leaving quit laid off departed verließ verlassen dejé quitté
remote* homeoffice telework* teletrabaj* télétravail
tea tee té thé
coffee kaffee* café*
nut nuts nuss* nüss* nue* noix erdnuss* cacahuet* cacahuèt* peanut*
milk dairy lactose milch* laktose* leche lactosa lait
bread gluten wheat brot weizen* pan trigo pain blé
"""
"""Words of the same concept in several languages. Each line is a concept; an indented line continues the concept of the
line before it."""

SHORT_ANSWERS: Final = """
yes yeah yep yup sure right correct exactly indeed true ok okay fine please that this those these it one first
second latter
former last same agreed absolutely definitely course no nope not never neither both all none mine me too
ja jawohl genau stimmt richtig klar gern gerne korrekt nein nee beide beides das dies diese dieser jener erste
zweite letzte
sí si claro exacto correcto vale cierto eso ese esa esos aquel no ambos primera primero segunda segundo última
oui ouais exactement voilà bien sûr d'accord correct non celui celle ceux ça cela premier première deuxième
dernier dernière
"""
"""Words that begin a short answer to an earlier message."""

FIRST_PERSON: Final = frozenset(
    (
        *("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "please"),
        *("ich", "mich", "mir", "wir", "uns", "mein", "meine", "meinen", "meinem", "meiner", "unser", "unsere", "bin"),
        *("habe", "bitte", "yo", "mi", "mis", "nosotros", "nuestro", "nuestra", "soy", "estoy", "tengo", "vivo"),
        *("trabajo", "quiero", "prefiero", "llamo", "favor", "je", "moi", "mon", "ma", "mes", "nous", "notre", "nos"),
        *("suis", "ai", "plaît", "io", "mio", "mia", "sono", "ho", "lavoro", "eu", "meu", "minha", "sou", "tenho"),
        *("moro", "ik", "mijn", "ben", "heb", "ja", "moj", "moja", "jestem", "mam", "jag", "min", "mitt"),
    )
)
"""Words by which speakers speak about themselves or ask for something, in several languages."""
