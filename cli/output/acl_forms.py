"""Forms of ACLs that other programs read: commands of Kafka's tool, and Strimzi's KafkaUser."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ...schemas.access import Acl

COMMAND = 'kafka-acls.sh --bootstrap-server "$BROKER" --command-config "$ADMIN" --add'
"""`$BROKER` and `$ADMIN` are variables of the reader's shell: an address, and the properties of an administrator."""


def kafka_acls(principal: str, acls: Sequence[Acl]) -> list[str]:
    """Return one command for the resources with equal operations."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for acl in acls:
        together.setdefault((acl.resource, acl.operations), []).append(acl.name)
    return [
        " ".join(
            [
                COMMAND,
                f"--allow-principal {shlex.quote(principal)}",
                *(f"--operation {operation}" for operation in operations),
                *(f"--{resource} {shlex.quote(name)}" for name in names),
            ]
        )
        for (resource, operations), names in together.items()
    ]


def strimzi_user(role: str, acls: Sequence[Acl]) -> str:
    """Return a KafkaUser with SCRAM-SHA-512. Its name is the user's name at the broker."""
    rules = [
        line
        for acl in acls
        for line in (
            f"      - resource: {{type: {acl.resource}, name: {acl.name}, patternType: literal}}",
            f"        operations: [{', '.join(acl.operations)}]",
        )
    ]
    return "\n".join(
        [
            "---",
            "apiVersion: kafka.strimzi.io/v1",
            "kind: KafkaUser",
            "metadata:",
            f"  name: {role}",
            "  labels:",
            "    strimzi.io/cluster: my-cluster  # the name of your Kafka resource",
            "spec:",
            "  authentication:",
            "    type: scram-sha-512",
            "  authorization:",
            "    type: simple",
            "    acls:",
            *rules,
        ]
    )
