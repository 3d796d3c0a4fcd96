"""A process that appends to a log on disk: `python -m tests.support.log_writer JSON`.

Options: `folder`, `topic`, `name`, `writers` (concurrent), `count` (of each writer; 0: for ever), `limit` (greatest
size of a file in bytes, as on a full disk). It prints each acknowledged append: `writer number partition offset`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

import structlog

from memstream.schemas.errors import Transient
from memstream.streams.log.embedded import EmbeddedLog


async def main(options: dict[str, str]) -> None:
    if "limit" in options:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(options["limit"]), hard))
    log = EmbeddedLog(folder=Path(options["folder"]))
    await log.start()
    count = int(options.get("count", "0"))

    async def write(writer: int) -> None:
        number = 0
        while not count or number < count:
            value = f"{options['name']} {writer} {number}".encode()
            place = await log.append(options["topic"], key=b"k%d" % writer, value=value)
            print(writer, number, place.partition, place.offset, flush=True)
            number += 1

    try:
        await asyncio.gather(*(write(writer) for writer in range(int(options.get("writers", "1")))))
    except Transient as full:
        print("full", full, flush=True)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        place = await log.append(options["topic"], key=b"k0", value=b"room again")
        print("again", place.partition, place.offset, flush=True)
    await log.close()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(json.loads(sys.argv[1])))
