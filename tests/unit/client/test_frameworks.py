"""Adapters of agent frameworks: what needs no server."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import MatchCondition, PutOp
from pydantic import JsonValue

from memstream.client import Memory, Unavailable
from memstream.client.frameworks.langgraph_items import (
    matches_condition,
    matches_filter,
    owner_of,
    plain_value,
    statements_of,
)
from memstream.client.frameworks.session_turns import MessageFields, SessionTurns, group_messages
from memstream.schemas.base import CONTENT_MAX
from memstream.schemas.turns import MESSAGES_MAX, TURN_MAX_BYTES

ROOT = Path(__file__).resolve().parents[3]
COMPARISONS = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
MODULES = {
    "openai_agents": ("agents", "openai-agents"),
    "langgraph": ("langgraph", "langgraph"),
    "langgraph_items": ("langgraph", "langgraph"),
    "llama_index": ("llama_index", "llama-index"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.slow
def test_a_framework_that_is_not_installed_is_told_with_its_extra(module: str) -> None:
    package, extra = MODULES[module]
    code = f"import sys; sys.modules['{package}'] = None; import memstream.client.frameworks.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    told = f"ImportError: this adapter needs {package}: pip install 'memstream[{extra}]'"
    assert done.stderr.splitlines()[-1] == told


@pytest.mark.parametrize(
    ("module", "before"),
    [
        *((module, "") for module in MODULES),
        ("openai_agents", "import agents; "),
        ("openai_agents", "from agents import Agent; "),
        ("openai_agents", "import memstream.agents; "),
    ],
)
@pytest.mark.slow
def test_an_adapter_is_imported_in_the_root_of_the_repository(module: str, before: str) -> None:
    code = f"{before}import memstream.client.frameworks.{module}; from memstream.agents import recorder"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_client_imports_no_framework() -> None:
    frameworks = {package for package, _ in MODULES.values()}
    code = f"import sys, memstream.client; print(sorted({frameworks} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------------ turns
def message(role: str, content: str = "x") -> MessageFields:
    return {"role": role, "content": content}


def test_a_turn_begins_where_the_user_speaks_and_holds_no_more_than_a_turn_may() -> None:
    roles = ["assistant", "user", "user", "tool", "assistant", "user", "assistant"]
    groups = [[each["role"] for each in group] for group in group_messages([message(role) for role in roles])]
    assert groups == [["assistant"], ["user", "user", "tool", "assistant"], ["user", "assistant"]]
    assert list(group_messages([])) == []
    many = [message("user")] + [message("tool")] * (2 * MESSAGES_MAX)
    assert [len(group) for group in group_messages(many)] == [MESSAGES_MAX, MESSAGES_MAX, 1]
    large = [message("tool", "ö" * (TURN_MAX_BYTES // 5))] * 3
    assert [len(group) for group in group_messages(large)] == [2, 1]


class RecordingMemory:
    """Keeps turns; the first `failures` calls fail after they were kept."""

    def __init__(self, failures: int = 0) -> None:
        self.turns: list[dict[str, JsonValue]] = []
        self.failures = failures

    async def produce(self, turn: dict[str, JsonValue]) -> None:
        self.turns.append(turn)
        if self.failures:
            self.failures -= 1
            raise Unavailable("lost")


def turns_of(memory: Any, **fields: Any) -> SessionTurns:
    as_memory: Memory = memory
    return SessionTurns(as_memory, "acme", "u1", "s1", **fields)


async def test_a_turn_that_is_sent_again_is_equal_in_every_field() -> None:
    memory = RecordingMemory(failures=2)
    turns = turns_of(memory, turn={"agent_id": "a1"})
    for _ in range(2):
        with pytest.raises(Unavailable):
            await turns.add([message("user")])
    await turns.add([message("user")])
    first, *again = memory.turns
    assert again == [first, first]
    assert first["agent_id"] == "a1"
    await turns.add([message("user")])
    assert memory.turns[-1]["turn_id"] != first["turn_id"]
    times = [str(turn["occurred_at"]) for turn in memory.turns]
    assert times[-1] > times[0]


async def test_times_rise_within_a_call() -> None:
    memory = RecordingMemory()
    await turns_of(memory).add([message("user"), message("assistant")] * 20)
    times = [str(turn["occurred_at"]) for turn in memory.turns]
    assert (len(set(times)), times) == (20, sorted(times))


async def test_a_turn_comes_after_those_that_were_read_unless_their_clock_is_wrong() -> None:
    memory = RecordingMemory()
    now = datetime.now(UTC)
    for seen in (now + timedelta(seconds=30), now + timedelta(hours=1)):
        turns = turns_of(memory)
        turns.seen(seen)
        await turns.add([message("user")])
    behind, apart = (datetime.fromisoformat(str(turn["occurred_at"])) for turn in memory.turns)
    assert behind > now + timedelta(seconds=30)
    assert apart < now + timedelta(seconds=60)


async def test_ids_follow_from_the_request() -> None:
    memory = RecordingMemory()
    for request in ("m1", "m1", "m2"):
        await turns_of(memory, request_id=request).add([message("user")])
    one, again, other = (turn["turn_id"] for turn in memory.turns)
    assert one == again != other


# ------------------------------------------------------------------------------------------------ items
def put(value: dict[str, Any], index: Any = None, namespace: tuple[str, ...] = ("users", "u1", "m")) -> PutOp:
    return PutOp(namespace, "k", value, index)


def test_the_text_of_an_item_has_its_words() -> None:
    value = {"text": " Likes tea ", "more": {"n": 1, "list": ["a", ["b"]]}, "empty": ""}
    assert statements_of(put(value), value) == ("Likes tea; a; b", "Likes tea; a; b (m/k)")
    assert statements_of(put(value, ["more.list[0]"]), value)[0] == "a"
    assert statements_of(put(value, False), value)[0] == "Item m/k"
    assert statements_of(put({"n": 1}), {"n": 1})[0] == 'm/k: {"n": 1}'
    long = {"text": "x" * 3_000}
    assert [len(each) <= CONTENT_MAX for each in statements_of(put(long), long)] == [True, True]
    wide = PutOp(("users", "u1"), "k" * 5_000, {"text": "x"})
    assert [len(each) <= CONTENT_MAX for each in statements_of(wide, {"text": "x"})] == [True, True]


def test_a_value_is_what_json_gives_back() -> None:
    assert plain_value({"a": (1, 2.0), "b": None}) == {"a": [1, 2.0], "b": None}
    for wrong in ({"a": 2**63}, {"a": float("nan")}):
        with pytest.raises(ValueError):
            plain_value(wrong)


def test_owners_are_the_first_labels() -> None:
    assert (owner_of(("orgs", "o1", "x")).scope, owner_of(("orgs", "o1")).id) == ("org", "o1")
    for wrong in ((), ("users",), ("user", "u1"), ("users", "*"), ("*", "u1")):
        with pytest.raises(ValueError, match="names no owner"):
            owner_of(wrong)


def test_filters_compare_as_those_of_langgraph() -> None:
    from langgraph.store.memory import InMemoryStore

    values = [{"n": 1, "k": "a"}, {"n": 2.5, "k": {"x": [1, 2]}}, {"k": "b"}]
    store = InMemoryStore()
    for n, value in enumerate(values):
        store.put(("m",), str(n), value)
    wanted: list[dict[str, Any]] = [
        {}, {"k": "a"}, {"n": {"$eq": 1}}, {"k": {"$ne": "a"}}, {"k": {"x": [1, 2]}}, {"k": {"x": (1, 2)}},
        {"missing": None},
    ]  # fmt: skip
    for each in wanted:
        assert [v for v in values if matches_filter(v, each)] == [i.value for i in store.search(("m",), filter=each)]
    numbers = [v for v in values if "n" in v]
    for operator in COMPARISONS:
        for limit in (1, 2.5, 3):
            compared = {"n": {operator: limit}}
            expected = [value for value in numbers if COMPARISONS[operator](value["n"], limit)]
            assert [v for v in values if matches_filter(v, compared)] == expected
    with pytest.raises(ValueError, match=r"\$near"):
        matches_filter(values[0], {"n": {"$near": 1}})


def test_namespaces_match_prefixes_and_suffixes() -> None:
    namespace = ("users", "u1", "a", "b")
    for kind, path, wanted in (
        ("prefix", ("users", "*"), True), ("prefix", ("users", "u2"), False), ("suffix", ("a", "b"), True),
        ("suffix", ("*", "b"), True), ("suffix", ("a",), False), ("prefix", ("users", "u1", "a", "b", "c"), False),
    ):  # fmt: skip
        assert matches_condition(namespace, MatchCondition(kind, path)) is wanted  # type: ignore[arg-type]
