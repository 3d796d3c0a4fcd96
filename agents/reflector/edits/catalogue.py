"""Manual edits that the reflector applies, by kind of command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....schemas.command_kinds import ERASE_FACTS, RETRACT_FACTS
from . import blocks, episodes, facts, groups, imported, restore, retraction, session_erasure, tasks
from .scope import OwnerEdit

EDITS: Final[Mapping[str, OwnerEdit]] = {
    "facts.remember": facts.remember_fact,
    "facts.add": facts.remember_fact,
    "facts.update": facts.update,
    "facts.reinforce": facts.reinforce,
    "facts.pin": facts.set_pin,
    "facts.unpin": facts.set_pin,
    "facts.supersede": facts.supersede,
    "facts.merge": facts.merge,
    "facts.forget": facts.forget,
    "facts.import": imported.import_facts,
    "episodes.add": episodes.add,
    "blocks.define": blocks.edit,
    "blocks.append": blocks.edit,
    "blocks.replace": blocks.edit,
    "blocks.rethink": blocks.edit,
    "blocks.remove": blocks.remove,
    "tasks.add": tasks.add,
    "tasks.done": tasks.finish,
    "tasks.cancel": tasks.finish,
    "tasks.due": tasks.tell_due,
    "groups.define": groups.define,
    "groups.attach": groups.attach,
    "groups.detach": groups.detach,
    "groups.remove": groups.remove,
    RETRACT_FACTS: retraction.retract_from_facts,
    ERASE_FACTS: session_erasure.erase_from_facts,
    "restore.owner": restore.restore,
}
