"""Words of the same concept in several languages, to compare a quote with a statement.

statement_words.py compares words in lower case and without accents. `*` at the end of a word matches any ending.
"""

from __future__ import annotations

from typing import Final

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
