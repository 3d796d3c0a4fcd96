"""Edits that the log must not have in clear: every text of a command is masked before it is sent."""

from __future__ import annotations

from datetime import UTC, datetime

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas.base import Contract
from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.edits.blocks import BlockRethink
from memstream.schemas.edits.episodes import EpisodeAdd
from memstream.schemas.turns import Owner
from memstream.tools.editor import EditTarget, MemoryEditor, ProtectedCommands

AT = datetime(2026, 1, 1, tzinfo=UTC)
OF_USER = EditTarget("acme", owner=Owner(scope="user", id="u1"))
OF_SESSION = EditTarget("acme", session=SessionRef(user_id="u1", session_id="s1"))
BLOCK = BlockRethink(name="Task", value="The wifi password is BlueKettle!42, the card 4111 1111 1111 1111.")


class Sent:
    """A command port that keeps what it is asked."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        self.commands.append(command)
        return None


async def sent_by(args: Contract, target: EditTarget, kind: str, secrets: SecretFilter | None = None) -> Command:
    sent = Sent()
    editor = MemoryEditor(commands=sent, now=lambda: AT, secrets=secrets)
    await editor.edit(kind, args, target=target, caller="token:ana", patience=0, idempotency_key="k1")
    return sent.commands[0]


async def test_a_command_of_a_session_is_masked_before_it_is_sent() -> None:
    command = await sent_by(BLOCK, OF_SESSION, "blocks.rethink")
    assert command.args["value"] == "The wifi password is [password], the card [card]."
    assert b"BlueKettle" not in command.to_bytes()


async def test_every_text_of_the_arguments_is_masked() -> None:
    args = EpisodeAdd(content="My PIN is 4829.", tags=("password: hunter2x",))
    command = await sent_by(args, OF_USER, "episodes.add")
    assert command.args["content"] == "My PIN is [pin]."
    assert command.args["tags"] == ["password: [password]"]


async def test_the_policy_of_the_deployment_decides() -> None:
    secrets = SecretFilter(PrivacyPolicy(password="allow"))
    command = await sent_by(BLOCK, OF_SESSION, "blocks.rethink", secrets)
    assert command.args["value"] == "The wifi password is BlueKettle!42, the card [card]."


async def test_a_command_without_secrets_is_sent_as_it_is() -> None:
    args = BlockRethink(name="Task", value="Book a table.")
    assert (await sent_by(args, OF_SESSION, "blocks.rethink")).args == args.to_payload()


async def test_the_id_of_a_repeated_request_stays() -> None:
    first, again = [await sent_by(BLOCK, OF_SESSION, "blocks.rethink") for _ in range(2)]
    assert first.command_id == again.command_id


async def test_commands_that_are_no_edits_are_masked_too() -> None:
    sent = Sent()
    command = Command(
        command_id="c1",
        kind="facts.reject",
        tenant_id="acme",
        owner=OF_USER.owner,
        args={"reason": "my pin is 4829"},
        issued_at=AT,
    )
    await ProtectedCommands(sent, SecretFilter()).ask(command, patience=0)
    assert sent.commands[0].args == {"reason": "my pin is [pin]"}
