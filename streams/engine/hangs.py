"""A watchdog outside the event loop: it ends a process whose loop hangs, and identifies the record that was handled.

It has two parts, because each part alone misses a kind of hang:

- A thread counts the seconds since the loop last ran. It sees every hang in which the GIL is released, for example in a
  loop in Python code or in a blocking call. It logs the reason and ends the process with exit code 4. It counts its own
  ticks, not clock time, so a process that was stopped (SIGSTOP, a suspended machine) does not count as hanging.
- A kernel timer counts the processor time of the process. It sees hangs that hold the GIL: for example, a match of `re`
  holds the GIL until it ends, so no thread can run. The timer's signal does not need the GIL: faulthandler writes the
  stack into a file, and the process dies by the signal (SIGVTALRM). A process that is stopped or waits in a debugger
  uses no processor time.

Before each step of an event, its record is written to a memory-mapped file, which survives the process. The next
process of the folder reads this note and the stack, and counts a death against the record.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import mmap
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import structlog

from ..log.port import Position
from .failures import HUNG
from .process_exit import BROKEN, ExitProcess, end_process
from .steps import EventStep, StepScheduler

log = structlog.get_logger(__name__)

STILL_SECONDS: Final = 30
"""Seconds after which a process with a blocked loop ends. The longest regular step takes less than one second."""
STILL_PROCESSOR_SECONDS: Final = 35.0
"""Limit of the kernel timer in processor time. It is above `STILL_SECONDS`, so that the thread ends the process first
if the thread can run."""
OF_EACH_CORE: Final = 5.0
"""Processor time added to the limit per core: other threads of the process may use all cores between two restarts of
the kernel timer."""
BEAT_SECONDS: Final = 1.0
_NOTE_BYTES: Final = 1024
_STACK_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Hang:
    """A hang that ended the previous process. `where`: the stack at that time."""

    stage: str
    position: Position
    where: str

    @property
    def why(self) -> str:
        return f"{HUNG} {STILL_SECONDS} s in one step"


class StillLoop:
    """A counter of successive ticks without a beat of the event loop. Pure. A late tick counts once, however late."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._seen = -1
        self._ticks = 0

    def tick(self, beats: int) -> bool:
        """Count a tick. `beats`: number of beats so far. Return whether `most` successive ticks had no new beat."""
        self._ticks = self._ticks + 1 if beats == self._seen else 0
        self._seen = beats
        return self._ticks >= self._most


class HangWatch:
    """The watchdog of one process. It records the current step of the process's stages. Its files are in `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        still: int = STILL_SECONDS,
        processor: float = STILL_PROCESSOR_SECONDS + OF_EACH_CORE * (os.cpu_count() or 1),
        exit_process: ExitProcess = end_process,
    ) -> None:
        self._note_file = folder / "step"
        self._stack_file = folder / "hang"
        self._folder = folder
        self._still = still
        self._processor = processor
        self._exit = exit_process
        self._beats = 0
        self._step: EventStep | None = None
        self._stopped = threading.Event()

    # ------------------------------------------------------------------------------------------------ after a hang
    def last(self) -> Hang | None:
        """Return the hang of the previous process. None if the process did not hang, or hung between two steps."""
        try:
            where = self._stack_file.read_text(errors="replace")
            note = self._note_file.read_bytes().partition(b"\n")[0]
            stage, topic, partition, offset = json.loads(note)
            position = Position(str(topic), int(partition), int(offset))
        except (OSError, ValueError, TypeError):
            return None
        return Hang(str(stage), position, where[:_STACK_MAX]) if where else None

    def forget(self) -> None:
        """Delete the stack file after the previous process's hang is counted."""
        with suppress(FileNotFoundError):
            self._stack_file.unlink()

    # ------------------------------------------------------------------------------------------------ watching
    @contextmanager
    def over(self, all_steps: Sequence[StepScheduler]) -> Iterator[None]:
        """Watch the running event loop and these schedulers' steps during the block."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._note_file.write_bytes(b"\n" * _NOTE_BYTES)
        with (
            self._note_file.open("r+b") as note_file,
            mmap.mmap(note_file.fileno(), _NOTE_BYTES) as note,
            self._stack_file.open("w") as stack,
        ):
            for steps in all_steps:
                steps.changed = lambda step: self._noted(note, step)
            faulthandler.register(signal.SIGVTALRM, file=stack, all_threads=False, chain=True)
            beating = asyncio.ensure_future(self._beat())
            blocked = threading.get_ident()
            thread = threading.Thread(target=self._watch, args=(stack, blocked), name="hang-watch", daemon=True)
            thread.start()
            try:
                yield
            finally:
                self._stopped.set()
                beating.cancel()
                thread.join()
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                faulthandler.unregister(signal.SIGVTALRM)
                for steps in all_steps:
                    steps.changed = lambda step: None

    def _noted(self, note: mmap.mmap, step: EventStep | None) -> None:
        self._step = step
        if step is None:
            note[:1] = b"\n"
            return
        if not step.note:
            at = step.position
            step.note = json.dumps([step.stage, at.topic, at.partition, at.offset]).encode() + b"\n"
        note[: len(step.note)] = step.note

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            await asyncio.sleep(BEAT_SECONDS)

    def _watch(self, stack: IO[str], blocked: int) -> None:
        loop = StillLoop(most=self._still)
        self._wind_up()
        while not self._stopped.wait(BEAT_SECONDS):
            self._wind_up()
            if loop.tick(self._beats):
                self._end(stack, blocked)
                return

    def _wind_up(self) -> None:
        """Restart the kernel timer. This thread can run, so no other thread has held the GIL for long."""
        signal.setitimer(signal.ITIMER_VIRTUAL, self._processor)

    def _end(self, stack: IO[str], blocked: int) -> None:
        step = self._step
        # The loop's thread first: `last` cuts the text, and of all threads the dump has the oldest last.
        frames = traceback.walk_stack(sys._current_frames().get(blocked))
        lines = (f'  File "{at.f_code.co_filename}", line {line} in {at.f_code.co_name}\n' for at, line in frames)
        with suppress(OSError):  # without a buffer: on a full disk the process still ends, and closes the file
            os.write(stack.fileno(), "".join(lines).encode())
        faulthandler.dump_traceback(stack, all_threads=True)
        at = {} if step is None else _fields(step)
        log.critical("event_loop_hangs", why=f"{HUNG} {self._still} s", exit_code=BROKEN, **at)
        self._exit(BROKEN)


def _fields(step: EventStep) -> dict[str, str | int]:
    position = step.position
    return {
        "stage": step.stage,
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
        "step": step.phase,
    }
