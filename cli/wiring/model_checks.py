"""Checks of the configured models: the first model, its fallbacks, and the models of single tasks.

One request lists the models of the server. It generates no text, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from ...adapters.completions.factory import OFFLINE
from ...client.errors import Misconfigured
from ...client.proxies import open_http
from ...schemas.tasks import Task, names_in
from .broker import COMMAND_TIMEOUT
from .checks import Check
from .ports import secret
from .settings import Settings

DEFAULT_SERVER = "https://api.openai.com/v1"
FIRST = "first"
BETTER = (
    "to use a language model, set OPENAI_API_KEY; for a local model (Ollama, llama.cpp, vLLM), set "
    "OPENAI_BASE_URL=http://host:port/v1 and MEMSTREAM_MODEL (docs/how-to/model-providers.md)"
)
NAMED = 5
"""Number of the server's models that a failed check lists."""


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """A model and its purposes."""

    name: str
    uses: tuple[str, ...]
    """Purposes: `first`, `fallback`, `judge`, `fallback for digest` …"""
    setting: str
    """First setting that names the model."""


@dataclass(frozen=True, slots=True)
class _Server:
    """Answer of the model server. `known` is empty if the server does not list its models."""

    address: str
    known: frozenset[str] = frozenset()
    trouble: str = ""
    fix: str = ""


def configured(first: tuple[str, ...], of_tasks: Mapping[Task, str]) -> list[ConfiguredModel]:
    """Return each model once, in the order of the settings: MEMSTREAM_MODEL, then the table [models]."""
    uses: dict[str, list[str]] = {}
    setting: dict[str, str] = {}
    chains = [("MEMSTREAM_MODEL", "", first)]
    chains += [(f"{task} under [models]", task, names_in(names)) for task, names in of_tasks.items()]
    for named_by, task, names in chains:
        for place, name in enumerate(names):
            use = (task or FIRST) if place == 0 else f"fallback for {task}" if task else "fallback"
            uses.setdefault(name, []).append(use)
            setting.setdefault(name, named_by)
    return [ConfiguredModel(name, tuple(dict.fromkeys(uses[name])), setting[name]) for name in uses]


async def check_models(settings: Settings, of_tasks: Mapping[Task, str]) -> list[Check]:
    """Check each model. The first check is named `model`. Each later check is named `model <name>`."""
    models = configured(settings.model_names, of_tasks)
    server = _Server("")
    if any(each.name != OFFLINE for each in models):
        server = await _asked(settings)
    return [
        _checked(each, server, "model" if place == 0 else f"model {each.name}") for place, each in enumerate(models)
    ]


def _checked(model: ConfiguredModel, server: _Server, check: str) -> Check:
    uses = ", ".join(model.uses)
    if model.name == OFFLINE:
        better = f"; {BETTER}" if FIRST in model.uses else ""
        return Check(check, True, f"offline ({uses}): rules for simple English{better}")
    if server.trouble:
        return Check(check, False, f"{model.name} ({uses}): {server.trouble}", server.fix)
    if not server.known:
        return Check(
            check, True, f"{model.name} ({uses}): not verified, because {server.address} answers but lists no models"
        )
    if model.name not in server.known:
        some = ", ".join(sorted(server.known)[:NAMED])
        return Check(
            check, False, f"{server.address} has no {model.name} ({uses})", f"set {model.setting} to one of {some} …"
        )
    return Check(check, True, f"{model.name} ({uses}) at {server.address}")


async def _asked(settings: Settings) -> _Server:
    key = secret(settings.openai_api_key)
    address = (settings.openai_base_url or DEFAULT_SERVER).rstrip("/")
    if key is None and settings.openai_base_url is None:
        return _Server(
            address, trouble="needs a key", fix="set OPENAI_API_KEY, or set OPENAI_BASE_URL to your own server"
        )
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    try:
        async with open_http(httpx.URL(address), timeout=COMMAND_TIMEOUT, headers=headers) as client:
            answer = await client.get(f"{address}/models")
    except Misconfigured as error:
        return _Server(address, trouble=str(error), fix="correct these environment variables")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return _Server(
            address,
            trouble=f"{address}: {type(error).__name__}: {error}",
            fix="check OPENAI_BASE_URL and the network",
        )
    if answer.has_redirect_location:
        to = answer.url.join(answer.headers["location"]).copy_with(query=None)
        return _Server(address, trouble=f"{address} redirects to {to}", fix="set OPENAI_BASE_URL to the final address")
    if answer.status_code in (401, 403):
        return _Server(address, trouble=f"{address} refuses the key ({answer.status_code})", fix="set OPENAI_API_KEY")
    if answer.status_code == 404:
        return _Server(address)
    if answer.status_code >= 400:
        return _Server(address, trouble=f"{address} answers {answer.status_code}", fix="check that server")
    return _Server(address, known=frozenset(_names(answer)))


def _names(answer: httpx.Response) -> list[str]:
    try:
        return [str(each["id"]) for each in answer.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []
