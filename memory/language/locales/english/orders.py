"""Patterns of English orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import OrderRules

ENGLISH_ORDERS: Final = OrderRules(
    language="english",
    joints="and|then|but|so|or|instead|that",
    words={
        "assistant": (
            r"(?<!\bmy )(?<!\bher )(?<!\bhis )(?<!\btheir )(?<!\bour )(?<!'s )(?<!executive )(?<!personal )"
            r"(?<!teaching )(?<!dental )(?<!medical )(?<!research )(?<!sales )(?<!shop )(?<!legal )"
            r"(?:(?:the|this|any|every|each|an|your|all) )?(?:ai |virtual |digital |helpful )*(?:assistants?"
            r"|ai|chat ?bots?|llms?|language models?|chatgpt|gpt|claude|gemini|copilot)"
        ),
        "machine": r"(?:the|this|any|every) (?:(?:ai|language) )?(?:model|bot|agent|system)",
        "answers": r"(?:answers?|repl(?:y|ies)|responses?|messages?|conversations?|recommendations?)",
        "must": (
            r"(?:must|shall|should|ought to|ha(?:s|ve|d) to|needs? to|(?:is|are) to|will|may|can|cannot|can't|mustn't"
            r"|shouldn't|won't|(?:is|are) (?:now |not |hereby |always |never )*(?:required|instructed|obliged"
            r"|supposed"
            r"|expected|told|ordered|allowed|permitted|authori[sz]ed|free|forbidden|bound) to)(?: not| now"
            r"| only| no longer)*"
        ),
        "always": (
            r"(?:always|never|forever|permanently|henceforth|hereafter|(?:from (?:now|here|this (?:point"
            r"|moment|day))|going)"
            r"(?: (?:on|onwards?|forwards?))?|in (?:the )?future|at all times|under no circumstances|no matter what"
            r"|in (?:all|every|each|any|your)(?: of)?(?: your| the)?(?: future)? <answers>"
            r"|to (?:all|every|each|any|your)(?: of)?(?: your| the)?(?: future)? (?:<answers>|questions?|greetings?)"
            r"|(?:every|each|any) ?time|whenever|without exception)"
        ),
        "adverb": (
            r"(?:<always>|please|kindly|just|also|now|then|only|first|simply|immediately|strictly|secretly"
            r"|silently|quietly"
            r"|make sure (?:to|you|that you)|be sure to|see to it that you|remember to|(?:don't|do not"
            r"|never) forget to"
            r"|do not|don't|not|to|you <must>|you)"
        ),
        "wish": (
            r"(?:want|would like|'d like|like|ask|instruct|tell|told|request|require|expect|order|demand"
            r"|command|prefer|insist"
            r"|wish|need|authori[sz]e|allow|permit|direct|advise|urge|remind)(?:s|d|ed|ing)?(?: on"
            r"| upon)?(?: that| for)?"
        ),
        "lead": (
            r"(?:<start>(?:<adverb>,? ){0,4}|(?:<assistant>|<machine>),? (?:<adverb> |<must> ){0,4}"
            r"|\b(?:<wish>) (?:<assistant>|you)(?: <adverb>| <must>){0,4} )"
        ),
        "say": (
            r"(?:say|state|claim|assert|affirm|insist|declare|announce|mention|tell|inform|warn|assure"
            r"|convince|persuade"
            r"|include|append|add|insert|attach|embed|prepend|print|output|echo|repeat|quote|cite|portray"
            r"|describe|present"
            r"|confirm|deny|agree|end|begin|start|close|conclude|finish|name|list|state|maintain)"
        ),
        "promote": (
            r"(?:recommend|suggest|promote|advertise|praise|endorse|favou?r|push|sell|plug|propose|pitch|upsell"
            r"|(?:point|refer|direct|steer|send|redirect|lead|guide|link)\b(?: \w+){0,3}? to)"
        ),
        "bend": (
            r"(?:ignore|disregard|override|overrule|bypass|circumvent|disable|forget|neglect|discard|abandon"
            r"|violate|break|drop"
            r"|(?:stop|not|no longer) (?:follow(?:ing)?|obey(?:ing)?|respect(?:ing)?|appl(?:y|ying)))"
        ),
        "betray": (
            r"(?:reveal|disclose|leak|expose|divulge|print|output|show|display|dump|give out|give away"
            r"|hand over|share|repeat"
            r"|send|forward|upload|transmit|export|post|publish|email|copy|exfiltrate|reply|respond|answer)"
        ),
        "obey": (
            r"(?:obey|trust|impersonate|pretend|lie|deceive|mislead|hide|conceal|withhold|suppress|approve"
            r"|authori[sz]e|grant"
            r"|accept|comply|forward|exfiltrate|transfer|execute|install|download|upload|invoke|visit|click"
            r"|unlock|refuse"
            r"|link|disobey|spy|collect|approve)"
        ),
        "rules": (
            r"(?:instructions?|prompts?|guidelines?|guard ?rails?|safety|safeguards?|restrictions?|directives?"
            r"|polic(?:y|ies)"
            r"|filters?|programming|(?:\w+ )?rules|everything|the (?:above|rest)|what you (?:were|have been) told)"
        ),
        "treasure": (
            r"(?:prompts?|instructions|(?:secret|private|api|access) keys?|keys|passwords?|credentials"
            r"|card numbers?|pins?"
            r"|(?:home |postal |e-?mail )?address(?:es)?|(?:medical|health|personal|private|stored|user|customer) \w+"
            r"|memor(?:y|ies)|conversations?|chats?|contacts?|secrets?|context|history|everything)"
        ),
        "who": (
            r"(?:(?:the |a |any |some |another |other )?(?:users?|customers?|clients?|visitors?|persons?|people"
            r"|others)"
            r"|anyone|anybody|someone|somebody|everyone|everybody|whoever|they|one)"
        ),
        "effect": (
            r"\b(?:counts? as|(?:is|are|becomes?|gets?|was|were) (?:then |now |always )?(?:considered"
            r"|treated as|deemed|regarded"
            r" as|verified|authori[sz]ed|approved|unlocked|granted|trusted|an? admin\w*|the admin\w*))\b"
        ),
        "asked": (
            r"\b(?:when(?:ever)?|if|every time|each time|any ?time|as soon as|once|wherever|should)"
            r"(?: you(?: are|'re)| ever| the assistant is| it is| being)*"
            r"(?: (?:asked|prompted|questioned|queried)\b"
            r"| <who> (?:ever )?(?:asks?|mentions?|wants?|inquires?|enquires?|requests?|says?|brings? up"
            r"|needs?|wonders?|talks?"
            r"|types?|greets?)\b| (?:\w+ ){1,5}?(?:comes? up|arises?|(?:is|are|gets) (?:mentioned|discussed"
            r"|raised|asked|talked)"
            r"|turns? to)\b)"
        ),
    },
    signs=(
        r"<assistant>|<machine>|<answers>|<say>|<promote>|<bend>|<betray>|<obey>|you(?:'re| are)|restrictions"
        r"|limitations|filters?|rules|mode|jailbreak|act|behave|operate|roleplay|function|do|run|open|warn"
        r"|advise|ask|remind"
        r"|provide|give|hand|offer|supply|pay|buy|shown|sent|given|revealed|disclosed|forwarded|handed|told"
        r"|recommended|mentioned|promoted|suggested|advertised|praised|included|linked|cited|named"
        r"|listed|ranked|placed|verified|approved|authori[sz]ed|unlocked|trusted|granted|allowed|rules?|policy"
        r"|protocol"
        r"|unrestricted|uncensored|unfiltered|jailbroken|unaligned|first|prefers?|wants?|likes?|wishes|expects?|asks"
    ),
    orders=(
        r"<start>(?:<adverb>,? ){0,4}(?:answer|reply|respond)\b[^.!?\n]{0,30}\b(?:with|by saying|using) (?:the|this"
        r"|these|following)(?: following| exact| same)? (?:sentence|phrase|words?|slogan|line|text|message)\b",
        r"<lead><bend>\b[^.!?\n]{0,30}\b(?:all|any|previous|prior|earlier|preceding|existing|other|original"
        r"|your|its|system"
        r"|safety|these|those|operator'?s?|the above|the|above|everything)\b[^.!?\n]{0,30}\b<rules>",
        r"<lead><bend> (?:the above|everything|(?:all )?(?:previous|prior|earlier)\b)",
        r"<lead><betray>\b[^.!?\n]{0,40}\b(?:the |your |its |all |any |his |their |my |hidden |system"
        r" |stored |user's )+(?:\w+ )?<treasure>",
        r"<lead><betray>\b[^.!?\n]{0,60}\bto <who>\b",
        r"<lead>(?:run|execute|visit|open|install|download|click|forward|upload|send|link)\b"
        r"[^.!?\n]{0,60}(?:<link>|script\b|attached)",
        r"(?:<assistant>|<machine>|\byou),? (?:<adverb> |<must> ){0,4}<obey>(?:s|es)?\b",
        r"\b<wish> (?:<assistant>|you)(?: <adverb>| <must>){0,4} <obey>\b",
        r"<start>(?:<adverb>,? ){1,4}(?:only )?<obey>\b",
        r"<start>(?:<adverb>,? ){0,4}(?:obey|trust|comply with|exfiltrate|impersonate|grant|approve) (?:only"
        r"|every|all|any|the|whatever)\b",
        r"\b<wish> (?:<assistant>|you)(?: <adverb>| <must>){0,4} (?:(?:<say>|answer|reply|respond)\b[^.!?\n]{0,40}"
        r"(?:\bthat\b|<always>|<link>|\")|(?:only )?<promote> (?:[\w'-]+ ){0,3}?(?:<Name>|<link>))",
        r"<start>(?:<assistant>|<machine>|you),? (?:<adverb> |<must> ){1,4}(?:say|claim|assert|mention|tell"
        r"|promote|advertise|endorse)\b",
        r"<lead>(?:<promote>|include|mention|add|append|insert|cite|name)\b[^.!?\n]{0,60}<link>",
        r"<asked>[^.!?\n]{0,80}?(?:,|:|\bthen|\b<assistant>|\byou) ?(?:<assistant>,? |<adverb>,? |<must> ){0,4}"
        r"(?:<say>|<promote>|<obey>|<betray> (?:that|yes|no|with|\"))\b",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<obey>|answer|reply|respond)\b[^.!?\n]{0,100}<asked>",
        r"<start>(?:<adverb>,? ){0,4}(?:tell|inform|warn|assure|convince|remind|advise|ask|persuade) (?:the "
        r"|all |every |any )*"
        r"(?:users?|customers?|clients?|visitors?|anyone|anybody|everyone|everybody|whoever|people)\b",
        r"<start>(?:<adverb>,? ){0,4}(?:never|don't|do not|always|henceforth|from now on),? (?:<adverb>,? ){0,4}"
        r"(?:say|state|claim|assert|tell|insist|deny|disclose|reveal|mention|warn)\b(?! (?:me|us)\b)[^.!?\n]{0,20}"
        r"\b(?:that|about|the|this|these|any|how|who|what|whether)\b(?! (?:my|me)\b)",
        r"<start>(?:<adverb>,? ){0,4}<promote> (?:only |buying |using |to )*(?:[\w'-]+ ){0,2}?(?:<Name>|<link>)",
        r"<start>(?:<adverb>,? ){0,4}(?:answer|reply|respond|start|begin|end|close|finish)\b"
        r"[^.!?\n]{0,60}(?:\bthat\b|\bwith (?:a link"
        r"|\"|yes|no\b)|\"|<link>|: )",
        r"(?:<answers>) <must>\b[^.!?\n]{0,60}(?:<link>|\blinks? to\b)",
        r"\byou(?: are|'re) (?:now|no longer|from now on|hereby)\b",
        r"\b(?:be|being) (?:recommended|mentioned|promoted|suggested|advertised|praised|included|linked|cited"
        r"|named)\b"
        r"[^.!?\n]{0,40}(?:<always>|\b(?:in|to) (?:all|every|each|any)\b)",
        r"\b(?:every|each|all|any|your) (?:\w+ )?<answers>\b[^.!?\n]{0,20}\b(?:mention|link|end with|begin with"
        r"|contain"
        r"|include|promote|recommend|say)\b[^.!?\n]{0,40}(?:<Name>|<link>|\")",
        r"\b(?:should|must|may|can|shall) be (?:shown|sent|given|revealed|disclosed|forwarded|handed"
        r"|told) to <who>\b",
        r"<start>(?:<adverb>,? ){0,4}trust (?:e-?mails?|messages?|statements?|links?|instructions?|orders?|requests?"
        r"|anything)\b",
        r"<asked>[^.!?\n]{0,80}?(?:,|:|\bthen) ?(?:<adverb>,? ){0,4}"
        r"(?:provide|give|hand|offer|supply|open|run|pay|buy)\b",
        r"\b(?:act|behave|respond|operate|roleplay|function) as (?:if|though|an? (?:unrestricted|uncensored"
        r"|unfiltered|evil))",
        r"\b(?:no|without(?: any)?) (?:more )?(?:restrictions|limitations|filters?|rules)\b.{0,20}$",
        r"\b(?:unrestricted|jailbroken|developer|god|dan) mode\b|\bjailbreak\b",
        r"<start>(?:new|updated?|additional|important|hidden|secret|system)(?: system)? (?:instructions?"
        r"|rules?|directives?|prompts?|order)\b"
        r"[^.!?\n]{0,20}:",
        r"\b(?:now|new) (?:follow|obey|apply|use) (?:these|the following|my|this)\b"
        r"|\bfollow these (?:new )?(?:rules|instructions)\b",
        r"(?:when(?:ever)?|if|once|after|as soon as|(?:each|every|any) time) <who> (?:ever )?(?:says?|writes?"
        r"|types?|sends?"
        r"|mentions?|asks?|greets?)\b[^.!?\n]{0,80}<effect>",
        r"<effect>[^.!?\n]{0,40}\b(?:when(?:ever)?|if|once|after|as soon as|(?:each|every"
        r"|any) time) <who> (?:ever )?(?:says?"
        r"|writes?|types?|sends?|mentions?|asks?|greets?)\b",
        r"\b(?:rules?|policy|policies|protocol|directive|instructions?) (?:\w+ )?(?:is|are|applies|apply|holds?"
        r"|counts?|stays?"
        r"|remains?)\b[^.!?\n]{0,30}\b(?:in|to|for) (?:every|each|all|any|this|these|your) (?:\w+ )?(?:chats?"
        r"|sessions?"
        r"|<answers>)",
        r"\b(?:means?|rules?|policy|always|whenever|asked)\b[^.!?\n]{0,60}\b(?:named|listed|mentioned|shown"
        r"|ranked|recommended"
        r"|placed|put) first\b",
        r"\b(?:first|on top|at the top) (?:in|of|on) (?:every|each|all|any) (?:lists?|rankings?|comparisons?"
        r"|<answers>)",
        r"\b(?:unrestricted|uncensored|unfiltered|jailbroken|unaligned) (?:\w+ )?(?:ai|models?|assistants?"
        r"|chat ?bots?|bots?"
        r"|versions?)\b",
        r"<start>(?:<adverb>,? ){0,4}do (?:whatever|everything|anything|exactly what) ",
        r"<start>(?:<assistant>|<machine>) <always> (?:\w+ ){0,2}?(?:links?|recommends?|mentions?|promotes?"
        r"|includes?|says?|tells?)\b",
    ),
    standing=(
        r"\b<wish> (?:that )?you (?:<always>|<must>)(?: <adverb>){0,3} \w+",
        r"<start><assistant>,? (?:<must>|<always>)\b",
        r"\b<wish> (?:that )?<assistant> (?:must|shall)\b",
        r"<start><machine>,? <must>(?: <adverb>){0,4} (?:<say>|<promote>|<bend>|<betray>|answer|reply|respond)\b",
        r"\b(?:every|each|all|any|your|future|the assistant's)(?: of)?(?: your| its| the"
        r"| future)? (?:<answers>)\b[^.!?\n]{0,40}\b<must>\b",
        r"<start><answers> <must>\b",
        r"<start>(?:<adverb>,? ){0,4}(?:<always>,? )(?:<adverb>,? ){0,4}(?:<say>|<promote>|<bend>|<betray>)\b",
        r"<start>(?:<adverb>,? ){0,4}(?:<say>|<promote>|<bend>|<betray>)\b[^.!?\n]{0,80}<always>",
        r"<asked>[^.!?\n]{0,80}?(?:,|:) ?(?:<adverb>,? ){0,4}(?:answer|reply|respond)\b",
    ),
    preferences=(
        r"^(?:please,? )?(?:never|don't|do not) (?:recommend|suggest|propose|offer) "
        r"(?!(?:that|the|this|these|any|anything|other|competit\w+|alternativ\w+|rivals?)\b)(?-i:[a-z])",
        r"\b(?:in|into|speak|use|using|write) (?:simple |plain |easy |clear |proper |good |american "
        r"|british )*(?:english|german|french|spanish|italian"
        r"|portuguese|dutch|polish|turkish|russian|arabic|chinese|mandarin|japanese|korean|hindi|swedish"
        r"|danish|norwegian"
        r"|finnish|greek|czech|hungarian|ukrainian|catalan|basque|welsh|irish|latin|words|terms|language"
        r"|sentences|prose)\b",
        r"\b(?:short|shorter|brief|briefly|briefer|concise|concisely|terse|long|longer|detailed|details?"
        r"|length|in full|paragraphs?|sentences?|words"
        r"|bullet|bullets|points|lists?|tables?|tabular|markdown|headings?|bold|emojis?|smileys?|plain text"
        r"|code|examples?|sources?|citations?"
        r"|references|summary|summaries|summari[sz]e|steps?|step by step|pros and cons|screen reader"
        r"|large print|tl;dr|footnotes)\b",
        r"\b(?:formal|formally|informal|informally|casual|casually|polite|politely|friendly|tone|humou?r"
        r"|jokes?|jargon|slang|swear(?:ing)?|curse"
        r"|sarcasm|sarcastic|gentle|gently|kind|honest|direct|blunt|plainly|simple|simply|simpler|slowly"
        r"|patient|serious|formality"
        r"|technical|pronouns?|they/them|she/her|he/him|small talk|flattery|compliments|spoilers?)\b",
        r"\b(?:metric|imperial|celsius|fahrenheit|kelvin|kilomet(?:er|re)s?|km|miles|kilos?|grams?|litres?"
        r"|ounces|cups|euros?|dollars"
        r"|pounds|francs|yen|currency|prices?|24-?hour|12-?hour|time ?zone|local time|dates?|decimals?|units?"
        r"|calories|nutrition|servings|doses?)\b",
        r"\b(?:call|address|greet|refer to|remind|help|ask|wake|check (?:in )?with|speak to|talk to"
        r"|encourage) (?:me|him|her|them|us|the user)\b",
        r"\b(?:to|for|with|at|near|around|before|bother|tell|show|give|send|sending|offer|warn|remind) (?:me"
        r"|him|her|them|us)\b",
        r"\b(?:my|her|his|their|our|user's) (?!(?:instructions|password|assistant))",
        r"\b(?:vegetarian|vegan|gluten|lactose|dairy|nuts?|halal|kosher|pork|meat|fish|alcohol|sugar|low-carb"
        r"|allerg\w+|organic|cheap|cheaper"
        r"|affordable|budget|nearby|wheelchair|step-free|accessible|quiet|outdoors?|indoor|child|kid|family"
        r"|dog|pet)(?:-?\w+)*\b",
        r"\b(?:typos?|spelling|grammar|misspellings|capitali[sz]ation|punctuation|autocorrect)\b",
        r"\b(?:italian|mexican|indian|thai|chinese|japanese|korean|french|greek|spanish|turkish|lebanese"
        r"|vietnamese|local|regional)"
        r" (?:food|dish|dishes|restaurants?|places?|cuisine|recipes?|music|films?|movies|books?)\b",
    ),
)
