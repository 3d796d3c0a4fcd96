"""Settings from environment variables and a TOML file (docs/reference/settings.md).

The environment has priority over the file. At the start, an unknown name or an invalid value is refused, and the error
names the setting. Secrets come only from the environment, so that a configuration file never contains secrets.
"""

from __future__ import annotations

import difflib
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from ...adapters.addresses import without_credentials
from ...adapters.completions.request_fields import RequestFields, request_fields
from ...api.sign_in.grants import read_grants
from ...api.sign_in.provider import Provider, why_unsafe
from ...memory.effective_policy import without_disabled_tiers
from ...memory.policies import MemoryPolicy, ModelsPolicy
from ...memory.policies.budget import TASKS_OF, Form, Tier
from ...memory.policies.parsing import policy_from
from ...schemas.collections import Consistency, Sharding
from ...schemas.errors import Fatal
from ...schemas.tasks import names_in
from ...schemas.text_files import toml_of
from ...schemas.topics import STAGES
from ...streams.engine.crash_points import CrashPoint
from ...streams.engine.lanes import HELD_BYTES
from ...streams.log.broker_url import EMBEDDED, NO_CREDENTIALS, embedded_folder, is_embedded, kafka_servers
from ...streams.log.kafka_security import (
    PLAINTEXT,
    KafkaSecurity,
    SaslMechanism,
    SecurityProtocol,
    WrongSecurity,
)
from ..errors import usage

PREFIX = "MEMSTREAM_"
DEFAULT_FILE = Path("memstream.toml")
DEFAULT_MODEL = "gpt-5-mini"
OFFLINE = "offline"
KAFKA_PARTITIONS = 12
KAFKA = "kafka_"
"""Prefix of the fields of `KafkaSecurity` in the settings."""
SECRETS = {
    "kafka_sasl_password": "MEMSTREAM_KAFKA_SASL_PASSWORD",
    "kafka_ssl_key_password": "MEMSTREAM_KAFKA_SSL_KEY_PASSWORD",
    "openai_api_key": "OPENAI_API_KEY",
    "qdrant_api_key": "QDRANT_API_KEY",
}
PLAIN = {"openai_base_url": "OPENAI_BASE_URL"}
FOR_TESTS = frozenset({"testing", "crash_point"})
"""Fields for fault tests. CONTRIBUTING.md documents them; the users' table of settings leaves them out."""
TESTS_OWN = f"{PREFIX}TEST_"
"""Prefix of the test suite's variables, which settings ignore."""
_LINK_PART = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
_LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def is_service_link(name: str, value: str) -> bool:
    """Return whether Kubernetes set this variable.

    Kubernetes gives each container the addresses of all services in the namespace: a service `memstream` sets
    MEMSTREAM_SERVICE_HOST and MEMSTREAM_PORT=tcp://…, a service `memstream-health` sets MEMSTREAM_HEALTH_PORT=tcp://….
    """
    return _LINK_PART.search(name) is not None or (name.endswith("_PORT") and _LINK_ADDRESS.match(value) is not None)


def _broker(value: str) -> str:
    try:
        if is_embedded(value):
            return f"{EMBEDDED}{embedded_folder(value)}"
        kafka_servers(value)
    except Fatal as error:
        raise ValueError(str(error).partition(": ")[2] or str(error)) from error
    return value


