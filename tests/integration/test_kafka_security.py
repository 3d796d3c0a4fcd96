"""TLS, SASL and ACLs on a real broker: what each refusal says, and that nothing is lost."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.client import BEGINNING, KafkaSecurity, Misconfigured, connect
from memstream.schemas.access import Acl
from memstream.schemas.errors import AccessRefused, StageError, Transient
from memstream.schemas.topics import AUDIT_TRAIL, COMMANDS_SESSION, FACTS_UPDATED, STAGES, TURNS, dead_letters_of
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.stage_lag import stage_lags
from memstream.streams.log.topic_admin import Deployment, check, create
from memstream.tools.audit import audit
from memstream.tools.audit_topic import AuditPublisher, AuditQuery, AuditReader
from memstream.tools.dead_letters.letters import LETTER_TOPICS, LetterFilter
from memstream.tools.dead_letters.reader import DeadLetterReader
from memstream.tools.dead_letters.redriver import LetterRedrives
from tests.support.certificates import Authority
from tests.support.conversation import conversation, different_each_time
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running
from tests.support.polling import wait_for
from tests.support.qdrant import QdrantServer
from tests.support.secure_kafka import PLAIN_PASSWORD, PLAIN_USER, SecureBroker, role
from tests.support.written_letters import park, refused_turn

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
DEPLOYMENT = Deployment(partitions=2, replication=1)


def scram(broker: SecureBroker, user: str, password: str = "", **fields: Any) -> KafkaSecurity:
    values: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": user,
        "sasl_password": password or user,
        "ssl_ca_location": broker.authority.file,
    }
    return KafkaSecurity(**values | fields)


def token() -> str:
    """Return an unsigned token, which the test broker accepts."""

    def part(fields: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': 'chat-service', 'iat': now - 1, 'exp': now + 60})}."


async def renewed() -> str:
    return token()


def raises() -> str:
    raise RuntimeError("the client secret is geheim")


def oauth(broker: SecureBroker, function: Callable[[], Any]) -> KafkaSecurity:
    return scram(
        broker,
        "",
        sasl_mechanism="OAUTHBEARER",
        sasl_username=None,
        sasl_password=None,
        sasl_oauthbearer_callable=function,
    )


def mutual(broker: SecureBroker, certificate: Path | None) -> KafkaSecurity:
    key = None if certificate is None else certificate.with_suffix(".key")
    return KafkaSecurity(
        security_protocol="SSL",
        ssl_ca_location=broker.authority.file,
        ssl_certificate_location=certificate,
        ssl_key_location=key,
    )


async def connected(servers: str, security: KafkaSecurity) -> None:
    log = KafkaLog(servers=[servers], security=security, timeout=10)
    try:
        await log.start()
    finally:
        await log.close()


async def refusal(servers: str, security: KafkaSecurity) -> Transient:
    with pytest.raises(Transient) as raised:
        await connected(servers, security)
    assert "\n" not in str(raised.value)
    assert "geheim" not in f"{raised.value} {raised.value.remedy}"
    return raised.value


# --------------------------------------------------------------------------- what connects
async def test_each_way_to_authenticate_is_accepted(secure_kafka: SecureBroker) -> None:
    certificate = secure_kafka.authority.certificate("client")
    plain = scram(secure_kafka, PLAIN_USER, PLAIN_PASSWORD, sasl_mechanism="PLAIN")
    for security in (scram(secure_kafka, "serve"), plain, oauth(secure_kafka, token), oauth(secure_kafka, renewed)):
        await connected(secure_kafka.secure, security)
    await connected(secure_kafka.mutual, mutual(secure_kafka, certificate))


# --------------------------------------------------------------------------- what is refused
async def test_wrong_credentials_are_refused_with_the_remedy(secure_kafka: SecureBroker) -> None:
    for security, said, remedy in (
        (scram(secure_kafka, "serve", "geheim"), "refuses the user serve", "MEMSTREAM_KAFKA_SASL_PASSWORD"),
        (scram(secure_kafka, "nobody", "geheim"), "refuses the user nobody", "MEMSTREAM_KAFKA_SASL_USERNAME"),
        (
            scram(secure_kafka, "serve", sasl_mechanism="SCRAM-SHA-256"),
            "does not accept SASL_SSL, SCRAM-SHA-256",
            "MEMSTREAM_KAFKA_SASL_MECHANISM",
        ),
        (oauth(secure_kafka, lambda: "geheim"), "the token is rejected", "issuer, audience"),
        (oauth(secure_kafka, raises), "the token function raised RuntimeError", "SASL_OAUTHBEARER_CALLABLE"),
        (oauth(secure_kafka, lambda: None), "returned NoneType, not a token", "SASL_OAUTHBEARER_CALLABLE"),
    ):
        refused = await refusal(secure_kafka.secure, security)
        assert isinstance(refused, AccessRefused)
        assert said in str(refused)
        assert remedy in refused.remedy


async def test_certificates_are_checked_on_both_sides(secure_kafka: SecureBroker, tmp_path: Path) -> None:
    authority, past = secure_kafka.authority, datetime.now(UTC) - timedelta(days=1)
    localhost = f"localhost:{secure_kafka.secure_port}"
    unknown = scram(secure_kafka, "serve", ssl_ca_location=Authority(tmp_path).file)
    for servers, security, said, remedy in (
        (secure_kafka.secure, unknown, "is rejected", "MEMSTREAM_KAFKA_SSL_CA_LOCATION"),
        (localhost, scram(secure_kafka, "serve"), "Hostname mismatch", "MEMSTREAM_BROKER"),
        (secure_kafka.mutual, mutual(secure_kafka, None), "rejects the client certificate", "SSL_CERTIFICATE_LOCATION"),
        (
            secure_kafka.mutual,
            mutual(secure_kafka, authority.certificate("old", until=past)),
            "rejects the client certificate",
            "has not expired",
        ),
    ):
        refused = await refusal(servers, security)
        assert isinstance(refused, AccessRefused)
        assert said in str(refused)
        assert remedy in refused.remedy


async def test_another_protocol_than_the_listeners_names_the_setting(secure_kafka: SecureBroker) -> None:
    for servers, security in (
        (secure_kafka.secure, KafkaSecurity()),
        (secure_kafka.bootstrap, scram(secure_kafka, "serve")),
        (secure_kafka.secure, KafkaSecurity(security_protocol="SSL", ssl_ca_location=secure_kafka.authority.file)),
    ):
        assert "MEMSTREAM_KAFKA_SECURITY_PROTOCOL=" in (await refusal(servers, security)).remedy


@pytest.mark.long
async def test_an_expired_certificate_of_the_broker_is_refused_and_a_renewed_one_accepted(tmp_path: Path) -> None:
    broker = SecureBroker(tmp_path / "kafka")
    broker.present(broker.authority.certificate("old", until=datetime.now(UTC) - timedelta(days=1)))
    security = scram(broker, PLAIN_USER, PLAIN_PASSWORD, sasl_mechanism="PLAIN")
    try:
        await asyncio.to_thread(broker.start)
        refused = await refusal(broker.secure, security)
        assert "certificate has expired" in str(refused)
        assert "renew the certificate of the broker" in refused.remedy
        broker.stop()
        broker.present(broker.authority.certificate("new"))
        await asyncio.to_thread(broker.start)
        await connected(broker.secure, security)
    finally:
        broker.close()


# --------------------------------------------------------------------------- rights
@pytest.mark.long
async def test_each_missing_right_of_a_stage_is_named(tmp_path: Path) -> None:
    broker = SecureBroker(tmp_path / "kafka")
    try:
        await asyncio.to_thread(broker.start)
        await broker.add_roles()
        await topics_created(broker)
        await each_missing_right_is_named(broker)
    finally:
        broker.close()


async def topics_created(broker: SecureBroker) -> None:
    """Create the topics with the operator's rights."""
    log = KafkaLog(servers=[broker.secure], security=scram(broker, "operator"))
    await log.start()
    try:
        await create(log, deployment=DEPLOYMENT)
        await log.clock_ahead(replication=1)
    finally:
        await log.close()


