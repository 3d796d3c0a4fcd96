"""English: name, age, studies, body, belongings and similar attributes."""

from __future__ import annotations

from ..notation import phrases, words
from ..pack import PredicateRule

_SCHOOLS = frozenset(words("school university college academy institute conservatory gymnasium polytechnic seminary"))
_STAGES = ("kindergarten", "nursery", "preschool", "school", "primary school", "secondary school", "high school")
RULES = (
    PredicateRule(
        "birthday",
        "single",
        phrases("birthday be on|birthday be|be born on|date of birth be|be bear on|birthday fall on"),
        happened=True,
    ),
    PredicateRule("age", "single", phrases("be # year old|be # year of age|age be|be age #|be aged #|be # year")),
    PredicateRule("age", "single", phrases("turn #|celebrate # birthday|have # birthday"), happened=True),
    PredicateRule(
        "name",
        "single",
        phrases(
            "name be|be call|be name|full name be|{first name,last name,surname} be|go by name of|go by name|go by"
        ),
    ),
    PredicateRule("name", "single", phrases("change name to|take name"), happened=True),
    PredicateRule(
        "born_in_year", "single", phrases("be born in #|be bear in #|{year of birth,birth year} be"), happened=True
    ),
    PredicateRule("clothes_size", "single", phrases("wear size|{size,clothes size,dress size} be")),
    PredicateRule("children", "single", phrases("be {parent,mother,father,mum,mom,dad} {of,to} #"), value="child"),
    PredicateRule("children", "single", phrases("have # {child,kid}"), value="child"),
    PredicateRule("children", "single", phrases("be {parent,mother,father} {of,to} twins|have twins"), value="twin"),
    PredicateRule("children", "single", phrases("be childless|be child-free|be childfree"), value="child", denied=True),
    PredicateRule(
        "children",
        "single",
        phrases("become {parent,mother,father,mum,mom,dad}|have first {child,baby}"),
        value="child",
        happened=True,
    ),
    PredicateRule("hair", "single", phrases("have * hair"), value="hair"),
    PredicateRule("eyes", "single", phrases("have * eyes"), value="eye"),
    PredicateRule("studies_at", "single", phrases("attend"), among=_SCHOOLS),
    PredicateRule("studies_at", "single", phrases("attend"), named=True),
    *(
        PredicateRule("school_stage", "single", phrases(f"{{go to,attend,be in,be at}} {stage}"), value=stage)
        for stage in _STAGES
    ),
    *(
        PredicateRule("school_stage", "single", phrases(f"{{start,begin,enter}} {stage}"), value=stage, happened=True)
        for stage in _STAGES
    ),
    PredicateRule("school_stage", "single", phrases("be in # {grade,form}|be # grader|be in year #")),
    PredicateRule("school_stage", "single", phrases("{start,begin,enter} # {grade,form}"), happened=True),
    PredicateRule(
        "studies_at",
        "single",
        phrases(
            "study at|be student at|be enroll {at,in}|go to university in"
            "|go to {university,college,school} at|be at university {in,of}"
            "|be {undergraduate,freshman,sophomore,senior} at"
        ),
    ),
    PredicateRule(
        "studies_at",
        "single",
        phrases(
            "transfer to|enroll {at,in}|enter|start {school,college,university,study} at|matriculate at|get into"
            "|be accept {at,to,by}"
        ),
        happened=True,
        named=True,
    ),
    PredicateRule("majors_in", "single", phrases("major in|major be")),
    PredicateRule("majors_in", "single", phrases("{change,switch} {major,degree,study} to"), happened=True),
    PredicateRule("weighs", "single", phrases("weigh|weight be")),
    PredicateRule("height", "single", phrases("be # m tall|be # cm tall|be # ft tall|height be|be tall #")),
    PredicateRule("earns", "single", phrases("earn|{salary,pay,wage,income} be|make salary of")),
    PredicateRule(
        "earns", "single", phrases("{salary,pay,wage,income} {go up,go down,rise,increase,drop} to"), happened=True
    ),
    PredicateRule("native_language", "single", phrases("native language be|mother tongue be|first language be")),
    PredicateRule("native_language", "single", phrases("be native speaker of")),
    PredicateRule("email", "single", phrases("email be|email address be|mail address be")),
    PredicateRule("phone_number", "single", phrases("phone number be|number be|telephone number be|mobile number be")),
    PredicateRule(
        "has", "multi", phrases("have|own|possess|keep|hold|be owner of|have get|be * owner|be proud owner of")
    ),
    PredicateRule("has", "multi", phrases("get|adopt|buy|purchase|acquire|rescue|inherit"), happened=True),
)
"""Rules of attributes. Among equally long phrases the first rule wins, so the general rules for belongings come
last."""
LASTING = frozenset(
    (
        "born_in",
        "birthday",
        "grew_up_in",
        "comes_from",
        "name",
        "native_language",
        "visited",
        "speaks",
        "age",
        "allergic_to",
        "intolerant_of",
        "height",
    )
)
