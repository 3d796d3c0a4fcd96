"""The AsyncAPI document: it agrees with the code, and it is valid by the official JSON Schema of AsyncAPI 3.0.0.

tests/data/asyncapi/3.0.0.json is schemas/3.0.0.json of the npm package @asyncapi/specs 6.11.1 (Apache-2.0), unchanged.
It lies here so that the check needs neither Node nor a network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from jsonschema import Draft7Validator

from docs.generate import asyncapi
from memstream.schemas.cloudevents import EventType
from memstream.schemas.topics import TOPICS, catalogue

OFFICIAL = Path(__file__).resolve().parents[2] / "data" / "asyncapi" / "3.0.0.json"
DOCUMENT: dict[str, Any] = yaml.safe_load(asyncapi.FILE.read_text())


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    if isinstance(node, list):
        for value in node:
            yield from references(value)


def at(reference: str) -> Any:
    assert reference.startswith("#/"), "the document is self-contained"
    node: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def problems(document: Any) -> list[str]:
    official = json.loads(OFFICIAL.read_text())
    Draft7Validator.check_schema(official)
    return [f"{list(error.path)}: {error.message[:200]}" for error in Draft7Validator(official).iter_errors(document)]


def test_the_file_agrees_with_the_code() -> None:
    assert asyncapi.differences() == [], "mend: make generate"


def test_drift_is_found(tmp_path: Path) -> None:
    file = tmp_path / "asyncapi.yaml"
    assert asyncapi.differences(file) == ["asyncapi.yaml: differs from the code"]
    asyncapi.write(file)
    assert asyncapi.differences(file) == []
    file.write_text("asyncapi: 3.0.0\n")
    assert asyncapi.differences(file) == ["asyncapi.yaml: differs from the code"]


def test_it_is_valid_by_the_official_schema() -> None:
    assert problems(DOCUMENT) == []


def test_the_official_schema_refuses_a_wrong_document() -> None:
    wrong = DOCUMENT | {"operations": {"somebody": {"action": "shout", "channel": {"$ref": "#/channels/memory.turns"}}}}
    assert problems(wrong)


def test_every_reference_leads_somewhere() -> None:
    for reference in references(DOCUMENT):
        assert at(reference) is not None


def test_operations_name_messages_of_their_channel() -> None:
    for operation in DOCUMENT["operations"].values():
        channel = operation["channel"]["$ref"]
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")


def test_every_topic_is_a_channel_with_a_key_and_settings() -> None:
    assert list(DOCUMENT["channels"]) == [topic.name for topic in catalogue()]
    for topic in catalogue():
        channel = DOCUMENT["channels"][topic.name]
        assert channel["address"] == topic.name
        assert channel["description"].startswith("Key: ")
        configuration = channel["bindings"]["kafka"]["topicConfiguration"]
        expected = topic.settings()
        assert {name: value for name, value in configuration.items() if name != "cleanup.policy"} == {
            name: int(value) if value.isdigit() else value
            for name, value in expected.items()
            if name != "cleanup.policy"
        }
        assert configuration["cleanup.policy"] == [expected["cleanup.policy"]]


def test_who_sends_and_receives_is_the_catalogues() -> None:
    told = {
        (operation["action"], operation["title"].partition(":")[0], operation["channel"]["$ref"].rpartition("/")[2])
        for operation in DOCUMENT["operations"].values()
    }
    assert told == {("send", who, topic.name) for topic in catalogue() for who in topic.written_by} | {
        ("receive", who, topic.name) for topic in catalogue() for who in topic.read_by
    }


def test_every_topic_with_work_has_a_record_and_every_event_type_a_topic() -> None:
    assert set(asyncapi.VALUES) == {topic.name for topic in TOPICS}
    assert {value.ce_type for value in asyncapi.VALUES.values()} == set(get_args(EventType))
