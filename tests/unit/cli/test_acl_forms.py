"""The printed ACLs have exactly the rights of the table, in each form."""

from __future__ import annotations

import shlex
from itertools import pairwise

import yaml
from click.testing import CliRunner

from memstream.cli.commands.topics import acls
from memstream.cli.output.acl_forms import kafka_acls, strimzi_user
from memstream.schemas.access import accesses

Right = tuple[str, str, str]


def rights(role: str) -> set[Right]:
    access = next(each for each in accesses() if each.role == role)
    return {(acl.resource, acl.name, operation) for acl in access.acls() for operation in acl.operations}


def granted(command: str) -> set[Right]:
    """Return the rights that a command of kafka-acls.sh grants."""
    words = shlex.split(command)
    options = [(name, value) for name, value in pairwise(words) if name.startswith("--")]
    operations = [value for name, value in options if name == "--operation"]
    return {
        (name[2:], value, operation)
        for name, value in options
        if name in ("--topic", "--group")
        for operation in operations
    }


def test_the_commands_grant_the_rights_of_the_table() -> None:
    for access in accesses():
        commands = kafka_acls("User:CN=a b", access.acls())
        assert set().union(*map(granted, commands)) == rights(access.role)
        assert all("--allow-principal 'User:CN=a b'" in command for command in commands)


def test_strimzis_users_have_the_rights_of_the_table() -> None:
    for access in accesses():
        user = yaml.safe_load(strimzi_user(access.role, access.acls()))
        assert user["metadata"]["name"] == access.role
        assert {
            (acl["resource"]["type"], acl["resource"]["name"], operation)
            for acl in user["spec"]["authorization"]["acls"]
            for operation in acl["operations"]
        } == rights(access.role)


def test_the_command_prints_chosen_roles_without_a_broker() -> None:
    run = CliRunner().invoke
    table = run(acls, ["--role", "chat-service"]).output
    assert "memory.turns" in table
    assert "memory.commands" not in table
    printed = run(acls, ["--role", "observer", "--principal", "User:o", "--format", "kafka-acls"]).output
    assert set().union(*map(granted, printed.splitlines())) == rights("observer")
    assert run(acls, ["--principal", "User:o"]).exit_code == 2
    assert len(list(yaml.safe_load_all(run(acls, ["--format", "strimzi"]).output))) == len(accesses())
    assert '"operations":["Describe","Write"]' in run(acls, ["--role", "chat-service", "--json"]).output
