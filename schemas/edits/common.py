"""What the edits of several tiers share."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from ..base import OurId

MERGED_MAX: Final = 32
"""Records of one merge."""
NAME_MAX: Final = 128
Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX, pattern=r"^\S(?:[^\x00-\x1f\x7f]*\S)?$")]
"""The name of a block or a procedure: one line, without spaces at its ends. Names are compared as canonical texts."""
MergedIds = Annotated[tuple[OurId, ...], Field(min_length=2, max_length=MERGED_MAX)]
