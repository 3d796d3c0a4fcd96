"""Combinations of the settings for TLS and SASL: what is accepted, what is refused, and that no secret is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.errors import AccessRefused
from memstream.streams.log.kafka_access import PAUSE_FIRST, KafkaAccess
from memstream.streams.log.kafka_security import KafkaSecurity, WrongSecurity
from tests.support.certificates import Authority

SCRAM = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}
USER = {"sasl_username": "svc", "sasl_password": "geheim"}
OAUTH = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
HERE = "tests.unit.streams.test_kafka_security"


def token() -> str:
    return "t"


def with_argument(config: str) -> str:
    return config


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"security_protocol": "TLS"}, "security_protocol", "SASL_SSL"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism", "needs a mechanism"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "sasl_mechanism", "OAUTHBEARER"),
        (SCRAM, "sasl_username", "needs a user name"),
        (SCRAM | {"sasl_username": "svc"}, "sasl_password", "needs a password"),
        (SCRAM | USER | {"sasl_password_file": Path("/f")}, "sasl_password_file", "set only one"),
        (
            SCRAM | {"sasl_username": "svc", "sasl_password_file": Path("/missing")},
            "sasl_password_file",
            "No such file",
        ),
        (SCRAM | USER | {"sasl_oauthbearer_callable": token}, "sasl_oauthbearer_callable", "remove it"),
        (SCRAM | USER | {"ssl_ca_location": Path("/ca")}, "ssl_ca_location", "set security.protocol to SSL"),
        (USER, "sasl_username", "set security.protocol to SASL_SSL"),
        (OAUTH, "sasl_oauthbearer_callable", "package.module:function"),
        (OAUTH | {"sasl_oauthbearer_callable": token} | USER, "sasl_password", "remove it"),
        (OAUTH | {"sasl_oauthbearer_callable": "nowhere.at_all:f"}, "sasl_oauthbearer_callable", "cannot be imported"),
        (OAUTH | {"sasl_oauthbearer_callable": f"{HERE}:none"}, "sasl_oauthbearer_callable", "has no none"),
        (OAUTH | {"sasl_oauthbearer_callable": f"{HERE}:HERE"}, "sasl_oauthbearer_callable", "is not a function"),
        (OAUTH | {"sasl_oauthbearer_callable": f"{HERE}:with_argument"}, "sasl_oauthbearer_callable", "arguments"),
        ({"security_protocol": "SSL", "ssl_ca_location": Path("/missing")}, "ssl_ca_location", "PEM file"),
        ({"security_protocol": "SSL", "ssl_key_location": Path("/key")}, "ssl_key_location", "client certificate"),
        (
            {"security_protocol": "SSL", "ssl_certificate_location": Path("/missing")},
            "ssl_certificate_location",
            "cannot be read",
        ),
    ],
)
def test_a_wrong_combination_is_refused_by_name(values: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(WrongSecurity) as raised:
        KafkaSecurity(**values)
    assert said in dict(raised.value.problems)[field]
    assert "geheim" not in str(raised.value)


def test_secrets_are_not_shown() -> None:
    security = KafkaSecurity(**SCRAM, **USER)
    assert "geheim" not in f"{security!r} {security.described()}"
    assert security.described() == "SASL_PLAINTEXT, SCRAM-SHA-512 as svc"


def test_the_environment_of_a_client(tmp_path: Path) -> None:
    (file := tmp_path / "password").write_text("geheim\n")
    security = KafkaSecurity.from_environment(
        {
            "MEMSTREAM_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "MEMSTREAM_KAFKA_SASL_MECHANISM": "PLAIN",
            "MEMSTREAM_KAFKA_SASL_USERNAME": "svc",
            "MEMSTREAM_KAFKA_SASL_PASSWORD_FILE": str(file),
        }
    )
    assert security.password() == "geheim"
    file.write_text("another")
    assert security.password() == "another"


def test_changed_certificates_are_read_again(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.certificate("client")
    access = KafkaAccess(
        ["a:1"],
        KafkaSecurity(
            security_protocol="SSL",
            ssl_ca_location=authority.file,
            ssl_certificate_location=certificate,
            ssl_key_location=certificate.with_suffix(".key"),
        ),
    )
    before = access._credentials()["ssl_context"]
    assert access._credentials()["ssl_context"] is before
    authority.certificate("client")
    assert access._credentials()["ssl_context"] is not before


async def test_refusals_are_remembered_and_given_up_after_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    access, given_up = KafkaAccess(["a:1"], KafkaSecurity(**OAUTH, sasl_oauthbearer_callable=lambda: "")), []
    access.given_up = given_up.append
    with pytest.raises(Exception, match="not a token") as raised:
        await access.token()
    access._failed("a:1", raised.value)
    assert isinstance(access.refusal, AccessRefused)
    assert access._pause == PAUSE_FIRST
    assert not given_up
    monkeypatch.setattr("memstream.streams.log.kafka_access.REFUSED_MAX", -1.0)
    access._failed("a:1", raised.value)
    assert given_up == [access.refusal]
    access._failed("a:1", ConnectionRefusedError())
    assert access.refusal is None
