"""Lines of a context: format dates, and turn stored text into single lines; pure.

A stored text must not look like a heading, a role or a boundary of the context, because it could then give instructions
to the model.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, tzinfo
from typing import Final

from ..language.clean_text import clean_text
from ..language.text import one_line
from ..trust.rendered_text import is_user_name, safe_name

USER: Final = "user"
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_BREAKS: Final = re.compile(r"[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_STRUCTURE: Final = re.compile(
    r"""
    [^\w\s"'“‘«¿¡„…]          # a bullet, a heading's sign, a bracket: any sign but a quotation mark
    | \d+[.)]\s               # a numbered list
    | [^.!?]{0,80}:\s*$       # a heading
    | \w[\w '’-]{0,40}:(\s|$) # a role
    """,
    re.VERBOSE,
)
_NO_NAME: Final = re.compile(r"[\[\]:：﹕︰]")


def lines_of(text: str) -> list[str]:
    """Split a text at every Unicode line break. Return the non-empty lines without invisible characters."""
    lines = (one_line(clean_text(line)) for line in _BREAKS.split(text))
    return [line for line in lines if line]


def one_plain_line(text: str) -> str:
    """Return a text as one line without invisible characters."""
    return " ".join(lines_of(text))


def imitates_structure(line: str) -> bool:
    """Return whether a line looks like a heading, a role, a boundary or a bullet of the context."""
    return _STRUCTURE.match(unicodedata.normalize("NFKC", line)) is not None


def subject_name(subject: str) -> str:
    """Return the name of a subject as one line.

    Another subject must not look like the user. If its name is empty or is a name of the user, the result is `another
    user`.
    """
    if subject == USER:
        return USER
    name = one_line(_NO_NAME.sub(" ", one_plain_line(subject)))
    return f"another {USER}" if not name or is_user_name(name) else safe_name(name)


def since(moment: datetime, zone: tzinfo) -> str:
    """Return the month and year in which a fact began, or only the year.

    Midnight in UTC means a date without a time, so it is not converted to `zone`. 1 January at midnight in UTC means a
    year without a month; the result is then only the year.
    """
    local = moment if _is_date(moment) else moment.astimezone(zone)
    if _is_date(moment) and (local.month, local.day) == (1, 1):
        return str(local.year)
    return f"{_MONTHS[local.month - 1]} {local.year}"


def day(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return f"{local.day} {_MONTHS[local.month - 1]} {local.year}"


def _is_date(moment: datetime) -> bool:
    offset = moment.utcoffset()
    return (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0) and not offset
