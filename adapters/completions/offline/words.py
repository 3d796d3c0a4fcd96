"""Vocabulary of the offline rules: relationships, pets, occupations, origins, diets."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RELATIONS: Final = _words(
    """
    aunt auntie boss boyfriend brother brother-in-law bro co-worker colleague cousin coworker dad daddy daughter
    daughter-in-law father father-in-law fiance fiancee fiancé fiancée flatmate friend girlfriend goddaughter
    godfather godmother godson grandchild granddaughter grandfather grandma grandmother grandpa grandson granny
    housemate husband manager mentor mom mommy mother mother-in-law mum mummy neighbor neighbour nephew niece
    mam nan nana nanny-in-law gran grandad granddad partner roommate sister sister-in-law sibling son son-in-law spouse
    stepbrother stepdaughter stepfather stepmother stepsister stepson supervisor teammate twin uncle wife
    """
)

ROLES: Final = _words(
    """
    babysitter bandmate bassist carer childminder classmate coach deputy secretary dentist doctor drummer ex
    ex-boyfriend ex-girlfriend eldest oldest youngest ex-husband ex-wife gp guitarist hairdresser landlady landlord lead
    lodger physio pianist professor singer student supervisor teacher tenant therapist trainer tutor vet
    """
)
"""People with a role in the speaker's life who are not relatives: "my landlord Mr Frey"."""

CHILDREN: Final = _words(
    """
    baby boy boys child children daughter daughters girl girls kid kids son sons twins
    """
)

KIN_PLURALS: Final = {
    "kids": "child", "children": "child", "sons": "son", "daughters": "daughter", "boys": "son", "girls": "daughter",
    "twins": "child", "brothers": "brother", "sisters": "sister", "siblings": "sibling", "cats": "cat", "dogs": "dog",
    "kittens": "kitten", "puppies": "puppy", "rabbits": "rabbit", "bunnies": "bunny", "hens": "hen",
    "chickens": "chicken", "horses": "horse", "goats": "goat", "parents": "parent", "friends": "friend",
    "flatmates": "flatmate", "housemates": "housemate", "roommates": "roommate", "nephews": "nephew",
    "nieces": "niece", "grandkids": "grandchild", "grandchildren": "grandchild", "cousins": "cousin",
    "hamsters": "hamster", "budgies": "budgie", "ponies": "pony", "guinea pigs": "guinea pig", "parrots": "parrot",
}  # fmt: skip
"""Plural words for relatives and animals, with the singular term for one of them."""

HOUSEHOLD: Final = CHILDREN | _words(
    """
    brother brothers cousins grandchildren grandkids nephews nieces sibling siblings sister sisters triplets
    """
)

PETS: Final = _words(
    """
    alpaca beagle bird budgie bulldog collie corgi dachshund dalmatian greyhound husky lab mutt pug retriever sheepdog
    shepherd spaniel whippet cockapoo labradoodle tomcat tabby moggy foal mare gelding gerbil guinea-pig cockatoo macaw
    axolotl stick-insect bunny canary cat chicken chinchilla cockatiel dog donkey ferret fish gecko goat goldfish
    guinea-pig hamster hedgehog hen horse kitten labrador lizard llama mouse parrot pig pony poodle puppy rabbit rat
    sheep snake terrier tortoise turtle
    """
)

PET_PLURALS: Final = frozenset(pet + "s" for pet in PETS) | _words("puppies ponies bunnies mice fish")

DIETS: Final = _words(
    "vegetarian vegan pescatarian coeliac celiac lactose-intolerant gluten-intolerant teetotal diabetic"
) | {
    "lactose intolerant",
    "gluten intolerant",
}

MARITAL: Final = _words(
    """
    divorced engaged married separated widowed
    """
)

