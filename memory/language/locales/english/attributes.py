"""English: name, age, studies, body, belongings and the like."""

from __future__ import annotations

from ..notation import phrases
from ..pack import Rule

RULES = (
    Rule(
        "birthday",
        "single",
        phrases("birthday be on|birthday be|be born on|date of birth be|be bear on|birthday fall on"),
        happened=True,
    ),
    Rule("age", "single", phrases("be # year old|be # year of age|age be|be age #|be # year")),
    Rule("age", "single", phrases("turn #|celebrate # birthday|have # birthday"), happened=True),
    Rule(
        "name",
        "single",
        phrases(
            "name be|be call|be name|full name be|{first name,last name,surname} be|go by name of|go by name|go by"
        ),
    ),
    Rule("name", "single", phrases("change name to|take name"), happened=True),
    Rule(
        "studies_at",
        "single",
        phrases(
            "study at|be student at|attend|be enroll {at,in}|go to university in"
            "|go to {university,college,school} at|be at university {in,of}"
            "|be {undergraduate,freshman,sophomore,senior} at"
        ),
    ),
    Rule(
        "studies_at",
        "single",
        phrases(
            "transfer to|enroll {at,in}|enter|start {school,college,university,study} at|matriculate at|get into"
            "|be accept {at,to,by}"
        ),
        happened=True,
        named=True,
    ),
    Rule("majors_in", "single", phrases("major in|major be")),
    Rule("majors_in", "single", phrases("{change,switch} {major,degree,study} to"), happened=True),
    Rule("weighs", "single", phrases("weigh|weight be")),
    Rule("height", "single", phrases("be # m tall|be # cm tall|be # ft tall|height be|be tall #")),
    Rule("earns", "single", phrases("earn|{salary,pay,wage,income} be|make salary of")),
    Rule("earns", "single", phrases("{salary,pay,wage,income} {go up,go down,rise,increase,drop} to"), happened=True),
    Rule("native_language", "single", phrases("native language be|mother tongue be|first language be")),
    Rule("native_language", "single", phrases("be native speaker of")),
    Rule("email", "single", phrases("email be|email address be|mail address be")),
    Rule("phone_number", "single", phrases("phone number be|number be|telephone number be|mobile number be")),
    Rule("has", "multi", phrases("have|own|possess|keep|be owner of|have get|be * owner|be proud owner of")),
    Rule("has", "multi", phrases("get|adopt|buy|purchase|acquire|rescue|inherit"), happened=True),
)
"""Whatever one may have in any number comes last: a longer phrase goes before."""
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
