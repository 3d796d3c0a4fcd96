"""Command of the generators: `python -m docs.generate [--check]` writes or compares every generated file.

Run it from the repository's root.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

from . import asyncapi, json_schemas, openapi, reference_tables

GENERATORS: Final[tuple[ModuleType, ...]] = (json_schemas, openapi, asyncapi, reference_tables)
"""Modules with `write` and `differences`."""


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python -m docs.generate [--check]", file=sys.stderr)
        return 2
    if arguments == ["--check"]:
        lines = [line for generator in GENERATORS for line in generator.differences()]
        for line in lines:
            print(line, file=sys.stderr)
        if lines:
            print("mend: make generate", file=sys.stderr)
        return 1 if lines else 0
    for generator in GENERATORS:
        generator.write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
