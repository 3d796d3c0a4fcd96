"""English: phrases about employers and occupations, and about the beginning and end of work."""

from __future__ import annotations

from ..notation import phrases, words
from ..pack import Implied, PredicateRule

RULES = (
    PredicateRule(
        "works_at",
        "single",
        phrases(
            "work {at,for}|work currently at|be employ {by,at,with}|be on the payroll of|be {staff,staff member} at"
            "|have {job,position,role,post} {at,with}|hold {position,role,post} {at,with}|do job at"
            "|{employer,company,workplace} be|{current,new} employer be|be employee {of,at}"
        ),
    ),
    PredicateRule(
        "works_at",
        "single",
        phrases(
            "join|rejoin|{start,begin} at|{start,begin} {work,job,role,position} {at,for,with}|go to work {at,for}"
            "|go back to work {at,for}|come to work {at,for}"
            "|{get,take,take on,take up,accept,find,land,secure,start} {job,position,role,post,contract} {at,with}"
            "|{accept,take} {offer,job offer} {from,by,at}|{take,accept} {job,position,role,post} offer {from,by}"
            "|{sign,sign on,sign up,sign contract,sign on to work} {with,at}"
            "|sign {offer,contract,offer letter} {with,from}"
            "|{be,get} {hire,headhunt,recruit,poach} {by,at}|{be,get} take on {by,at}"
            "|change {job,employer} to|switch {job,employer} to|jump ship to|defect to|{be,get} rehire {by,at}"
            "|return to work {at,for}"
        ),
        happened=True,
        named=True,
    ),
    PredicateRule(
        "works_at",
        "single",
        phrases(
            "{get,take,take on,take up,accept,find,land,secure,start,begin} {job,position,role,post} {at,with}"
            "|{find,get} work {at,with}|be take on {at,by}|{get,be} hire {at,by}"
        ),
        happened=True,
    ),
    PredicateRule("works_at", "unsure", phrases("be at"), named=True),
    PredicateRule("works_at", "single", phrases("be back {at,with}"), named=True),
    PredicateRule(
        "works_at",
        "single",
        phrases(
            "be {self-employed,self employed,freelance,freelancer,independent contractor}|work freelance"
            "|work for oneself"
            "|work for {himself,herself,themselves,themself,myself}|be own boss|run own business|have own business"
        ),
        value="self",
    ),
    PredicateRule(
        "works_at",
        "single",
        phrases(
            "{go,turn,become} {freelance,self-employed,freelancer,independent}"
            "|{start,set up,open,found} own business|start freelance"
        ),
        value="self",
        happened=True,
    ),
    PredicateRule("works_in", "unsure", phrases("work in|be employ in")),
    PredicateRule(
        "works_as",
        "single",
        phrases(
            "work as|be employ as|have {job,role,position} as|{hold,fill} {position,role,post} of|serve as|act as"
            "|{occupation,profession,job,job title,title,role,position,current role,current position} be"
            "|make living as|earn living as"
            "|practice as|practise as|be by profession|be by trade"
        ),
    ),
    PredicateRule(
        "works_as",
        "single",
        phrases(
            "{get,be} {promote,elevate,upgrade,demote} to|{get,earn,receive,accept} promotion to"
            "|{move,step} up to|rise to|advance to"
            "|{start,begin} {as,work as,job as,role as}"
            "|{get,take,take on,take up,accept,land,find} {job,position,role,post} {as,of}|{find,get} work as"
            "|{be,get} {hire,employ,bring in,recruit,take on,appoint,elect,name,install} as"
            "|be {appoint,elect,name} to|be {appoint,elect}|take over as|step in as|take {job,role} of"
            "|be promote into"
            "|{go back,return} to work as|{train,retrain,qualify,requalify} {as,to be,to become}"
            "|change career to|switch career to|move into role of|go into work as"
        ),
        happened=True,
    ),
    PredicateRule(
        "works_from",
        "single",
        phrases("work {from home,from house,remote,remotely,fully remote,in home office}|be {remote,fully remote}"),
        value="home",
    ),
    PredicateRule(
        "works_from",
        "single",
        phrases("{go,switch,turn} {remote,fully remote}"),
        value="home",
        happened=True,
    ),
    PredicateRule(
        "works_from", "single", phrases("work {in office,from office,at office,on-site,onsite,on site}"), value="office"
    ),
    PredicateRule(
        "works_from",
        "single",
        phrases("{go back,return,be back} {to,in} office|{be,get} call back to office"),
        value="office",
        happened=True,
    ),
    PredicateRule(
        "works_from", "single", phrases("work hybrid|have hybrid schedule|be on hybrid schedule"), value="hybrid"
    ),
    PredicateRule(
        "reports_to",
        "single",
        phrases("report to|{boss,manager,supervisor,line manager,team lead} be|{boss,manager,supervisor} name be"),
    ),
    PredicateRule(
        "seeks_work",
        "single",
        phrases(
            "{look,be look,search,be search,hunt,be hunt} for {job,work,position,role,employment,new job,new position}"
            "|{look,search,hunt} for {first,summer,part-time,full-time} job|be on job hunt|job hunt"
        ),
        value="work",
    ),
    PredicateRule("seeks", "multi", phrases("{look,be look,search,be search,hunt,be hunt} for")),
    PredicateRule("works_hours", "single", phrases("work full-time|be full-time|go full-time"), value="full-time"),
    PredicateRule("works_hours", "single", phrases("work part-time|be part-time|go part-time"), value="part-time"),
    PredicateRule("works_hours", "single", phrases("work # {day,hour} {week,a week,per week}|work # {day,hour}")),
    PredicateRule("works_on", "multi", phrases("work on")),
    PredicateRule(
        "is_away",
        "multi",
        phrases(
            "be on {sick,parental,maternity,paternity,annual,unpaid,study,medical} leave"
            "|be on {leave,sabbatical,holiday}"
            "|be off sick|take {sabbatical,year off,parental leave}"
        ),
        value="away",
    ),
    PredicateRule(
        "is_away",
        "multi",
        phrases(
            "{go,come,get,be} back {to,at} work|return to work|return to {job,office} from|be back from {leave,holiday}"
        ),
        denied=True,
        happened=True,
    ),
    PredicateRule(
        "is_away",
        "unsure",
        phrases("be off {work,sick,to,today,school,duty,on}|leave {work,home,house,office,for work}|be {away,out}"),
    ),
)

