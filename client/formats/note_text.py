"""Text of notes: words from memory as Markdown that shows them and does nothing else, and YAML front matter.

Words from memory are hostile. They must not become a heading, a link, a tag, HTML or code, or end the front matter.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ...schemas.export import NotesFormat

TITLE_MAX: Final = 80
SLUG_MAX: Final = 40
KEY_MAX: Final = 500
"""Characters of a name in YAML. YAML allows 1024; a record with a longer name is written as one JSON text."""
_ALWAYS: Final = re.compile(r"[\\`*_\[\]{}#|$^]")
_RUNS: Final = re.compile(r"(?<=([=~%]))\1")
_AT_START: Final = re.compile(r"^(?:[-+=~%:]|\d+[.)])")
_UNSEEN: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
"""Control characters, and characters that change the direction of the words around them."""
_NOT_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NOT_IN_SLUG: Final = re.compile(r"[\W_]+")
_NOT_IN_LINK: Final = re.compile(r"[|\[\]<>`\\#^${}%]+")
"""Characters that must not be in the words of a link. Obsidian shows these words as they are, without escapes."""
_NOT_IN_TAG: Final = re.compile(r"[^\w/-]+")


def as_markdown(text: str) -> str:
    """Return words as one line of Markdown that shows exactly these words."""
    line = " ".join(text.split())
    return _shown_line(line)


def quoted(text: str) -> str:
    """Return words as a block quote, line by line."""
    lines = [_shown_line(each.rstrip()) for each in text.strip().splitlines()]
    return "\n".join(f"> {each}  " if each else ">" for each in lines).rstrip()


def _shown_line(line: str) -> str:
    line = _UNSEEN.sub("\ufffd", line.expandtabs(4))
    inner = line.lstrip(" ")
    inner = inner.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    inner = _ALWAYS.sub(r"\\\g<0>", inner)
    inner = _RUNS.sub(lambda found: f"&#{ord(found[0])};", inner)
    inner = _AT_START.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", inner)
    return "\u00a0" * (len(line) - len(line.lstrip(" "))) + inner


def title_of(text: str) -> str:
    """Return the beginning of words as a title: one line of at most `TITLE_MAX` characters."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    if len(line) <= TITLE_MAX:
        return line or "untitled"
    return line[: TITLE_MAX - 1].rsplit(" ", 1)[0][: TITLE_MAX - 1] + "…"


# ------------------------------------------------------------------------------------------------ names and links
def file_name(text: str, *identity: str) -> str:
    """Return a name without a suffix, valid in every file system: letters and digits of the words, and a hash of the
    identity, which makes it unique also where upper and lower case are equal."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text[: 4 * SLUG_MAX]).casefold())
    slug = _NOT_IN_SLUG.sub("-", folded).strip("-")[:SLUG_MAX].strip("-")
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]
    return f"{slug}-{digest}" if slug else digest


def link(form: NotesFormat, path: str, title: str, *, at_top: bool = False) -> str:
    """Return a link to the note `path`. The note with the link is in one of the folders, or in the top folder."""
    if form == "obsidian":
        return f"[[{path}|{' '.join(_NOT_IN_LINK.sub(' ', _UNSEEN.sub(' ', title)).split()) or 'untitled'}]]"
    return f"[{as_markdown(title)}]({'' if at_top else '../'}{quote(path)}.md)"


def tags_line(form: NotesFormat, tags: Sequence[str]) -> str:
    if form == "markdown":
        return ", ".join(map(as_markdown, tags))
    return " ".join(f"#{each}" for each in map(_obsidian_tag, tags) if each)


def _obsidian_tag(tag: str) -> str:
    """Return a tag with the characters that Obsidian allows. A tag of digits alone is none, so it gets a letter."""
    name = _NOT_IN_TAG.sub("-", tag).strip("-/")
    return f"n{name}" if name and not re.search(r"[^\d/_-]", name) else name


# ------------------------------------------------------------------------------------------------ front matter
def front_matter(fields: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return the front matter of a note: fields for people, and the whole record. Each value is JSON, which is YAML."""
    lines = [f"{name}: {_yaml(value)}" for name, value in fields.items() if value is not None]
    if _longest_name(record) > KEY_MAX:
        lines.append(f"record: {_yaml(json.dumps(record, ensure_ascii=False))}")
    else:
        lines += ["record:", *(f"  {name}: {_yaml(value)}" for name, value in record.items())]
    return "\n".join(("---", *lines, "---"))


def _yaml(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _longest_name(value: Any) -> int:
    if isinstance(value, Mapping):
        return max((max(len(name), _longest_name(each)) for name, each in value.items()), default=0)
    if isinstance(value, list):
        return max(map(_longest_name, value), default=0)
    return 0
