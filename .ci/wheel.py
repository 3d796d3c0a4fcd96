"""Build the wheel, check the names in it, and use it in two clean environments.

The first environment has no extra: client and contracts import, the installation is small, and the command names
the extra that it needs. The second one has `[server]` and the OpenAI Agents SDK: memstream's rooms have names such as
agents, streams and schemas, and at the top level they would hide that SDK's `agents`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = (
    "adapters",
    "agents",
    "api",
    "cli",
    "client",
    "memory",
    "recall",
    "schemas",
    "streams",
    "tools",
    "verification",
)
NEEDED = (
    "memstream/__init__.py",
    "memstream/py.typed",
    "memstream/cli/main.py",
    "memstream/schemas/json/fact_updated.json",
    "memstream/api/console/templates/base.html",
    "memstream/api/console/static/console.css",
    "memstream/api/console/static/console.js",
    *(f"memstream/{room}/__init__.py" for room in ROOMS),
)
LIGHT_MAX = 30 * 1000 * 1000
"""Bytes that an installation without extras may take, with its dependencies and its compiled modules."""
LIGHT = """
import importlib.util, memstream.client, memstream.schemas.command_kinds, sys
heavy = ("faust", "aiokafka", "qdrant_client", "openai", "fastapi", "click", "structlog", "numpy", "aiohttp", "rich")
there = [name for name in heavy if importlib.util.find_spec(name) is not None]
assert not there, there
assert "site-packages" in memstream.__file__, memstream.__file__
import asyncio
async def refused(address):
    try:
        async with memstream.client.connect(address):
            raise AssertionError(address)
    except memstream.client.Misconfigured as error:
        return str(error)
assert "'memstream[kafka]'" in asyncio.run(refused("kafka://localhost:9092"))
assert "'memstream[server]'" in asyncio.run(refused("embedded:///tmp/memory"))
"""
KAFKA = """
import aiokafka
from memstream.client import kafka_group
from memstream.streams.log import kafka
print("the client on Kafka: aiokafka", aiokafka.__version__)
"""
SERVER = """
import agents, importlib.metadata, memstream
from memstream.cli.main import cli
assert hasattr(agents, "Runner"), agents.__file__
assert "site-packages" in memstream.__file__, memstream.__file__
assert memstream.__version__ == importlib.metadata.version("memstream")
assert importlib.metadata.metadata("memstream")["License-Expression"] == "Apache-2.0"
print("memstream", memstream.__version__, "beside openai-agents", importlib.metadata.version("openai-agents"))
"""

CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(*command: str | Path) -> None:
    """Run a command in an empty folder: `python -m` would import what lies in any other."""
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run([str(part) for part in command], check=True, cwd=empty, env=CLEAN)


def tracked() -> set[str]:
    """Return every file of the rooms that git knows. The wheel carries exactly these."""
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {f"memstream/{line}" for line in listed.splitlines()}


def names_are_right(wheel: Path) -> bool:
    """Whether the wheel has the package's files, the licence, and nothing else. Prints what differs."""
    everything = zipfile.ZipFile(wheel).namelist()
    names = {name for name in everything if ".dist-info/" not in name}
    wrong = {
        "outside memstream/": sorted(name for name in names if not name.startswith("memstream/")),
        "absent": sorted((set(NEEDED) | tracked()) - names),
        "not in git": sorted(names - tracked() - set(NEEDED)),
        "no licence among": [] if any(name.endswith("licenses/LICENSE") for name in everything) else everything[-5:],
    }
    for label, found in wrong.items():
        if found:
            print(f"{label}: {', '.join(found)}", file=sys.stderr)
    print(f"{wheel.name}: {len(names)} files, all under memstream/")
    return not any(wrong.values())


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def light_is_light(wheel: Path, folder: Path) -> bool:
    """Whether an installation without extras is small, imports, and names the extras. Then adds the extra `kafka`."""
    venv.create(folder, with_pip=True)
    python, before = folder / "bin" / "python", size(folder)
    pins = ("--constraint", ROOT / "requirements.txt")
    run(python, "-m", "pip", "install", "--quiet", wheel, *pins)
    taken = size(folder) - before
    print(f"without extras: {taken / 1e6:.1f} MB of at most {LIGHT_MAX / 1e6:.0f}")
    run(python, "-c", LIGHT)
    done = subprocess.run(
        [folder / "bin" / "memstream", "show"], capture_output=True, text=True, check=False, env=CLEAN
    )
    said = done.stderr.splitlines()
    named = done.returncode == 2 and len(said) == 1 and "pip install 'memstream[server]'" in said[0]
    if not named:
        print(f"the command without its extra: exit {done.returncode}, {done.stderr}", file=sys.stderr)
    run(python, "-m", "pip", "install", "--quiet", f"memstream[kafka] @ {wheel.as_uri()}", *pins)
    run(python, "-c", KAFKA)
    return taken < LIGHT_MAX and named


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
        (wheel,) = Path(folder).glob("*.whl")
        if not names_are_right(wheel) or not light_is_light(wheel, Path(folder) / "light"):
            return 1
        clean = Path(folder) / "venv"
        venv.create(clean, with_pip=True)
        python = clean / "bin" / "python"
        pins = ("--constraint", ROOT / "requirements.txt")
        run(python, "-m", "pip", "install", "--quiet", f"memstream[server] @ {wheel.as_uri()}", "openai-agents", *pins)
        run(clean / "bin" / "memstream", "--version")
        run(python, "-c", SERVER)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
