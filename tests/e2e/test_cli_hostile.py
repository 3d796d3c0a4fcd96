"""Every command in hostile surroundings: it ends with a line and an exit code, and never with a traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest
import structlog
from click.testing import CliRunner

from memstream.cli.main import COMMANDS, cli
from tests.support.cli_process import COMMAND, TIMEOUT, Done, Memstream
from tests.support.environment import clean_environment
from tests.support.generated_memory import GeneratedMemory

TENANT = ("--tenant", "acme")
USER = (*TENANT, "--user", "ana")
SESSION = (*USER, "--session", "s1")
STRANGER = 12_345
"""Number of a user without rights."""
TEXT = "Lives in Kraków 日本"
LINES = (
    ("erase", *USER, "--dry-run"),
    ("erase", "--receipt", "e1"),
    ("show", "facts", *TENANT),
    ("audit", *TENANT),
    ("audit", "--json"),
    ("show", "facts", *TENANT, "--state", "all", "--json"),
    ("show", "episodes", *TENANT),
    ("show", "working", *TENANT),
    ("show", "digest", *TENANT),
    ("show", "turns", *TENANT),
    ("recall", *USER, "--cue", "where"),
    ("recall", *USER, "--json"),
    ("profile", *USER),
    ("profile", *USER, "--json"),
    ("trace", "FACT", *TENANT),
    ("trace", "FACT", *TENANT, "--json"),
    ("rehydrate", "episode", *TENANT),
    ("watch", "--from-beginning", "--until-idle", "0.1"),
    ("watch", "--from-beginning", "--until-idle", "0.1", "--json"),
    ("verify",),
    ("verify", "--json"),
    ("dlq", "list"),
    ("dlq", "list", "--user", "u1", "--stage", "observer", "--reason", "fatal"),
    ("dlq", "show", "memory.turns", "0", "0"),
    ("dlq", "redrive", "--dry-run"),
    ("topics", "check"),
    ("topics", "create"),
    ("topics", "grow", "--partitions", "1"),
    ("tokens", "new", "--name", "phone", *TENANT),
    ("policies", "show"),
    ("policies", "check", "policy.json"),
    ("policies", "set", *TENANT, "policy.json"),
    ("policies", "remove", *TENANT),
    ("export", *TENANT, "--out", "export.ndjson"),
    ("produce", "turns.ndjson"),
    ("doctor",),
    ("doctor", "--json"),
    ("tables", "accept-loss", "observer"),
    ("rebuild", "facts"),
    ("migrate-embedder", "--to", "hashing"),
    ("migrate-embedder", "--drop-old", "--json"),
    ("block", "list", *USER),
    ("task", "list", *USER),
    ("procedure", "list", *USER),
    ("group", "list", *TENANT),
)
"""Commands that start no stage."""
WITH_STAGES = (
    ("remember", TEXT, *USER),
    ("forget", "fact", *TENANT),
    ("forget", "fact", *TENANT, "--because", "wrong", "--no-restore"),
    ("retract", "turn", *TENANT, "--user", "u", "--session", "s"),
    ("edit", "fact", *TENANT, "--content", TEXT),
    ("supersede", "fact", TEXT, *TENANT),
    ("merge", "fact", "another", *TENANT),
    ("pin", "entry", *SESSION),
    ("unpin", "entry", *SESSION),
    ("approve", "fact", *TENANT),
    ("reject", "fact", *TENANT),
    ("consolidate", *USER),
    ("prune", *USER),
    ("digest", *USER),
    ("hygiene", *USER),
    ("flush", *SESSION),
    ("compact", *SESSION),
    ("reflect", *USER),
    ("import", "memory.ndjson"),
    ("demo",),
    ("chat",),
    ("worker", "all"),
    ("serve", "--port", "0"),
    ("console",),
    ("mcp", *USER),
)
SETTINGS_ALONE = ("policies", "check")
PARTS = 4
"""Tests over which the commands that read a memory are spread."""
NEED_NO_SETTINGS = ("tokens",)


def test_the_lines_have_every_command() -> None:
    assert {line[0] for line in (*LINES, *WITH_STAGES)} == set(COMMANDS) - {"health"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder below which another user may read what its mode allows."""
    made = Path(tempfile.mkdtemp(prefix="memstream-hostile-"))
    made.chmod(0o755)
    for name in COMMANDS:
        with click.Context(cli) as context:
            cli.get_command(context, name)  # imported before rights are dropped
    yield made
    for each in made.iterdir():
        each.chmod(0o755)
    shutil.rmtree(made)  # its own folders are 0700 of this user, or this user is root


