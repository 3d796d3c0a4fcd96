"""The `[memory]` section of the TOML file → frozen policies, each wrong name and value told by its place."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

P = TypeVar("P")


def policy_from(kind: type[P], table: object, *, path: str) -> tuple[P | None, list[str]]:
    """A policy from a TOML table, and what is wrong with the table (then there is no policy)."""
    if not isinstance(table, Mapping):
        return None, [f"{path}: expected a table [{path}]"]
    hints = get_type_hints(kind)
    names = [each.name for each in dataclasses.fields(kind)]  # type: ignore[arg-type]
    problems: list[str] = []
    values: dict[str, Any] = {}
    for name, value in table.items():
        place = f"{path}.{name}"
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            problems.append(f"{place}: there is no such setting" + (f" (did you mean {close[0]}?)" if close else ""))
        elif dataclasses.is_dataclass(hints[name]):
            values[name], wrong = policy_from(hints[name], value, path=place)
            problems += wrong
        else:
            try:
                values[name] = TypeAdapter(hints[name]).validate_python(value)
            except ValidationError as error:
                problems += [f"{place}: {item['msg']}" for item in error.errors(include_url=False)]
    if problems:
        return None, problems
    try:
        return kind(**values), []
    except ValueError as error:
        return None, [f"{path}: {error}"]
