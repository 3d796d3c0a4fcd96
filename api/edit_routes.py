"""Table of the edit routes, and the models of their bodies, derived from the contracts of the edits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..schemas.base import Contract, OurId
from ..schemas.command_kinds import Address, CommandKind, command_kind
from ..schemas.edits.common import MERGED_MAX
from ..schemas.turns import Owner
from .maintenance import WAIT_DEFAULT, WAIT_MAX
from .owner_params import Id, OfTenant, ShortSession, ShortUser, Whose

Method = Literal["POST", "PATCH", "DELETE"]
Wait = Annotated[float, Field(ge=0, le=WAIT_MAX, description="Seconds to wait for the result; 0: do not wait.")]
Others = Annotated[
    tuple[OurId, ...],
    Field(min_length=1, max_length=MERGED_MAX - 1, description="Records to merge into the record of the path."),
]


class RecordEdit(OfTenant):
    """Edit of the record in the path."""

    wait: Wait = WAIT_DEFAULT


class OwnerEditBody(Whose):
    """Edit of an owner's memory."""

    wait: Wait = WAIT_DEFAULT


class SessionEditBody(OfTenant):
    """Edit of a session. Two users may use the same session id."""

    user_id: Annotated[Id | None, Field(description="Required unless the token has exactly one user.")] = None
    user: ShortUser = None
    session_id: Annotated[Id | None, Field(description="Required, here or in X-Memstream-Session.")] = None
    session: ShortSession = None
    wait: Wait = WAIT_DEFAULT


class BlockEditBody(Whose):
    """Edit of a block, which belongs to the named session, or else to the owner."""

    session_id: Annotated[Id | None, Field(description="The session of the block; null: a block of the owner.")] = None
    session: ShortSession = None
    wait: Wait = WAIT_DEFAULT


class GroupEditBody(OfTenant):
    """Edit of a group."""

    group_id: Id
    wait: Wait = WAIT_DEFAULT


Target = Literal["fact", "episode", "owner", "session", "block", "group"]
_BASES: Final[dict[Target, type[BaseModel]]] = {
    "fact": RecordEdit,
    "episode": RecordEdit,
    "owner": OwnerEditBody,
    "session": SessionEditBody,
    "block": BlockEditBody,
    "group": GroupEditBody,
}


@dataclass(frozen=True, slots=True)
class EditRoute:
    """Route of one kind of edit.

    Attributes:
        target: determines the owner of the edited memory. For `fact` and `episode`, it is the owner of the record in
            the path.
        path_field: name of the edit's argument whose value is in the path.
        others: True when the body adds more records to `path_field`.
    """

    method: Method
    path: str
    kind: str
    target: Target
    summary: str
    path_field: str = ""
    others: bool = False

    @property
    def address(self) -> Address:
        return "session" if self.target == "session" else "owner"

    @property
    def command(self) -> CommandKind:
        return _kind(self.address, self.kind)

    @property
    def result(self) -> type[Contract]:
        result = self.command.result
        assert result is not None  # every edit has a result
        return result

    @property
    def tag(self) -> str:
        return self.path.split("/")[2]

    @property
    def parameter(self) -> str:
        """The name of the path parameter, or "" if there is none."""
        return self.path.partition("{")[2].partition("}")[0]

    @property
    def has_given_id(self) -> bool:
        """True when a producer chose the id in the path. It may be long and have slashes."""
        return self.parameter == "turn_id"

    @property
    def gives_list(self) -> bool:
        """True when the argument from the path is a list of ids."""
        return self.path_field.endswith("_ids")


def _facts() -> Iterator[EditRoute]:
    one = "/v1/facts/{fact_id}"
    yield EditRoute("POST", "/v1/facts", "facts.remember", "owner", "Remember a statement")
    yield EditRoute("PATCH", one, "facts.update", "fact", "Reword a fact", "fact_id")
    yield EditRoute("DELETE", one, "facts.forget", "fact", "Forget a fact", "fact_id")
    yield EditRoute("POST", f"{one}/reinforce", "facts.reinforce", "fact", "Confirm a fact", "fact_id")
    yield EditRoute("POST", f"{one}/pin", "facts.pin", "fact", "Pin a fact", "fact_id")
    yield EditRoute("POST", f"{one}/unpin", "facts.unpin", "fact", "Unpin a fact", "fact_id")
    yield EditRoute("POST", f"{one}/supersede", "facts.supersede", "fact", "Replace a fact with a new one", "fact_id")
    yield EditRoute(
        "POST", f"{one}/merge", "facts.merge", "fact", "Merge other facts into a fact", "fact_ids", others=True
    )


def _episodes() -> Iterator[EditRoute]:
    one = "/v1/episodes/{episode_id}"
    yield EditRoute("POST", "/v1/episodes", "episodes.add", "owner", "Add an episode")
    yield EditRoute("PATCH", one, "episodes.update", "episode", "Change an episode", "episode_id")
    yield EditRoute("DELETE", one, "episodes.forget", "episode", "Forget an episode", "episode_id")
    yield EditRoute(
        "POST",
        f"{one}/merge",
        "episodes.merge",
        "episode",
        "Merge other episodes into an episode",
        "episode_ids",
        others=True,
    )
    yield EditRoute(
        "POST",
        f"{one}/mark-consolidated",
        "episodes.mark_consolidated",
        "episode",
        "Mark an episode as consolidated",
        "episode_ids",
    )


