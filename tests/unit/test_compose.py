"""docker-compose.yml against the compose specification, and its services, topics and settings against the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from memstream import __version__
from memstream.adapters.vectors.collections import LEAST_VERSION
from memstream.cli.wiring.settings import Settings, load, variable
from memstream.schemas.topics import STAGES
from memstream.streams.faust.app import MAX_REQUEST

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"
OURS = ("topics", *STAGES)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load(FILE.read_text()))


def environment(service: dict[str, Any]) -> dict[str, str]:
    """As compose would set it with nothing in the shell: `${NAME:-}` is empty."""
    return {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for name, value in service["environment"].items()}


@pytest.mark.slow
def test_it_is_valid() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_stage_is_a_service_and_there_is_no_other(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"kafka", "qdrant", "serve", *OURS}
    for stage in STAGES:
        service = compose["services"][stage]
        assert service["command"] == ["worker", stage]
        assert "container_name" not in service, "a name of its own cannot be scaled"
        assert "ports" not in service, "a port of the machine cannot be scaled"
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"] == ["CMD", "memstream", "health"]
        assert service["read_only"] is True
        assert service["volumes"] == [f"{stage}-data:/data"]
        assert service["depends_on"]["topics"]["condition"] == "service_completed_successfully"
        assert service["depends_on"]["qdrant"]["condition"] == "service_healthy"
    assert compose["services"]["topics"]["command"] == ["topics", "create"]
    assert set(compose["volumes"]) == {"kafka-data", "qdrant-data", *(f"{stage}-data" for stage in STAGES)}


def test_memory_over_http_is_a_service_that_asks_for_tokens(compose: dict[str, Any]) -> None:
    service = compose["services"]["serve"]
    assert service["profiles"] == ["serve"], "without its file of tokens it would not start"
    assert service["environment"]["MEMSTREAM_TOKENS"] == "/run/secrets/tokens"
    assert service["secrets"] == ["tokens"]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["image"] == f"memstream:{__version__}"
    assert service["healthcheck"]["test"] == ["CMD", "memstream", "health", "--port", service["command"][-1]]
    assert {variable(field) for field in Settings.model_fields} >= set(service["environment"])


@pytest.mark.parametrize("name", OURS)
def test_its_settings_are_settings(compose: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = environment(compose["services"][name])
    assert set(values) <= {variable(field) for field in Settings.model_fields}
    for field in Settings.model_fields:
        monkeypatch.delenv(variable(field), raising=False)
    for key, value in values.items():
        monkeypatch.setenv(key, value)
    settings, _ = load()
    assert settings.broker == "kafka://kafka:19092"
    assert settings.qdrant == "http://qdrant:6333"
    assert (settings.partition_count, settings.tier) == (12, "standard")
    assert (settings.health_host, settings.health_port) == ("0.0.0.0", 8080)
    assert settings.model_names == ("offline",)


def test_the_addresses_are_those_of_its_servers(compose: dict[str, Any]) -> None:
    kafka = compose["services"]["kafka"]
    assert "INTERNAL://kafka:19092" in kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert kafka["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert all(port.startswith("127.0.0.1:") for port in kafka["ports"])
    qdrant = compose["services"]["qdrant"]
    assert "ports" not in qdrant, "any page of a browser on this machine could read a published port"
    assert environment(qdrant)["QDRANT__SERVICE__ENABLE_CORS"] == "false"
    assert all("healthcheck" in compose["services"][name] for name in ("kafka", "qdrant"))


def test_versions_are_pinned_and_new_enough(compose: dict[str, Any]) -> None:
    images = {name: service["image"] for name, service in compose["services"].items()}
    assert all(re.fullmatch(r"[\w/.-]+:v?\d+\.\d+\.\d+", image) for image in images.values()), images
    qdrant = tuple(int(part) for part in images["qdrant"].rpartition(":v")[2].split(".")[:2])
    assert qdrant >= LEAST_VERSION
    assert {images[name] for name in OURS} == {f"memstream:{__version__}"}


def test_nobodys_password_is_in_it() -> None:
    assert not re.search(r"(?i)(password|secret|api_key)\s*[:=]\s*[\"']?[A-Za-z0-9]", FILE.read_text())


def test_a_worker_has_time_to_drain(compose: dict[str, Any]) -> None:
    from memstream.streams.faust.app import AppSettings

    grace = int(compose["services"]["observer"]["stop_grace_period"].removesuffix("s"))
    assert grace > AppSettings().stop_grace


def test_the_image_carries_every_room() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for room in (
        "adapters",
        "agents",
        "api",
        "cli",
        "client",
        "memory",
        "recall",
        "schemas",
        "streams",
        "tools",
        "verification",
    ):
        assert f"COPY {room} {room}" in dockerfile
        assert f"!{room}" in ignored
    assert "\nUSER 10001:10001\n" in dockerfile, "runAsNonRoot of Kubernetes refuses a user that is a name"
    assert "--gid 10001 memstream" in dockerfile
    assert "--uid 10001 --gid 10001" in dockerfile
    assert MAX_REQUEST == 4 * 1024 * 1024, "deploy/README.md names the size"
