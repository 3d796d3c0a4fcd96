"""Parser of a model's answer: from the texts that a server sent to the JSON value that the task's schema describes.

Only this module looks for JSON in a text. It is pure, and lenient about everything around and inside the JSON. It never
invents an item: every item of the result is in the text. docs/design/model-answers.md has the rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from pydantic import JsonValue

from ..unicode import replace_surrogates
from .lenient_json import decode_leniently

MAX_ANSWER: Final = 1_000_000
"""Maximum length of an answer in code points. A valid answer has a few statements of at most 2 000 code points each."""
MAX_REPAIRED: Final = 100_000
"""Maximum length, in code points, of a text that is parsed leniently."""
MAX_PLACES: Final = 64
MAX_REPAIRED_PLACES: Final = 8
"""Maximum number of positions in one text where a JSON value may begin, for strict and for lenient parsing."""
MAX_NESTED: Final = 4
"""Maximum nesting of objects and JSON strings around an answer."""

_THOUGHT: Final = (
    r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad|seed:think|internal_monologue)"
)
_CLOSING_MARK: Final = re.compile(
    rf"</{_THOUGHT}\s*>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>|<\|/think\|>", re.IGNORECASE
)
_OPENING_MARK: Final = re.compile(
    rf"<{_THOUGHT}(?:\s[^<>]*)?>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>|<\|think\|>",
    re.IGNORECASE,
)
_HARMONY: Final = re.compile(r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
"""Head of a message in OpenAI's Harmony format. The message ends at the next special token."""
_BARE_HARMONY: Final = re.compile(r"\Aanalysis(?=\S).*assistant\s*final(?:json)?(?=\s*[\[{`])", re.DOTALL)
"""Harmony output of a server that drops special tokens: `analysis…assistantfinal{…}`."""
_SPECIAL_TOKEN: Final = re.compile(r"<\|[\w ]{1,40}\|>")
_BEGINS: Final = re.compile(r"""\{(?=\s*(?:["'“”}\w]|//|/\*))|\[(?=\s*(?:[\[{"'“”\]]|//|/\*))""")
"""A bracket that may begin a JSON value; `[t1]` does not match."""
_FENCE_BEFORE: Final = re.compile(r"(?:\A|```[\w-]*)\s*\Z")
_FENCE_AFTER: Final = re.compile(r"\s*(?:\Z|```)")


