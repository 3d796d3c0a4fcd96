"""English: groups of words that ask for the same thing, and words that show that a sentence is a question."""

from __future__ import annotations

from ..notation import words
from ..pack import QuestionWords

TOPICS = tuple(
    frozenset(words(line))
    for line in (
        "work job employer employed company profession occupation career earn position role workplace",
        "live home house flat apartment dorm address reside residence town city move stay",
        "wife husband spouse married marriage marry widow widower",
        "wife husband spouse partner girlfriend boyfriend fiance fiancee relationship single dating engaged divorced",
        "children child kids son daughter baby toddler twins",
        "mother mum mom father dad parents parent",
        "brother sister sibling siblings",
        "grandmother grandfather grandma grandpa grandparents grandson granddaughter grandchild grandchildren",
        "pet dog cat animal breed puppy kitten",
        "allergy allergies allergic intolerance intolerant",
        "medicine medication drug pill pills tablet tablets prescription dose",
        "doctor dr physician gp surgeon dentist",
        "therapist therapy psychologist counsellor counselling psychotherapy",
        "illness ill sick disease condition diagnosis diagnosed health",
        "eyesight glasses vision lenses",
        "birthday born birth",
        "old age aged year years",
        "name named called",
        "eat food diet vegetarian vegan meat meal cook dish",
        "drink drinks beverage coffee tea alcohol",
        "like likes love loves enjoy favorite prefer preference fan fond interested support",
        "dislike hate hates stand avoid",
        "want wants wish plan plans intend goal",
        "study studies learn course degree university school student major subject",
        "car drive vehicle",
        "sport train training exercise run running marathon race workout",
        "language languages speak fluent",
        "trip travel fly flight vacation holiday journey visit",
        "appointment meeting meet",
        "deadline due hand submit finish",
        "price cost costs rate charge charges pay pays rent budget fee salary income euros dollars",
        "phone telephone number contact email mail",
        "business shop store studio own owns owner",
        "afraid fear fears scared frightened phobia",
        "build built make makes made create carpenter",
        "sleep sleeps insomnia bed",
        "instrument music piano guitar violin cello play plays",
        "club team football league",
        "read reads book books author novel",
        "film watch series movie",
        "open opens opening hours closes close closing",
        "hobby hobbies pastime",
        "friend friends buddy mate",
        "color colour",
    )
)
QUESTIONS = QuestionWords(
    openers=frozenset(words("who whom whose what which when where why how whats wheres whos whens hows")),
    relatives=frozenset(("which",)),
    auxiliaries=frozenset(
        words(
            "am is are was were do does did have has had can could will would shall should may might must"
            " 's 're 'd isn't aren't wasn't weren't don't doesn't didn't haven't hasn't can't couldn't"
            " won't wouldn't shouldn't"
        )
    ),
    subjects=frozenset(words("i you he she it we they there my your his her its our their this that these those the")),
    articles=frozenset(words("a an any some")),
    speakers=frozenset(words("i i'm i've i'd i'll im ive we we're we've we'll my our")),
    requests=tuple(
        tuple(words(each))
        for each in (
            "tell me",
            "remind me",
            "show me",
            "let me know",
            "do you know",
            "i wonder",
            "i forgot",
            "i forget",
            "i don't know",
            "i want to know",
            "i'd like to know",
            "i can't remember",
            "i don't remember",
        )
    ),
    indirect=frozenset(("if", "whether", "about")),
    fillers=frozenset(
        words(
            "hi hello hey thanks thank you please ok okay well so and but or oh ah hm hmm haha ha lol btw sorry now"
            " again then good morning evening afternoon dear right wait just quick question by the way anyway um uh"
        )
    ),
)
