"""AsyncAPI 3 document of the topics.

Topics become channels, with their keys, headers, Kafka settings and records. Writers and readers of a topic become
operations. The document is self-contained: the readers' JSON Schemas of the records are components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from memstream.schemas.cloudevents import MAJOR_VERSION, REKEYED_HEADER, EventType
from memstream.schemas.command_kinds import KINDS
from memstream.schemas.errors import DeadLetterReason
from memstream.schemas.topics import (
    AUDIT_TRAIL,
    BY_NAME,
    COMMANDS,
    COMMANDS_SESSION,
    DEAD_LETTER_SUFFIX,
    EPISODES_RECORDED,
    ERASURES,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    PARKED,
    POLICIES,
    RECALLED,
    RESULTS,
    STAGES,
    TASKS_DUE,
    TURNS,
    Topic,
    catalogue,
    group_of,
)

from .json_schemas import PUBLISHED, Published, file_name, schema_of

FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "asyncapi.yaml"
KAFKA_PARTITIONS: Final = 12
"""Default partition count of a deployment on Kafka."""
BINDING: Final = {"bindingVersion": "0.5.0"}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Value:
    """Record on a topic: the name of its published contract, and its `ce_type`."""

    contract: str
    ce_type: EventType


VALUES: Final[dict[str, Value]] = {
    TURNS.name: Value("turn", "memstream.turn.v1"),
    COMMANDS_SESSION.name: Value("command", "memstream.command.v1"),
    OBSERVATIONS.name: Value("observed", "memstream.turn.observed.v1"),
    COMMANDS.name: Value("command", "memstream.command.v1"),
    EPISODES_RECORDED.name: Value("episodes_recorded", "memstream.episodes.recorded.v1"),
    RECALLED.name: Value("recalled", "memstream.recalled.v1"),
    FACTS_UPDATED.name: Value("fact_updated", "memstream.fact.updated.v1"),
    FACTS.name: Value("fact", "memstream.fact.state.v1"),
    TASKS_DUE.name: Value("task_due", "memstream.task.due.v1"),
    RESULTS.name: Value("command_result", "memstream.command.result.v1"),
    POLICIES.name: Value("tenant_policy", "memstream.policy.v1"),
    ERASURES.name: Value("erasure_marker", "memstream.erasure.v1"),
    AUDIT_TRAIL.name: Value("audit_record", "memstream.audit.v1"),
}
"""Records by topic."""
ARGS: Final[dict[str, dict[str, str]]] = {
    topic.name: {
        kind.name: file_name(kind.args) for kind in KINDS if kind.topic == topic.name and kind.args is not None
    }
    for topic in (COMMANDS_SESSION, COMMANDS)
}
"""Published contract of the args, by topic and kind of command."""
KEYS: Final = {
    "session": "tenant/user/session, each part percent-encoded",
    "owner": "tenant/scope/id, each part percent-encoded; the scope is user, agent, org or group",
    "tenant/fact_id": "tenant/fact_id, each part percent-encoded",
    "tenant": "tenant, percent-encoded",
    "user hash, or receipt": "`user/` and the hash of the user; or `receipt/` and the id of the erasure",
    "tenant or none": "tenant, percent-encoded; none for a denied request without a known tenant",
    "command id": "the command id, percent-encoded",
    "table key": "the key of the row",
    "stage/table key": "stage, `/`, the key of the row; or `deaths/`, stage, `/` and the coordinates of a record",
    "as it came": "the key of the refused record, as it came",
}

_TEXT: Final[Json] = {"type": "string"}


def document() -> Json:
    """Return the AsyncAPI document."""
    schemas = Schemas()
    messages = {name: message for topic in BY_NAME.values() for name, message in _messages(topic, schemas)}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "memstream",
            "version": f"{MAJOR_VERSION}.0.0",
            "description": (
                "The topics of memstream: turns of conversations in, changes of facts out. "
                "The version is that of the records. Readers ignore fields that they do not know. "
                "Written from the code."
            ),
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic) for topic in catalogue()},
        "operations": dict(operation for topic in catalogue() for operation in _operations(topic)),
        "components": {
            "schemas": schemas.components | {"CloudEvent": _cloud_event(), "DeadLetterHeaders": _dead_letter_headers()},
            "messages": messages
            | {"dead_letter": _dead_letter(), "changelog_entry": _changelog_entry(), "parked_key": _parked_key()}
            | {"record_deaths": _record_deaths()},
        },
    }


class Schemas:
    """Readers' schemas as components, named by their class, with references between components."""

    def __init__(self) -> None:
        self.components: dict[str, Json] = {}

    def ref(self, contract: str) -> Json:
        """Return a reference to a published contract's schema. Add the schema and the schemas that it refers to."""
        (published,) = (each for each in PUBLISHED if each.name == contract)
        schema = schema_of(published)
        definitions = schema.pop("$defs", {})
        names = {name: self._name(name, definition, published) for name, definition in definitions.items()}
        for name, definition in definitions.items():
            self.components[names[name]] = _pointed(definition, names)
        own = {name: value for name, value in schema.items() if not name.startswith("$")}
        self.components[published.contract.__name__] = _pointed(own, names)
        return {"$ref": f"#/components/schemas/{published.contract.__name__}"}

    def _name(self, name: str, definition: Json, published: Published) -> str:
        """Return the component's name: the definition's own name, with the view appended when another view has other
        required fields."""
        component = _pointed(definition, {})
        return name if self.components.get(name, component) == component else name + published.view.capitalize()


