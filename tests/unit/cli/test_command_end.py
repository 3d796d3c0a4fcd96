"""The end of a command: a line and an exit code for whatever ended it."""

from __future__ import annotations

import asyncio
import errno
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import structlog
from click.testing import CliRunner

from memstream.cli.errors import usage
from memstream.cli.main import COMMANDS, cli
from memstream.cli.output import console
from memstream.cli.process.command_end import ended
from memstream.schemas.errors import Fatal, Transient


@pytest.fixture(autouse=True)
def unconfigured_logs() -> Iterator[None]:
    """Commands configure logs for their process."""
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)


def fails(error: BaseException) -> Callable[[], object]:
    def command() -> object:
        raise error

    return command


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def system(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path)


ENDS = {
    "done": (lambda: None, 0, ""),
    "its own exit code": (lambda: 3, 3, ""),
    "SystemExit": (fails(SystemExit(4)), 4, ""),
    "SystemExit without a code": (fails(SystemExit()), 0, ""),
    "SystemExit with a line": (fails(SystemExit("no")), 1, "no\n"),
    "wrong usage": (fails(usage("what\nto do")), 2, "memstream: what\nmemstream: to do\n"),
    "wrong usage of click": (fails(click.UsageError("no such option")), 2, "Error: no such option\n"),
    "Ctrl-C": (fails(KeyboardInterrupt()), 130, "memstream: stopped\n"),
    "Ctrl-C at a prompt": (fails(click.Abort()), 130, "memstream: stopped\n"),
    "Ctrl-C behind another error": (
        fails(caused(Fatal("a stage ended"), KeyboardInterrupt())),
        130,
        "memstream: stopped\n",
    ),
    "a server": (fails(Transient("store", "away", remedy="start it")), 3, "memstream: store: away (start it)\n"),
    "an invariant": (fails(Fatal("broken")), 4, "memstream: broken\n"),
    "no rights": (
        fails(system(errno.EACCES, "/data/log")),
        2,
        f"memstream: /data/log: Permission denied (give this process (uid {os.getuid()}) access to it, or name another "
        "path)\n",
    ),
    "a read-only disk": (
        fails(system(errno.EROFS, "/data/log")),
        2,
        "memstream: /data/log: Read-only file system (name a path on a file system that can be written)\n",
    ),
    "a path in bytes": (
        fails(OSError(errno.ENOENT, os.strerror(errno.ENOENT), b"/data/\xe9")),
        2,
        "memstream: /data/\\udce9: No such file or directory\n",
    ),
    "no file name": (fails(system(errno.ELOOP)), 2, "memstream: Too many levels of symbolic links\n"),
    "a full disk": (
        fails(system(errno.ENOSPC, "/data/log")),
        3,
        "memstream: /data/log: No space left on device (free some space on its disk, or raise the quota; nothing is "
        "lost)\n",
    ),
    "a group": (fails(BaseExceptionGroup("tasks", [usage("first"), ValueError()])), 2, "memstream: first\n"),
    "a cancelled task": (
        fails(asyncio.CancelledError("by its owner")),
        4,
        "memstream: unexpected error, `memstream -v …` shows where: CancelledError: by its owner\n",
    ),
    "a bug": (
        fails(ZeroDivisionError("by zero")),
        4,
        "memstream: unexpected error, `memstream -v …` shows where: ZeroDivisionError: by zero\n",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_end_is_a_line_and_an_exit_code(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, code, line = ENDS[name]
    assert ended(command) == code
    assert capsys.readouterr() == ("", line)


def test_ctrl_c_ends_a_coroutine_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        raise KeyboardInterrupt

    assert ended(lambda: asyncio.run(work())) == 130
    assert capsys.readouterr().err == "memstream: stopped\n"


class Refusing(io.StringIO):
    """A stream whose device takes nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise system(self.number)


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.EPIPE, ""),
        (errno.ENOSPC, "memstream: standard output cannot be written: No space left on device\n"),
        (errno.EIO, "memstream: standard output cannot be written: Input/output error\n"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "behind another error"])
def test_lost_output_is_exit_1(
    number: int, line: str, wrapped: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        try:
            console.say("text")
        except Exception as error:
            if wrapped:
                raise Fatal("a stage ended") from error
            raise

    monkeypatch.setattr(sys, "stdout", Refusing(number))
    assert ended(command) == 1
    assert capsys.readouterr().err == line


class RefusingToFlush(Refusing):
    """A stream that keeps text, and whose device takes nothing."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        raise system(self.number)


def test_output_lost_at_the_last_flush_is_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        sys.stdout.write("text")

    monkeypatch.setattr(sys, "stdout", RefusingToFlush(errno.ENOSPC))
    assert ended(command) == 1
    assert capsys.readouterr().err == "memstream: standard output cannot be written: No space left on device\n"


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Refusing(errno.ENOSPC))
    assert ended(fails(usage("what"))) == 2


def test_streams_that_are_missing_are_the_null_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)

    def command() -> None:
        console.say(sys.stdin.read())
        console.advice("x")

    assert ended(command) == 0
    assert sys.stdout is None


def test_a_working_directory_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert ended(os.getcwd) == 2
    assert "the working directory no longer exists" in capsys.readouterr().err


TEXT = "Kraków 日本 \ud83d"
SAFE = {"cp1252": "Kraków ?? ?", "ascii": "Krak?w ?? ?", "utf-8": "Kraków 日本 ?"}


@pytest.mark.parametrize("charset", SAFE)
def test_a_character_that_the_encoding_lacks_is_replaced_and_escaped_in_json(charset: str) -> None:
    def work() -> None:
        console.say(TEXT)
        console.table(("content",), [(TEXT,)], empty="")
        console.line({"content": TEXT})
        console.advice(TEXT)

    @click.command()
    def prints() -> None:
        raise SystemExit(ended(work))

    done = CliRunner(charset=charset).invoke(prints)
    assert done.exit_code == 0, done.exception
    said, _, cell, record = done.stdout_bytes.decode(charset).splitlines()
    assert (said, cell.rstrip()[:6]) == (SAFE[charset], SAFE[charset][:6])
    assert record == '{"content":"Krak\\u00f3w \\u65e5\\u672c \\ud83d"}'


@pytest.mark.parametrize("charset", ["cp1252", "ascii"])
def test_help_of_every_command_prints_in_any_encoding(charset: str) -> None:
    for name in ("", *COMMANDS):
        done = CliRunner(charset=charset).invoke(cli, [name, "--help"] if name else ["--help"])
        assert done.exit_code == 0, (name, done.exception)
