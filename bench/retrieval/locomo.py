"""The LoCoMo format (Maharana et al. 2024): a list of samples.

    {"sample_id", "conversation": {"speaker_a", "speaker_b", "session_1_date_time", "session_1": [
        {"speaker", "dia_id": "D1:1", "text", "blip_caption"?, "img_url"?}, …], …},
     "qa": [{"question", "answer", "evidence": ["D1:3", …], "category": 1…5}, …]}

The published file has irregular evidence: several ids in one string ("D8:6; D9:17"), a cut id ("D"), other spellings
("D:11:26", "D30:05"), ids of no line, and missing evidence. Ids of existing lines are used; the others are counted as
skipped. Questions of category 5 ask for things that were never said: no turn answers them, so they are left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .conversations import Conversation, Corpus, Line, NotReadable, Question, Session

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL: Final = 5
_SESSION: Final = re.compile(r"session_(\d+)")
_DIA_ID: Final = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)", re.IGNORECASE)
_DATE_FORMS: Final = ("%I:%M %p on %d %B, %Y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")
UNDATED: Final = datetime(2023, 1, 1, tzinfo=UTC)


def read(path: Path) -> Corpus:
    """Read a LoCoMo file. Raises NotReadable and OSError."""
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotReadable(f"{path} is no JSON: {error}") from error
    if isinstance(samples, dict):
        samples = [samples]
    if not isinstance(samples, list) or not samples:
        raise NotReadable(f"{path} is no list of samples")
    skipped: Counter[str] = Counter()
    conversations = [_conversation(sample, at, skipped) for at, sample in enumerate(samples)]
    twice = [name for name, times in Counter(each.id for each in conversations).items() if times > 1]
    if twice:  # each conversation is one user's memory: two with the same name would share it
        raise NotReadable(f"{path} has several samples called {', '.join(twice)}")
    return Corpus(conversations, skipped)


def _conversation(sample: Any, at: int, skipped: Counter[str]) -> Conversation:
    talk = sample.get("conversation") if isinstance(sample, dict) else None
    if not isinstance(talk, dict):
        raise NotReadable(f"sample {at} has no conversation")
    known: set[str] = set()
    sessions = [_session(talk, number, known, skipped) for number in sorted(_numbers(talk))]
    asked = sample.get("qa")
    questions = [
        question
        for each in (asked if isinstance(asked, list) else [])
        if (question := _question(each, known, skipped)) is not None
    ]
    return Conversation(str(sample.get("sample_id") or f"sample-{at}"), sessions, questions)


def _numbers(talk: Mapping[str, Any]) -> Iterator[int]:
    for key, value in talk.items():
        found = _SESSION.fullmatch(key)
        if found and isinstance(value, list):
            yield int(found.group(1))


def _session(talk: Mapping[str, Any], number: int, known: set[str], skipped: Counter[str]) -> Session:
    """Read one session. `known` has the line ids of earlier sessions; the ids of this session are added."""
    lines: list[Line] = []
    for at, said in enumerate(talk[f"session_{number}"], start=1):
        text = _text(said) if isinstance(said, dict) else ""
        if not text:
            skipped["lines without words"] += 1
            continue
        identity = _line_id(said.get("dia_id")) or f"D{number}:{at}"
        if identity in known:
            skipped["lines of an id that was there"] += 1
            continue
        known.add(identity)
        lines.append(Line(identity, str(said.get("speaker") or ""), text))
    return Session(f"session_{number}", _when(talk.get(f"session_{number}_date_time")), lines)


def _text(said: Mapping[str, Any]) -> str:
    """Return the text and the caption of its picture, because questions are about both."""
    text, caption = (str(said.get(name) or "").strip() for name in ("text", "blip_caption"))
    if not caption:
        return text
    return f"{text} (shares {caption})".strip()


def _when(told: Any) -> datetime:
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(str(told).strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return UNDATED


def _question(asked: Any, known: set[str], skipped: Counter[str]) -> Question | None:
    if not isinstance(asked, dict) or not str(asked.get("question") or "").strip():
        skipped["questions without words"] += 1
        return None
    number = asked.get("category")
    if number == ADVERSARIAL:
        skipped["adversarial questions"] += 1
        return None
    evidence = set()
    for identity in _evidence(asked.get("evidence"), skipped):
        if identity in known:
            evidence.add(identity)
        else:
            skipped["evidence of no line"] += 1
    if not evidence:
        skipped["questions without evidence"] += 1
        return None
    category = CATEGORIES.get(number, str(number)) if isinstance(number, int) else str(number)
    return Question(str(asked["question"]).strip(), frozenset(evidence), category)


def _evidence(told: Any, skipped: Counter[str]) -> Iterator[str]:
    """Yield the evidence as ids of lines."""
    for each in told if isinstance(told, list) else [] if told is None else [told]:
        found = [_line_id(match.group()) for match in _DIA_ID.finditer(str(each))]
        if not found:
            skipped["evidence that names no line"] += 1
        yield from (identity for identity in found if identity)


def _line_id(told: Any) -> str | None:
    """Return an id in the form `D1:3`; other text is returned unchanged, and None for no text."""
    if told is None or not str(told).strip():
        return None
    found = _DIA_ID.fullmatch(str(told).strip())
    return f"D{int(found.group(1))}:{int(found.group(2))}" if found else str(told).strip()
