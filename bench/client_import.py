"""Time of `import memstream.client` in fresh interpreters.

    python -m bench.client_import

The interpreters have the packages of an installation without extras: click and rich, which httpx imports if it finds
them, are hidden. The verdict uses CPU time. On an idle machine it equals the elapsed time; on a busy machine it is
still meaningful.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

RUNS = 15
TARGET = 0.3
"""Seconds of CPU time, median."""
PROGRAM = """
import sys, time
sys.modules.update(dict.fromkeys(("click", "rich")))
began, busy = time.perf_counter(), time.process_time()
import memstream.client
print(time.perf_counter() - began, time.process_time() - busy)
"""


def measure() -> tuple[float, float]:
    """Import the client in a fresh interpreter. Return the elapsed seconds and the seconds of CPU time."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    passed, busy = map(float, done.stdout.split())
    return passed, busy


def main() -> int:
    measure()  # the first run may compile modules
    passed, busy = zip(*(measure() for _ in range(RUNS)), strict=True)
    median = statistics.median(busy)
    print(
        f"import memstream.client: CPU {median:.3f} s, median of {RUNS}, target {TARGET} s; fastest {min(passed):.3f} s"
    )
    return 0 if median < TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
