"""Kinds of commands as data: the stage that applies each kind, its arguments and its result
(docs/reference/records.md).

A command about an owner is on memory.commands. A command about a session is on memory.commands.session. A stage applies
the kinds that change its own data, and ignores the kinds of other stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from . import commands, erasures, imports, restore
from .base import Contract
from .edits import blocks, episodes, facts, groups, procedures, prospective, sessions, turns, working
from .topics import COMMANDS, COMMANDS_SESSION, StageName

Address = Literal["owner", "session"]
END_SESSION: Final = "sessions.end"
"""Kind of a command that the observer sends to itself. It has no result."""
TRIM_SESSION: Final = "sessions.trim"
"""Kind of a command that the observer sends to itself. It has no result."""
ERASE_SESSION: Final = "sessions.erase"
ERASE_OWNER: Final = "owners.erase"
ERASE_UPKEEP: Final = "upkeep.erase"
ERASING: Final = frozenset((ERASE_SESSION, ERASE_OWNER, ERASE_UPKEEP))
"""Kinds of the commands of an erasure (docs/design/erasure.md)."""
RESTORE_LINKS: Final = "restore.links"
"""Kind of a command that consolidation applies to the row of an owner's recalls."""
FACTS_IMPORT: Final = "facts.import"
"""Kind of a command with statements of another memory."""
RESTORING: Final = frozenset((FACTS_IMPORT, "restore.owner", "restore.upkeep", "restore.session", RESTORE_LINKS))
"""Kinds of the commands of an import (docs/design/import.md)."""
RETRACT_FACTS: Final = "facts.retract"
RETRACT_EPISODES: Final = "episodes.retract"
"""Kinds of the commands that `turn.retract` causes (docs/design/retraction.md)."""
ERASE_FACTS: Final = "facts.erase"
ERASE_EPISODES: Final = "episodes.erase"
"""Kinds of the commands that `session.erase` causes (docs/design/retraction.md)."""
MemoryTier = Literal["episodic", "semantic", "digest"]


@dataclass(frozen=True, slots=True)
class CommandKind:
    """One kind of command."""

    name: str
    address: Address
    writer: StageName
    """The stage that applies commands of this kind."""
    args: type[Contract] | None = None
    """Contract of the arguments. None: the kind reads its arguments without a contract."""
    result: type[Contract] | None = None
    """Contract of the result. None: docs/reference describes the result."""
    tier: MemoryTier | None = None
    """The tier that must be on. None: the kind is available in every deployment."""

    @property
    def topic(self) -> str:
        return COMMANDS.name if self.address == "owner" else COMMANDS_SESSION.name


def _kinds(
    address: Address,
    writer: StageName,
    tier: MemoryTier | None,
    *kinds: tuple[str, type[Contract] | None, type[Contract] | None],
) -> Iterable[CommandKind]:
    return (CommandKind(name, address, writer, args, result, tier) for name, args, result in kinds)