ORIGINS: Final = _words(
    """
    afghan albanian algerian american argentine argentinian armenian asian australian austrian bangladeshi
    belgian bolivian bosnian brazilian british buddhist bulgarian canadian catholic chilean chinese christian
    colombian croatian cuban czech danish dutch egyptian english estonian ethiopian european filipino finnish
    french georgian german ghanaian greek hindu hungarian icelandic indian indonesian iranian iraqi irish
    israeli italian jamaican japanese jewish jordanian kenyan korean latvian lebanese lithuanian malaysian
    mexican moroccan muslim nepali nigerian norwegian orthodox pakistani palestinian peruvian polish portuguese
    protestant romanian russian scottish serbian sikh singaporean slovak slovenian somali spanish swedish swiss
    syrian taiwanese thai tunisian turkish ukrainian venezuelan vietnamese welsh
    """
)

OCCUPATIONS: Final = _words(
    """
    accountant actress agent architect astronaut attorney baker barista biologist businessman businesswoman butcher
    cameraman carpenter cashier chef clerk coach consultant cook dentist detective developer doctor economist
    electrician farmer firefighter fisherman freelancer gp hairdresser handyman intern janitor judge lecturer
    librarian locksmith manager masseuse mechanic midwife model monk nanny nurse optician paediatrician paramedic
    physio sysadmin bartender pediatrician pharmacist physician pilot poet policeman policewoman politician postman
    priest principal lifeguard bodyguard coastguard guard bookkeeper beekeeper gamekeeper zookeeper innkeeper
    shopkeeper blacksmith goldsmith joiner mason apprentice trainee assistant receptionist dev sommelier luthier
    jockey nun vicar rabbi imam pastor chaplain ranger shepherd forester gardener docent conductor usher steward
    stewardess dj mc surveyor au-pair postdoc hygienist radiographer geologist programmer engineer driver cleaner
    roofer welder bricklayer tiler plasterer glazier courier cop diplomat consul notary paralegal barrister
    solicitor statistician actuary analyst executive chairman ceo cto cfo clown magician acrobat stuntman sculptor
    potter weaver cobbler upholsterer chauffeur caretaker concierge maid housekeeper butler undertaker mortician
    sailor captain skipper docker crane-operator operator planner buyer auditor treasurer fundraiser curator
    archivist restorer scientist researcher mathematician physicist chemist linguist interpreter translator teacher
    tutor headmaster headmistress headteacher lead specialist coordinator supervisor representative rep salesperson
    worker veterinarian vet groomer professor psychologist salesman saleswoman seamstress secretary soldier surgeon
    tailor technician waitress
    """
)

OCCUPATION_ENDINGS: Final = ("er", "or", "ist", "eer", "ician", "logist", "yst", "ant")

NO_OCCUPATIONS: Final = _words(
    """
    answer atheist beginner believer better bother brother caller cancer capitalist communist customer daughter
    descendant disaster donor dreamer drinker early easterner eater extremist father feminist fighter follower
    foreigner former gamer giant hater hiker homebody immigrant infant insider junior latter lawbreaker learner
    letter liar listener loner loser lover matter member mentor migrant minimalist minor monster mother
    narcissist neighbor newcomer northerner number offer optimist other outsider overthinker owner paper
    parishioner participant peer pensioner perfectionist pessimist player prisoner quitter racist reader realist
    reminder riser runner senior sexist sinister sinner sister sleeper smoker snorer socialist southerner
    speaker starter stranger subscriber sucker sufferer supporter survivor swimmer teenager thinker tourist
    traveler traveller user vegetarian viewer visitor voter voyager westerner winner worker
    """
)

BUSINESSES: Final = _words(
    """
    agency bakery bar blog bookshop bookstore boutique brewery business cafe café charity clinic company
    consultancy farm firm gallery garage garden-centre gym hostel hotel kindergarten newsletter nursery podcast
    practice pub restaurant salon school shop startup store studio winery workshop
    """
)

MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
)

NUMBERS: Final = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen"
    "|nineteen|twenty|thirty|forty|fifty|[0-9]{1,2}"
)