ENDS = phrases(
    "leave|leave {job,position,role,post} {at,with,as}|quit|quit {job,position,role,post} {at,with,as}"
    "|quit work {at,for,as}|walk out {on,of}"
    "|resign {from,as}|resign {position,post} {at,as,of}|retire {from,as}"
    "|step {down as,down from,back from,away from,back as}|stand down {as,from}"
    "|{get,be} {lay off,fire,sack,let go,dismiss,make redundant,cut,can,terminate,boot out,kick out} {by,from,at,as}"
    "|lay off"
    "|{get,be} {fire,sack,dismiss,suspend,discharge} {by,from}|be {force out,push out} of"
    "|lose {job,position,post,role,contract} {at,with,as}"
    "|part with|part {way,ways,company} with|move on from|hand in {notice,resignation} {at,to}"
    "|give {notice,resignation} {at,to}|put in notice at"
    "|serve notice {at,with}|serve out notice at|finish {job,work,contract,stint} {at,with}"
    "|complete {contract,stint} {at,with}|end {contract,job} {at,with}"
    "|have last day {at,with}|work last day {at,with}|last day {at,with}|{last,final} shift at"
    "|give up {job,position} {at,with,as}"
    "|{relinquish,vacate} {post,position,role} {at,of,as}|hand over {role,position} of|stop work {at,for,as,with}"
    "|leave company|be poach from"
    "|be do {with,at}|finish {at,with,up at,up}"
)
ENDS_WORK = phrases(
    "retire|be retire|be {unemployed,jobless,out of work,between jobs,out of job,without job,laid-off}"
    "|become {unemployed,jobless}|go into retirement"
    "|take {retirement,early retirement}|enter retirement"
    "|{lose,quit,leave,give up} {job,work,position,day job}"
    "|{get,be} {fire,sack,lay off,make redundant,let go,dismiss,terminate}"
    "|resign|hand in {notice,resignation}|give notice|stop work|be no longer employed|leave workforce"
    "|{be,get} out of {job,work}"
    "|{change,switch} {job,jobs,career,careers,employer,employers,company,companies}"
    "|{get,find,start,begin,have,land,take} new {job,position,role}"
    "|look for work"
)
"""Phrases that end every occupation and employment."""
IMPLIED = (
    Implied("works_at", frozenset(("as",)), "works_as"),
    Implied("works_as", frozenset(("at", "for")), "works_at"),
    Implied("works_as", frozenset(("of", "with")), "works_at", named=True),
    Implied("lives_with", frozenset(("in",)), "lives_in", named=True),
)
OCCUPATION = "works_as"
TITLES = frozenset(words("ceo cto cfo coo cmo cio ciso cpo vp svp evp md pa ta gp"))
OCCUPATIONS = TITLES | frozenset(
    words(
        """
head chief lead founder cofounder co-founder president accountant actor actress analyst architect artist assistant
astronaut athlete baker barista bartender biologist bookkeeper builder butcher carpenter cashier chef chemist clerk
coach comedian composer conductor consultant cook dancer dentist designer detective developer diplomat director
doctor driver economist editor electrician engineer executive farmer firefighter fisherman florist
freelancer gardener geologist guard guide hairdresser historian housekeeper illustrator
intern interpreter inspector instructor janitor jeweller jeweler journalist judge lawyer lecturer librarian
lifeguard manager mathematician mechanic midwife miner minister model musician nanny nurse officer
optician painter paramedic pharmacist photographer physician physicist pilot plumber poet policeman
politician postman principal producer professor programmer psychologist receptionist recruiter
reporter researcher sailor salesman salesperson scientist sculptor secretary self-employed self
employed singer soldier statistician student supervisor surgeon surveyor tailor teacher technician
therapist trader trainer translator tutor unemployed veterinarian vet waiter waitress welder worker
writer zoologist apprentice trainee marketer strategist administrator freelance retired attorney
banker barber cleaner contractor courier attendant steward stewardess agent broker auditor chairman chairwoman
chairperson deputy treasurer foreman headmaster headmistress headteacher rabbi priest pastor imam vicar nun monk
jockey referee umpire solicitor barrister paralegal magistrate mayor senator ambassador bricklayer roofer mason
postdoc dean provost warden usher valet butler bodyguard drummer guitarist pianist violinist cellist
homemaker housewife househusband stay-at-home entrepreneur ux curator archivist copywriter ghostwriter blogger
influencer youtuber streamer vlogger podcaster sommelier bellhop porter concierge caretaker caregiver carer
"""
    )
)
OCCUPATION_ENDINGS = words("eer ologist ician maker grapher worker keeper smith er or ist man woman dant tant person")
NOT_OCCUPATIONS = frozenset(
    words(
        """
member lover owner supporter follower believer beginner drinker eater smoker non-smoker nonsmoker swimmer runner rider
sleeper riser winner stranger teenager gamer hiker perfectionist optimist pessimist feminist minimalist atheist
cyclist newcomer outsider introvert extrovert planner thinker listener learner survivor donor
hoarder foreigner human neighbor neighbour woman man partner lodger homeowner sister brother mother father
daughter player climber walker traveller traveler camper reader loner vegetarian commuter tenor lefthander
bachelor widower teetotaler teetotaller buddhist pacifist realist idealist maximalist socialist environmentalist
activist
minor expat tourist volunteer user lefty hustler collector jogger skier surfer biker boxer fencer knitter
cousin person pensioner senior junior elder older younger better earlier later former other over under
ever never after together either neither rather another sober color flavor number cancer fever
winter summer tumor order danger tester dinner supper computer tower river corner border harbor superior
inferior
"""
    )
)
DEPARTMENTS = frozenset(
    words(
        """
engineering sales marketing product products finance operations research design data people hr communications strategy
growth support security development business education science sciences physics chemistry biology history english
mathematics law medicine economics psychology philosophy arts staff department nursing music theology literature it
technology innovation partnerships procurement logistics legal compliance quality customer success
"""
    )
)
"""Names of departments. In `head of Sales` the word after `of` is a department, not an employer."""