async def each_missing_right_is_named(secure_kafka: SecureBroker) -> None:
    access = role("observer")
    security = scram(secure_kafka, access.role)

    async def used(log: KafkaLog, acl: Acl, operation: str) -> None:
        if operation == "Write":
            await log.append(acl.name, key=b"k", value=b"v")
        elif operation == "Read" and acl.resource == "group":
            await log.commit(acl.name, TURNS.name, {0: 0})
        elif operation == "Read":
            await log.append_by_anyone(acl.name)  # type: ignore[attr-defined]
            async with aclosing(log.read(acl.name)) as records:
                await anext(records)
        elif operation == "DescribeConfigs":
            await check(log, deployment=DEPLOYMENT)

    class Log(KafkaLog):
        async def append_by_anyone(self, topic: str) -> None:
            everybody = KafkaLog(servers=[secure_kafka.bootstrap])
            await everybody.start()
            await everybody.append(topic, key=b"k", value=b"v")
            await everybody.close()

    for acl in access.acls():
        for operation in acl.operations:
            if operation == "Describe":
                continue  # every other operation includes it
            one = Acl(acl.resource, acl.name, (operation,))  # type: ignore[arg-type]
            await secure_kafka.revoke(access.role, one)
            log = Log(servers=[secure_kafka.secure], security=security, timeout=10)
            try:
                await log.start()
                with pytest.raises(StageError) as raised:
                    await used(log, acl, operation)
            finally:
                await log.close()
                await secure_kafka.grant(access.role, one)
            assert acl.name in str(raised.value), (acl, operation)
            assert raised.value.remedy, (acl, operation)
            assert "\n" not in str(raised.value)