class UnusableReply(ValueError):
    """Unusable answer of a model. The message gives the reason in words that a model can act on."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """Outer shape of the answer that a schema describes."""

    lists: Mapping[str, frozenset[str] | None]
    """Names of the lists, each with the property names of its items. None: the items are not objects."""
    texts: tuple[str, ...]

    @classmethod
    def of(cls, schema: Mapping[str, JsonValue]) -> _Shape:
        properties = schema.get("properties")
        lists: dict[str, frozenset[str] | None] = {}
        texts: list[str] = []
        for name, kind in (properties if isinstance(properties, dict) else {}).items():
            if not isinstance(kind, dict):
                continue
            if kind.get("type") == "array":
                lists[name] = _names_of_items(kind.get("items"))
            elif kind.get("type") == "string":
                texts.append(name)
        return cls(lists, tuple(texts))

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.lists, *self.texts))

    def list_for(self, items: Sequence[JsonValue], *, least: int = 1) -> str | None:
        """Return the name of the only list that these items fit, or None. An object fits when it has at least `least`
        of the property names."""
        fitting = [name for name, known in self.lists.items() if _all_fit(items, known, least)]
        return fitting[0] if len(fitting) == 1 else None


def _names_of_items(items: JsonValue) -> frozenset[str] | None:
    if not isinstance(items, dict) or items.get("type") != "object":
        return None
    properties = items.get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def _all_fit(items: Sequence[JsonValue], known: frozenset[str] | None, least: int) -> bool:
    if known is None:
        return bool(items) and all(isinstance(item, str | int) and not isinstance(item, bool) for item in items)
    return bool(items) and all(
        isinstance(item, dict)
        and (not known or len(known.intersection(name.lower() for name in item)) >= min(least, len(known)))
        for item in items
    )


def read_answer(texts: Sequence[str], schema: Mapping[str, JsonValue]) -> JsonValue:
    """Return the answer as a value of the schema's outer shape, from the first text that has a usable value.

    NaN and infinities are rejected, and lone surrogates become U+FFFD, because they cannot be stored or sent. Raise
    `UnusableReply` when no text has a usable value.
    """
    shape = _Shape.of(schema)
    problem: UnusableReply | None = None
    for text in texts:
        try:
            return _read(text, shape)
        except UnusableReply as error:
            problem = problem or error
    raise problem or UnusableReply("the answer was empty")


def _read(text: str, shape: _Shape) -> JsonValue:
    if len(text) > MAX_ANSWER:
        raise UnusableReply(f"the answer was longer than {MAX_ANSWER} characters; answer more briefly")
    text = text.strip().removeprefix("\ufeff").strip()
    if not text:
        raise UnusableReply("the answer was empty")
    whole_value = _decoded(text)
    said = _without_reasoning(text)
    strict = _values(said, _strictly, MAX_PLACES) if whole_value is None else [_Found(whole_value, is_whole=True)]
    fitting = _fitting(strict, shape)
    if fitting is None and shape.names and len(said) <= MAX_REPAIRED:
        fitting = _fitting(_values(said, decode_leniently, MAX_REPAIRED_PLACES), shape)
    if fitting is not None:
        return _clean(fitting)
    whole = next((each.value for each in strict if each.is_whole), None)
    if isinstance(whole, dict) and not {"type", "properties"} <= whole.keys() - shape.names:
        return _clean(whole)  # the task's parser decides whether an object without its list is an answer
    if whole is not None:
        raise UnusableReply(_wanted(shape))
    raise UnusableReply("the answer was not JSON; answer with one JSON object and nothing around it")


def _fitting(found: Sequence[_Found], shape: _Shape) -> JsonValue:
    """Return the last value that fits the schema, joined with the values directly before it. If there is no such value,
    return the values that are single items as a list. Return None when nothing fits."""
    fitting: JsonValue = None
    items: list[JsonValue] = []
    before: JsonValue = None
    for each in found:
        if _is_item(each.value, shape):
            items += [] if each.in_damaged else [each.value]
            before = None
            continue
        shaped = _shaped(each, shape)
        if each.follows and isinstance(before, dict) and isinstance(shaped, dict):
            shaped = _joined(before, shaped, shape)
        before, fitting = shaped, fitting if shaped is None else shaped
    return _from_list(items, shape) if fitting is None and items else fitting


def _joined(one: dict[str, JsonValue], other: dict[str, JsonValue], shape: _Shape) -> dict[str, JsonValue]:
    """Join two answers. The lists have the items of both; other properties come from the second answer."""
    joined = {**one, **other}
    for name in shape.lists:
        lists = [each[name] for each in (one, other) if isinstance(each.get(name), list)]
        if lists:
            joined[name] = [item for each in lists if isinstance(each, list) for item in each]
    return joined


def _wanted(shape: _Shape) -> str:
    """Describe the expected outer shape for an error message."""
    lists = [f'"{name}": [{"..." if known is None else "{...}"}]' for name, known in shape.lists.items()]
    texts = [f'"{name}": "..."' for name in shape.texts]
    return f"the answer must be an object {{{', '.join((*lists, *texts))}}}, with values"


# ------------------------------------------------------------------------------------------------ candidates
@dataclass(frozen=True, slots=True)
class _Found:
    """A decoded value in a text."""

    value: JsonValue
    is_whole: bool = False
    """True when the whole text, or a code fence in it, is this value."""
    follows: bool = False
    """True when only separators are between this value and the value before it."""
    in_damaged: bool = False
    """True when an earlier bracket could not be decoded, so that this value may be a part of a damaged value."""


def _values(said: str, decode: Callable[[str, int], tuple[JsonValue, int]], places: int) -> list[_Found]:
    """Return the objects and lists in a text, in text order."""
    found: list[_Found] = []
    place, in_damaged, end = 0, False, -1
    for _ in range(places):
        begin = _BEGINS.search(said, place)
        if begin is None:
            break
        try:
            value, place = decode(said, begin.start())
        except (ValueError, RecursionError):
            place, in_damaged = begin.end(), True
            continue
        before = said[max(0, begin.start() - 40) : begin.start()]
        is_whole = bool(_FENCE_BEFORE.search(before) and _FENCE_AFTER.match(said, place))
        follows = end >= 0 and not said[end : begin.start()].strip(", ;\r\n\t")
        found.append(_Found(value, is_whole=is_whole, follows=follows, in_damaged=in_damaged))
        end = place
    return found


def _strictly(text: str, place: int) -> tuple[JsonValue, int]:
    found: tuple[JsonValue, int] = _DECODER.raw_decode(text, place)
    return found


def _decoded(text: str) -> JsonValue:
    try:
        value: JsonValue = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_no_constant)
"""Decoder that is not strict: it allows a line break inside a string."""


def _without_reasoning(text: str) -> str:
    """Return the text after the model's reasoning. In Harmony format this is the last final channel; otherwise it is
    the text after the last closing mark. An unclosed reasoning mark removes everything after it, except when JSON
    begins before the mark: then the mark is a part of a statement."""
    heads = list(_HARMONY.finditer(text))
    if heads:
        final = next((head for head in reversed(heads) if head.group(1) == "final"), None)
        if final is None:
            return ""
        end = text.find("<|", final.end())
        return text[final.end() : end if end >= 0 else len(text)]
    text = _BARE_HARMONY.sub("", text)
    said = text[max((mark.end() for mark in _CLOSING_MARK.finditer(text)), default=0) :]
    opening, begin = _OPENING_MARK.search(said), _BEGINS.search(said)
    if opening is not None and (begin is None or opening.start() < begin.start()):  # else the mark is in a statement
        said = said[: opening.start()]
    return _SPECIAL_TOKEN.sub(" ", said)


# ------------------------------------------------------------------------------------------------ shapes
def _shaped(found: _Found, shape: _Shape, *, nested: int = MAX_NESTED) -> JsonValue:
    """Convert the value to the outer shape of the schema; None when that is not possible."""
    value = found.value
    if nested == 0:
        return None
    if isinstance(value, str):  # JSON inside a JSON string
        inner = _decoded(value.strip())
        return None if inner is None else _shaped(replace(found, value=inner), shape, nested=nested - 1)
    if isinstance(value, list):
        if not value:
            return {next(iter(shape.lists)): []} if found.is_whole and len(shape.lists) == 1 else None
        if found.in_damaged:
            return None
        shaped = _from_list(value, shape)
        if shaped is None and len(value) == 1 and isinstance(value[0], dict):  # a list with one tool call
            return _shaped(replace(found, value=value[0]), shape, nested=nested - 1)
        return shaped
    if not isinstance(value, dict):
        return None
    if _is_item(value, shape):
        return _from_list([value], shape)
    if not shape.names.isdisjoint(value):
        return _with_lists(value, shape)
    return None if found.in_damaged else _from_inside(value, shape, nested=nested)


def _is_item(value: JsonValue, shape: _Shape) -> bool:
    """Return whether a value is one item of the schema's only list: it has at least two property names of an item."""
    if not isinstance(value, dict) or not shape.names.isdisjoint(value):
        return False
    name = shape.list_for([value], least=2)
    return name is not None and bool(shape.lists[name])


