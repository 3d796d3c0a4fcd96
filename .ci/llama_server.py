"""Serve a GGUF model with llama.cpp on a free port of 127.0.0.1. `.ci/real_model.py` starts it in its own environment.

The first line of the output is the address.
"""

from __future__ import annotations

import signal
import sys

import xllamacpp

CONTEXT = 4_096
THREADS = 1
"""llama.cpp's threads wait for each other in busy loops. On a busy machine one thread is faster than two."""


def main(model: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.sampling.temp = 0.0
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
