"""Profiles and reads by slot over a real engine: which facts they show, to whom, and in which order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memstream.api.credentials import Credentials
from memstream.client.http_client import Api
from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.profile import VALUES_MAX, ProfileReader, ProfileRequest
from memstream.recall.slots import select_slots
from memstream.schemas.profile import Profile
from memstream.schemas.turns import Owner
from tests.support.api_server import app_over, called, entry
from tests.support.recall_service import TEAM, U1, World, recall_loop, recall_store, remembering  # noqa: F401
from tests.support.stored_memory import NOW


def read(world: World, policies: TenantPolicies | None = None, **asked: Any) -> Profile:
    reader = ProfileReader(store=world.store, policies=policies or TenantPolicies(MemoryPolicy()))
    fields: dict[str, Any] = {"tenant_id": "acme", "owner": U1} | asked
    return world.do(reader.profile(ProfileRequest(**fields), now=NOW))


def values(profile: Profile) -> dict[str, list[str | None]]:
    return {slot.slot: [each.value for each in slot.values] for slot in profile.slots}


def test_slots_have_the_order_of_the_policy_and_denied_values_are_apart(remembering: World) -> None:  # noqa: F811
    fact = remembering.memory.fact
    remembering.do(fact("Likes tea", slot="likes", value="tea", qualifier="at night"))
    remembering.do(fact("Does not like jazz", slot="likes", value="jazz", denied=True))
    remembering.do(fact("Works at Stripe", slot="employer", value="Stripe"))
    remembering.do(fact("Something else"))
    found = read(remembering)
    assert values(found) == {"employer": ["Stripe"], "likes": ["tea"]}
    likes = found.slots[1]
    assert [each.qualifier for each in likes.values] == ["at night"]
    assert [each.value for each in likes.denied] == ["jazz"]
    assert not found.truncated


def test_only_believed_facts_that_the_caller_may_read(remembering: World) -> None:  # noqa: F811
    fact = remembering.memory.fact
    ago = NOW - timedelta(days=1)
    remembering.do(fact("Works at Stripe", slot="employer", value="Stripe"))
    for state in ("pending", "superseded", "invalidated", "expired", "forgotten", "quarantined"):
        remembering.do(fact(f"Works at {state}", slot="employer", value=state, state=state))
    remembering.do(fact("Works at Ended", slot="employer", value="Ended", valid_from=ago, valid_to=ago))
    remembering.do(fact("Works at Secret", slot="employer", value="Secret", sensitivity="secret"))
    remembering.do(fact("Works at Rival", slot="employer", value="Rival", tenant="rival"))
    remembering.do(fact("Works at Other", slot="employer", value="Other", owner=Owner(scope="user", id="u2")))
    assert values(read(remembering)) == {"employer": ["Stripe"]}
    both = values(read(remembering, ceiling="secret"))["employer"]
    assert sorted(map(str, both)) == ["Secret", "Stripe"]


def test_a_past_profile_shows_the_value_of_that_time(remembering: World) -> None:  # noqa: F811
    year, month = NOW - timedelta(days=365), NOW - timedelta(days=30)
    old = {"valid_from": year, "valid_to": month, "recorded_at": year, "state": "superseded"}
    remembering.do(remembering.memory.fact("Works at Google", slot="employer", value="Google", **old))
    remembering.do(remembering.memory.fact("Works at Stripe", slot="employer", value="Stripe", valid_from=month))
    assert values(read(remembering)) == {"employer": ["Stripe"]}
    assert values(read(remembering, as_of=NOW - timedelta(days=60))) == {"employer": ["Google"]}


def test_other_has_facts_with_a_slot_that_is_not_defined(remembering: World) -> None:  # noqa: F811
    remembering.do(remembering.memory.fact("Has a boat", slot="boat", value="a boat"))
    remembering.do(remembering.memory.fact("Collects coins"))
    remembering.do(remembering.memory.fact("Works at Stripe", slot="employer", value="Stripe"))
    (other,) = read(remembering, slots=("other",)).slots
    assert other.slot == "other"
    assert sorted(each.content for each in other.values) == ["Collects coins", "Has a boat"]


def test_a_slot_of_the_tenant_is_known_and_a_disabled_one_is_not(remembering: World) -> None:  # noqa: F811
    policies = TenantPolicies(MemoryPolicy())
    policies.set(
        "acme",
        {"slots": {"boat": {"description": "a boat", "category": "attribute"}, "diet": {"enabled": False}}},
    )
    remembering.do(remembering.memory.fact("Has a boat", slot="boat", value="a boat"))
    remembering.do(remembering.memory.fact("Is vegan", slot="diet", value="vegan"))
    assert values(read(remembering, policies)) == {"boat": ["a boat"]}
    with pytest.raises(ValueError, match="there is no slot 'diet'; known: name, nickname"):
        read(remembering, policies, slots=("diet",))


def test_a_relation_is_seen_from_the_other_side(remembering: World) -> None:  # noqa: F811
    fact = remembering.memory.fact
    remembering.do(fact("Noah is their child", slot="child", value="Noah"))
    remembering.do(fact("Has no child called Noah", slot="child", value="Noah", denied=True, subject="tom"))
    remembering.do(fact("Likes trains", slot="likes", value="trains", subject="noah"))
    found = read(remembering, subject="noah")
    assert values(found) == {"parent": ["user"], "likes": ["trains"]}
    assert [each.inverse_of for slot in found.slots for each in slot.values] == ["child", None]
    assert values(read(remembering, subject="noah", slots=("likes",))) == {"likes": ["trains"]}


def test_facts_of_a_group_are_shown_for_others_and_never_as_the_user(remembering: World) -> None:  # noqa: F811
    remembering.do(remembering.memory.group(TEAM.id, members=(U1,)))
    remembering.do(remembering.memory.fact("Works at Acme", slot="employer", value="Acme", owner=TEAM))
    tom = {"subject": "tom", "owner": TEAM, "slot": "employer", "value": "Siemens"}
    remembering.do(remembering.memory.fact("Works at Siemens", **tom))
    assert values(read(remembering)) == {}
    assert values(read(remembering, subject="tom")) == {"employer": ["Siemens"]}
    assert values(read(remembering, subject="tom", owner=Owner(scope="user", id="u2"))) == {}


def test_more_facts_than_a_profile_contains_are_told(remembering: World) -> None:  # noqa: F811
    async def many() -> None:
        for number in range(VALUES_MAX + 1):
            at = NOW - timedelta(minutes=number)
            await remembering.memory.fact(f"Likes {number}", slot="likes", value=str(number), recorded_at=at)

    remembering.do(many())
    found = read(remembering)
    assert found.truncated
    assert [each.value for each in found.slots[0].values] == [str(number) for number in range(VALUES_MAX)]


def test_a_recall_by_slot_reads_facts_of_the_slot_alone(remembering: World) -> None:  # noqa: F811
    remembering.do(remembering.memory.fact("Works at Stripe", slot="employer", value="Stripe"))
    remembering.do(remembering.memory.fact("Likes Stripe", slot="likes", value="Stripe"))
    remembering.do(remembering.memory.fact("Visited Stripe"))
    remembering.do(remembering.memory.episode("Signed at Stripe"))
    remembering.do(remembering.memory.message("Stripe it is"))
    remembering.do(remembering.memory.entry("Prepares a talk on Stripe"))

    def told(*names: str) -> set[tuple[str, str]]:
        return set(remembering.told(cue="Stripe", slots=select_slots(names, MemoryPolicy())))

    assert told("employer") == {("semantic", "Works at Stripe")}
    assert told("other") == {("semantic", "Visited Stripe")}
    assert told("likes", "other") == {("semantic", "Likes Stripe"), ("semantic", "Visited Stripe")}


def test_over_http_rights_and_names_are_checked(remembering: World) -> None:  # noqa: F811
    tokens = Credentials(
        [
            entry("acme"),
            entry("u2", users=["u2"]),
            entry("rival", tenants=["rival"]),
            entry("writer", scopes=["turns:write"]),
        ]
    )
    remembering.do(remembering.memory.fact("Works at Stripe", slot="employer", value="Stripe"))
    app = app_over(store=remembering.store, credentials=tokens)

    def get(query: str, token: str = "acme", path: str = "profile") -> Any:
        return remembering.do(called(app, token=token).get(f"/v1/{path}?{query}"))

    answer = get("user_id=u1")
    assert answer.status_code == 200, answer.text
    (slot,) = answer.json()["slots"]
    assert (slot["slot"], slot["values"][0]["value"]) == ("employer", "Stripe")
    assert get("user_id=u1", "rival").json()["slots"] == []
    refused = [("user_id=u1", "u2"), ("user_id=u1&tenant_id=acme", "rival"), ("user_id=u1", "writer"),
               ("user_id=u1&ceiling=secret", "acme"), ("user_id=u2&groups=team", "u2")]  # fmt: skip
    assert [get(query, token).status_code for query, token in refused] == [403] * len(refused)
    for path in ("profile", "recall", "facts"):
        wrong = get("user_id=u1&slot=employer&slot=boss", path=path)
        assert wrong.status_code == 422
        assert wrong.json()["errors"][0]["field"] == "slot"
        assert "there is no slot 'boss'; known: name, nickname" in wrong.json()["detail"]
    assert get("user_id=u1&slot=employer&tiers=turns", path="recall").status_code == 422


def test_a_list_of_facts_by_slot(remembering: World) -> None:  # noqa: F811
    fact = remembering.memory.fact
    stripe = remembering.do(fact("Works at Stripe", slot="employer", value="Stripe"))
    google = remembering.do(fact("Works at Google", slot="employer", value="Google", state="superseded"))
    boat = remembering.do(fact("Has a boat", slot="boat", value="a boat"))
    remembering.do(fact("Likes tea", slot="likes", value="tea"))
    remembering.do(fact("Works at Rival", slot="employer", value="Rival", tenant="rival"))
    app = app_over(store=remembering.store, credentials=Credentials([entry("acme", tenants=["acme"])]))

    def told(query: str) -> set[str]:
        answer = remembering.do(called(app, token="acme").get(f"/v1/facts?user_id=u1&{query}"))
        assert answer.status_code == 200, answer.text
        return {each["fact_id"] for each in answer.json()["items"]}

    assert told("slot=employer") == {stripe}
    assert told("slot=employer&state=all") == {stripe, google}
    assert told("slot=employer&slot=other") == {stripe, boat}
    assert len(told("")) == 3


def test_the_client_and_the_tool_read_the_same_profile(remembering: World) -> None:  # noqa: F811
    fact = remembering.memory.fact
    stripe = remembering.do(fact("Works at Stripe", slot="employer", value="Stripe"))
    remembering.do(fact("Does not like jazz", slot="likes", value="jazz", denied=True))
    remembering.do(fact("Works at Rival", slot="employer", value="Rival", owner=Owner(scope="user", id="u2")))
    app = app_over(store=remembering.store, credentials=Credentials([entry("agent", users=["u1"])]))

    async def asked() -> tuple[Profile, dict[str, Any], dict[str, Any], Any]:
        async with called(app, token="agent") as http:
            api = Api(http=http, timeout=10.0)
            known = await api.profile(user_id="u1")
            named = await api.profile(user_id="u1", slot=["employer", "diet"])
            tool = await http.post("/v1/tools/profile", json={})
            wrong = await http.post("/v1/tools/profile", json={"slots": ["boss"]})
            return known, named.to_payload(), tool.json()["result"], wrong

    known, named, tool, wrong = remembering.do(asked())
    assert values(known) == {"employer": ["Stripe"], "likes": []}
    assert [each.value for each in known.slots[1].denied] == ["jazz"]
    assert [each["slot"] for each in named["slots"]] == ["employer"]
    told = [(each["slot"], [value["id"] for value in each["values"]], len(each["denied"])) for each in tool["slots"]]
    assert told == [("employer", [f"mt_{stripe}"], 0), ("likes", [], 1)]
    assert (wrong.status_code // 100, "there is no slot 'boss'" in wrong.text) == (4, True)
