"""A real broker with TLS, SASL and ACLs that deny by default.

The broker has three listeners: PLAINTEXT for the tests' own reads (its anonymous user is a super user), SASL_SSL for
the product, and SSL with required client certificates. The ACLs of the product's roles come from schemas/access.py.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import NoError, for_code
from aiokafka.protocol.admin import CreateAclsRequest_v1, DeleteAclsRequest_v1
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactBytes, CompactString, Int8, Int16, Int32, Schema, TaggedFields

from memstream.schemas.access import OPERATOR, Access, Acl, accesses
from memstream.schemas.topics import STAGES
from tests.support.certificates import LOOPBACK, Authority
from tests.support.kafka import JarBroker, free_port

ITERATIONS = 4096
SCRAM_SHA_512 = 2
CREATE_ACLS, DELETE_ACLS = 30, 31
LITERAL, ALLOW, ANY_HOST = 3, 3, "*"
RESOURCES = {"topic": 2, "group": 3}
OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Alter": 7, "Describe": 8, "DescribeConfigs": 10}
ALL_STAGES = "all-stages"
SECURED: dict[str, SecureBroker] = {}
"""Brokers with the users of `add_roles`, by the address of their plain listener."""
PLAIN_USER, PLAIN_PASSWORD = "plain-user", "plain-password"

_PROPERTIES = """
listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},MUTUAL://127.0.0.1:{mutual},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},MUTUAL://127.0.0.1:{mutual}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN,OAUTHBEARER
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.secure.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
listener.name.secure.oauthbearer.sasl.server.callback.handler.class=\
org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
listener.name.mutual.ssl.client.auth=required
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=false
"""


class SecureBroker(JarBroker):
    """A `JarBroker` with the three listeners. `authority` signs its certificate."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.secure_port, self.mutual_port = free_port(), free_port()
        self.authority = Authority(folder)
        self.present(self.authority.certificate("broker"))

    @property
    def secure(self) -> str:
        """`host:port` of the SASL_SSL listener."""
        return f"{LOOPBACK}:{self.secure_port}"

    @property
    def mutual(self) -> str:
        """`host:port` of the SSL listener that requires a client certificate."""
        return f"{LOOPBACK}:{self.mutual_port}"

    def present(self, certificate: Path) -> None:
        """Write the certificate that the broker presents after its next start."""
        keystore = self.folder / "keystore.pem"
        keystore.write_text(certificate.with_suffix(".key").read_text() + certificate.read_text())

    def start(self) -> None:
        config = self.folder / "server.properties"
        if not config.exists():
            self.more_properties = _PROPERTIES.format(
                port="{port}",
                controller="{controller}",
                secure=self.secure_port,
                mutual=self.mutual_port,
                user=PLAIN_USER,
                password=PLAIN_PASSWORD,
                keystore=self.folder / "keystore.pem",
                truststore=self.authority.file,
            )
        super().start()

    # ----------------------------------------------------------------- users and rights
    async def add_user(self, name: str, password: str) -> None:
        """Create a SCRAM-SHA-512 user, or change its password."""
        salt = secrets.token_bytes(16)
        salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
        answer = await self._ask(AlterScram([(name, SCRAM_SHA_512, ITERATIONS, salt, salted, {})]))
        assert [for_code(code) for _, code, _, _ in answer.results] == [NoError], answer

    async def grant(self, user: str, *acls: Acl) -> None:
        answer = await self._ask(AclChange(CREATE_ACLS, _bindings(user, acls)))
        assert {for_code(code) for code, _ in answer.creation_responses} == {NoError}, answer

    async def revoke(self, user: str, *acls: Acl) -> None:
        await self._ask(AclChange(DELETE_ACLS, _bindings(user, acls)))

    async def add_roles(self) -> None:
        """Create one user per role with exactly the rights of schemas/access.py; its password is its name.

        The user ALL_STAGES has the rights of every stage.
        """
        for access in accesses():
            await self.add_user(access.role, access.role)
            await self.grant(access.role, *access.acls())
        await self.add_user(ALL_STAGES, ALL_STAGES)
        await self.grant(ALL_STAGES, *(acl for stage in STAGES for acl in role(stage).acls()))
        SECURED[self.bootstrap] = self

    async def _ask(self, request: Any) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            return await admin._client.send(admin._client.cluster.controller.nodeId, request)
        finally:
            await admin.close()

    # ----------------------------------------------------------------- settings of the product
    def environment(self, user: str, password: str | None = None) -> dict[str, str]:
        """Return the settings of a process with this SCRAM user. The default password is the user's name."""
        return {
            "MEMSTREAM_BROKER": f"kafka://{self.secure}",
            "MEMSTREAM_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "MEMSTREAM_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "MEMSTREAM_KAFKA_SASL_USERNAME": user,
            "MEMSTREAM_KAFKA_SASL_PASSWORD": password or user,
            "MEMSTREAM_KAFKA_SSL_CA_LOCATION": str(self.authority.file),
        }


def settings_at(broker: str, *stages: str) -> dict[str, str]:
    """Return the security settings of a worker of these stages, or of a command, on a broker address.

    The result is empty for a broker without security.
    """
    secured = SECURED.get(broker.removeprefix("kafka://"))
    if secured is None:
        return {}
    user = OPERATOR if not stages else stages[0] if len(stages) == 1 and stages[0] in STAGES else ALL_STAGES
    return secured.environment(user)


def role(name: str) -> Access:
    return next(each for each in accesses() if each.role == name)


def _bindings(user: str, acls: Sequence[Acl]) -> list[Any]:
    return [
        (RESOURCES[acl.resource], acl.name, LITERAL, f"User:{user}", ANY_HOST, OPERATIONS[operation], ALLOW)
        for acl in acls
        for operation in acl.operations
    ]


# --------------------------------------------------------------------------- requests that aiokafka lacks
class AlterScramResponse(Response):
    API_KEY = 51
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            CompactArray(
                ("user", CompactString("utf-8")),
                ("error_code", Int16),
                ("error_message", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class AlterScramStruct(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 51
    API_VERSION = 0
    RESPONSE_TYPE = AlterScramResponse
    SCHEMA = Schema(
        (
            "deletions",
            CompactArray(("name", CompactString("utf-8")), ("mechanism", Int8), ("tags", TaggedFields)),
        ),
        (
            "upsertions",
            CompactArray(
                ("name", CompactString("utf-8")),
                ("mechanism", Int8),
                ("iterations", Int32),
                ("salt", CompactBytes),
                ("salted_password", CompactBytes),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class AlterScram(Request[AlterScramStruct]):
    """AlterUserScramCredentials."""

    API_KEY = 51

    def __init__(self, upsertions: list[Any]) -> None:
        self._upsertions = upsertions

    def build(self, request_struct_class: type[AlterScramStruct]) -> AlterScramStruct:
        return request_struct_class([], self._upsertions, {})


class AclChange(Request[CreateAclsRequest_v1 | DeleteAclsRequest_v1]):
    """Creation or deletion of many ACLs. aiokafka's own requests have one each."""

    API_KEY = CREATE_ACLS

    def __init__(self, key: int, bindings: list[Any]) -> None:
        self._key = key
        self._bindings = bindings

    def prepare(self, versions: Any) -> Any:
        return self.build(CreateAclsRequest_v1 if self._key == CREATE_ACLS else DeleteAclsRequest_v1)

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(self._bindings)
