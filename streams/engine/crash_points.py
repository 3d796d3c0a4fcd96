"""Named crash points: the process ends immediately after a step, so that tests can check the state that it leaves.

`MEMSTREAM_CRASH_POINT=<stage>:<step>[:n]` with MEMSTREAM_TESTING=1 ends the process after the n-th run of the step (the
first by default).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

Step = Literal["decide", "table", "store", "publish", "commit"]
STEPS: tuple[Step, ...] = get_args(Step)
CRASHED = 137
"""Exit code, as after kill -9."""


@dataclass(slots=True)
class CrashPoint:
    """A countdown of the runs of one step of a stage. The process ends when `left` reaches 0."""

    stage: str
    step: Step
    left: int = 1

    @classmethod
    def parse(cls, text: str, *, stages: tuple[str, ...]) -> CrashPoint:
        """Parse `<stage>:<step>[:n]`. Raises ValueError with a message that names the allowed values."""
        stage, _, rest = text.partition(":")
        step, colon, n = rest.partition(":")
        if not colon:
            n = "1"
        if stage not in stages or step not in STEPS or not (n.isascii() and n.isdigit() and int(n) > 0):
            raise ValueError(
                f"{text!r} is not a crash point: use <stage>:<step>[:n] with a stage of {', '.join(stages)}, "
                f"a step of {', '.join(STEPS)} and n from 1"
            )
        if stage == "recorder" and step == "table":
            raise ValueError("the recorder has no table, so there is no crash point recorder:table")
        return cls(stage=stage, step=step, left=int(n))

    def armed(self, stage: str, step: Step) -> bool:
        """Return whether the process will end at this step, at its next run or a later one."""
        return self.stage == stage and self.step == step and self.left > 0

    def passed(self, stage: str, step: Step) -> None:
        """Count a completed step. When the countdown ends, the process exits without clean-up, as after kill -9."""
        if self.armed(stage, step):
            self.left -= 1
            if self.left == 0:
                os._exit(CRASHED)