def _pointed(schema: Any, names: dict[str, str]) -> Any:
    """Replace references to definitions by references to components; `names` maps the names."""
    if isinstance(schema, list):
        return [_pointed(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return schema | {"$ref": f"#/components/schemas/{names.get(name, name)}"}
    return {name: _pointed(item, names) for name, item in schema.items()}


# ------------------------------------------------------------------------------------------------ channels
def _message_names(topic: Topic) -> list[str]:
    if topic.name in VALUES:
        return [VALUES[topic.name].contract, *(_message_name(topic, kind) for kind in ARGS.get(topic.name, ()))]
    if topic == PARKED:
        return ["parked_key", "record_deaths"]
    return ["dead_letter" if topic.name.endswith(DEAD_LETTER_SUFFIX) else "changelog_entry"]


def _message_name(topic: Topic, kind: str) -> str:
    """Return the name of a command's message. A kind for sessions and for owners has a different name on each topic."""
    name = kind.replace(".", "_")
    return f"session_{name}" if topic == COMMANDS_SESSION and kind in ARGS[COMMANDS.name] else name


def _channel(topic: Topic) -> Json:
    settings = topic.settings()
    configuration: Json = {"cleanup.policy": [settings.pop("cleanup.policy")]}
    configuration |= {name: int(value) if value.isdigit() else value for name, value in settings.items()}
    return {
        "address": topic.name,
        "description": f"Key: {KEYS[topic.key]}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _message_names(topic)},
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": topic.partitions or KAFKA_PARTITIONS,
                "topicConfiguration": configuration,
                **BINDING,
            }
        },
    }


def _operations(topic: Topic) -> Iterator[tuple[str, Json]]:
    for who in topic.written_by:
        yield f"{_slug(who)}-sends-{topic.name}", _operation("send", who, topic)
    for who in topic.read_by:
        yield f"{_slug(who)}-receives-{topic.name}", _operation("receive", who, topic)


def _operation(action: Literal["send", "receive"], who: str, topic: Topic) -> Json:
    operation: Json = {
        "action": action,
        "title": f"{who}: {action} {topic.name}",
        "channel": {"$ref": f"#/channels/{topic.name}"},
        "messages": [{"$ref": f"#/channels/{topic.name}/messages/{name}"} for name in _message_names(topic)],
    }
    if action == "receive" and who in STAGES and topic.name in VALUES:
        group = {"type": "string", "enum": [group_of(who)]}
        operation["bindings"] = {"kafka": {"groupId": group, **BINDING}}
    return operation


def _slug(who: str) -> str:
    return who.replace(" ", "-")


# ------------------------------------------------------------------------------------------------ messages
def _messages(topic: Topic, schemas: Schemas) -> Iterator[tuple[str, Json]]:
    value = VALUES[topic.name]
    payload = schemas.ref(value.contract)
    (published,) = (each for each in PUBLISHED if each.name == value.contract)
    yield value.contract, _message(topic, published.about, payload, value.ce_type)
    for kind, args in ARGS.get(topic.name, {}).items():
        of_kind = {"type": "object", "properties": {"kind": {"const": kind}, "args": schemas.ref(args)}}
        yield (
            _message_name(topic, kind),
            _message(topic, f"command of kind {kind}", {"allOf": [payload, of_kind]}, value.ce_type),
        )


