"""English: kinds of things. A statement that denies a kind also denies its members: a person who drinks no alcohol
drinks no wine."""

from __future__ import annotations

from collections.abc import Mapping

from ..notation import words

_PARTICULARS: Mapping[str, str] = {
    "alcohol": "beer wine whisky whiskey vodka gin rum tequila champagne prosecco"
    " cider cocktails liquor spirits ale sake lager"
    " stout bourbon brandy cognac sherry port booze",
    "booze": "alcohol beer wine whisky whiskey vodka gin rum",
    "meat": "beef pork chicken steak bacon ham lamb turkey sausage sausages burgers burger veal mutton salami",
    "fish": "salmon tuna cod trout herring sushi sardines mackerel",
    "seafood": "shrimp prawns lobster crab oysters mussels squid salmon tuna fish",
    "dairy": "milk cheese yoghurt yogurt butter cream",
    "sweets": "chocolate candy cake cookies biscuits",
    "sugar": "sweets candy",
    "caffeine": "coffee espresso tea",
    "coffee": "espresso latte cappuccino americano mocha macchiato",
    "soda": "coke cola pepsi lemonade fanta sprite",
    "gluten": "bread pasta wheat",
    "cigarettes": "smoke smoking",
    "tobacco": "smoke smoking cigarettes cigars",
    "nicotine": "smoke smoking vape vaping cigarettes",
    "gambling": "poker betting lottery casino",
    "drugs": "cannabis weed cocaine marijuana",
    "car": "drive fiat volvo toyota honda tesla renault audi bmw mercedes ford volkswagen vw golf opel peugeot"
    " citroen skoda seat mazda nissan hyundai kia subaru porsche jeep mini sedan hatchback suv convertible estate",
    "vehicle": "car van truck motorbike motorcycle scooter",
    "phone": "iphone pixel samsung galaxy android nokia smartphone blackberry oneplus",
    "laptop": "macbook thinkpad chromebook",
    "computer": "laptop macbook thinkpad pc mac imac desktop",
    "bicycle": "e-bike ebike",
    "pet": "dog cat hamster rabbit parrot goldfish budgie puppy kitten turtle tortoise snake ferret",
    "dog": "puppy labrador poodle beagle dachshund terrier spaniel",
    "cat": "kitten",
    "child": "son daughter baby toddler twins",
    "sibling": "brother sister",
    "partner": "girlfriend boyfriend husband wife",
    "instrument": "guitar piano violin cello drums flute trumpet saxophone clarinet ukulele harp",
    "sport": "football tennis basketball volleyball badminton hockey rugby cricket golf squash",
    "exercise": "gym running jogging yoga pilates",
    "gaming": "games game playstation xbox nintendo",
    "television": "netflix series soaps",
    "glasses": "spectacles",
}
KINDS: Mapping[str, tuple[str, ...]] = {
    particular: tuple(general for general, under in _PARTICULARS.items() if particular in words(under))
    for particular in {each for under in _PARTICULARS.values() for each in words(under)}
}
"""The kinds to which each thing belongs. The words are not stems."""
ALTERING = frozenset(
    words("deputy vice assistant acting interim ex former step co great grand associate junior trainee mock toy fake")
)
"""Words that change the meaning of the noun after them: a deputy head is not a head."""
