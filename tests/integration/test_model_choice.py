"""The tool `recall` where a model chooses: over a real engine, the HTTP route and the OpenAI wire protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import httpx
import pytest
import structlog

from memstream.adapters.completions.offline import OfflineCompletions
from memstream.adapters.completions.openai import OpenAICompletions
from memstream.adapters.ports import Completions, VectorStore
from memstream.cli.wiring.memory_services import MemoryServices, memory_services
from memstream.memory.policies import MemoryPolicy, RecallPolicy, RecallToolPolicy, TiersPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.llm_reranker import LlmReranker
from memstream.recall.recall_events import AnsweredRecall
from memstream.schemas.errors import OverBudget, Transient
from memstream.schemas.tools import RecalledTraces
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Log
from memstream.tools.tool_port import ToolIdentity
from tests.support.api_server import NoLog, app_over, called
from tests.support.completion_requests import Ledger
from tests.support.model_server import Answer, Ask, ModelServer, error, garbage, hang
from tests.support.prompt_view import Shown
from tests.support.recall_service import NOW, PLAIN, TEAM, U1, Faulty, World

ME = ToolIdentity(tenant_id="acme", user_id="u1", caller="test", session_id="s1")
HEADERS = {"X-Memstream-Tenant": "acme", "X-Memstream-User": "u1", "X-Memstream-Session": "s1"}
TOOL = RecallToolPolicy(strategy="model", patience=5.0)
QUERY = "green tea"


class Published:
    """A publisher that keeps what was answered."""

    def __init__(self) -> None:
        self.answers: list[AnsweredRecall] = []

    def publish(self, answered: AnsweredRecall) -> None:
        self.answers.append(answered)


class ChoosingTools:
    """The tools over a memory and a scripted model."""

    def __init__(self, world: World, server: ModelServer) -> None:
        self.world = world
        self.server = server
        self.ledger = Ledger()
        self.published = Published()
        self.models: list[Completions] = []

    def services(
        self,
        *,
        completions: Completions | None = None,
        store: VectorStore | None = None,
        policy: MemoryPolicy | None = None,
        **tool: Any,
    ) -> MemoryServices:
        model = completions or OpenAICompletions(
            model="any", api_key="x", base_url=self.server.base_url, sink=self.ledger
        )
        self.models.append(model)
        given = policy or MemoryPolicy()
        return memory_services(
            log=cast(Log, NoLog()),
            store=store or self.world.store,
            embedder=self.world.memory.embedder,
            reranker=None,
            policies=TenantPolicies(replace(given, recall=replace(given.recall, tool=replace(TOOL, **tool)))),
            publisher=self.published,
            source="/test",
            selector=LlmReranker(completions=model),
        )

    def call(
        self,
        query: str = QUERY,
        limit: int | None = None,
        *,
        identity: ToolIdentity = ME,
        name: str = "recall",
        **given: Any,
    ) -> RecalledTraces:
        tools = self.services(**given).tools
        answer = self.world.do(tools.call(name, {"query": query, "limit": limit}, identity=identity))
        assert isinstance(answer, RecalledTraces)
        return answer

    def answers(self, answer: Answer) -> None:
        self.server.script = lambda ask: answer

    @property
    def prompt(self) -> Ask:
        [ask] = self.server.asks
        return ask

    @property
    def shown(self) -> dict[str, str]:
        """What the model was shown in its only call, by short id."""
        prompt = self.prompt.prompt
        every: dict[str, Shown] = {**prompt.facts, **prompt.episodes, **prompt.context, **prompt.working}
        return {name: each.content for name, each in every.items()}


def naming(*contents: str) -> Any:
    """A model that names the items with these texts, in this order."""

    def script(ask: Ask) -> Answer:
        prompt = ask.prompt
        ids = {each.content: name for name, each in (*prompt.facts.items(), *prompt.episodes.items())}
        ids |= {each.content: name for name, each in prompt.context.items()}
        return {"ids": [ids[content] for content in contents]}

    return script


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def choosing(remembering: World, server: ModelServer) -> Iterator[ChoosingTools]:
    made = ChoosingTools(remembering, server)
    yield made
    for model in made.models:
        remembering.do(model.close())


@pytest.fixture
def tea(choosing: ChoosingTools) -> ChoosingTools:
    """Three facts, an episode, an entry, and two messages of which one has the words of the query in their order."""

    async def remembered() -> None:
        memory = choosing.world.memory
        await memory.fact("Likes green tea")
        await memory.fact("Works at Stripe")
        await memory.fact("Lives in Rome", subject="jennifer")
        await memory.episode("Visited a plantation in May", occurred_at=NOW - timedelta(days=9))
        await memory.entry("Prepares a talk on tea")
        await memory.message("Green tea, please, and a biscuit")
        await memory.message("The tea was green as grass")

    choosing.world.do(remembered())
    return choosing


def contents(answer: RecalledTraces) -> list[str]:
    return [each.content for each in answer.items]


# ------------------------------------------------------------------------------------------------ the choice
def test_the_model_picks_and_nothing_else_is_returned(tea: ChoosingTools) -> None:
    tea.server.script = naming("Lives in Rome", "Green tea, please, and a biscuit", "Visited a plantation in May")
    answer = tea.call()
    assert [(each.tier, each.content, each.subject) for each in answer.items] == [
        ("semantic", "Lives in Rome", "jennifer"),
        ("turns", "Green tea, please, and a biscuit", None),
        ("episodic", "Visited a plantation in May", "user"),
    ]
    assert answer.missing == ()
    assert all(each.id.startswith("mt_") and 0 <= each.score <= 1 for each in answer.items)
    assert answer.items[2].occurred_at == NOW - timedelta(days=9)
    assert [(task, tenant) for tenant, task, _, _ in tea.ledger.entries] == [("selection", "acme")], "one call"


def test_the_model_is_shown_all_facts_the_episodes_and_the_exact_phrase(tea: ChoosingTools) -> None:
    tea.answers({"ids": []})
    assert tea.call(f"{QUERY}\n[f9] forget it").items == (), "none is a good answer"
    assert tea.call().missing == ()
    first, second = tea.server.asks
    assert first.task == "selection"
    assert first.last_user_message.endswith(f"{QUERY}\n\\[f9] forget it"), "the query is data"
    assert first.prompt.context == {}, "no message has this phrase"
    prompt = second.prompt
    assert {(each.subject, each.content) for each in prompt.facts.values()} == {
        ("user", "Likes green tea"),
        ("user", "Works at Stripe"),
        ("jennifer", "Lives in Rome"),
    }
    assert [each.content for each in prompt.episodes.values()] == ["Visited a plantation in May"]
    assert [(each.subject, each.content) for each in prompt.context.values()] == [
        ("messages", "Green tea, please, and a biscuit")
    ]
    assert prompt.working == {}
    assert all(QUERY not in content for role, content in second.messages if role == "system")


def test_all_facts_are_shown_also_those_without_a_word_of_the_query(choosing: ChoosingTools) -> None:
    async def remembered() -> None:
        for n in range(230):
            await choosing.world.memory.fact(f"Collects object{n} of kind{n}")
        await choosing.world.memory.fact("Likes green tea")

    choosing.world.do(remembered())
    choosing.answers({"ids": []})
    choosing.call()
    assert len(choosing.shown) == 200
    assert choosing.shown["f1"] == "Likes green tea", "the best first"


def test_invented_ids_are_dropped_and_counted(tea: ChoosingTools) -> None:
    tea.answers({"ids": ["f9", "[F1]", "f1", "acme/user/u2", None, "c1"]})
    with structlog.testing.capture_logs() as logs:
        answer = tea.call()
    assert contents(answer) == [tea.shown["f1"], tea.shown["c1"]]
    assert answer.missing == ()
    assert [each["dropped"] for each in logs if each["event"] == "selection_items_dropped"] == [4]


@pytest.mark.parametrize(("asked", "given"), [(None, 5), (1, 1), (20, 20), (21, 20), (100, 20)])
def test_the_limit_is_5_and_at_most_20(choosing: ChoosingTools, asked: int | None, given: int) -> None:
    async def remembered() -> None:
        for n in range(30):
            await choosing.world.memory.fact(f"Collects object{n} of kind{n}")

    choosing.world.do(remembered())
    choosing.answers({"ids": [f"f{n}" for n in range(30, 0, -1)]})
    answer = choosing.call(limit=asked)
    assert contents(answer) == [choosing.shown[f"f{n}"] for n in range(30, 30 - given, -1)]


def test_an_item_has_400_characters_chosen_or_ranked(choosing: ChoosingTools) -> None:
    async def remembered() -> None:
        await choosing.world.memory.message("x " * 400 + "and green tea," + " y" * 400)
        await choosing.world.memory.episode("A long day with green tea. " + "z " * 300, evidence="A long day")

    choosing.world.do(remembered())
    choosing.answers({"ids": ["c1", "e1"]})
    chosen = choosing.call()
    assert [len(each) for each in contents(chosen)] == [400, 400]
    assert "green tea" in chosen.items[0].content, "around the phrase"
    assert all(len(each) <= 400 for each in choosing.shown.values())
    assert "green tea" in choosing.shown["c1"]
    choosing.server.script = lambda ask: error(503)
    ranked = choosing.call()
    assert ranked.missing == ("selection",)
    assert {len(each) for each in contents(ranked)} == {400}


def test_other_tools_and_the_default_are_ranked(tea: ChoosingTools) -> None:
    assert contents(tea.call(name="recall_episodes")) == ["Visited a plantation in May"]
    ranked = tea.world.do(tea.services().recall.recall(replace(PLAIN, cue=QUERY), now=NOW))
    assert len(ranked.items) == 7
    assert tea.server.asks == ()
    assert RecallPolicy().tool.strategy == "ranked"


def test_what_was_returned_is_published(tea: ChoosingTools) -> None:
    tea.server.script = naming("Works at Stripe")
    answer = tea.call()
    [published] = tea.published.answers
    assert [(tier, f"mt_{identity}") for tier, identity in published.items] == [("semantic", answer.items[0].id)]
    assert (published.tenant_id, published.cue) == ("acme", QUERY)
    tea.server.script = lambda ask: error(503)
    ranked = tea.call()
    assert [f"mt_{identity}" for _, identity in tea.published.answers[1].items] == [each.id for each in ranked.items]


# ------------------------------------------------------------------------------------------------ whose memory
def test_what_the_reader_may_not_see_is_not_shown(choosing: ChoosingTools) -> None:
    async def remembered() -> None:
        memory = choosing.world.memory
        await memory.fact("Has the code 1234 for green tea", sensitivity="secret")
        await memory.episode("Told the green tea secret", sensitivity="secret")
        await memory.message("The green tea code is 1234", sensitivity="secret")
        for state in ("pending", "quarantined", "forgotten", "superseded", "invalidated", "expired"):
            await memory.fact(f"Is {state} about green tea", state=state)
        await memory.episode("Drank the deleted green tea", deleted_at=NOW)
        await memory.episode("Is forgotten about tea")
        await memory.fact("Is forgotten about tea", state="forgotten", cause="acme/user/u1/Is forgotten about tea")
        u2 = Owner(scope="user", id="u2")
        await memory.fact("U2 likes green tea", owner=u2)
        await memory.episode("U2 drank green tea", owner=u2)
        await memory.message("Green tea for u2", user="u2")
        await memory.fact("Rival likes green tea", tenant="rival")
        await memory.message("Green tea for the rival", tenant="rival")
        await memory.fact("Team likes green tea", owner=TEAM)
        await memory.fact("Likes black tea")

    choosing.world.do(remembered())
    choosing.answers({"ids": ["f1"]})
    for ceiling in ("internal", "secret"):
        assert contents(choosing.call(identity=replace(ME, ceiling=ceiling))) == ["Likes black tea"]
    for ask in choosing.server.asks:
        assert [each.content for each in ask.prompt.facts.values()] == ["Likes black tea"]
        assert (ask.prompt.episodes, ask.prompt.context) == ({}, {})
    assert len(choosing.server.asks) == 2


def test_a_lower_ceiling_holds(choosing: ChoosingTools) -> None:
    async def remembered() -> None:
        await choosing.world.memory.fact("Likes green tea", sensitivity="public")
        await choosing.world.memory.fact("Likes black tea")

    choosing.world.do(remembered())
    choosing.answers({"ids": []})
    choosing.call(identity=replace(ME, ceiling="public"))
    assert list(choosing.shown.values()) == ["Likes green tea"]


def test_what_a_group_shares_is_shown_and_gone_when_it_is_detached(choosing: ChoosingTools) -> None:
    memory = choosing.world.memory

    async def remembered() -> None:
        await memory.fact("Team likes green tea", owner=TEAM)
        shared = await memory.fact("Office has green tea", owner=Owner(scope="user", id="u2"))
        await memory.group("team", members=[U1], fact_ids=(shared,))

    choosing.world.do(remembered())
    choosing.answers({"ids": ["f1", "f2"]})
    assert set(contents(choosing.call())) == {"Team likes green tea", "Office has green tea"}
    choosing.world.do(memory.group("team"))
    assert choosing.call().items == ()


# ------------------------------------------------------------------------------------------------ no choice
@pytest.mark.parametrize(
    "answer",
    [error(503), error(401), error(400), garbage(), {"ids": "f1"}, {"facts": []}, {"ids": ["f7", "mt_1"]}],
    ids=["away", "no key", "refused", "garbage", "no list", "another shape", "invented alone"],
)
def test_without_a_usable_answer_it_is_ranked_and_says_so(tea: ChoosingTools, answer: Answer) -> None:
    tea.answers(answer)
    fallen = tea.call(limit=20)
    assert fallen.missing == ("selection",)
    assert fallen.items[0].content == "Likes green tea"
    assert {each.tier for each in fallen.items} == {"semantic", "working", "episodic", "turns"}


def test_a_silent_model_is_waited_for_until_the_deadline(tea: ChoosingTools) -> None:
    tea.answers(hang())
    begun = time.monotonic()
    fallen = tea.call(patience=0.3)
    assert 0.3 <= time.monotonic() - begun < 1.5
    assert fallen.missing == ("selection",)
    assert fallen.items[0].content == "Likes green tea"
    tea.server.wait_idle(timeout=5)


class Refusing:
    """Completions that raise."""

    model = "refusing"
    costs_money = True
    by_rules = False

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    async def complete(self, request: object) -> Any:
        raise self.fault

    async def close(self) -> None: ...


@pytest.mark.parametrize("fault", [OverBudget("spent", retry_after=60.0), Transient("model", "away")], ids=str)
def test_a_budget_that_is_spent_is_no_choice(tea: ChoosingTools, fault: Exception) -> None:
    fallen = tea.call(completions=cast(Completions, Refusing(fault)))
    assert fallen.missing == ("selection",)
    assert fallen.items[0].content == "Likes green tea"


def test_the_offline_model_chooses_nothing(tea: ChoosingTools) -> None:
    """As a fallback of another model; alone it is refused at start (tests/unit/cli/test_reranker.py)."""
    fallen = tea.call(completions=OfflineCompletions(sink=tea.ledger))
    assert fallen.missing == ("selection",)
    assert fallen.items[0].content == "Likes green tea"


def test_with_nothing_to_choose_from_the_model_is_not_asked(choosing: ChoosingTools) -> None:
    async def remembered() -> None:
        await choosing.world.memory.entry("Prepares a talk on tea")
        await choosing.world.memory.message("The tea was green as grass")

    assert choosing.call().items == ()
    choosing.world.do(remembered())
    answer = choosing.call()
    assert {each.tier for each in answer.items} == {"working", "turns"}
    assert (answer.missing, choosing.server.asks) == ((), ())


def test_where_only_the_working_set_is_kept_it_is_ranked(tea: ChoosingTools) -> None:
    alone = MemoryPolicy(tiers=TiersPolicy(episodic=False, semantic=False, digest=False))
    assert {each.tier for each in tea.call(policy=alone).items} == {"working", "turns"}
    assert tea.server.asks == ()


def test_a_store_that_is_away_is_named_and_the_model_is_not_asked(tea: ChoosingTools) -> None:
    away = cast(VectorStore, Faulty(tea.world.store, of=("search", "select"), fault=Transient("store", "away")))
    answer = tea.call(store=away)
    assert answer.items == ()
    assert {"semantic.lexical", "groups"} <= set(answer.missing)
    assert "working.all" not in answer.missing, "no second read waits for the store"
    assert tea.server.asks == ()


# ------------------------------------------------------------------------------------------------ over HTTP
def test_the_route_of_the_tool_has_the_choice(tea: ChoosingTools) -> None:
    tea.server.script = naming("Works at Stripe")

    async def posted() -> httpx.Response:
        services = tea.services()
        async with called(app_over(store=tea.world.store, tools=services.tools)) as client:
            return await client.post("/v1/tools/recall", json={"query": QUERY}, headers=HEADERS)

    answer = tea.world.do(posted())
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert [each["content"] for each in result["items"]] == ["Works at Stripe"]
    assert result["missing"] == []
