"""Settings: exact names, defaults that need nothing, and refusals that name what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memstream.cli.errors import CommandFailed, Exit
from memstream.cli.wiring.settings import Settings, load, variable
from memstream.memory.policies import MemoryPolicy
from memstream.memory.policies.budget import Ceiling, Price
from memstream.memory.policies.tiers import LONG_TIERS
from tests.support.certificates import Authority

CONTRACT = {
    "MEMSTREAM_BROKER",
    "MEMSTREAM_KAFKA_SECURITY_PROTOCOL",
    "MEMSTREAM_KAFKA_SASL_MECHANISM",
    "MEMSTREAM_KAFKA_SASL_USERNAME",
    "MEMSTREAM_KAFKA_SASL_PASSWORD",
    "MEMSTREAM_KAFKA_SASL_PASSWORD_FILE",
    "MEMSTREAM_KAFKA_SASL_OAUTHBEARER_CALLABLE",
    "MEMSTREAM_KAFKA_SSL_CA_LOCATION",
    "MEMSTREAM_KAFKA_SSL_CERTIFICATE_LOCATION",
    "MEMSTREAM_KAFKA_SSL_KEY_LOCATION",
    "MEMSTREAM_KAFKA_SSL_KEY_PASSWORD",
    "MEMSTREAM_KAFKA_SSL_KEY_PASSWORD_FILE",
    "MEMSTREAM_QDRANT",
    "MEMSTREAM_QDRANT_CA",
    "MEMSTREAM_QDRANT_CONSISTENCY",
    "MEMSTREAM_QDRANT_SHARDING",
    "MEMSTREAM_MODEL",
    "MEMSTREAM_EMBEDDER",
    "MEMSTREAM_DATADIR",
    "MEMSTREAM_TIER",
    "MEMSTREAM_WORKER_ID",
    "MEMSTREAM_HEALTH_HOST",
    "MEMSTREAM_HEALTH_PORT",
    "MEMSTREAM_IN_FLIGHT",
    "MEMSTREAM_HELD_BYTES",
    "MEMSTREAM_MODEL_TIMEOUT",
    "MEMSTREAM_SESSION_TIMEOUT",
    "MEMSTREAM_OBSERVE_TOGETHER",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "QDRANT_API_KEY",
    "MEMSTREAM_CRASH_POINT",
    "MEMSTREAM_TESTING",
    "MEMSTREAM_PARTITIONS",
    "MEMSTREAM_REPLICATION",
    "MEMSTREAM_TOKENS",
    "MEMSTREAM_AUDIT_LOG",
    "MEMSTREAM_CORS_ORIGINS",
    "MEMSTREAM_OIDC_ISSUER",
    "MEMSTREAM_OIDC_AUDIENCE",
    "MEMSTREAM_OIDC_RESOURCE",
    "MEMSTREAM_KEEP_ALIVE_TIMEOUT",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("MEMSTREAM_") or name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "QDRANT_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal(config: Path | None = None) -> str:
    with pytest.raises(CommandFailed) as caught:
        load(config=config)
    assert caught.value.code is Exit.USAGE
    return str(caught.value)


def test_the_names_are_the_contracts() -> None:
    assert {variable(field) for field in Settings.model_fields} == CONTRACT


def test_nothing_set_is_the_embedded_default(tmp_path: Path) -> None:
    settings, policy = load()
    folder = tmp_path / ".memstream"
    assert (settings.broker_folder, settings.qdrant_folder, settings.folders) == (folder, folder, (folder,))
    assert (settings.partition_count, settings.replication) == (1, 1)
    assert (settings.model_names, settings.embedder, settings.tier) == (("offline",), "hashing", "free")
    assert (settings.in_flight, settings.model_timeout, settings.session_timeout) == (64, 60.0, 20.0)
    assert (settings.health_port, settings.observe_together, settings.worker_id) == (0, 8, None)
    assert policy == MemoryPolicy()


def test_a_key_brings_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert load()[0].model_names == ("gpt-5-mini",)
    monkeypatch.setenv("MEMSTREAM_MODEL", "a, b")
    assert load()[0].model_names == ("a", "b")


def test_kafka_has_twelve_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_BROKER", "kafka://a:9092,b:9093")
    settings, _ = load()
    assert (settings.broker_folder, settings.partition_count) == (None, 12)
    monkeypatch.setenv("MEMSTREAM_PARTITIONS", "3")
    assert load()[0].partition_count == 3


def test_empty_variables_are_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    monkeypatch.setenv("MEMSTREAM_WORKER_ID", "")
    settings, _ = load()
    assert settings.openai_api_key is None
    assert settings.worker_id is None


ORIGINS = {
    "https://app.example.com": ("https://app.example.com",),
    "https://App.example.com/, http://localhost:5173": ("https://app.example.com", "http://localhost:5173"),
    "*": ("*",),
    "": (),
}
NO_ORIGINS = (
    "app.example.com",
    "https://a/b",
    "https://",
    "*, https://a",
    "ftp://a",
    "https://u@a",
    "null",
    "https://a,,",
)


@pytest.mark.parametrize("value", ORIGINS)
def test_origins_of_pages(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_CORS_ORIGINS", value)
    assert load()[0].origins == ORIGINS[value]


@pytest.mark.parametrize("value", NO_ORIGINS)
def test_what_is_no_origin_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_CORS_ORIGINS", value)
    assert "expected origins separated by commas" in refusal()


SERVICE_LINKS = {
    "memstream": {
        "MEMSTREAM_SERVICE_HOST": "10.0.0.11",
        "MEMSTREAM_SERVICE_PORT": "8000",
        "MEMSTREAM_SERVICE_PORT_HTTP": "8000",
        "MEMSTREAM_PORT": "tcp://10.0.0.11:8000",
        "MEMSTREAM_PORT_8000_TCP": "tcp://10.0.0.11:8000",
        "MEMSTREAM_PORT_8000_TCP_PROTO": "tcp",
        "MEMSTREAM_PORT_8000_TCP_PORT": "8000",
        "MEMSTREAM_PORT_8000_TCP_ADDR": "10.0.0.11",
    },
    "memstream-health": {
        "MEMSTREAM_HEALTH_SERVICE_HOST": "10.0.0.12",
        "MEMSTREAM_HEALTH_PORT": "tcp://10.0.0.12:8080",
        "MEMSTREAM_HEALTH_PORT_8080_TCP_ADDR": "10.0.0.12",
    },
    "memstream-dns, two protocols": {
        "MEMSTREAM_DNS_SERVICE_PORT_DNS_UDP": "53",
        "MEMSTREAM_DNS_PORT": "udp://10.0.0.13:53",
        "MEMSTREAM_DNS_PORT_53_UDP": "udp://10.0.0.13:53",
        "MEMSTREAM_DNS_PORT_132_SCTP_PROTO": "sctp",
    },
}


@pytest.mark.parametrize("service", SERVICE_LINKS)
def test_the_address_of_a_service_of_kubernetes_is_no_setting(
    service: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in SERVICE_LINKS[service].items():
        monkeypatch.setenv(name, value)
    assert load()[0].health_port == 0
    (tmp_path / "memstream.toml").write_text("health_port = 8081")
    assert load()[0].health_port == 8081, "a link does not win over the file"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MEMSTREAM_PORT", "8000", "MEMSTREAM_PORT: there is no such setting"),
        ("MEMSTREAM_SERVICE", "memstream", "MEMSTREAM_SERVICE: there is no such setting"),
        ("MEMSTREAM_HEALTH_PORT", "http://10.0.0.12", "MEMSTREAM_HEALTH_PORT='http://10.0.0.12'"),
    ],
)
def test_what_only_resembles_such_an_address_is_refused(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert said in refusal()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMSTREAM_BROKER", "localhost:9092"),
        ("MEMSTREAM_BROKER", "kafka://"),
        ("MEMSTREAM_BROKER", "embedded://relative"),
        ("MEMSTREAM_QDRANT", "localhost:6333"),
        ("MEMSTREAM_QDRANT", "embedded://relative"),
        ("MEMSTREAM_QDRANT", "embedded:///"),
        ("MEMSTREAM_EMBEDDER", "word2vec"),
        ("MEMSTREAM_EMBEDDER", "openai:"),
        ("MEMSTREAM_MODEL", "a,,b"),
        ("MEMSTREAM_TIER", "gold"),
        ("MEMSTREAM_WORKER_ID", "a/b"),
        ("MEMSTREAM_WORKER_ID", ".."),
        ("MEMSTREAM_WORKER_ID", "."),
        ("MEMSTREAM_HEALTH_PORT", "70000"),
        ("MEMSTREAM_IN_FLIGHT", "0"),
        ("MEMSTREAM_IN_FLIGHT", "many"),
        ("MEMSTREAM_MODEL_TIMEOUT", "nan"),
        ("MEMSTREAM_MODEL_TIMEOUT", "-1"),
        ("MEMSTREAM_SESSION_TIMEOUT", "0"),
        ("MEMSTREAM_OBSERVE_TOGETHER", "0"),
        ("MEMSTREAM_PARTITIONS", "0"),
        ("MEMSTREAM_CRASH_POINT", "observer:table"),
        ("MEMSTREAM_QDRANT_SHARDING", "custom"),
    ],
)
def test_a_wrong_value_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert refusal().startswith(f"{name}={value!r}: ")


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_without_certificates_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("MEMSTREAM_QDRANT", "https://qdrant")
    monkeypatch.setenv("MEMSTREAM_QDRANT_CA", str(file))
    assert "MEMSTREAM_QDRANT_CA" in (refused := refusal())
    assert "expected a PEM file with certificates" in refused


@pytest.mark.parametrize("qdrant", ["http://qdrant:6333", "embedded:///var/memstream", ""])
def test_certificates_need_a_qdrant_with_tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, qdrant: str) -> None:
    monkeypatch.setenv("MEMSTREAM_QDRANT", qdrant)
    monkeypatch.setenv("MEMSTREAM_QDRANT_CA", str(Authority(tmp_path).file))
    assert "set MEMSTREAM_QDRANT=https://" in refusal()
    monkeypatch.setenv("MEMSTREAM_QDRANT", "https://qdrant")
    assert load()[0].qdrant_ca == tmp_path / "ca.pem"


def test_a_wrong_name_is_refused_with_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_BROKERS", "kafka://a:1")
    assert refusal() == "MEMSTREAM_BROKERS: there is no such setting (did you mean MEMSTREAM_BROKER?)"


def test_all_that_is_wrong_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_TIER", "gold")
    monkeypatch.setenv("MEMSTREAM_NONSENSE", "1")
    assert len(refusal().splitlines()) == 2


def test_the_suites_own_variables_are_nobodys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_TEST_KAFKA", "a:1")
    load()


def test_shards_by_tenant_need_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load()[0].qdrant_sharding == "auto"
    monkeypatch.setenv("MEMSTREAM_QDRANT_SHARDING", "tenant")
    assert refusal().startswith("MEMSTREAM_QDRANT_SHARDING='tenant': needs a Qdrant server in cluster mode")
    monkeypatch.setenv("MEMSTREAM_QDRANT", "http://qdrant:6333")
    assert load()[0].qdrant_sharding == "tenant"


def test_crash_points_need_testing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTREAM_TESTING", "1")
    monkeypatch.setenv("MEMSTREAM_CRASH_POINT", "reflector:store:3")
    crash = load()[0].crash
    assert crash is not None
    assert (crash.stage, crash.step, crash.left) == ("reflector", "store", 3)
    monkeypatch.setenv("MEMSTREAM_CRASH_POINT", "recorder:table")
    assert refusal().startswith("MEMSTREAM_CRASH_POINT=")


def test_secrets_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("QDRANT_API_KEY", "q-very-secret")
    settings, _ = load()
    assert "very-secret" not in repr(settings)
    assert "very-secret" not in settings.model_dump_json()


class TestFile:
    def test_it_takes_the_rest(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "memstream.toml").write_text(
            'tier = "standard"\nin_flight = 8\n[memory.working]\ncapacity = 9\n[memory.working.decay]\nrate = 0.7\n'
            '[memory.capture]\nroles = ["user"]\n'
        )
        monkeypatch.setenv("MEMSTREAM_IN_FLIGHT", "16")
        settings, policy = load()
        assert (settings.tier, settings.in_flight) == ("standard", 16)
        assert (policy.working.capacity, policy.working.decay.rate, policy.capture.roles) == (9, 0.7, ("user",))

    def test_another_may_be_named(self, tmp_path: Path) -> None:
        other = tmp_path / "other.toml"
        other.write_text('broker = "kafka://a:1"')
        assert load(config=other)[0].broker == "kafka://a:1"
        assert "nowhere.toml" in refusal(tmp_path / "nowhere.toml")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("teir = 1", "teir: there is no such setting (did you mean tier?)"),
            ('tier = "gold"', "tier: Input should be 'free', 'cheap', 'standard', 'full' or 'custom'"),
            ("[memory.wroking]\ncapacity = 1", "memory.wroking: there is no such setting (did you mean working?)"),
            ("[memory.working]\ncapacity = 0", "memory.working: working.capacity must be 1 to 64, not 0"),
            ('[memory.capture]\nroles = ["pirate"]', "memory.capture.roles: Input should be"),
            ("memory = 1", "memory: expected a table [memory]"),
            ('openai_api_key = "sk"', "openai_api_key: secrets belong in the environment, as OPENAI_API_KEY"),
            ("tier = ", "is not valid TOML"),
        ],
    )
    def test_what_is_wrong_is_told_by_place(self, tmp_path: Path, text: str, said: str) -> None:
        file = tmp_path / "memstream.toml"
        file.write_text(text)
        assert said in refusal()
        assert "memstream.toml: " in refusal()


class TestTiers:
    """A tier that needs another that is off is refused, with every line that mends it."""

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            (
                "episodic = false",
                "memory.tiers: semantic needs episodic: write episodic = true, or semantic = false and digest = false",
            ),
            (
                "episodic = false\ndigest = false",
                "memory.tiers: semantic needs episodic: write episodic = true, or semantic = false",
            ),
            ("semantic = false", "memory.tiers: digest needs semantic: write semantic = true, or digest = false"),
            (
                "episodic = false\nsemantic = false",
                "memory.tiers: digest needs semantic: write semantic = true, or digest = false",
            ),
            ("sematnic = false", "memory.tiers.sematnic: there is no such setting (did you mean semantic?)"),
            ('digest = "some"', "memory.tiers.digest: Input should be a valid boolean"),
        ],
    )
    def test_what_cannot_stand_is_refused(self, tmp_path: Path, lines: str, said: str) -> None:
        (tmp_path / "memstream.toml").write_text(f"[memory.tiers]\n{lines}\n")
        assert said in refusal()

    @pytest.mark.parametrize("on", range(4))
    def test_each_may_be_off_with_all_that_need_it(self, tmp_path: Path, on: int) -> None:
        lines = "".join(f"{tier} = {str(place < on).lower()}\n" for place, tier in enumerate(LONG_TIERS))
        (tmp_path / "memstream.toml").write_text(f"[memory.tiers]\n{lines}")
        tiers = load()[1].tiers
        assert tiers.off == LONG_TIERS[on:]
        assert tiers.working_only == (on == 0)


class TestModelsOfTasks:
    def test_each_task_may_have_its_own(self, tmp_path: Path) -> None:
        file = tmp_path / "memstream.toml"
        file.write_text('[models]\nobservations = "small"\njudge = "big, small"\n')
        _, policy = load()
        assert policy.models.given == {"observations": "small", "judge": "big, small"}

    def test_a_task_that_does_not_exist_is_refused_by_name(self, tmp_path: Path) -> None:
        file = tmp_path / "memstream.toml"
        file.write_text('[models]\nobservation = "small"\n')
        assert "models.observation: there is no such setting (did you mean observations?)" in refusal()

    @pytest.mark.parametrize("names", ["a,,b", " ", "a,"])
    def test_an_empty_name_is_refused(self, tmp_path: Path, names: str) -> None:
        (tmp_path / "memstream.toml").write_text(f'[models]\njudge = "{names}"\n')
        assert "models.judge must be a model's name" in refusal()

    def test_they_stand_in_a_table_of_their_own(self, tmp_path: Path) -> None:
        (tmp_path / "memstream.toml").write_text('[memory.models]\njudge = "big"\n')
        assert "memory.models: move the models of tasks to the table [models]" in refusal()


class TestBudgets:
    def test_ceilings_and_prices_are_policy(self, tmp_path: Path) -> None:
        (tmp_path / "memstream.toml").write_text(
            'tier = "cheap"\n[memory.budget.observation]\ntokens = 1000\n'
            '[memory.budget.judgement]\ncost = 0.2\non_exceed = "log"\n'
            '[memory.budget.prices."llama-3.3"]\ninput = 0.1\noutput = 0.4\n'
        )
        settings, policy = load()
        assert settings.tier == "cheap"
        assert policy.budget.observation.ceiling == Ceiling(1_000, None, "pause")
        assert policy.budget.judgement.ceiling == Ceiling(None, 0.2, "log")
        assert policy.budget.price("llama-3.3") == Price(0.1, 0.4)
        assert policy.budget.price("gpt-5-mini") is not None
        assert policy.budget.price("nobody-knows") is None

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('[memory.budget.prices."m"]\ninput = 1.0', 'memory.budget.prices."m".output must be set'),
            (
                '[memory.budget.prices."m"]\ninptu = 1.0\noutput = 1.0',
                'memory.budget.prices."m".inptu: there is no such',
            ),
            ("[memory.budget]\nprices = 3", "memory.budget.prices: expected tables [memory.budget.prices.<name>]"),
            ("[memory.budget.observation]\ntokens = -1", "memory.budget.observation: a ceiling of tokens must be 0"),
        ],
    )
    def test_what_is_wrong_is_told_by_place(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "memstream.toml").write_text(text)
        assert said in refusal()

    def test_a_custom_tier_that_is_incomplete_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMSTREAM_TIER", "custom")
        assert "set phases, tokens, cost, on_exceed in [memory.budget.custom]" in refusal()

    def test_a_phase_of_a_custom_tier_needs_a_model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = '[memory.budget.custom]\nphases = ["standard", "deep"]\ntokens = 9\ncost = 0.1\non_exceed = "pause"\n'
        (tmp_path / "memstream.toml").write_text(f'tier = "custom"\n{table}[models]\nconsolidation = "m"\n')
        assert "the phase deep has no model for its task insights: set MEMSTREAM_MODEL or OPENAI_API_KEY" in refusal()
        monkeypatch.setenv("MEMSTREAM_MODEL", "offline")
        assert load()[0].tier == "custom"


# ------------------------------------------------------------------------------------------------ keys and addresses
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "QDRANT_API_KEY"])
class TestKeys:
    @pytest.mark.parametrize("given", ["k-1", "k-1\n", " k-1\r\n", "\tk-1 "])
    def test_what_is_around_a_key_goes(self, monkeypatch: pytest.MonkeyPatch, name: str, given: str) -> None:
        monkeypatch.setenv(name, given)
        key = getattr(load()[0], name.lower())
        assert key.get_secret_value() == "k-1"
        assert "k-1" not in repr(load()[0])

    @pytest.mark.parametrize("given", ["\n", " "])
    def test_a_key_of_white_space_is_none(self, monkeypatch: pytest.MonkeyPatch, name: str, given: str) -> None:
        monkeypatch.setenv(name, given)
        assert getattr(load()[0], name.lower()) is None

    @pytest.mark.parametrize("given", ["sk-secret\nsk-other", "sk-schl\u00fcssel", "sk-a\x1b[31m"])
    def test_what_no_key_has_is_refused_and_not_printed(
        self, monkeypatch: pytest.MonkeyPatch, name: str, given: str
    ) -> None:
        monkeypatch.setenv(name, given)
        assert refusal() == f"{name}: has characters that are not allowed in a key: copy it again"


BROKERS = [
    "kafka://svc:geheim@broker:9092",
    "kafka://svc@broker:9092",
    "kafka://a:9092,svc:geheim@b:9092",
    "kafka//svc:geheim@broker",
    "svc:geheim@broker",
    "redis://svc:geheim@broker",
]


@pytest.mark.parametrize("address", BROKERS)
def test_credentials_of_a_broker_are_refused_and_not_printed(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MEMSTREAM_BROKER", address)
    said = refusal()
    assert said.startswith("MEMSTREAM_BROKER: credentials are not supported")
    assert not any(word in said for word in ("geheim", "svc"))


def test_credentials_of_a_broker_in_the_file_are_not_printed(tmp_path: Path) -> None:
    (tmp_path / "memstream.toml").write_text(f'broker = "{BROKERS[0]}"\n')
    said = refusal()
    assert "credentials are not supported" in said
    assert "geheim" not in said


@pytest.mark.parametrize("name", ["MEMSTREAM_QDRANT"])
def test_a_password_in_a_refused_address_is_not_printed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "ftp://svc:geheim@host:6333")
    said = refusal()
    assert f"{name}='ftp://…@host:6333'" in said
    assert "geheim" not in said


# ------------------------------------------------------------------------------------------------ request fields
REQUESTS = """
[models]
judge = "careful"

