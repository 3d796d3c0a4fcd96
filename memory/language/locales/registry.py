"""Registry of locale packs: the packs of memstream and the packs of installed Python packages.

A pack is imported when it is first used. A package registers a pack with an entry point in the group
`memstream.locales`; the name of the entry point is the name of the pack (docs/how-to/add-a-language.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from .definition import LocalePackError, check_locale_pack
from .pack import Locale

GROUP: Final = "memstream.locales"
"""The entry point group in which packages register packs."""
BUILT_IN: Final[Mapping[str, tuple[str, str]]] = {
    "de": (".german.pack", "GERMAN"),
    "en": (".english.pack", "ENGLISH"),
}
"""Name of each pack of memstream, with the module that defines the pack and the variable in that module."""


@lru_cache(maxsize=64)
def locale(name: str) -> Locale:
    """Return the pack with this name.

    Raises ValueError when there is no such pack, when several packages have a pack with this name, or when the pack is
    not well formed.
    """
    brought = [each for each in entry_points(group=GROUP) if each.name == name]
    sources = (["memstream"] if name in BUILT_IN else []) + [_package(each) for each in brought]
    if not sources:
        raise ValueError(
            f"there is no locale {name!r}; the locales are {', '.join(available_locales())}. "
            f"A package can add a locale with an entry point of the group {GROUP}"
        )
    if len(sources) > 1:
        raise ValueError(
            f"the locale {name!r} is in {' and in '.join(sources)}: uninstall one, or rename its entry point and "
            f"its pack (for example {name}-x-own)"
        )
    if not brought:
        module, attribute = BUILT_IN[name]
        pack: Locale = getattr(import_module(module, __package__), attribute)
        return pack
    return _installed(brought[0])


@lru_cache(maxsize=64)
def locales(names: str) -> tuple[Locale, ...]:
    """Return the packs of a comma-separated list such as `en, de`, in the order of the list.

    Raises ValueError for the errors of `locale`, for an empty name, and for a name that occurs twice.
    """
    listed = [each.strip() for each in names.split(",")]
    if not all(listed):
        raise ValueError(f"the list of locales {names!r} has an empty name; write names with commas: en, de")
    twice = sorted({each for each in listed if listed.count(each) > 1})
    if twice:
        raise ValueError(f"the list of locales {names!r} names {twice[0]!r} twice; name it once")
    return tuple(locale(each) for each in listed)


def available_locales() -> tuple[str, ...]:
    """Return the names of all packs. The packs are not imported."""
    return tuple(sorted({*BUILT_IN, *(each.name for each in entry_points(group=GROUP))}))


def _installed(entry: EntryPoint) -> Locale:
    where = f"the locale {entry.name!r} of the package {_package(entry)} ({entry.value})"
    try:
        pack = entry.load()
    except LocalePackError as error:
        raise ValueError(f"{where} cannot be used: {error}") from error
    except Exception as error:  # third-party code may raise anything
        raise ValueError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(pack, Locale):
        raise ValueError(f"{where} is a {type(pack).__name__}; the entry point must name a pack of define_locale_pack")
    if pack.name != entry.name:
        raise ValueError(f"{where} has the name {pack.name!r}; the entry point and the pack must have the same name")
    try:
        check_locale_pack(pack)
    except LocalePackError as error:
        raise ValueError(f"{where} cannot be used: {error}") from error
    return pack


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unnamed package"