@pytest.fixture
async def pipeline(secure_kafka: SecureBroker, shared_qdrant: QdrantServer, tmp_path: Path) -> AsyncIterator[Pipeline]:
    """Workers and commands use the secure listener, each with the user of its role."""
    env = {"MEMSTREAM_PARTITIONS": "2"}
    with ModelServer(different_each_time) as model:
        made = Pipeline(
            folder=tmp_path, broker=f"kafka://{secure_kafka.bootstrap}", qdrant=shared_qdrant, model=model, env=env
        )
        async with running(made) as ready:
            yield ready


@pytest.mark.long
async def test_the_rights_of_the_table_are_enough(pipeline: Pipeline, secure_kafka: SecureBroker) -> None:
    for stage in STAGES:
        pipeline.spawn(stage)
    address = f"kafka://{secure_kafka.secure}"
    async with connect(address, security=scram(secure_kafka, "chat-service"), timeout=30) as service:
        for turn in conversation():
            turn["tenant_id"] = pipeline.tenant
            await service.produce(turn)
        with pytest.raises(Misconfigured, match=FACTS_UPDATED.name):
            await anext(service.updates(after=BEGINNING))
    await pipeline.settled()
    async with (
        connect(address, security=scram(secure_kafka, "subscriber"), timeout=30) as subscriber,
        aclosing(subscriber.updates(after=BEGINNING, tenant_id=pipeline.tenant)) as updates,
    ):
        assert (await anext(updates)).fact.tenant_id == pipeline.tenant
    pipeline.stop()
    for stage in STAGES:  # a start reads more when there are facts
        pipeline.spawn(stage)
    await pipeline.produce(*conversation())
    await pipeline.settled()
    await pipeline.verified()
    assert "denies" not in pipeline.logs()
    report = pipeline.cli("doctor", expect=None)
    assert "SASL_SSL, SCRAM-SHA-512 as operator" in report


def end_of_recorder(pipeline: Pipeline, secured: SecureBroker, password: str = "") -> str:
    """Run a recorder that ends with exit 3, and return its logs and its last line."""
    environment = secured.environment("recorder", password)
    code, logs, last = pipeline._run(["worker", "recorder"], env=environment, timeout=90)
    assert code == 3, f"{code}: {logs}{last}"
    return logs + last


async def test_a_wrong_password_ends_a_worker_at_its_start(pipeline: Pipeline, secure_kafka: SecureBroker) -> None:
    said = end_of_recorder(pipeline, secure_kafka, "geheim")
    assert "refuses the user recorder" in said
    assert "check MEMSTREAM_KAFKA_SASL_USERNAME" in said
    assert "geheim" not in said
    assert "Traceback" not in said


@pytest.mark.long
async def test_a_missing_group_or_topic_right_ends_a_worker_and_nothing_is_lost(
    pipeline: Pipeline, secure_kafka: SecureBroker
) -> None:
    (group,) = (acl for acl in role("recorder").acls() if acl.resource == "group")
    for resource, name in (("group", group.name), ("topic", TURNS.name)):
        missing = Acl(resource, name, ("Read",))  # type: ignore[arg-type]
        await secure_kafka.revoke("recorder", missing)
        await pipeline.produce(*conversation())
        said = await asyncio.to_thread(end_of_recorder, pipeline, secure_kafka)
        await secure_kafka.grant("recorder", missing)
        assert f"the broker denies access to the {resource} {name}" in said
        assert "memstream topics acls" in said
    pipeline.spawn("recorder")
    await pipeline.settled("recorder")
    await pipeline.verified("recorder")