def _sessions() -> Iterator[EditRoute]:
    one = "/v1/working/{entry_id}"
    yield EditRoute("POST", "/v1/working", "working.add", "session", "Add an entry to a working set")
    yield EditRoute("POST", "/v1/working/advance", "working.advance", "session", "Advance the turn counter")
    yield EditRoute("DELETE", one, "working.evict", "session", "Evict an entry", "entry_id")
    for name in ("pin", "unpin", "refresh"):
        yield EditRoute("POST", f"{one}/{name}", f"working.{name}", "session", f"{name.title()} an entry", "entry_id")
    for name, does in (
        ("define", "Define a block"),
        ("append", "Append to a block"),
        ("replace", "Replace a unique part of a block"),
        ("rethink", "Rewrite a block"),
        ("remove", "Remove a block"),
    ):
        yield EditRoute("POST", f"/v1/blocks/{name}", f"blocks.{name}", "block", does)
    yield EditRoute("DELETE", "/v1/turns/{turn_id}", "turn.retract", "session", "Take a turn back", "turn_id")
    yield EditRoute("DELETE", "/v1/sessions", "session.erase", "session", "Take a session back for ever")
    yield EditRoute("POST", "/v1/blocks/attach", "blocks.attach", "session", "Attach an owner's block to a session")
    yield EditRoute("POST", "/v1/blocks/detach", "blocks.detach", "session", "Detach an owner's block")


def _others() -> Iterator[EditRoute]:
    path = "/v1/procedures"
    yield EditRoute("POST", f"{path}/define", "procedures.define", "owner", "Define a procedure, or its next version")
    yield EditRoute("POST", f"{path}/remove", "procedures.remove", "owner", "Remove a procedure")
    yield EditRoute("POST", f"{path}/activate", "procedures.activate", "session", "Activate a procedure in a session")
    yield EditRoute("POST", f"{path}/deactivate", "procedures.deactivate", "session", "Deactivate a procedure")
    yield EditRoute("POST", "/v1/groups/define", "groups.define", "group", "Define a group")
    yield EditRoute("POST", "/v1/groups/attach", "groups.attach", "group", "Add members and share records")
    yield EditRoute("POST", "/v1/groups/detach", "groups.detach", "group", "Remove members and shared records")
    yield EditRoute("POST", "/v1/groups/remove", "groups.remove", "group", "Remove everything from a group")
    yield EditRoute("POST", "/v1/tasks", "tasks.add", "owner", "Add a task")
    yield EditRoute("POST", "/v1/tasks/{task_id}/done", "tasks.done", "owner", "Mark a task as done", "task_id")
    yield EditRoute("POST", "/v1/tasks/{task_id}/cancel", "tasks.cancel", "owner", "Cancel a task", "task_id")


EDIT_ROUTES: Final = (*_facts(), *_episodes(), *_sessions(), *_others())
AS_IT_IS: Final = "facts.add"
"""Kind of the edit that `POST /v1/facts` sends when `as_it_is` is true."""


@cache
def body_model(route: EditRoute) -> type[BaseModel]:
    """Return the model of a route's body: tenant, owner or session, and the arguments that are not in the path."""
    args = _args(route.command)
    base = _BASES[route.target]
    fields: dict[str, Any] = {}
    for name, field in args.model_fields.items():
        if name not in base.model_fields and name != route.path_field:
            fields[name] = (field.annotation, field)
    if route.others:
        fields[route.path_field] = (Others, ...)
    if "owner" in fields:
        fields["owner"] = (Owner | None, Field(default=None, description="The owner. null: the session's user."))
    if route.kind == "facts.remember":
        description = "Add the fact without closing facts that it contradicts."
        fields["as_it_is"] = (bool, Field(default=False, description=description))
    name = "".join(part.title() for part in route.kind.replace("_", ".").split(".")) + "Body"
    doc = args.__doc__ or ""
    return create_model(name, __base__=base, __doc__=doc.split("`: ", 1)[-1] if "`args`" in doc else doc, **fields)


@cache
def answer_model(result: type[Contract]) -> type[BaseModel]:
    """Return the model of an answer: the result of the edit, and the id of its command."""
    fields: dict[str, Any] = {"command_id": (str, ...)}
    return create_model(f"{result.__name__}Answer", __base__=result, __doc__=result.__doc__, **fields)


class EditAccepted(BaseModel):
    """The edit is in the log and waits for its stage. Its result will be on memory.commands.results."""

    model_config = ConfigDict(extra="forbid")

    command_id: str


def _kind(address: Address, name: str) -> CommandKind:
    kind = command_kind(address, name)
    assert kind is not None, name
    return kind


def _args(kind: CommandKind) -> type[Contract]:
    assert kind.args is not None  # every edit has arguments
    return kind.args
