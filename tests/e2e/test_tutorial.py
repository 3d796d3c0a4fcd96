"""A newcomer, in one fresh clone on a machine that has Python, make and git: the README's first commands, then every
command, file and output of docs/tutorial/index.md, in the page's order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.kafka import Broker, free_port
from tests.support.polling import wait_for_blocking

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial" / "index.md"
README = re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
OURS = ("MEMSTREAM_", "OPENAI_", "QDRANT_", "VIRTUAL_ENV", "PYTHONPATH", "MAKE", "CI", "TURNS")
DEADLINE = 60.0
INSTALL_DEADLINE = 400.0
MARK = r"<!-- tutorial: (?P<mark>[^>]*?) -->\n"
BLOCK = re.compile(rf"(?:{MARK})?```(?P<language>\w+)\n(?P<text>.*?)```|<!-- tutorial: stop -->", re.DOTALL)
KNOWN_MARKS = (
    "", "keeps running", "repeat until it succeeds", "printed by what keeps running", "kafka",
    "needs Docker, not run by the test", "stop",
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A fenced block of the page, with the mark before it."""

    mark: str
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """All blocks in order; a mark `stop` without a block is one of its own."""
    found = []
    for match in BLOCK.finditer(page):
        if match["language"] is None:
            found.append(Block("stop", "", ""))
        else:
            found.append(Block(match["mark"] or "", match["language"], match["text"]))
    return found


@dataclass
class Reader:
    """Somebody who types what the page says. Ports and the broker are this test's own."""

    folder: Path
    replaced: dict[str, str]
    exports: list[str] = field(default_factory=list)
    output: str = ""
    running: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    def mine(self, text: str) -> str:
        for page, own in self.replaced.items():
            text = text.replace(page, own)
        return text

    def environment(self) -> dict[str, str]:
        mine = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return mine | {"PYTHONFAULTHANDLER": "1"}

    def script(self, text: str) -> str:
        return "\n".join([*self.exports, self.mine(text)])

    def types(self, text: str, *, again: bool = False, deadline: float = DEADLINE) -> None:
        """Run commands that end; `again`: until they succeed."""
        until = time.monotonic() + deadline
        while True:
            done = subprocess.run(
                ["bash", "-euc", self.script(text)],
                cwd=self.folder,
                env=self.environment(),
                capture_output=True,
                text=True,
                timeout=deadline,
                check=False,
            )
            if done.returncode == 0:
                break
            if not again or time.monotonic() > until:
                logs = "".join(log.read_text()[-1500:] for _, log in self.running)
                pytest.fail(f"{text}\n{done.stdout}{done.stderr}\n{logs}", pytrace=False)
            time.sleep(0.5)
        self.exports += [line for line in text.splitlines() if line.startswith("export ")]
        self.exports = [self.mine(line) for line in self.exports]
        self.output = done.stdout

    def starts(self, text: str) -> None:
        """Start a command that keeps running, in a terminal of its own."""
        log = self.folder.parent / f"terminal-{len(list(self.folder.parent.glob('terminal-*')))}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-euc", self.script(text)],
                cwd=self.folder,
                env=self.environment(),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.running.append((process, log))

    def stops(self) -> None:
        """Ctrl-C in every other terminal. One that goes on is told with what it did."""
        ending, self.running = self.running, []
        for process, _ in ending:
            os.killpg(process.pid, signal.SIGINT)
        late = []
        for process, log in ending:
            try:
                process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGABRT)  # Python's fault handler writes where each thread is
                process.wait(10)
                late.append(f"{process.args}\n{log.read_text()[-4000:]}")
        if late:
            pytest.fail("did not end at Ctrl-C: " + "\n".join(late), pytrace=False)

    def sees(self, text: str) -> None:
        """Every line of `text` stands in what the last command printed."""
        for line in self.mine(text).splitlines():
            assert line in self.output, f"{line!r} is not in\n{self.output}"

    def sees_elsewhere(self, text: str) -> None:
        """Every line of `text` comes in some other terminal."""

        def printed() -> str:
            return "".join(log.read_text() for _, log in self.running)

        def missing() -> list[str]:
            now = printed()
            return [line for line in text.splitlines() if line not in now]

        what = "the lines in another terminal"
        wait_for_blocking(missing, what, until=lambda lines: not lines, deadline=DEADLINE, pause=0.2, detail=printed)


@pytest.fixture
def reader(own_kafka: Broker, tmp_path: Path) -> Iterator[Reader]:
    memory, chat = free_port(), free_port()
    made = Reader(
        tmp_path / "memstream",
        {
            "localhost:9092": own_kafka.bootstrap,
            "memstream serve": f"memstream serve --port {memory}",
            "127.0.0.1:8000": f"127.0.0.1:{memory}",
            "127.0.0.1:8080": f"127.0.0.1:{chat}",
            "port=8080": f"port={chat}",
        },
    )
    yield made
    made.stops()


def test_every_mark_of_the_page_is_known_and_every_command_is_run() -> None:
    page = PAGE.read_text()
    marks = re.findall(r"<!-- tutorial: (.*?) -->", page)
    assert [mark for mark in marks if mark not in KNOWN_MARKS and not mark.startswith("file ")] == []
    assert {block.language for block in blocks(page)} == {"bash", "text", "python", ""}
    assert len(blocks(page)) == len(re.findall(r"^```\w+$", page, re.MULTILINE)) + 1, "one stop stands alone"
    left = [block.text for block in blocks(page) if block.mark.startswith("needs Docker")]
    assert left == ["docker run --detach --name kafka --publish 9092:9092 apache/kafka:4.1.1\n"]


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_first_commands_and_the_tutorial(reader: Reader) -> None:
    first, *rest = blocks(PAGE.read_text())
    assert first.text == README[0], "both begin with the same two commands"
    clone, make = first.text.splitlines()
    assert (clone, make) == ("git clone <this repository> && cd memstream", "make demo")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(reader.folder)], check=True)
    reader.types(make, deadline=INSTALL_DEADLINE)
    for part in ("learnt", "replaced", "corrected", "nothing worth remembering", "What next"):
        assert part in reader.output
    chat = README[1].strip()
    assert chat == ".venv/bin/memstream chat"
    assert chat in reader.output, "the demo ends with what the README says next"
    reader.types(f"{chat} <<< 'My favourite colour is teal.'")
    assert "Memory knows about ana" in reader.output
    reader.types("git status --short")
    assert reader.output == "", "what it makes is ignored by git"
    for block in rest:
        if block.mark.startswith("file "):
            (reader.folder / block.mark.removeprefix("file ")).write_text(reader.mine(block.text))
        elif block.mark.startswith("needs Docker"):
            continue
        elif block.mark == "keeps running":
            reader.starts(block.text)
        elif block.mark == "printed by what keeps running":
            reader.sees_elsewhere(block.text)
        elif block.language == "text":
            reader.sees(block.text)
        else:
            if block.mark == "stop":
                reader.stops()
            reader.types(block.text, again=block.mark.startswith("repeat"))