def _with_lists(value: dict[str, JsonValue], shape: _Shape) -> dict[str, JsonValue] | None:
    """Convert the object's lists to the form of the schema; None when a list cannot be read."""
    shaped = dict(value)
    for name in shape.lists.keys() & value.keys():
        known, given = shape.lists[name], value[name]
        if isinstance(given, str):
            decoded = _decoded(given.strip())
            given = given if decoded is None else decoded
        if isinstance(given, dict):
            given = _items_of(given, known)
            if given is None:
                return None
        if isinstance(given, list) and known is not None and given:
            given = _opened(given)
            if not any(isinstance(item, dict) for item in given):
                return None
        elif given is not None and not isinstance(given, list):
            return None
        shaped[name] = given
    return shaped


def _opened(given: Sequence[JsonValue]) -> list[JsonValue]:
    """Flatten a list whose items are lists or JSON strings."""
    opened: list[JsonValue] = []
    for item in given:
        inner = _decoded(item.strip()) if isinstance(item, str) else item
        opened += inner if isinstance(inner, list) else [inner if isinstance(inner, dict) else item]
    return opened


def _items_of(given: dict[str, JsonValue], known: frozenset[str] | None) -> list[JsonValue] | None:
    """Return the items of an object that the model wrote instead of a list: a single item, or a mapping from names to
    items. Return None for any other object."""
    if known is None:
        return None
    if _all_fit([given], known, least=2):
        return [given]
    values = list(given.values())
    return values if _all_fit(values, known, least=2) else None


def _from_list(value: list[JsonValue], shape: _Shape) -> JsonValue:
    answers = [each for each in value if isinstance(each, dict) and not shape.names.isdisjoint(each)]
    if len(answers) == 1:
        return _with_lists(answers[0], shape)
    name = shape.list_for(value)
    return None if name is None else {name: value}


def _from_inside(value: dict[str, JsonValue], shape: _Shape, *, nested: int) -> JsonValue:
    """Read an answer that is wrapped in an object or has another property name."""
    lists = [each for each in value.values() if isinstance(each, list)]
    if len(lists) == 1 and (name := shape.list_for(lists[0])) is not None:
        return {name: lists[0]}
    items = list(value.values())
    if len(items) > 1 and (name := shape.list_for(items, least=2)) is not None and shape.lists[name]:
        return {name: items}  # a mapping from names to items
    for each in value.values():
        if isinstance(each, dict) or (isinstance(each, str) and each.lstrip()[:1] in ("{", "[")):
            shaped = _shaped(_Found(each), shape, nested=nested - 1)
            if shaped is not None:
                return shaped
    if not shape.lists and len(shape.texts) == 1 and len(value) == 1:
        [only] = value.values()
        return {shape.texts[0]: only} if isinstance(only, str) else None
    return None


def _clean(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _clean(item) for key, item in value.items()}
    return value