_REF, _CHANGED = working.WorkingEntryRef, working.WorkingChanged
KINDS: Final[tuple[CommandKind, ...]] = (
    *_kinds(
        "session",
        "observer",
        None,
        ("observe", None, None),
        (END_SESSION, commands.SessionEnd, None),
        (TRIM_SESSION, None, None),
        (ERASE_SESSION, erasures.SessionErase, None),
    ),
    *_kinds("session", "observer", "episodic", ("flush_important", commands.FlushImportant, None)),
    *_kinds(
        "session",
        "observer",
        None,
        ("working.add", working.WorkingAdd, _CHANGED),
        ("working.evict", _REF, _CHANGED),
        ("working.pin", _REF, _CHANGED),
        ("working.unpin", _REF, _CHANGED),
        ("working.refresh", _REF, _CHANGED),
        ("working.advance", working.WorkingAdvance, _CHANGED),
        ("blocks.define", blocks.BlockDefine, blocks.BlockChanged),
        ("blocks.append", blocks.BlockAppend, blocks.BlockChanged),
        ("blocks.replace", blocks.BlockReplace, blocks.BlockChanged),
        ("blocks.rethink", blocks.BlockRethink, blocks.BlockChanged),
        ("blocks.remove", blocks.BlockRemove, blocks.BlockRemoved),
        ("blocks.attach", blocks.BlockAttach, blocks.BlockAttached),
        ("blocks.detach", blocks.BlockAttach, blocks.BlockAttached),
        ("procedures.activate", procedures.ProcedureActivate, procedures.ProcedureActivated),
        ("procedures.deactivate", procedures.ProcedureActivate, procedures.ProcedureActivated),
        ("turn.retract", turns.TurnRetract, turns.TurnRetracted),
        ("session.erase", sessions.EraseSession, sessions.SessionErased),
        ("restore.session", restore.RecordsRestore, restore.RecordsRestored),
    ),
    *_kinds(
        "owner",
        "reflector",
        "semantic",
        ("facts.apply", commands.FactsApply, None),
        ("facts.approve", commands.FactReview, None),
        ("facts.reject", commands.FactReview, None),
        ("facts.remember", facts.FactRemember, facts.FactRemembered),
        ("facts.add", facts.FactRemember, facts.FactRemembered),
        ("facts.update", facts.FactEdit, facts.FactEdited),
        ("facts.reinforce", facts.FactReinforce, facts.FactEdited),
        ("facts.pin", facts.FactPin, facts.FactEdited),
        ("facts.unpin", facts.FactPin, facts.FactEdited),
        ("facts.supersede", facts.FactSupersede, facts.FactSuperseded),
        ("facts.merge", facts.FactMerge, facts.FactsMerged),
        ("facts.forget", facts.FactForget, facts.FactForgotten),
        (FACTS_IMPORT, imports.FactsImport, restore.RecordsRestored),
    ),
    *_kinds(
        "owner",
        "reflector",
        "episodic",
        ("episodes.record", commands.EpisodesRecord, None),
        ("episodes.keep", commands.EpisodesKeep, None),
        ("episodes.add", episodes.EpisodeAdd, episodes.EpisodeAdded),
    ),
    *_kinds(
        "owner",
        "reflector",
        None,
        (ERASE_OWNER, erasures.OwnerErase, None),
        ("blocks.define", blocks.BlockDefine, blocks.BlockChanged),
        ("blocks.append", blocks.BlockAppend, blocks.BlockChanged),
        ("blocks.replace", blocks.BlockReplace, blocks.BlockChanged),
        ("blocks.rethink", blocks.BlockRethink, blocks.BlockChanged),
        ("blocks.remove", blocks.BlockRemove, blocks.BlockRemoved),
        ("tasks.add", prospective.TaskAdd, prospective.TaskChanged),
        ("tasks.done", prospective.TaskRef, prospective.TaskChanged),
        ("tasks.cancel", prospective.TaskRef, prospective.TaskChanged),
        ("tasks.due", prospective.TaskDueNow, prospective.TaskChanged),
        ("groups.define", groups.GroupDefine, groups.GroupChanged),
        ("groups.attach", groups.GroupAttach, groups.GroupChanged),
        ("groups.detach", groups.GroupAttach, groups.GroupChanged),
        ("groups.remove", groups.GroupRemove, groups.GroupChanged),
        (RETRACT_FACTS, turns.FactsRetract, turns.FactsRetracted),
        (ERASE_FACTS, sessions.FactsErase, sessions.FactsErased),
        ("restore.owner", restore.RecordsRestore, restore.RecordsRestored),
    ),
    *_kinds(
        "owner",
        "consolidation",
        "semantic",
        ("consolidate", None, None),
        ("judge", None, None),
        ("prune", None, None),
    ),
    *_kinds("owner", "consolidation", "digest", ("digest", None, None)),
    *_kinds(
        "owner",
        "consolidation",
        "episodic",
        ("hygiene", None, None),
        ("compact", commands.Compact, None),
        ("episodes.update", episodes.EpisodeEdit, episodes.EpisodeEdited),
        ("episodes.forget", episodes.EpisodeForget, episodes.EpisodeEdited),
        ("episodes.merge", episodes.EpisodesMerge, episodes.EpisodesMerged),
        ("episodes.mark_consolidated", episodes.EpisodesMark, episodes.EpisodesMarked),
    ),
    *_kinds(
        "owner",
        "consolidation",
        None,
        (ERASE_UPKEEP, erasures.OwnerErase, None),
        ("procedures.define", procedures.ProcedureDefine, procedures.ProcedureChanged),
        ("procedures.remove", procedures.ProcedureRemove, procedures.ProcedureChanged),
        (RETRACT_EPISODES, turns.EpisodesRetract, turns.EpisodesRetracted),
        (ERASE_EPISODES, sessions.EpisodesErase, sessions.EpisodesErased),
        ("restore.upkeep", restore.RecordsRestore, restore.RecordsRestored),
        (RESTORE_LINKS, restore.RecordsRestore, restore.RecordsRestored),
    ),
)
BY_ADDRESS: Final[dict[tuple[Address, str], CommandKind]] = {(each.address, each.name): each for each in KINDS}


def command_kind(address: Address, name: str) -> CommandKind | None:
    """Return the kind of a command on an owner or a session; None for an unknown name."""
    return BY_ADDRESS.get((address, name))


def kinds_of(writer: StageName) -> frozenset[str]:
    """Return the names of the kinds that a stage applies."""
    return frozenset(each.name for each in KINDS if each.writer == writer)
