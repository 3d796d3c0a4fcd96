"""The output file of an export: never overwritten, continued after a kill at each step."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memstream.cli.errors import CommandFailed
from memstream.cli.output import part_file
from memstream.cli.output.part_file import PartFile


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture(autouse=True)
def each_page_is_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_file, "CHECKPOINT_BYTES", 1)


def written(target: Path, pages: int = 4) -> int:
    """Write pages `0`, `1` … from the cursor on, and return the first page of this run."""
    with PartFile.opened(target, selection="all") as file:
        first = 0 if file.cursor is None else int(file.cursor)
        for page in range(first, pages):
            file.write(f"{page}\n".encode(), str(page + 1))
        file.finish(b"end\n")
    return first


WHOLE = "0\n1\n2\n3\nend\n"


def test_a_file_is_written_with_its_owners_rights_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.ndjson"
    written(target)
    assert target.read_text() == WHOLE
    assert target.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["a.ndjson"]


@pytest.mark.parametrize("call", ["fsync", "link", "write", "replace"])
@pytest.mark.parametrize("nth", range(1, 7))
def test_a_run_that_is_killed_at_any_step_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    target, place, count = tmp_path / "a.ndjson", Path if call == "replace" else os, 0
    real = getattr(place, call)

    def dying(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth:
            raise Killed
        return real(*args)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(place, call, dying)
        written(target)
    if not target.exists():
        written(target)
    assert target.read_text() == WHOLE


def killed(target: Path, *pages: bytes, selection: str = "all", more: bytes = b"") -> PartFile:
    """Write pages, and die. `more`: bytes after the last durable page."""
    with suppress(Killed), PartFile.opened(target, selection=selection) as file:
        for number, page in enumerate(pages):
            file.write(page, str(number + 1))
        os.write(file._descriptor, more)
        raise Killed
    return file


def test_it_continues_after_the_last_page_that_was_durable(tmp_path: Path) -> None:
    target = tmp_path / "a.ndjson"
    killed(target, b"0\n", b"1\n", more=b"half of a li")
    assert not target.exists()
    assert written(target) == 2
    assert target.read_text() == WHOLE


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "a.ndjson"
    target.write_text("precious")
    with pytest.raises(CommandFailed, match="exists; name another --out"):
        written(target)
    target.unlink()
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(CommandFailed, match="exists"):
        written(target)
    target.unlink()
    with PartFile.opened(target, selection="all") as file:
        file.write(b"0\n", "1")
        target.write_text("made meanwhile")
        with pytest.raises(CommandFailed, match="exists"):
            file.finish(b"end\n")
    assert target.read_text() == "made meanwhile"


def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.ndjson"
    with PartFile.opened(target, selection="all") as file:
        file.write(b"0\n", "1")
        monkeypatch.setattr(os.path, "lexists", lambda _: not target.write_text("made meanwhile"))
        with pytest.raises(CommandFailed, match="exists"):
            file.finish(b"end\n")
    assert target.read_text() == "made meanwhile"


def test_a_part_of_something_else_is_left_alone(tmp_path: Path) -> None:
    target, part = tmp_path / "a.ndjson", tmp_path / "a.ndjson.part"
    part.write_text("somebody's file")
    with pytest.raises(CommandFailed, match="belongs to another export"):
        written(target)
    assert part.read_text() == "somebody's file"
    part.unlink()
    killed(target, b"0\n", selection="one user")
    with pytest.raises(CommandFailed, match="continue with the same options"):
        written(target)
    assert part.read_text() == "0\n"


def test_a_symbolic_link_as_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        written(tmp_path / "a.ndjson")
    assert not (tmp_path / "elsewhere").exists()


def test_two_processes_do_not_write_one_part(tmp_path: Path) -> None:
    target = tmp_path / "a.ndjson"
    with PartFile.opened(target, selection="all") as file:
        file.write(b"0\n", "1")
        with pytest.raises(CommandFailed, match="another process writes"):
            written(target)
        file.finish(b"end\n")
    assert target.read_text() == "0\nend\n"


def test_the_finished_file_of_a_run_killed_at_its_end_is_not_changed(tmp_path: Path) -> None:
    """The part still has the name of the file that somebody has moved away since."""
    target = tmp_path / "a.ndjson"
    file = killed(target, b"0\n")
    os.link(file.part, target)
    target.rename(tmp_path / "moved")
    written(target)
    assert (tmp_path / "moved").read_text() == "0\n"
    assert target.read_text() == WHOLE


@pytest.mark.parametrize("state", ["", "nonsense", "[]", '{"selection": "all", "length": 99, "cursor": "9"}'])
def test_a_damaged_cursor_loses_no_file(tmp_path: Path, state: str) -> None:
    target = tmp_path / "a.ndjson"
    file = killed(target, b"0\n")
    file.state.write_text(state)
    try:
        assert written(target) == 0
        assert target.read_text() == WHOLE
    except CommandFailed:
        assert file.part.read_text() == "0\n"


def test_a_run_that_fails_at_once_leaves_nothing(tmp_path: Path) -> None:
    killed(tmp_path / "a.ndjson")
    assert os.listdir(tmp_path) == []
