"""The one real call that `memstream doctor` makes with the observer's model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from memstream.adapters.completions.request_fields import RequestFields
from memstream.cli.wiring.checks import Check
from memstream.cli.wiring.model_trial import SAID, try_observer
from memstream.cli.wiring.settings import Settings
from memstream.memory.policies import MemoryPolicy
from memstream.memory.policies.budget import Price
from tests.support.model_server import Answer, Ask, ModelServer, Script, error, observing

POLICY = MemoryPolicy()
GOOD = observing({"I work at Fixpoint": [{"content": "Works at Fixpoint", "category": "Employment"}]})


async def tried(script: Script, policy: MemoryPolicy = POLICY, **refused: object) -> tuple[Check, ModelServer]:
    with ModelServer(script, **refused) as server:  # type: ignore[arg-type]
        settings = Settings(model="m", openai_base_url=server.base_url, openai_api_key="k-1\n")
        settings = settings.with_requests({"m": RequestFields(body={"seed": 7})})
        [check] = await try_observer(settings, policy)
    assert check.check == "trial of m"
    assert "k-1" not in repr(check)
    return check, server


async def test_it_shows_format_fields_statements_and_cost() -> None:
    priced = replace(POLICY, budget=replace(POLICY.budget, prices={"m": Price(input=1.0, output=2.0)}))
    check, server = await tried(GOOD, priced, refuse_formats=["json_schema"])
    assert check.ok
    [_, ask] = server.asks
    assert ask.turns == {"t1": f"user: {SAID}"}
    assert ask.body["seed"] == 7
    for part in (
        "answered as json_mode", "with these request fields: seed", "1 of 1 statements usable: “Works at Fixpoint”",
        "1 call, ", " USD, ",
    ):  # fmt: skip
        assert part in check.detail


@pytest.mark.parametrize(
    ("script", "ok", "said"),
    [
        (lambda ask: {"observations": []}, True, "0 statements, none of which quotes the turn"),
        (
            observing({SAID[:5]: [{"content": "x", "evidence": "I never said this"}]}),
            True,
            "1 statements, none of which",
        ),
        (
            lambda ask: "no" if ask.seen_before == 0 else GOOD(ask),
            True,
            "2 calls, because the first answer was unusable",
        ),
        (lambda ask: {"observations": ["Works at Fixpoint"]}, False, "m gave no usable answer for observations"),
        (lambda ask: error(401), False, "said 401"),
        (lambda ask: error(500), False, "said 500"),
    ],
)
async def test_what_came_back(script: Script, ok: bool, said: str) -> None:
    check, _ = await tried(script)
    assert (check.ok, bool(check.fix)) == (ok, not ok)
    assert said in check.detail


async def test_no_call_is_made_for_the_rules_or_where_nothing_is_observed() -> None:
    assert await try_observer(Settings(model="offline"), POLICY) == []
    silent = replace(POLICY, capture=replace(POLICY.capture, enabled=False))
    assert await try_observer(Settings(model="m", openai_base_url="http://127.0.0.1:9/v1"), silent) == []


async def test_what_is_missing_is_named() -> None:
    [check] = await try_observer(Settings(model="m"), POLICY)
    assert not check.ok
    assert "OPENAI_API_KEY" in check.detail


def of_a_small_model(ask: Ask) -> Answer:
    """Passing statements in the full form, and lasting ones in the short form."""
    schema: Any = ask.body["response_format"]
    fields = schema["json_schema"]["schema"]["properties"]["observations"]["items"]["properties"]
    item: dict[str, JsonValue] = {"evidence": "I work at Fixpoint as a nurse", "content": "Works at Fixpoint"}
    passing: dict[str, JsonValue] = {"durability": "transient", "importance": 0} if "details" in fields else {}
    return {"observations": [{**item, **passing, "slot": "employer", "subject": "user", "replaces": None}]}


async def test_it_recommends_the_short_form_when_the_full_form_yields_no_fact() -> None:
    check, server = await tried(of_a_small_model)
    assert check.ok
    assert 'and 1 of the short form would: write form = "short" under [models."m"]' in check.detail
    assert len(server.asks) == 2
    short = replace(POLICY, models=replace(POLICY.models, form="short"))
    check, server = await tried(of_a_small_model, short)
    assert "form = " not in check.detail
    assert len(server.asks) == 1


async def test_it_recommends_no_form_when_both_fail_or_the_full_form_works() -> None:
    check, server = await tried(lambda ask: {"observations": []})
    assert ("form = " in check.detail, len(server.asks)) == (False, 2)
    check, server = await tried(GOOD)
    assert ("form = " in check.detail, len(server.asks)) == (False, 1)
