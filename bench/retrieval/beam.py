"""The BEAM format (Tavakoli et al. 2025): a folder with one folder for each chat.

    NAME/chat.json: [{"batch_number", "turns": [[{"role", "id", "time_anchor"?, "content"}, …], …]}, …]
    NAME/probing_questions/probing_questions.json: {category: [{"question", "source_chat_ids"?, …}, …], …}

`source_chat_ids` has the ids of messages as a list, as lists in a list, or as lists by name. A batch is a session. Its
date is the first time anchor in it, or that of the batch before. User messages end with a mark of the plan
("->-> 1,1"), which was not said and is left out. Questions without such ids are left out: of the category
`abstention`, no message answers them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .conversations import Conversation, Corpus, Line, NotReadable, Question, Role, Session

CHAT: Final = "chat.json"
QUESTIONS: Final = Path("probing_questions", "probing_questions.json")
_PLAN_MARK: Final = re.compile(r"\s*->->\s*[\d\s,N/A]*\)?$")
_ANCHOR: Final = "%B-%d-%Y"
TEXT_MAX: Final = 60_000
"""Maximum number of characters of a message. A longer text would not fit into a turn, and is cut."""
UNDATED: Final = datetime(2024, 1, 1, tzinfo=UTC)
ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant"}


def read(path: Path) -> Corpus:
    """Read a folder of chats. Raises NotReadable and OSError."""
    folders = sorted((each.parent for each in path.glob(f"*/{CHAT}")), key=lambda each: (len(each.name), each.name))
    if not folders:
        raise NotReadable(f"{path} has no folder with {CHAT}")
    skipped: Counter[str] = Counter()
    return Corpus([_conversation(folder, skipped) for folder in folders], skipped)


def _conversation(folder: Path, skipped: Counter[str]) -> Conversation:
    batches, asked = _json(folder / CHAT), _json(folder / QUESTIONS)
    if not isinstance(batches, list) or not isinstance(asked, dict):
        raise NotReadable(f"{folder} has no list of batches, or no questions by category")
    known: set[str] = set()
    sessions, day = list[Session](), UNDATED
    for number, batch in enumerate(batches, start=1):
        said = list(_messages(batch))
        day = next((when for each in said if (when := _when(each.get("time_anchor")))), day)
        sessions.append(Session(f"batch-{number}", day, list(_lines(said, known, skipped))))
    questions = [
        question
        for category, each in sorted(asked.items())
        if isinstance(each, list)
        for told in each
        if (question := _question(told, category, known, skipped)) is not None
    ]
    return Conversation(f"chat-{folder.name}", sessions, questions)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotReadable(f"{path} cannot be read as JSON: {error}") from error


def _messages(batch: Any) -> Iterator[Mapping[str, Any]]:
    for turn in batch.get("turns", []) if isinstance(batch, dict) else []:
        yield from (each for each in turn if isinstance(each, dict))


def _lines(said: list[Mapping[str, Any]], known: set[str], skipped: Counter[str]) -> Iterator[Line]:
    """Yield the lines of one session. `known` has the ids of earlier lines; the ids of this session are added."""
    for each in said:
        role, text = ROLES.get(str(each.get("role"))), _PLAN_MARK.sub("", str(each.get("content") or "")).strip()
        identity = str(each.get("id"))
        if role is None or not text:
            skipped["messages without words or of another role"] += 1
        elif identity in known:
            skipped["messages of an id that was there"] += 1
        else:
            known.add(identity)
            if len(text) > TEXT_MAX:
                skipped[f"ends of messages over {TEXT_MAX:,} characters"] += 1
            yield Line(identity, "", text[:TEXT_MAX], role)


def _when(told: Any) -> datetime | None:
    try:
        return datetime.strptime(str(told).strip(), _ANCHOR).replace(tzinfo=UTC)
    except ValueError:
        return None


def _question(asked: Any, category: str, known: set[str], skipped: Counter[str]) -> Question | None:
    if not isinstance(asked, dict) or not str(asked.get("question") or "").strip():
        skipped["questions without words"] += 1
        return None
    named = set(_ids(asked.get("source_chat_ids")))
    evidence = named & known
    skipped["evidence of no message"] += len(named - known)
    if not evidence:
        skipped["questions without evidence"] += 1
        return None
    return Question(str(asked["question"]).strip(), frozenset(evidence), category)


def _ids(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        told = list(told.values())
    for each in told if isinstance(told, list) else [] if told is None else [told]:
        if isinstance(each, list | dict):
            yield from _ids(each)
        else:
            yield str(each)
