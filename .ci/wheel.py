"""Build the wheel, look at the names in it, and import it in a clean environment beside the OpenAI Agents SDK.

Our rooms are called agents, streams, schemas … : installed at the top level they would hide that SDK's `agents`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("adapters", "agents", "api", "cli", "client", "memory", "recall", "schemas", "streams", "verification")
NEEDED = (
    "memstream/__init__.py",
    "memstream/py.typed",
    "memstream/cli/main.py",
    "memstream/schemas/json/fact_updated.json",
    *(f"memstream/{room}/__init__.py" for room in ROOMS),
)
PROOF = """
import agents, importlib.metadata, memstream, sys
from memstream.cli.main import main
assert hasattr(agents, "Runner"), agents.__file__
assert "site-packages" in memstream.__file__, memstream.__file__
assert memstream.__version__ == importlib.metadata.version("memstream")
print("memstream", memstream.__version__, "beside openai-agents", importlib.metadata.version("openai-agents"))
"""


def run(*command: str | Path) -> None:
    """In an empty folder: `python -m` would import what lies about in any other."""
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run([str(part) for part in command], check=True, cwd=empty)


def tracked() -> set[str]:
    """Every file of the rooms that git knows: what the wheel must carry, no more, no less."""
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {f"memstream/{line}" for line in listed.splitlines()}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
        (wheel,) = Path(folder).glob("*.whl")
        names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
        outside = sorted(name for name in names if not name.startswith("memstream/"))
        absent = sorted((set(NEEDED) | tracked()) - names)
        extra = sorted(names - tracked() - set(NEEDED))
        for label, found in (("outside memstream/", outside), ("absent", absent), ("not in git", extra)):
            if found:
                print(f"{label}: {', '.join(found)}", file=sys.stderr)
        if outside or absent or extra:
            return 1
        print(f"{wheel.name}: {len(names)} files, all under memstream/")
        clean = Path(folder) / "venv"
        venv.create(clean, with_pip=True)
        python = clean / "bin" / "python"
        pins = ("--constraint", ROOT / "requirements.txt")
        run(python, "-m", "pip", "install", "--quiet", wheel, "openai-agents", *pins)
        run(clean / "bin" / "memstream", "--version")
        run(python, "-c", PROOF)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