LANGUAGES: Final = ORIGINS | _words(
    """
    afrikaans arabic basque bengali cantonese catalan esperanto farsi flemish gaelic hebrew hindi latin malay
    mandarin mongolian persian punjabi sign swahili tagalog tamil urdu yiddish yoruba zulu
    """
)

PLACES: Final = _words(
    """
    apartment basement boat bungalow cabin camper capital caravan castle city coast commune condo cooperative
    cottage country countryside county desert dorm dormitory east farm farmhouse flat forest house houseboat
    island loft monastery mountains north region south studio suburb suburbs town valley van village west
    """
)

ORGANISATIONS: Final = _words(
    """
    center centre agency bureau call-centre chemist chemist's consultancy contractor dealership dentist's depot
    distillery federation fund funeral-home ministry mill mine mint nursing-home pool port post-office prison
    refinery shipyard solicitors studio surgery trust union vineyard winery petrol-station start-ups logistics
    airline airport army brigade bakery bank bar bookshop bookstore brewery business cafe café chain charity church
    clinic college company corporation council court embassy enterprise factory farm firm foundation garage
    government gym hospital hotel institute kindergarten lab laboratory library magazine museum navy newspaper ngo
    nursery office orchestra parliament pharmacy plant police practice pub publisher restaurant salon school shop
    start-up startup station store supermarket theater theatre university warehouse zoo
    """
)

PLAYED: Final = _words(
    """
    accordion badminton banjo baseball basketball bass billiards bowling bridge cello chess clarinet cricket
    darts drums flute football frisbee go golf guitar handball harmonica harp hockey keyboard lacrosse netball
    oboe organ padel piano pickleball poker pool rugby saxophone snooker soccer softball squash tennis trombone
    trumpet ukulele viola violin volleyball water-polo
    """
)

WORN: Final = _words(
    """
    aid aids braces contacts glasses hijab kippah lenses prosthesis turban wig
    """
)

CONDITIONS: Final = _words(
    """
    allergy allergies alzheimer's anaemia anxiety arthritis asthma autism cancer celiac coeliac dementia depression
    diabetes dyslexia eczema endometriosis epilepsy fibromyalgia insomnia intolerance lupus adhd add ms migraines
    narcolepsy ocd parkinson's pcos ptsd psoriasis rheumatism scoliosis tinnitus vertigo
    """
)

NO_TRADE: Final = _words(
    "bit little lot huge big total real kind former retired ex aspiring would-be future wannabe hopeful amateur"
)
"""A phrase that begins with one of these words is not an occupation."""

COMMON_WORDS: Final = _words(
    """
    tongue language
    a about abroad after afraid again ago ahead alive all allergic almost alone already also always am an and angry
    annoyed annoying another any anymore anyway are around as asleep at autistic available aware away awake back bad
    bankrupt because been before being best better big bit blessed blind bored both broke broken brilliant busy but by
    call called calm can cannot car cold confused cool could crazy curious currently cute dad dead deaf definitely
    depressed desperate diabetic did different difficult do does dog doing done down drunk each early eager eight either
    else engaged even ever every everyone excited exhausted expecting extremely fairly famous fat feeling few fine
    finally fine first five flat for former four free freezing from full fun funny getting glad go goes going gone good
    got great grumpy guilty had half happy hard has hate hates have having he healthy her here hers him his home
    homeless honest hot how hungover hungry hurt hates i if ill in innocent inside instead interested into is it its
    jealous jobless just keen keeps kind kinda know last late later lazy learning leaving left less lesbian like likes
    likely live lives living loads lonely lost lots love loves low lucky mad made make makes male married may maybe me
    mean might mine miserable more most moved moving much mum must my myself near nearly nervous never new next nice
    nine no nobody none not nothing now of off often ok okay old on once one online only open or original other our ours
    out outside over own parents perfect person plan plays poor pregnant pretty probably proud quite ready really
    recently red retired rich right round rubbish sad safe said same says scared seriously serious seven she short shy
    sick simply since single six sleepy slow small so sober some someone something sometimes soon sorry still stuck
    stupid such super sure surprised taken tall teaching ten terrible terrified thankful than that the their them then
    there these they thinking thirsty this those though three tired to today together tomorrow tonight too totally trans
    transgender two type ugly under underage unemployed unhappy unless unsure until up upset us used useless usually
    vegan vegetarian very wake want wants was we weak weird well went were what when where which while white who whose
    why wide widowed will with without work works worried worse worth would wrong yes yesterday yet you young your yours
    student freelance self-employed bisexual gay straight female man woman guy girl boy human native british interested
    aged almost abroad bound downstairs upstairs overseas uptown downtown town city village countryside country suburbs
    apartment house flat studio loft basement cabin caravan somewhere anywhere nowhere everywhere drives drive sells
    runs run thinks wont gets says need needs cant cooks comes came turns turned died passed stopped started quit wants
    asked told keeps snores sleeps sings eats bought brought gave found thought took makes plus minus place places
    birthday wedding party car room phone number gift present stuff side funeral graduation loves hi hello hey thanks
    thank please ok yep nope yeah btw lol anyway per via versus cause during except like monday tuesday wednesday
    thursday friday saturday sunday january february march april june july august september october november december
    spring summer autumn winter weekend week month year day morning evening night school
    """
)
"""Words in small letters that are not a name, even after "I am" or "my brother"."""

