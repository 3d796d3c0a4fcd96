"""Lines of an export: a header, one line for each record, and an end. docs/reference/export.md describes the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from .archive import ArchivedText
from .base import Contract, GivenId, Instant, ModelName, OurId, Unit
from .blocks import OwnerBlock, SessionHoldings
from .digests import Digest
from .episodes import Episode
from .facts import Fact, FactUpdated
from .groups import MemoryGroup
from .procedures import Procedure
from .prospective import ProspectiveTask
from .turns import Owner, Sensitivity
from .working_set import StoredMessage, StoredWorkingEntry

EXPORT_VERSION: Final = 1
"""Major version of the format. Within a major version, lines may gain kinds and fields, and lose none."""
LINKS_MAX = 4_096
ExportFormat = Literal["ndjson", "json"]
"""Formats that a server streams."""
NotesFormat = Literal["markdown", "obsidian"]
FileFormat = Literal[ExportFormat, "sqlite", NotesFormat]
"""Formats that a command or a client writes from the stream."""
RecordKind = Literal[
    "fact",
    "fact_change",
    "episode",
    "archive",
    "digest",
    "procedure",
    "block",
    "task",
    "links",
    "group",
    "working",
    "holdings",
    "turn",
]
"""Kinds of records, in the order of an export. An archived text comes after its episode, so that an episode that is
reduced to a gist during the export never loses its text."""
RECORD_KINDS: Final[tuple[RecordKind, ...]] = get_args(RecordKind)
LineKind = Literal["export", RecordKind, "end"]
Embedding = tuple[float, ...]
Counts = dict[str, Annotated[int, Field(ge=0)]]
"""Numbers of records, by kind. A later version may add kinds."""


class ExportHeader(Contract):
    """The first line: the selection, and the moment of the export."""

    version: Annotated[int, Field(ge=1)] = EXPORT_VERSION
    at: Instant
    """The moment of the export. A record that began later is absent."""
    tenant_id: GivenId
    owner: Owner | None = None
    """Null: all owners of the tenant."""
    ceiling: Sensitivity
    """The highest sensitivity in the export."""
    conversations: bool
    """False: the export has no turns."""
    embedder: ModelName | None = None
    """Name of the embedder of the vectors. Null: the export has no vectors."""


class ExportEnd(Contract):
    """The last line. An export without it is not complete."""

    counts: Counts
    """Number of records, by kind."""
    left_out: Counts
    """Number of records, by kind, that the caller may not see. Messages are counted as `turn`."""


class ExportedFact(Fact):
    """A fact in its newest version."""

    closed_at: Instant | None = None
    """Time when memory learnt that a superseded fact is no longer true."""
    embedding: Embedding | None = None


class ExportedEpisode(Episode):
    """An episode, with the user of its session."""

    user_id: GivenId
    embedding: Embedding | None = None


class ExportedMessage(StoredMessage):
    embedding: Embedding | None = None


class ExportedTurn(Contract):
    """A turn of the session log, with its messages in order."""

    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    messages: tuple[ExportedMessage, ...]


class ExportedLink(Contract):
    """A link between two records that were recalled together."""

    one: OurId
    other: OurId
    weight: Unit
    grown_at: Instant
    """Time of the last recall of both."""


class ExportedLinks(Contract):
    """The links of an owner."""

    tenant_id: GivenId
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    links: Annotated[tuple[ExportedLink, ...], Field(max_length=LINKS_MAX)]


ExportRecord: TypeAlias = (
    ExportHeader
    | ExportedFact
    | FactUpdated
    | ExportedEpisode
    | ArchivedText
    | Digest
    | Procedure
    | OwnerBlock
    | ProspectiveTask
    | ExportedLinks
    | MemoryGroup
    | StoredWorkingEntry
    | SessionHoldings
    | ExportedTurn
    | ExportEnd
)
RECORD_OF: Final[Mapping[LineKind, type[ExportRecord]]] = dict(
    zip(get_args(LineKind), get_args(ExportRecord), strict=True)
)
"""The contract of each kind of line."""


class ExportLine(Contract):
    """One line of an export."""

    kind: LineKind
    record: ExportRecord

    @field_validator("record", mode="before")
    @classmethod
    def _of_its_kind(cls, value: Any, info: ValidationInfo) -> Any:
        contract = RECORD_OF.get(info.data.get("kind", ""))
        return value if contract is None or isinstance(value, contract) else contract.from_payload(value)

    @classmethod
    def of(cls, kind: LineKind, record: ExportRecord) -> ExportLine:
        """Return the line of a record that was already checked."""
        return cls.model_construct(kind=kind, record=record)

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the JSON Schema, in which the kind of a line decides the contract of its record."""
        tied = [
            {
                "if": {"properties": {"kind": {"const": kind}}},
                "then": {"properties": {"record": {"$ref": f"#/$defs/{contract.__name__}"}}},
            }
            for kind, contract in RECORD_OF.items()
        ]
        return super().model_json_schema(*args, **kwargs) | {"allOf": tied}

    def to_line(self) -> str:
        """Serialise the line without a line end. Unicode's line separators are escaped, because some readers split
        lines at them."""
        return self.model_dump_json().translate(_ESCAPED)


_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