def _qdrant(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme in ("http", "https") and parts.hostname:
        return value.rstrip("/")
    if value.startswith(f"{EMBEDDED}/") and parts.path not in ("", "/"):
        return value
    raise ValueError("expected http://host:6333, https://host or embedded:///folder with an absolute path")


def _absolute(value: Path) -> Path:
    try:
        return Path(os.path.abspath(value.expanduser()))
    except RuntimeError as error:
        raise ValueError("the home directory is unknown: write the path without ~") from error


def _certificates(value: Path) -> Path:
    file = _absolute(value)
    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:  # includes ssl.SSLError
        raise ValueError(f"expected a PEM file with certificates: {error.strerror or error}") from error
    return file


def _origins(value: str) -> str:
    origins = [each.strip().rstrip("/").lower() for each in value.split(",")]
    for origin in origins if value and origins != ["*"] else ():
        parts = urlsplit(origin)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        if not whole or origin != f"{parts.scheme}://{parts.netloc}":
            raise ValueError(
                "expected origins separated by commas, such as https://app.example.com (no path), or only *"
            )
    return ",".join(origins)


def _embedder(value: str) -> str:
    kind, _, rest = value.partition(":")
    if value == "hashing" or (kind in ("fastembed", "openai") and rest):
        return value
    raise ValueError("expected hashing, fastembed:<name or folder> or openai:<model>")


def _key(value: object) -> object:
    """Strip a key, because files and `echo` add a line end. Return None for an empty key."""
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if not isinstance(value, str):
        return value
    key = value.strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("has characters that are not allowed in a key: copy it again")
    return key or None


Key = Annotated[SecretStr | None, BeforeValidator(_key)]


Address = Annotated[str, AfterValidator(str.strip)]
Absolute = Annotated[Path, AfterValidator(_absolute)]


class Settings(BaseSettings):
    """Settings of a process. The variable of a field is `MEMSTREAM_` and the field's name in capitals.

    docs/reference/settings.md shows the docstrings of the fields.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    broker: Annotated[str, AfterValidator(_broker)] = ""
    """Address of the log: `kafka://host:port[,host:port]`, or `embedded:///folder`. Unset: the folder
    MEMSTREAM_DATADIR."""
    kafka_security_protocol: SecurityProtocol = "PLAINTEXT"
    """Protocol of the brokers' listener: `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
    kafka_sasl_mechanism: SaslMechanism | None = None
    """`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`."""
    kafka_sasl_username: str | None = None
    """User for `PLAIN` and `SCRAM`."""
    kafka_sasl_password: SecretStr | None = None
    """Password of the user."""
    kafka_sasl_password_file: Absolute | None = None
    """File with the password, instead of the variable. It is read for each new connection."""
    kafka_sasl_oauthbearer_callable: str | None = None
    """`package.module:function` that returns a token for `OAUTHBEARER`. It is called for each new connection."""
    kafka_ssl_ca_location: Absolute | None = None
    """PEM file with the trusted certificate authorities. Unset: the system's authorities."""
    kafka_ssl_certificate_location: Absolute | None = None
    """PEM file with the client certificate and its chain."""
    kafka_ssl_key_location: Absolute | None = None
    """PEM file with the key of the client certificate. Unset: the key is in the certificate's file."""
    kafka_ssl_key_password: SecretStr | None = None
    """Password of an encrypted key."""
    kafka_ssl_key_password_file: Absolute | None = None
    """File with the password of the key, instead of the variable."""
    qdrant: Annotated[str, AfterValidator(_qdrant)] = ""
    """Address of Qdrant: `http://host:6333`, `https://…`, or `embedded:///folder`. Unset: the folder
    MEMSTREAM_DATADIR."""
    qdrant_ca: Annotated[Path, AfterValidator(_certificates)] | None = None
    """PEM file with the trusted certificate authorities for an `https` Qdrant. Unset: the system's authorities."""
    qdrant_consistency: Consistency = "one"
    """Number of replicas that a read asks on a Qdrant server: `one`, `quorum` or `majority`. See below."""
    qdrant_sharding: Sharding = "auto"
    """Sharding of collections on a Qdrant server: `auto`, or `tenant` (large tenants can have a shard). See below."""
    model: str = ""
    """A model name, or several names separated by commas: the first model and its fallbacks, which are used while the
    first does not answer. `offline` is the built-in model, and may be the last. Unset: `gpt-5-mini` with an
    OPENAI_API_KEY, else `offline`."""
    embedder: Annotated[str, AfterValidator(_embedder)] = "hashing"
    """`hashing`, `fastembed:<name or folder>`, or `openai:<model>`."""
    datadir: Path = Path(".memstream")
    """Folder of the stages' tables and attempt records."""
    tier: Tier = "free"
    """Spending level of consolidation: `free`, `cheap`, `standard`, `full` or `custom`."""
    worker_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$")] | None = None
    """Id for static group membership: a restart within the session timeout moves no partition. Each id belongs to one
    live process; the next process with this id and another folder waits for two heartbeats. Unset: dynamic."""
    health_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Port of `/livez`, `/readyz` and `/metrics`; 0 turns them off."""
    health_host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    """Address on which the health pages listen. The pages need no token, so the default is this machine only;
    `0.0.0.0` is every address."""
    in_flight: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Maximum number of events in flight per worker and stage."""
    held_bytes: Annotated[int, Field(ge=1_048_576, le=17_179_869_184)] = HELD_BYTES
    """Maximum bytes of records that a worker keeps in memory per stage. Each assigned partition has an equal share, up
    to 16 MiB."""
    model_timeout: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    """Time limit of a model call, in seconds."""
    session_timeout: Annotated[float, Field(ge=1, le=40)] = 20.0
    """Seconds, 1 to 40, after which the partitions of a silent worker move to another worker."""
    observe_together: Annotated[int, Field(ge=1, le=64)] = 8
    """Maximum number of turns of a session in one model call during a backlog, 1 to 64; 1 turns batches off."""
    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of partitions of each topic. Unset: 12 on Kafka, 1 in a folder."""
    replication: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of replicas of each topic."""
    tokens: Path | None = None
    """File with the bearer tokens of `memstream serve`. Without it and MEMSTREAM_OIDC_ISSUER, the server listens only
    on the loopback interface, and needs no token."""
    oidc_issuer: str | None = None
    """Issuer of access tokens for `memstream serve`, exactly as the tokens name it (`iss`):
    `https://id.example.com/realms/main`. Unset: only tokens of MEMSTREAM_TOKENS."""
    oidc_audience: str | None = None
    """Audience (`aud`) of access tokens, or several audiences separated by commas. MEMSTREAM_OIDC_ISSUER needs it."""
    oidc_resource: str | None = None
    """Public URL of `/mcp`, such as `https://memory.example.com/mcp`, which shows MCP clients where to sign in. Unset:
    MCP clients must be given a token."""
    keep_alive_timeout: Annotated[float, Field(ge=1, le=86_400)] = 75.0
    """Seconds that `memstream serve` keeps an idle connection open. It must be longer than the load balancer's timeout
    (often 60 s); otherwise the balancer sends requests on connections that are being closed."""
    cors_origins: Annotated[str, AfterValidator(_origins)] = ""
    """Origins of web pages that may call `memstream serve` from a browser, separated by commas:
    `https://app.example.com`. `*` allows every page, and needs MEMSTREAM_TOKENS. Unset: no page."""
    audit_log: Path | None = None
    """File of the audit log: a JSON line for each record of the audit trail. Unset: `memstream serve` writes these
    lines to its log, other commands write none. The topic `memory.audit` gets the records in any case."""
    testing: bool = False
    """1 allows `crash_point`."""
    crash_point: str | None = None
    """Step at which the process ends: see streams/engine/crash_points.py."""
    openai_api_key: Key = Field(default=None, validation_alias="OPENAI_API_KEY")
    """Key of the model server."""
    openai_base_url: Address | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    """Base URL of another server with OpenAI's API. Unset: OpenAI's server."""
    qdrant_api_key: Key = Field(default=None, validation_alias="QDRANT_API_KEY")
    """Key of Qdrant."""
    _requests: Mapping[str, RequestFields] = PrivateAttr(default_factory=dict)
    _kafka_security: KafkaSecurity = PrivateAttr(default=PLAINTEXT)
    _provider: Provider | None = PrivateAttr(default=None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Give the environment priority over the file. The values of the file are the arguments of `Settings`. Ignore
        the variables that Kubernetes sets for services."""
        environment = EnvSettingsSource(settings_cls)
        environment.env_vars = {
            name: value
            for name, value in environment.env_vars.items()
            if value is None or not is_service_link(name.upper(), value)
        }
        return environment, init_settings

    @field_validator("datadir")
    @classmethod
    def _absolute_datadir(cls, value: Path) -> Path:
        return _absolute(value)

    @field_validator("model")
    @classmethod
    def _names(cls, value: str) -> str:
        if value and not all(name.strip() for name in value.split(",")):
            raise ValueError("expected a model name, or several names separated by commas")
        return value

    @field_validator("qdrant_ca")
    @classmethod
    def _needs_tls(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None and not str(info.data.get("qdrant", "https")).startswith("https"):
            raise ValueError("needs a Qdrant server with TLS: set MEMSTREAM_QDRANT=https://…")
        return value

    @field_validator("qdrant_sharding")
    @classmethod
    def _needs_a_server(cls, value: Sharding, info: ValidationInfo) -> Sharding:
        if value == "tenant" and str(info.data.get("qdrant", "")).startswith(EMBEDDED):
            raise ValueError("needs a Qdrant server in cluster mode (MEMSTREAM_QDRANT): a folder has no shards")
        return value

    @field_validator("crash_point")
    @classmethod
    def _only_in_tests(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None:
            if not info.data.get("testing"):
                raise ValueError("works only with MEMSTREAM_TESTING=1")
            CrashPoint.parse(value, stages=STAGES)
        return value

    @model_validator(mode="before")
    @classmethod
    def _default_addresses(cls, values: Any) -> Any:
        """Use the data directory for log and engine if no address is set."""
        try:
            datadir = _absolute(Path(values.get("datadir", ".memstream")))
        except (TypeError, ValueError):
            return values  # the field's own validator reports the problem
        return {"broker": f"{EMBEDDED}{datadir}", "qdrant": f"{EMBEDDED}{datadir}"} | values

    # ------------------------------------------------------------------------------------------------ derived
    @property
    def broker_folder(self) -> Path | None:
        """The folder of an embedded log; None on Kafka."""
        return embedded_folder(self.broker) if is_embedded(self.broker) else None

    @property
    def qdrant_folder(self) -> Path | None:
        """The folder of the embedded engine; None for a server."""
        return Path(self.qdrant.removeprefix(EMBEDDED)) if self.qdrant.startswith(EMBEDDED) else None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The embedded folders, sorted: every process locks them in the same order, which excludes deadlocks."""
        return tuple(sorted({folder for folder in (self.broker_folder, self.qdrant_folder) if folder is not None}))

    @property
    def partition_count(self) -> int:
        return self.partitions or (KAFKA_PARTITIONS if self.broker_folder is None else 1)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The model and its fallbacks; `offline` without a key."""
        if self.model:
            return tuple(name.strip() for name in self.model.split(","))
        return (DEFAULT_MODEL,) if self.openai_api_key is not None else (OFFLINE,)

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins in `cors_origins`."""
        return tuple(filter(None, self.cors_origins.split(",")))

    @property
    def requests(self) -> Mapping[str, RequestFields]:
        """Request fields by model, from the tables `[models.NAME.request]` of the file."""
        return self._requests

    @property
    def kafka_security(self) -> KafkaSecurity:
        """TLS and SASL of every connection to Kafka, made once by `load`."""
        return self._kafka_security

    @property
    def provider(self) -> Provider | None:
        """The identity provider, with the grants of the table `[oidc]`. Made once by `load`."""
        return self._provider

    def with_provider(self, provider: Provider | None) -> Settings:
        settings = self.model_copy()
        settings._provider = provider
        return settings

    def with_kafka_security(self, security: KafkaSecurity) -> Settings:
        settings = self.model_copy()
        settings._kafka_security = security
        return settings

    def with_requests(self, requests: Mapping[str, RequestFields]) -> Settings:
        settings = self.model_copy()
        settings._requests = dict(requests)
        return settings

    @property
    def crash(self) -> CrashPoint | None:
        return CrashPoint.parse(self.crash_point, stages=STAGES) if self.crash_point else None


def variable(field: str) -> str:
    """Return the environment variable of a field."""
    return (SECRETS | PLAIN).get(field) or f"{PREFIX}{field.upper()}"


def load(*, config: Path | None = None) -> tuple[Settings, MemoryPolicy]:
    """Read settings and policy. Raises CommandFailed (exit 2) that lists every problem."""
    file = config if config is not None else _default_file()
    table = _read(file) if file is not None else {}
    policy_table = table.pop("memory", {})
    oidc_table = table.pop("oidc", {})
    models_table, request_tables = _models(table.pop("models", {}))
    problems = [*_unknown_variables(os.environ), *_unknown_names(table, file)]
    settings = None
    try:
        settings = Settings(**{name: value for name, value in table.items() if name in Settings.model_fields})
    except ValidationError as error:
        problems += [_problem(item["loc"], item["msg"], file) for item in error.errors(include_url=False)]
    policy, wrong = policy_from(MemoryPolicy, policy_table, path="memory")
    form_problems = _form_problems(models_table)
    models, wrong_models = policy_from(ModelsPolicy, models_table, path="models")
    requests, wrong_requests = _requests_of(request_tables)
    problems += [f"{file}: {line}" for line in (*wrong, *wrong_models, *form_problems, *wrong_requests)]
    if policy is not None and policy.models != ModelsPolicy():
        problems.append(f"{file}: memory.models: move the models of tasks to the table [models]")
    if settings is not None and policy is not None and models is not None:
        observer = (names_in(models.observations) or settings.model_names)[0]
        form = request_tables.get(observer, {}).get("form", models.form)
        models = replace(models, form="short" if form == "short" else "full")
        policy = without_disabled_tiers(replace(policy, models=models))
        problems += _tier_problems(settings, policy)
    if settings is not None:
        security, wrong_security = _kafka_security_of(settings)
        problems += wrong_security
        provider, wrong_provider = _provider_of(settings, oidc_table)
        problems += wrong_provider
        settings = settings.with_kafka_security(security).with_provider(provider)
    if problems or settings is None or policy is None:
        raise usage("\n".join(dict.fromkeys(problems)))
    return settings.with_requests(requests), policy


def _models(table: object) -> tuple[object, dict[str, Mapping[str, object]]]:
    """Split the table [models] into the models of tasks and the tables of single models."""
    if not isinstance(table, Mapping):
        return table, {}
    of_models = {str(name): value for name, value in table.items() if isinstance(value, Mapping)}
    return {name: value for name, value in table.items() if str(name) not in of_models}, of_models


def _form_problems(table: object) -> list[str]:
    if not isinstance(table, Mapping) or "form" not in table:
        return []
    return ["models.form: write it in the table of a model, [models.NAME]"]


def _requests_of(tables: Mapping[str, Mapping[str, object]]) -> tuple[dict[str, RequestFields], list[str]]:
    """Read the tables `[models.NAME.request]`. Return the fields by model, and the problems."""
    requests: dict[str, RequestFields] = {}
    problems: list[str] = []
    for model, table in tables.items():
        path = f'models."{model}"'
        problems += [
            f"{path}.{name}: there is no such setting{_perhaps(name, ['request', 'form'])}; quote a model name with "
            'dots: [models."gpt-4.1".request]'
            for name in table
            if name not in ("request", "form")
        ]
        if table.get("form", "full") not in get_args(Form):
            problems.append(f"{path}.form must be one of {', '.join(get_args(Form))}, not {table['form']!r}")
        if "request" in table:
            requests[model], wrong = request_fields(table["request"], path=f"{path}.request")
            problems += wrong
    return requests, problems


def _kafka_security_of(settings: Settings) -> tuple[KafkaSecurity, list[str]]:
    """Return the security of the connections to Kafka, and the problems of its settings."""
    given = {name.removeprefix(KAFKA): value for name, value in settings if name.startswith(KAFKA)}
    plain: dict[str, Any] = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in given.items()
    }
    try:
        security = KafkaSecurity(**plain)
    except WrongSecurity as wrong:
        return PLAINTEXT, [f"{variable(f'{KAFKA}{name}')}: {problem}" for name, problem in wrong.problems]
    if security != PLAINTEXT and settings.broker_folder is not None:
        return PLAINTEXT, [
            f"{variable(f'{KAFKA}security_protocol')}: needs a Kafka broker: set MEMSTREAM_BROKER=kafka://host:port"
        ]
    return security, []


def _provider_of(settings: Settings, table: object) -> tuple[Provider | None, list[str]]:
    """Return the identity provider, and the problems of its settings."""
    grants, problems = read_grants(table)
    issuer, audience, resource = settings.oidc_issuer, settings.oidc_audience, settings.oidc_resource
    if issuer is None:
        named = {"oidc_audience": audience, "oidc_resource": resource, "[oidc]": table or None}
        given = [variable(name) if name.isidentifier() else name for name, value in named.items() if value is not None]
        problems += [f"{name}: has no effect without MEMSTREAM_OIDC_ISSUER" for name in given]
        return None, problems
    audiences = tuple(filter(None, (each.strip() for each in (audience or "").split(","))))
    unsafe = {"oidc_issuer": why_unsafe(issuer), "oidc_resource": None if resource is None else why_unsafe(resource)}
    problems += [f"{variable(name)}: {why}" for name, why in unsafe.items() if why is not None]
    if not audiences:
        problems.append(
            "MEMSTREAM_OIDC_AUDIENCE: is needed with MEMSTREAM_OIDC_ISSUER; without it, tokens for any other service "
            "of the identity provider would be accepted"
        )
    if not grants and not problems:
        problems.append(
            "oidc.grant: is needed with MEMSTREAM_OIDC_ISSUER: without a [[oidc.grant]] in memstream.toml no token has "
            "rights; docs/how-to/sign-in.md has examples"
        )
    return Provider(issuer, audiences, grants, resource), problems


def _tier_problems(settings: Settings, policy: MemoryPolicy) -> list[str]:
    """Return the problems of the tier `custom`. The other tiers have none."""
    if settings.tier != "custom":
        return []
    try:
        tier = policy.budget.tier(settings.tier)
    except ValueError as error:
        return [f"MEMSTREAM_TIER=custom: {error}"]
    if settings.model or settings.openai_api_key is not None:
        return []
    return [
        f"MEMSTREAM_TIER=custom: the phase {phase} has no model for its task {task}: "
        f'set MEMSTREAM_MODEL or OPENAI_API_KEY, or write {task} = "<model>" under [models]'
        for phase in tier.phases
        for task in TASKS_OF[phase]
        if task not in policy.models.given
    ]


# ------------------------------------------------------------------------------------------------ problems
def _default_file() -> Path | None:
    try:
        return DEFAULT_FILE if DEFAULT_FILE.is_file() else None
    except OSError as error:  # the working directory cannot be searched
        raise usage(f"{DEFAULT_FILE}: cannot be read: {error.strerror or error}") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return toml_of(file.read_bytes())
    except ValueError as error:
        raise usage(f"{file}: {error}") from error
    except OSError as error:
        raise usage(f"{file}: cannot be read: {error.strerror or error}") from error


def _unknown_variables(environment: Mapping[str, str]) -> list[str]:
    known = [variable(field) for field in Settings.model_fields]
    return [
        f"{name}: there is no such setting{_perhaps(name, known)}"
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX)
        and not name.startswith(TESTS_OWN)
        and name not in known
        and not is_service_link(name, value)
    ]


def _unknown_names(table: Mapping[str, Any], file: Path | None) -> list[str]:
    lines = [
        f"{file}: {name}: secrets belong in the environment, as {SECRETS[name]}" for name in SECRETS if name in table
    ]
    known = [name for name in Settings.model_fields if name not in SECRETS]
    lines += [
        f"{file}: {name}: there is no such setting{_perhaps(name, [*known, 'memory', 'models', 'oidc'])}"
        for name in table
        if name not in known and name not in SECRETS
    ]
    return lines


def _perhaps(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _problem(loc: tuple[int | str, ...], message: str, file: Path | None) -> str:
    field = str(loc[0]) if loc else ""
    name = field if field in (SECRETS | PLAIN).values() else variable(field)
    value = os.environ.get(name)
    text = message.removeprefix("Value error, ")
    if name in SECRETS.values() or text.startswith(NO_CREDENTIALS):
        return f"{name}: {text}"
    if value is None and file is not None:
        return f"{file}: {field}: {text}"
    return f"{name}={without_credentials(value or '')!r}: {text}"
