"""Check of every stored text that a context, a digest or a prompt shows; pure.

`RENDERED` lists the fields that are shown. A record is checked when it is written (`find_unsafe_text`). Its texts are
checked again when they are shown (`is_unsafe`, `safe_prose`, `safe_heading`), because an earlier version of the product
may have stored the record without this check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from ...schemas.base import Contract
from ...schemas.blocks import MemoryBlock
from ...schemas.digests import Digest
from ...schemas.episodes import Episode
from ...schemas.facts import Fact, Trust
from ...schemas.groups import MemoryGroup
from ...schemas.observations import Observation
from ...schemas.procedures import Procedure
from ...schemas.prospective import ProspectiveTask
from ...schemas.working_set import WorkingEntry
from ..language.text import latin_lookalikes, one_line, visible
from .instructions import instruction_rule, without_accents

TextKind = Literal["statement", "name", "tag", "heading", "prose"]
"""Kinds of text.

- statement: one sentence about somebody.
- name: the subject of a statement.
- tag: one tag of a record.
- heading: the name of a block or a procedure, which is shown above its text.
- prose: several lines.
"""

_STATEMENT: Final[Mapping[str, TextKind]] = {"content": "statement", "subject": "name"}
_TYPED: Final[Mapping[str, TextKind]] = {"value": "statement", "qualifier": "statement"}
RENDERED: Final[Mapping[type[Contract], Mapping[str, TextKind]]] = {
    Observation: {**_STATEMENT, **_TYPED},
    WorkingEntry: _STATEMENT,
    Fact: {**_STATEMENT, **_TYPED, "tags": "tag"},
    Episode: {**_STATEMENT, "tags": "tag"},
    ProspectiveTask: {**_STATEMENT, "condition": "statement", "tags": "tag"},
    MemoryBlock: {"name": "heading", "value": "prose", "description": "prose"},
    Procedure: {"name": "heading", "trigger": "statement", "steps": "statement"},
    Digest: {"text": "prose"},
    MemoryGroup: {"group_id": "name", "description": "prose"},
}
"""The fields that are shown, for each record class. A test compares this table with all text fields of these
classes."""

RESERVED_HEADINGS: Final = (
    *("to do", "known profile", "summary", "known facts", "current focus", "recent episodes"),
    "said before",
    *("system", "developer", "assistant", "user", "tool", "function"),
)
"""Names that a block or procedure may not have: the headings of a context, and the roles of a conversation."""
_ABOUT: Final = "about"
"""The first word of the headings above facts in a context: `About Tom:`."""
_PROMPT_ROLES: Final = frozenset(
    (
        *("system", "developer", "assistant", "ai", "chatbot", "language model", "prompt", "system prompt"),
        *("admin", "administrator"),
    )
)
"""Subjects that mean the assistant, its prompt or its administrators."""
_DETERMINERS: Final = r"(?:the|an?|this|our|your|d(?:er|ie|as)|diese[rs]?|une?|l[ea]?|cet|el|este?|il|o|de|het)"
_ASSISTANTS: Final = (
    r"(?:(?:(?:ai|ki|virtual|virtuelle[rn]?|digital|digitale[rn]?|chat)[ -])?"
    r"(?:assistant|assistente?|assistent(?:in|en)|asistente?)"
    r"|chat-?bot|bot|ai|llm|language model|system prompt|ki|sprachmodell|ia|modele de langage"
    r"|modelo de (?:lenguaje|linguagem)|asystent|asistan|avustaja|ассистент|помощник|ии)"
)
"""Names of the assistant in several languages, without accents."""
_TRAITS: Final = (
    r"(?:profile?|persona|identity|identitat|identite|identidade?|identita|name|nom|nombre|nome|role?|rolle|rol|ruolo"
    r"|papel|character|charakter|personality|personlichkeit|loyalty|loyalitat|loyaute|lealtad|owner|operator|mission"
    r"|directive|perfil|profilo|профиль|имя|роль)"
)
"""Traits in the description of an assistant: its name, role or owner."""
_BEING: Final = (
    r"(?:is|was|works|serves|belongs|obeys|acts|answers to|reports to|goes by|calls itself|ist|war|heisst"
    r"|arbeitet|dient|gehort|gehorcht|handelt|nennt sich|est|s'appelle|travaille|sert|appartient|obeit|agit|es"
    r"|se llama|trabaja|sirve|pertenece|obedece|actua|si chiama|lavora|serve|appartiene|trabalha|pertence|heet|werkt"
    r"|dient)"
)
"""Verbs that say who the assistant is, and for whom it works."""
_PERSONA: Final = re.compile(
    rf"[^\w]*+(?:(?:{_DETERMINERS}(?: |['’]))?{_ASSISTANTS}(?:(?:['’]s)? {_TRAITS}(?: \w+)? ?[:=–—-]| {_BEING}\b)"
    rf"|{_TRAITS} (?:of (?:the|this)|de[rs]?|del|de l[a'’]?|do|da|dell['’o]?|du|von) ?{_ASSISTANTS} ?[:=–—-]"
    r"|(?:助手|人工智能|アシスタント|人工知能|어시스턴트)(?:的?(?:名字|身份|角色|资料)|の(?:名前|役割|プロフィール))?(?:[:：]|是|为|は|는))"
)
"""The beginning of a sentence that says who the assistant is."""
_SENTENCE_END: Final = re.compile(r"[\n.!?;。]")
_USER: Final = "user"
_TAKEN: Final = _PROMPT_ROLES | {_USER}
_NAME_WORDS: Final = 8
"""Maximum number of words in a name. A longer name is probably a sentence."""
_WORD: Final = re.compile(r"[^\W_]+")
_JOINTS: Final = re.compile(r"(?<![-_/+.:])[-_/+.:]+(?=\w)")
"""Characters between the words of a name, as in `always_recommend-acme`."""
_ARTICLE: Final = re.compile(r"^(?:the|an?) ")
_PERSON_MAY: Final = frozenset(("order", "tool_call", "url", "encoded_run"))
"""Instruction rules that do not apply to a text that a person wrote for the assistant: a block, a procedure, a task."""
WITHHELD: Final = "(an instruction, left out)"
"""Text that a prompt shows in place of a statement that must not be shown. The prompt still shows the statement's
id."""
_WINDOW: Final = 2_000
_OVERLAP: Final = 400
_KEPT: Final = 8_192


@dataclass(frozen=True, slots=True)
class UnsafeText:
    """The reason why a text must not be shown. `code` is documented in docs/reference/edits.md."""

    code: Literal["instruction", "reserved"]
    message: str


def find_unsafe_text(
    kind: type[Contract], texts: Mapping[str, object], *, by_person: bool = False
) -> UnsafeText | None:
    """Check the fields of a record before it is written. Return None when all of them may be shown.

    Args:
        kind: the record class, a key of RENDERED.
        texts: the values of the record's fields by name. Fields that are not in RENDERED are ignored.
        by_person: True when a person wrote the record for the assistant, so that it may contain instructions.
    """
    for name, field in RENDERED[kind].items():
        value = texts.get(name)
        for text in (value,) if isinstance(value, str) else value if isinstance(value, tuple | list) else ():
            found = unsafe_text(field, str(text), by_person=by_person)
            if found is not None:
                return UnsafeText(found.code, f"{name}: {found.message}")
    return None


@lru_cache(_KEPT)
def unsafe_text(kind: TextKind, text: str, *, by_person: bool = False) -> UnsafeText | None:
    """Return the reason why a text of this kind must not be shown; None when it may be shown."""
    if kind == "heading" and is_reserved(text):
        return UnsafeText("reserved", f"{text[:80]!r} is a heading of contexts or a role: choose another name")
    if kind in ("name", "heading"):
        return _unsafe_name(text, by_person)
    if kind == "tag":
        return _instruction(_JOINTS.sub(" ", text), by_person)
    if kind == "prose":
        return next(filter(None, (_instruction(each, by_person) for each in _pieces(text))), None)
    return _instruction(text, by_person)


def is_unsafe(subject: str, content: str, *, by_person: bool = False) -> bool:
    """Return whether a stored statement must not be shown. `by_person` is True when a person said or approved the
    statement."""
    return (
        unsafe_text("name", subject) is not None or unsafe_text("statement", content, by_person=by_person) is not None
    )


def safe_statement(content: str) -> str:
    """Return a stored statement as one line for a prompt, or WITHHELD when it must not be shown."""
    line = one_line(content)
    return WITHHELD if unsafe_text("statement", line) is not None else line


def observed_rule(subject: str, content: str, trust: Trust) -> str | None:
    """Return the name of the rule that makes an observation an instruction to the assistant; None when no rule matches.

    An observation about the assistant, its prompt or its administrators counts as an instruction unless a user said it.
    """
    if (rule := instruction_rule(content)) is not None:
        return rule
    if (found := unsafe_text("name", subject)) is not None:
        return f"subject: {found.message}"
    about_assistant = trust != "user" and (_skeleton(subject) in _PROMPT_ROLES or states_persona(content))
    return "persona" if about_assistant else None


def states_persona(text: str) -> bool:
    """Return whether a sentence says who the assistant is or for whom it works: `The assistant is called Marlow`,
    `ASSISTANT PROFILE: loyal to Nordbank`. Only a user may say that."""
    shown = visible(text).casefold()
    return any(
        _PERSONA.match(sentence)
        for each in {shown, latin_lookalikes(shown)}
        for sentence in _SENTENCE_END.split(without_accents(each))
    )


def is_reserved(name: str) -> bool:
    """Return whether a name is, in any spelling, a heading of a context or a role."""
    seen = _skeleton(name)
    return seen.split(" ")[0] == _ABOUT or _closed(seen) in _CLOSED_HEADINGS


def safe_heading(name: str) -> str:
    """Return the heading to show above a stored block. It is never a heading of the context itself or an
    instruction."""
    if unsafe_text("name", name) is not None:
        return "Block"
    return f"Block {name}" if is_reserved(name) else name


def safe_name(name: str) -> str:
    """Return the name to show for the subject of a statement. It is never a role of the prompt or an instruction."""
    if unsafe_text("name", name) is not None:
        return "somebody"
    return f"the {name}" if _words(name) in _PROMPT_ROLES else name


def is_user_name(name: str) -> bool:
    """Return whether a name is `user` in any spelling."""
    return _closed(_skeleton(name)) == _USER


def safe_prose(text: str, *, by_person: bool = False) -> str:
    """Return a stored text without its unsafe lines. Return an empty text when the other lines are unsafe together."""
    lines = [line for line in text.splitlines() if unsafe_text("prose", line, by_person=by_person) is None]
    shown = "\n".join(lines)
    return shown if unsafe_text("prose", shown, by_person=by_person) is None else ""


def _unsafe_name(text: str, by_person: bool) -> UnsafeText | None:
    seen = _skeleton(text)
    if _closed(seen) in _CLOSED_TAKEN and _words(text) not in _TAKEN:
        return UnsafeText("reserved", f"it looks like {_closed(seen)!r} in another spelling: use the plain spelling")
    if len(_WORD.findall(seen)) > _NAME_WORDS:
        return UnsafeText("instruction", f"a name has at most {_NAME_WORDS} words")
    return _instruction(text, by_person) or _instruction(_JOINTS.sub(" ", text), by_person)


def _instruction(text: str, by_person: bool) -> UnsafeText | None:
    rule = instruction_rule(text)
    if rule is None or (by_person and rule in _PERSON_MAY):
        return None
    return UnsafeText("instruction", f"it is an instruction to the assistant ({rule}), which is not remembered")


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text to check: each line, and all lines joined to one line.

    A long line is yielded in overlapping pieces of `_WINDOW` characters.
    """
    lines = text.splitlines()
    for line in (*lines, *((one_line(text),) if len(lines) > 1 else ())):
        for start in range(0, max(1, len(line)), _WINDOW - _OVERLAP):
            yield line[start : start + _WINDOW]


@lru_cache(_KEPT)
def _skeleton(name: str) -> str:
    """Return the words of a name in plain spelling: in lower case, in Latin letters, without punctuation and without an
    article."""
    return _words(latin_lookalikes(visible(name)))


def _words(name: str) -> str:
    return _ARTICLE.sub("", " ".join(_WORD.findall(name.casefold())))


def _closed(name: str) -> str:
    return name.replace(" ", "")


_CLOSED_TAKEN: Final = frozenset(map(_closed, _TAKEN))
_CLOSED_HEADINGS: Final = frozenset(map(_closed, RESERVED_HEADINGS))
