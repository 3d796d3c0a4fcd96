"""Manual edits that the observer applies, by kind of command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import blocks, restore, retraction, session_erasure, working_set
from .scope import SessionEdit

EDITS: Final[Mapping[str, SessionEdit]] = {
    "working.add": working_set.add,
    "working.evict": working_set.evict,
    "working.pin": working_set.pin,
    "working.unpin": working_set.unpin,
    "working.refresh": working_set.refresh,
    "working.advance": working_set.advance,
    "blocks.define": blocks.edit,
    "blocks.append": blocks.edit,
    "blocks.replace": blocks.edit,
    "blocks.rethink": blocks.edit,
    "blocks.remove": blocks.remove,
    "blocks.attach": blocks.attach,
    "blocks.detach": blocks.detach,
    "procedures.activate": blocks.activate,
    "procedures.deactivate": blocks.deactivate,
    "turn.retract": retraction.retract_turn,
    "session.erase": session_erasure.erase_session,
    "restore.session": restore.restore,
}
