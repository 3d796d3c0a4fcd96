"""Parsing of policies from tables of names and values: the `[memory]` section of the TOML file, and policies of
tenants.

Each problem gives the full name of the wrong setting.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

P = TypeVar("P")


def _required(kind: type[object]) -> list[str]:
    """Return the names of the fields without a default."""
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return [each.name for each in fields if each.default is missing and each.default_factory is missing]


def _of_mapping(hint: object) -> type[object] | None:
    """Return the policy class of a field that maps free names to policies, else None."""
    if get_origin(hint) is not Mapping:
        return None
    of: type[object] = get_args(hint)[1]
    return of if dataclasses.is_dataclass(of) else None


def _several(
    kind: type[object], table: object, *, path: str, base: Mapping[str, object]
) -> tuple[dict[str, object], list[str]]:
    """Parse policies by name. A policy whose name is in `base` takes the values that are missing in the table from
    there."""
    if not isinstance(table, Mapping):
        return {}, [f"{path}: expected tables [{path}.<name>]"]
    made: dict[str, object] = {}
    problems: list[str] = []
    for name, value in table.items():
        made[str(name)], wrong = policy_from(kind, value, path=f'{path}."{name}"', base=base.get(str(name)))
        problems += wrong
    return made, problems


def _known_by_name(kind: type[object], name: str) -> Mapping[str, object]:
    """Return the default of a field that maps names to policies."""
    field = next(each for each in dataclasses.fields(kind) if each.name == name)  # type: ignore[arg-type]
    known: Mapping[str, object] = {} if field.default_factory is dataclasses.MISSING else field.default_factory()
    return known


def former_names(kind: type[object]) -> Mapping[str, str]:
    """Return the current field names of a policy by their names in earlier versions."""
    found: Mapping[str, str] = getattr(kind, "FORMER_NAMES", {})
    return found


def policy_from(kind: type[P], table: object, *, path: str, base: P | None = None) -> tuple[P | None, list[str]]:
    """Parse a policy from a table. Return the policy and no problems, or None and the problems.

    `base`: the policy that supplies the values missing in the table. Without it the defaults apply.
    """
    if not isinstance(table, Mapping):
        return None, [f"{path}: expected a table [{path}]"]
    hints = get_type_hints(kind)
    names = [each.name for each in dataclasses.fields(kind)]  # type: ignore[arg-type]
    problems: list[str] = []
    values: dict[str, Any] = {}
    for given, value in table.items():
        name = former_names(kind).get(given, given)
        place = f"{path}.{name}" if path else str(name)
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            problems.append(f"{place}: there is no such setting" + (f" (did you mean {close[0]}?)" if close else ""))
        elif dataclasses.is_dataclass(hints[name]):
            values[name], wrong = policy_from(
                hints[name], value, path=place, base=None if base is None else getattr(base, name)
            )
            problems += wrong
        elif (each := _of_mapping(hints[name])) is not None:
            known = _known_by_name(kind, name) if base is None else getattr(base, name)
            several, wrong = _several(each, value, path=place, base=known)
            values[name] = {**known, **several}
            problems += wrong
        else:
            try:
                values[name] = TypeAdapter(hints[name]).validate_python(value)
            except ValidationError as error:
                problems += [f"{place}: {item['msg']}" for item in error.errors(include_url=False)]
    if base is None:
        problems += [f"{path}.{name} must be set" for name in _required(kind) if name not in table]
    if problems:
        return None, problems
    try:
        return kind(**values) if base is None else dataclasses.replace(base, **values), []  # type: ignore[type-var]
    except ValueError as error:
        return None, [f"{path}: {error}" if path else str(error)]