def _message(topic: Topic, about: str, payload: Json, ce_type: EventType) -> Json:
    own: Json = {"type": "object", "properties": {"ce_type": {"const": ce_type}}}
    if topic == TURNS:
        own["properties"][REKEYED_HEADER] = {
            "const": "1",
            "description": "The observer sent the turn again, to the correct partition.",
        }
    else:
        own["required"] = list(_cloud_event()["properties"])
    return {
        "summary": about,
        "contentType": "application/json",
        "headers": {"allOf": [{"$ref": "#/components/schemas/CloudEvent"}, own]},
        "payload": payload,
        "bindings": {"kafka": {"key": {"type": "string", "description": KEYS[topic.key]}, **BINDING}},
    }


def _cloud_event() -> Json:
    return {
        "type": "object",
        "description": "CloudEvents 1.0, binary mode. A turn needs none of these headers.",
        "properties": {
            "ce_specversion": {"const": "1.0"},
            "ce_id": _TEXT | {"description": "The idempotency key."},
            "ce_source": _TEXT | {"description": "/memstream/<who wrote it>"},
            "ce_type": {"enum": list(get_args(EventType))},
            "ce_subject": _TEXT | {"description": "The key of the stream that the record belongs to."},
            "ce_time": _TEXT | {"format": "date-time"},
            "ce_partitionkey": _TEXT | {"description": "The same as ce_subject."},
            "content-type": {"const": "application/json"},
        },
    }


def _dead_letter() -> Json:
    return {
        "summary": "A refused record: its raw key and value, and why it was refused.",
        "contentType": "application/octet-stream",
        "headers": {"$ref": "#/components/schemas/DeadLetterHeaders"},
        "payload": {"description": "The value of the refused record; of more than 1 MiB the first 64 KiB."},
    }


def _dead_letter_headers() -> Json:
    numbers = _TEXT | {"pattern": "^-?[0-9]+$"}
    required: Json = {
        "kafka_dlt-original-topic": _TEXT,
        "kafka_dlt-original-partition": numbers,
        "kafka_dlt-original-offset": numbers,
        "kafka_dlt-original-timestamp": numbers,
        "kafka_dlt-original-consumer-group": _TEXT,
        "kafka_dlt-exception-fqcn": _TEXT,
        "kafka_dlt-exception-message": _TEXT,
        "memstream-stage": {"enum": list(STAGES)},
        "memstream-attempts": numbers,
        "memstream-reason": {"enum": list(get_args(DeadLetterReason))},
    }
    optional: Json = {
        "memstream-tenant": _TEXT,
        "memstream-key-sha256": _TEXT,
        "memstream-key-bytes": numbers,
        "memstream-value-sha256": _TEXT,
        "memstream-value-bytes": numbers,
    }
    return {"type": "object", "properties": required | optional, "required": list(required)}


def _changelog_entry() -> Json:
    return {
        "summary": "A row of a stage's table. It belongs to the stage; no other program reads it.",
        "contentType": "application/octet-stream",
        "payload": {"description": "The row's raw value; null deletes the row."},
    }


def _parked_key() -> Json:
    return {
        "summary": "A key whose last outcome cannot be applied. It belongs to the stages; operators may read it.",
        "contentType": "application/json",
        "payload": {"description": "Stage, key, event, time and error; null once the outcome is applied."},
    }


def _record_deaths() -> Json:
    return {
        "summary": "How often a record ended a worker. It belongs to the stages; operators may read it.",
        "contentType": "application/json",
        "payload": {"description": "Stage, coordinates, count, time and error; null once the count is too old."},
    }


# ------------------------------------------------------------------------------------------------ file
def text() -> str:
    """Return the document as YAML. PyYAML is imported here because it is a development dependency."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return yaml.dump(document(), Dumper=Plain, sort_keys=False, allow_unicode=True, width=120)


def differences(file: Path = FILE) -> list[str]:
    """Return the file's name if its text differs from the code."""
    there = file.read_text(encoding="utf-8") if file.is_file() else None
    return [] if there == text() else [f"{file.name}: differs from the code"]


def write(file: Path = FILE) -> None:
    file.write_text(text(), encoding="utf-8")
