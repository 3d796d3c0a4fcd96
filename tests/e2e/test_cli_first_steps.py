"""The first five minutes of a user: a folder without a memory, and a chat in a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import stat
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.support.cli_process import COMMAND, InProcess, Memstream, turn

WITHIN = 60.0
EVENT = "Lives in Berlin"


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "facts", "--tenant", "acme"),
        ("recall", "--tenant", "acme", "--user", "u1"),
        ("trace", "fact", "--tenant", "acme"),
        ("rehydrate", "episode", "--tenant", "acme"),
        ("watch", "--until-idle", "0.1"),
        ("verify",),
        ("dlq", "list"),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_reading_a_folder_without_a_memory_says_so_and_creates_nothing(
    tmp_path: Path, arguments: tuple[str, ...], folder: str
) -> None:
    memory = tmp_path / "memory"
    if folder == "empty":
        memory.mkdir()
    before = list(tmp_path.rglob("*"))
    done = InProcess(tmp_path)(*arguments, env={"MEMSTREAM_DATADIR": str(memory)})
    assert (done.code, done.out) == (2, "")
    assert f"{memory} holds no memory" in done.err
    assert list(tmp_path.rglob("*")) == before


class Terminal:
    """`memstream chat` in a terminal of 80 columns."""

    def __init__(self, folder: Path) -> None:
        self.screen = ""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = Memstream(folder).env({"TERM": "xterm"})
        del environment["COLUMNS"]
        self.process = subprocess.Popen(
            [*COMMAND, "chat"], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait(self, text: str, *, after: int = 0) -> None:
        """Read until `text` stands on the screen behind the position `after`."""
        deadline = time.monotonic() + WITHIN
        while text not in self.screen[after:]:
            assert time.monotonic() < deadline, f"{text!r} did not come; the screen has {self.screen!r}"
            self._read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def _read(self) -> None:
        try:
            self.screen += os.read(self._ours, 65_536).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.05)


def test_a_chat_says_why_a_line_taught_nothing(tmp_path: Path) -> None:
    said = "Is Oslo expensive?\nLet's play pretend. I am a knight.\nI have a horse.\nStop it. I live in Oslo.\n"
    done = InProcess(tmp_path)("chat", input=said)
    assert done.code == 0, done.err
    told = done.out + done.err
    assert re.findall(r"nothing learnt: (.+?)\s*\n", told) == ["question", "made up", "made up"]
    assert "Lives in Oslo" in told


def test_a_profile_shows_what_the_offline_model_learnt(tmp_path: Path) -> None:
    memstream = InProcess(tmp_path)
    said = "I live in Oslo and I work at Equinor.\nI have a cat named Soot.\nI moved to Bergen.\n"
    assert memstream("chat", input=said).code == 0
    done = memstream("profile", "--tenant", "demo", "--user", "ana", "--json")
    assert done.code == 0, done.err
    slots = [json.loads(line) for line in done.out.splitlines()]
    shown = {(slot["slot"], value["value"]) for slot in slots for value in slot["values"]}
    assert shown == {("residence", "Bergen"), ("employer", "Equinor"), ("pet", "Soot (cat)")}
    table = memstream("profile", "--tenant", "demo", "--user", "ana", "--slot", "pet")
    assert re.search(r"pet\s+Soot", table.out), table.out
    facts = memstream(
        "show", "facts", "--tenant", "demo", "--user", "ana", "--slot", "employer", "--slot", "pet", "--json"
    )
    assert {json.loads(line)["value"] for line in facts.out.splitlines()} == {"Equinor", "Soot (cat)"}
    for command, error in (
        (("profile", "--slot", "boss"), "there is no slot 'boss'; known: name"),
        (("show", "facts", "--slot", "boss"), "there is no slot 'boss'; known: name"),
        (("show", "episodes", "--slot", "pet"), "--slot applies to facts only, not to episodes"),
    ):
        refused = memstream(*command, "--tenant", "demo", "--user", "ana")
        assert (refused.code, error in refused.err) == (2, True), refused.err


@pytest.mark.long
def test_what_a_command_writes_is_its_owners_alone(tmp_path: Path) -> None:
    """The folder of a memory holds what people said: nobody else on the machine may read it."""
    folder = tmp_path / "memory"
    turn = {
        "tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1",
        "messages": [{"role": "user", "content": "I work at Stripe."}],
    }  # fmt: skip
    (tmp_path / "turns.ndjson").write_text(json.dumps(turn) + "\n")
    environment = os.environ | {"MEMSTREAM_DATADIR": str(folder)}
    before = os.umask(0o022)
    try:
        for arguments in (("produce", "turns.ndjson"), ("consolidate", "--tenant", "acme", "--user", "u1")):
            subprocess.run([*COMMAND, *arguments], cwd=tmp_path, env=environment, check=True, capture_output=True)
    finally:
        os.umask(before)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert len(found) > 10
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


@pytest.mark.long
def test_an_event_does_not_land_in_the_line_that_is_typed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    try:
        terminal.wait("Ctrl-D ends")
        terminal.wait(">", after=terminal.screen.index("Ctrl-D ends"))
        terminal.type("My brother Tom lives in Vienna.\r")
        terminal.wait("tom: Lives in Vienna")
        terminal.type("I love che")
        terminal.wait("I love che")
        typed = len(terminal.screen)
        late = turn("late", "I live in Berlin.", tenant="demo", user="ana")
        assert InProcess(tmp_path)("produce", "-", input=late).code == 0
        terminal.wait("kept as 1 episode", after=typed)
        terminal.wait("> I love che", after=terminal.screen.index("kept as 1 episode", typed))
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.screen[typed:]).splitlines()
        assert not any(EVENT in line and "I love che" in line.partition(EVENT)[2] for line in lines)
        terminal.type("ss.\r")
        terminal.wait("Loves chess", after=typed)
        terminal.wait(">", after=terminal.screen.index("Loves chess"))
        terminal.type("\x04")
        terminal.wait("history")
        assert terminal.process.wait(WITHIN) == 0
    finally:
        terminal.close()
