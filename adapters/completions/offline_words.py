"""Vocabulary of the offline rules: relationships, pets, occupations, origins, diets."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RELATIONS: Final = _words(
    """
    aunt boss boyfriend brother brother-in-law co-worker colleague cousin coworker dad daddy daughter
    daughter-in-law father father-in-law fiance fiancee fiancé fiancée flatmate friend girlfriend goddaughter
    godfather godmother godson grandchild granddaughter grandfather grandma grandmother grandpa grandson granny
    housemate husband manager mentor mom mommy mother mother-in-law mum mummy neighbor neighbour nephew niece
    partner roommate sister sister-in-law son son-in-law spouse stepbrother stepdaughter stepfather stepmother
    stepsister stepson teammate twin uncle wife
    """
)

CHILDREN: Final = _words(
    """
    baby boy boys child children daughter daughters girl girls kid kids son sons twins
    """
)

HOUSEHOLD: Final = CHILDREN | _words(
    """
    brother brothers cousins grandchildren grandkids nephews nieces sibling siblings sister sisters triplets
    """
)

PETS: Final = _words(
    """
    alpaca bird budgie bunny canary cat chicken chinchilla cockatiel dog donkey ferret fish gecko goat goldfish
    guinea-pig hamster hedgehog hen horse kitten labrador lizard llama mouse parrot pig pony poodle puppy rabbit
    rat sheep snake terrier tortoise turtle
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
    accountant actress agent architect astronaut attorney baker barista biologist businessman businesswoman
    butcher cameraman carpenter cashier chef clerk coach consultant cook dentist detective developer doctor
    economist electrician farmer firefighter fisherman freelancer gp hairdresser handyman intern janitor judge
    lecturer librarian locksmith manager masseuse mechanic midwife model monk nanny nurse optician paediatrician
    paramedic pediatrician pharmacist physician pilot poet policeman policewoman politician postman priest
    principal professor psychologist salesman saleswoman seamstress secretary soldier surgeon tailor technician
    vet veterinarian waitress
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

NUMBERS: Final = "two|three|four|five|six|seven|eight|nine|ten|twelve|[0-9]{1,2}"

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
    agency airline airport army bakery bank bar bookshop bookstore brewery business cafe café chain charity
    church clinic college company consultancy corporation council court embassy enterprise factory farm firm
    foundation garage government gym hospital hotel institute kindergarten lab laboratory library magazine
    ministry museum navy newspaper ngo nursery office orchestra parliament pharmacy plant police practice pub
    publisher restaurant salon school shop start-up startup station store studio supermarket theater theatre
    university warehouse zoo
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
    "allergy allergies intolerance asthma diabetes epilepsy dyslexia adhd migraines arthritis eczema tinnitus"
)

NO_TRADE: Final = _words(
    "bit little lot huge big total real kind former retired ex aspiring would-be future wannabe hopeful amateur"
)
"""A phrase that begins with one of these words is not an occupation."""