FIELDS: Final = _words(
    """
    accounting admin administration advertising aerospace agriculture architecture automation aviation banking biotech
    catering childcare cleaning communications compliance construction consulting consultancy controlling cybersecurity
    data design development devops ecommerce education electronics energy engineering entertainment events fashion
    fintech film finance fundraising gaming government graphics healthcare health hospitality hr insurance it
    journalism landscaping law legal logistics maintenance management manufacturing marketing media mining nursing
    operations pharma photography plumbing policing politics pr procurement production programming publishing
    purchasing qa radiology recruiting recruitment research retail robotics sales security shipping software support
    tech technology telecoms theatre tourism trade training translation transport travel ux ui video warehousing
    welfare bookkeeping payroll social-work
    """
)

PRACTISED: Final = _words(
    """
    aerobics aikido archery athletics ballet bjj bodybuilding boxing calisthenics capoeira ceramics crossfit dance
    fencing gymnastics improv jiu-jitsu judo karate karaoke kickboxing krav-maga meditation mma origami parkour pilates
    pottery powerlifting reiki salsa stand-up swing taekwondo tai-chi tango theatre triathlons weightlifting wrestling
    yoga zumba
    """
)

AIDS: Final = _words("wheelchair walker cane crutches pump inhaler scooter cpap prosthesis aids braille stick")

MADE: Final = _words(
    """
    album app boat book bike bicycle bus cabin camper canoe car caravan chair comic company cottage deck documentary
    extension farmhouse fence film furniture game garden greenhouse guitar house hut kayak kitchen log-cabin memoir
    memoirs model motorbike motorcycle novel opera patio pergola phd piano pond play podcast quilt robot sailboat sauna
    screenplay shed ship song startup start-up table terrace thesis treehouse van violin website yacht synth truck
    tractor barn clock dissertation jumper sweater blanket library
    """
)
"""Things that people build, restore or write for weeks, so that a statement about them is not only about a moment."""

HOBBYISTS: Final = (
    "runner|swimmer|hiker|climber|cyclist|gamer|reader|birdwatcher|birder|knitter|surfer|skier|sailor|smoker|non-smoker"
    "|beekeeper|angler|rower|skater|boulderer|night owl|early bird|homebody|introvert|extrovert"
    "|(?:morning|night|cat|dog|coffee|tea|beach|mountain) person|atheist|agnostic|quaker|pagan|only child"
)
"""Descriptions of people that are not occupations."""

SKILLS: Final = (
    "knit|sew|crochet|surf|ski|snowboard|sail|paint|draw|fish|hunt|skate|box|fence|climb|hike|meditate|juggle|fly|freedive"
    "|weld|sculpt"
)
