"""Scripted models over the OpenAI protocol: one answers with the gold, the other adds seeded faults.

Neither sees more than a real model: it names a replaced item only if the prompt shows it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from tests.support.model_server import Answer, Ask, Json, Script
from tests.support.openai_bodies import OBSERVATION
from tests.support.prompt_view import user_text

from .dialogues import Dialogue, Gold, Turn
from .scoring import says

MOST: Final = 3
"""Maximum number of observations per turn in the observer's prompt."""
_PAIR: Final = re.compile(r"^\[(p\d+)\]\s*known: ?(.*)\n(?:  said .*\n)?new: ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Meant:
    """A gold item as one turn states it."""

    gold: Gold
    quote: str
    others: Mapping[str, Gold]
    """The dialogue's items by id."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Probability of each fault of an observation (0–1); an observation has at most one."""

    dropped: float = 0.08
    paraphrased: float = 0.15
    doubled: float = 0.08
    """The same item a second time in other words, in the same answer."""
    invented: float = 0.08
    """An additional item that nobody said, with an invented quote."""
    wrong_id: float = 0.08
    """`replaces` names an item that was not shown."""


def oracle(talks: Sequence[Dialogue]) -> Script:
    """Return a script that answers with the gold."""
    return _answering(talks, lambda text, items: items)


def noisy(talks: Sequence[Dialogue], *, seed: int, faults: Faults | None = None) -> Script:
    """Return the oracle's script with faults.

    The faults of a turn depend only on the seed and the turn's text, so that order, repairs and redeliveries do not
    change them.
    """
    chances = faults or Faults()

    def distorted(text: str, items: list[Json]) -> list[Json]:
        dice = random.Random(f"{seed}/{text}")
        return [each for item in items for each in _distorted(item, dice, chances)]

    return _answering(talks, distorted)


def _answering(talks: Sequence[Dialogue], distorted: Callable[[str, list[Json]], list[Json]]) -> Script:
    meant = {turn.said.strip(): found for talk in talks for turn in talk.turns if (found := _meant(talk, turn))}

    def script(ask: Ask) -> Answer:
        if ask.task == "observations":
            answer: list[Json] = []
            for name, text in ask.turns.items():
                said = user_text(text).strip()
                items: list[Json] = []
                for each in meant.get(said, ()):
                    items.append(_observation(each, name, ask, [*answer, *items]))
                answer += distorted(said, items)
            return {"observations": list[JsonValue](answer)}
        if ask.task == "judge":
            return {"judgements": list[JsonValue](_judgements(ask, talks))}
        return _SILENCE.get(ask.task, {})

    return script


_SILENCE: Final[Mapping[str, Json]] = {
    "consolidation": {"facts": []},
    "prune": {"removals": [], "merges": []},
    "insights": {"insights": []},
    "procedures": {"procedures": []},
    "selection": {"ids": []},
    "digest": {"text": ""},
    "summary": {"text": ""},
    "gist": {"text": ""},
}
"""Facts come only from observations and judgements, so that the result measures the conflict pipeline."""


def _meant(talk: Dialogue, turn: Turn) -> list[Meant]:
    by_id = {gold.id: gold for gold in talk.facts}
    return [
        Meant(gold, said.quote, by_id) for gold in talk.facts for said in gold.evidence if said.turn_id == turn.turn_id
    ][:MOST]


def _observation(each: Meant, turn: str, ask: Ask, earlier: Sequence[Json]) -> Json:
    gold = each.gold
    old = each.others[gold.replaces].content if gold.replaces else None
    own = [f"o{place}" for place, other in enumerate(earlier, 1) if other["content"] == old]
    return {
        **OBSERVATION,
        "turn": turn,
        "subject": gold.subject,
        "content": gold.content,
        "category": gold.category,
        "durability": "persistent",
        "replaces": None if old is None else own[-1] if own else ask.prompt.id_of(old),
        "is_correction": gold.is_correction,
        "evidence": each.quote,
    }


# ------------------------------------------------------------------------------------------------ judging
def _judgements(ask: Ask, talks: Iterable[Dialogue]) -> list[Json]:
    text = "\n".join(content for role, content in ask.messages if role == "user")
    known = list(talks)
    return [
        {"pair_id": pair, "decision": _judged(old.strip(), new.strip(), known), "reason": "by the gold"}
        for pair, old, new in _PAIR.findall(text)
    ]


def _judged(old: str, new: str, talks: Sequence[Dialogue]) -> str:
    """Judge two items by the dialogue whose gold has both."""
    for talk in talks:
        knows = [gold for gold in talk.facts if _about(gold, old)]
        tells = [gold for gold in talk.facts if _about(gold, new)]
        if not knows or not tells:
            continue
        if any(gold in tells for gold in knows):
            return "duplicate"
        if any(gold.state != "active" for gold in knows):
            return "supersede"
        return "coexist"
    return "coexist"


def _about(gold: Gold, content: str) -> bool:
    return any(says(gold, subject=wording.subject or "user", content=content) for wording in gold.wordings)


# ------------------------------------------------------------------------------------------------ faults
def _distorted(item: Json, dice: random.Random, chances: Faults) -> list[Json]:
    at = dice.random()
    for chance, fault in (
        (chances.dropped, _dropped),
        (chances.paraphrased, _paraphrased),
        (chances.doubled, _doubled),
        (chances.invented, _invented),
        (chances.wrong_id, _wrong_id),
    ):
        if at < chance:
            return fault(item)
        at -= chance
    return [item]


def _dropped(item: Json) -> list[Json]:
    return []


def _paraphrased(item: Json) -> list[Json]:
    return [item | {"content": in_other_words(str(item["content"]))}]


def _doubled(item: Json) -> list[Json]:
    return [item, *_paraphrased(item)]


def _invented(item: Json) -> list[Json]:
    made = {"content": "Has a yacht named Perseverance", "evidence": "my yacht Perseverance", "replaces": None}
    return [item, {**item, **made, "subject": "user", "category": "attribute", "is_correction": False}]


def _wrong_id(item: Json) -> list[Json]:
    return [item | {"replaces": "w99"}]


_OTHER_WORDS: Final = (
    (r"^Works (?:at|for) ", "Is employed at "),
    (r"^Works as ", "Is "),
    (r"^Lives in ", "Resides in "),
    (r"^Has an? (.+) named ", r"Has a \1 called "),
    (r"^Likes ", "Enjoys "),
    (r"^Loves ", "Really likes "),
    (r"^Dislikes ", "Does not like "),
    (r"^Is allergic to (.+)$", r"Has an allergy to \1"),
    (r"^Name is ", "Is called "),
)


def in_other_words(content: str) -> str:
    """Return a paraphrase, as a model could write it in another answer."""
    for pattern, other in _OTHER_WORDS:
        said, changed = re.subn(pattern, other, content, count=1)
        if changed:
            return said
    return f"The user {content[0].lower()}{content[1:]}"
