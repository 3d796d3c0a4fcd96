"""Definitions that the edits of several tiers share."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from ..base import Content, OurId, Subject, small_json, storable_json

EDIT_SESSION: Final = "edit"
"""Session id of a statement that a person or an agent added by an edit outside of any session."""
EDIT_METADATA_MAX_BYTES: Final = 3_072
"""Maximum size of an edit's metadata. It is below `METADATA_MAX_BYTES`, to leave room for fields that memory adds."""
MERGED_MAX: Final = 32
"""Maximum number of records in one merge."""
NAME_MAX: Final = 128


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("has no character except white space")
    return text


NotBlank: Final = AfterValidator(_not_blank)
"""Constraint of a text that an edit gives to a record."""
GivenContent = Annotated[Content, NotBlank]
GivenSubject = Annotated[Subject, NotBlank]
EditMetadata = Annotated[
    dict[str, JsonValue],
    AfterValidator(partial(small_json, most=EDIT_METADATA_MAX_BYTES)),
    AfterValidator(storable_json),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX, pattern=r"^\S(?:[^\x00-\x1f\x7f]*\S)?$")]
"""Name of a block or a procedure: one line, without spaces at its ends. Names are compared as canonical texts."""
MergedIds = Annotated[tuple[OurId, ...], Field(min_length=2, max_length=MERGED_MAX)]