@pytest.mark.long
async def test_a_rotated_password_is_read_again_without_a_restart(
    pipeline: Pipeline, secure_kafka: SecureBroker, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("recorder\n")
    worker = pipeline.spawn("recorder", MEMSTREAM_KAFKA_SASL_PASSWORD="", MEMSTREAM_KAFKA_SASL_PASSWORD_FILE=str(file))
    await pipeline.produce(*conversation())
    await pipeline.settled("recorder")
    await secure_kafka.add_user("recorder", "the next one")
    try:
        await asyncio.to_thread(secure_kafka.stop)  # every connection ends
        await asyncio.to_thread(secure_kafka.start)
        await wait_for(
            pipeline.logs, "the refusal", until=lambda logs: "refuses the user recorder" in logs, deadline=60
        )
        file.write_text("the next one\n")
        await pipeline.produce(*conversation())
        await pipeline.settled("recorder")
        assert worker.poll() is None
    finally:
        await secure_kafka.add_user("recorder", "recorder")


@pytest.mark.long
async def test_the_audit_trail_and_the_dead_letters_have_rights_of_their_own(tmp_path: Path) -> None:
    """`serve` writes the trail, an auditor reads it, and a stage may do neither. `serve` also reads the lag. The
    role `redriver` reads every dead letter; `serve` alone names the topics that it may not read."""
    broker, logs = SecureBroker(tmp_path / "kafka"), dict[str, KafkaLog]()
    try:
        await asyncio.to_thread(broker.start)
        await broker.add_roles()
        await topics_created(broker)
        for name in ("serve", "auditor", "observer", "redriver"):
            logs[name] = KafkaLog(servers=[broker.secure], security=scram(broker, name), timeout=10)
        for log in logs.values():
            await log.start()
        async with AuditPublisher(log=logs["serve"]).running():
            audit("facts.forget", who="chat", tenant_id="acme", owner=None, result="applied", fact_id="f1")
            audit("GET /v1/facts", who="unknown", tenant_id=None, owner=None, result="denied")
        await check(logs["serve"], deployment=DEPLOYMENT)
        assert [each.stage for each in await stage_lags(logs["serve"])] == [*STAGES]
        with pytest.raises(StageError, match="memory-observer"):
            await logs["serve"].commit("memory-observer", TURNS.name, {0: 0})
        for name in ("serve", "auditor"):
            page = await AuditReader(logs[name]).page(AuditQuery(since=datetime.now(UTC) - timedelta(hours=1)), limit=9)
            assert [(each.who, each.tenant_id) for each in page.items] == [("chat", "acme"), ("unknown", None)]
        with pytest.raises(StageError, match=r"memory\.audit"):
            await AuditReader(logs["observer"]).page(AuditQuery(), limit=9)
        with pytest.raises(StageError, match=r"memory\.audit"):
            await logs["observer"].append(AUDIT_TRAIL.name, key=None, value=b"{}")

        others = dead_letters_of(COMMANDS_SESSION).name
        await logs["observer"].append(others, key=b"k", value=b"{}")
        await park(logs["observer"])
        place = await refused_turn(logs["observer"])
        reader, every = DeadLetterReader(logs["redriver"]), LetterFilter().matches
        page = await reader.page(LETTER_TOPICS, every, limit=9)
        assert [(each.turn_id, each.put_back) for each in page.items] == [("t1", False), (None, None)]
        assert page.missing == ()
        letter = await reader.record(place.topic, place.partition, place.offset)
        assert letter is not None
        assert [each.tenant_id for each in (await reader.parked(lambda entry: True, limit=9)).items] == ["acme"]
        for action in ("put_back", "was_put_back"):
            assert (await LetterRedrives(logs["redriver"]).put_back(letter, who="eva")).action == action
        page = await DeadLetterReader(logs["serve"]).page(LETTER_TOPICS, every, limit=9)
        assert [(each.turn_id, each.put_back) for each in page.items] == [("t1", True)]
        (denied,) = page.missing
        assert denied.part == others
        assert f"the broker denies access to the topic {others}" in denied.why
        assert "memstream topics acls" in denied.why
        with pytest.raises(StageError, match="denies"):
            await DeadLetterReader(logs["serve"]).parked(lambda entry: True, limit=9)
    finally:
        for log in logs.values():
            await log.close()
        broker.close()