[models."qwen3:8b".request]
reasoning_effort = "low"
max_tokens = 2000
chat_template_kwargs = { enable_thinking = false }
api-version = "2024-10-21"

[models."qwen3:8b".request.headers]
X-Team = "memory"

[models."qwen3:8b".request.query]
region = "eu"
"""


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        ('[models]\nobservations = "m, big"\n[models.m]\nform = "short"', "short"),
        ('[models]\nobservations = "big, m"\n[models.m]\nform = "short"', "full"),
        ('model = "m"\n[models.m]\nform = "short"', "short"),
        ('model = "m"\n[models.m.request]\nseed = 7', "full"),
        ('[models.m]\nform = "short"', "full"),
    ],
)
def test_the_form_is_the_one_of_the_first_model_of_observations(tmp_path: Path, lines: str, form: str) -> None:
    (tmp_path / "memstream.toml").write_text(lines)
    assert load()[1].models.form == form


def test_request_fields_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "memstream.toml").write_text(REQUESTS)
    settings, policy = load()
    assert policy.models.given == {"judge": "careful"}
    [(model, fields)] = settings.requests.items()
    assert model == "qwen3:8b"
    assert fields.body == {
        "reasoning_effort": "low", "max_tokens": 2000, "chat_template_kwargs": {"enable_thinking": False},
    }  # fmt: skip
    assert fields.headers == {"X-Team": "memory"}
    assert fields.query == {"api-version": "2024-10-21", "region": "eu"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[models.m.request]\nmodel = 'x'", 'models."m".request.model: memstream sets this field'),
        ("[models.m.request]\nresponse_format = {}", 'models."m".request.response_format: memstream sets this field'),
        ("[models.m.request]\nsince = 2026-01-01", 'models."m".request.since: expected a JSON value'),
        ("[models.m.request]\napi-version = 3", 'models."m".request.api-version: expected a text'),
        ("[models.m.request]\nheaders = 3", 'models."m".request.headers: expected a table'),
        ("[models.m.request.headers]\nX-A = 1", 'models."m".request.headers.X-A: expected a text'),
        ("[models.m.request.headers]\n'X A' = 'b'", "X A: expected the name and the value of an HTTP header"),
        ('[models.m.request.headers]\nX-A = "a\\nb"', "X-A: expected the name and the value of an HTTP header"),
        ("[models.m.request.headers]\nHost = 'b'", "Host: memstream sets this header"),
        ("[models.m.request.headers]\nAPI-Key = 'geheim'", "secrets belong in the environment, as OPENAI_API_KEY"),
        ("[models.m]\nform = 'tiny'", "models.\"m\".form must be one of full, short, not 'tiny'"),
        ("[models]\nform = 'short'", "models.form: write it in the table of a model, [models.NAME]"),
        ("[models.m]\nrequest = 3", 'models."m".request: expected a table [models."m".request]'),
        ("[models.m]\nreqest = {}", 'models."m".reqest: there is no such setting (did you mean request?)'),
        ("[models.gpt-4.1.request]\na = 1", 'quote a model name with dots: [models."gpt-4.1".request]'),
        ("[models]\njugde = 'careful'", "models.jugde: there is no such setting (did you mean judge?)"),
    ],
)
def test_wrong_request_fields_are_refused_by_place(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "memstream.toml").write_text(lines)
    refused = refusal()
    assert said in refused
    assert "geheim" not in refused