@contextmanager
def stranger() -> Iterator[None]:
    """Be a user to whom nothing belongs. Root could read every file."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(STRANGER)
    try:
        yield
    finally:
        os.seteuid(0)


@dataclass(frozen=True)
class Surroundings:
    """`prepare` changes a copy of the memory; `says` is in the line of each command that meets it."""

    prepare: Callable[[Path], None]
    says: str
    environment: dict[str, str] = field(default_factory=dict)
    of_folder: bool = False
    """Whether only commands that use the folder meet it."""


def shut(*names: str) -> Callable[[Path], None]:
    def close(folder: Path) -> None:
        for name in names:
            (folder / name).chmod(0)

    return close


def written(name: str, value: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(value) and None  # type: ignore[return-value]


def loop(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")


def no_toml(folder: Path) -> None:
    (folder / "memstream.toml").write_text("")
    (folder / "memstream.toml").chmod(0)


DATADIR = ".memstream"
SURROUNDINGS = {
    "an unreadable data folder": Surroundings(shut(DATADIR), DATADIR, of_folder=True),
    "an unreadable memstream.toml": Surroundings(no_toml, "memstream.toml: "),
    "an unreadable working folder": Surroundings(shut("."), ""),
    "memstream.toml in UTF-16": Surroundings(written("memstream.toml", 'tier = "free"'.encode("utf-16")), "UTF-16"),
    "memstream.toml in latin-1": Surroundings(written("memstream.toml", "# \xfc".encode("latin-1")), "not UTF-8"),
    "the data folder is a file": Surroundings(
        lambda _: None, "turns.ndjson", {"MEMSTREAM_DATADIR": "turns.ndjson"}, of_folder=True
    ),
    "the data folder is below a file": Surroundings(
        lambda _: None, "turns.ndjson", {"MEMSTREAM_DATADIR": "turns.ndjson/x"}, of_folder=True
    ),
    "the data folder is a loop": Surroundings(loop, "loop", {"MEMSTREAM_DATADIR": "loop/x"}, of_folder=True),
    "a name that is too long": Surroundings(
        lambda _: None, "x" * 300, {"MEMSTREAM_DATADIR": "x" * 300}, of_folder=True
    ),
    "a home that is unknown": Surroundings(lambda _: None, "MEMSTREAM_DATADIR", {"MEMSTREAM_DATADIR": "~unknown/x"}),
}
"""Surroundings that end every command which reads settings or the folder."""


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_cannot_be_used_is_a_line_and_exit_2(folder: Path, name: str) -> None:
    given = SURROUNDINGS[name]
    work = folder / name.replace(" ", "-")
    (work / DATADIR / "qdrant").mkdir(parents=True, mode=0o755)
    (work / DATADIR / "log.sqlite3").touch()
    (work / "policy.json").write_text("{}")
    (work / "turns.ndjson").write_text("{}\n")
    (work / "memory.ndjson").write_text(GeneratedMemory(1, "acme").header())
    given.prepare(work)
    wrong = []
    for line in (*LINES, *WITH_STAGES):
        if line[0] in NEED_NO_SETTINGS:
            continue
        with stranger():
            done = in_folder(work, *line, environment=given.environment)
        shown, expected = (done.out, 1) if line[0] == "doctor" else (done.err, 2)
        if line[:2] == SETTINGS_ALONE and given.of_folder:
            shown, expected = given.says, 0
        trace = "Traceback" in done.err or "unexpected" in done.err
        if done.code != expected or trace or "".join(given.says.split()) not in "".join(shown.split()):
            wrong.append(f"{' '.join(line[:2])}: {done.code} {shown[-300:]}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def memory(folder: Path) -> Path:
    """A folder with a memory of one fact, whose text few encodings have."""
    made = folder / "memory"
    made.mkdir()
    (made / "policy.json").write_text("{}")
    (made / "turns.ndjson").write_text("{}\n")
    done = in_folder(made, "remember", TEXT, *USER, environment={})
    assert done.code == 0, done.err
    return made


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("charset", ["cp1252", "ascii"])
def test_output_is_of_the_encoding_and_json_keeps_every_character(memory: Path, charset: str, part: int) -> None:
    (fact,) = records(in_folder(memory, "show", "facts", *TENANT, "--json", environment={}))
    wrong = []
    for line in LINES[part::PARTS]:
        arguments = [fact["fact_id"] if each == "FACT" else each for each in line]
        done = in_folder(memory, *arguments, environment={}, charset=charset)
        if done.code not in (0, 1, 2) or "Traceback" in done.err or "unexpected" in done.err:
            wrong.append(f"{' '.join(line[:2])}: {done.code} {done.err[-300:]}")
        elif "--json" in line and line[0] in ("show", "recall", "trace", "watch"):
            assert TEXT in json.dumps(records(done), ensure_ascii=False), line
        elif line[0] == "trace":
            assert TEXT.encode(charset, "replace").decode(charset) in done.out
    assert not wrong, "\n".join(wrong)


def records(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


SHOW = (*COMMAND, "show", "facts", *TENANT, "--json")
FULL = "memstream: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("redirected", "code", "says"),
    [
        ('"$@" >/dev/full', 1, FULL),
        ('"$@" --help >/dev/full', 1, FULL),
        ('PYTHONUNBUFFERED=1 "$@" >/dev/full', 1, FULL),
        ('"$@" 2>/dev/full', 0, ""),
        ('"$@" >&-', 0, ""),
        ('"$@" >&- 2>&- <&-', 0, ""),
        ('rm -r "$PWD"; "$@"', 2, "memstream: the working directory no longer exists: change to another one\n"),
    ],
)
def test_a_redirected_stream_ends_a_process_without_a_traceback(
    memory: Path, tmp_path: Path, redirected: str, code: int, says: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    gone = "rm -r" in redirected
    environment = clean_environment() | ({} if gone else {"MEMSTREAM_DATADIR": str(memory / DATADIR)})
    done = subprocess.run(
        ["bash", "-c", redirected, "bash", *SHOW],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, says)


def test_a_reader_that_ends_early_gets_no_message(memory: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = clean_environment() | {"MEMSTREAM_DATADIR": str(memory / DATADIR)}
    done = subprocess.run(SHOW, env=environment, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_ctrl_c_says_stopped_and_is_130(memory: Path) -> None:
    with Memstream(memory).started("watch", "--from-beginning", "--json") as process:
        assert process.stdout is not None
        assert process.stdout.readline()  # it runs
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() == b"memstream: stopped"


def in_folder(folder: Path, *arguments: str, environment: dict[str, str], charset: str = "utf-8") -> Done:
    """Run a command in process. The folder may be unreadable once it is the working folder."""
    unset = {name: None for name in os.environ if name.startswith(("MEMSTREAM_", "OPENAI_", "QDRANT_"))}
    before = os.open(".", os.O_RDONLY)
    with as_root():
        os.chdir(folder)
    try:
        done = CliRunner(charset=charset).invoke(cli, arguments, env={**unset, "COLUMNS": "200", **environment})
    finally:
        with as_root():
            os.fchdir(before)
        os.close(before)
        structlog.reset_defaults()  # its stream is closed now
    return Done(done.exit_code, done.stdout_bytes.decode(charset), done.stderr_bytes.decode(charset))


@contextmanager
def as_root() -> Iterator[None]:
    mine = os.geteuid()
    if os.getuid() == 0:
        os.seteuid(0)
    try:
        yield
    finally:
        os.seteuid(mine)
