"""Recall over HTTP: the request that reaches the service, and how missing parts are reported."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.adapters.ports import StoredPoint
from memstream.api.credentials import Credentials
from memstream.memory.recall.fusion import Rank
from memstream.recall.payloads import MemorySource
from memstream.recall.request import ReadSession, RecallRequest
from memstream.recall.service import RecalledMemory, RecallResult
from memstream.schemas.groups import StoredGroup
from memstream.schemas.ids import group_record_id
from memstream.schemas.recall import RecalledItem
from memstream.schemas.turns import Owner
from tests.support.api_server import NoRecall, app_over, called, entry
from tests.support.stored_memory import NOW

U1 = Owner(scope="user", id="u1")
TOKENS = Credentials(
    [
        entry("acme"),
        entry("u1", users=["u1"]),
        entry("both", tenants=["acme", "rival"]),
        entry("secret", scopes=["memory:read", "memory:read-secret"]),
        entry("writer", scopes=["turns:write"]),
    ]
)


class GroupsOf:
    """A store with groups of one member."""

    def __init__(self, member: str, *groups: str) -> None:
        of_member = (Owner(scope="user", id=member),)
        self._points = {}
        for group in groups:
            key = Owner(scope="group", id=group).key("acme")
            stored = StoredGroup(
                tenant_id="acme",
                group_id=group,
                members=of_member,
                updated_at=NOW,
                record_id=group_record_id(key),
                owner_key=key,
            )
            self._points[stored.record_id] = stored.to_payload()

    async def exists(self, collection: str) -> bool:
        return True

    async def get(self, collection: str, *, tenant_id: str, ids: Any, **more: Any) -> dict[str, StoredPoint]:
        return {each: StoredPoint(id=each, payload=self._points[each]) for each in ids if each in self._points}


class Gone:
    part, why = "semantic.dense", "no answer within 2 s"


def found(**fields: Any) -> RecalledMemory:
    item = RecalledItem(
        tier="semantic", id="f1", content="Works at Stripe", score=0.5, subject="user", category="profession",
        parts={"match": 0.2, "confidence": 0.3},
    )  # fmt: skip
    source = MemorySource("s1", "t1", "o1", NOW, "I work at Stripe")
    told = {"match": 0.5, "ranks": (Rank("dense", 1),), "sources": (source,), "sensitivity": "internal", "role": None}
    known = set(RecalledMemory.__dataclass_fields__)
    more = {"reranked": None} if "reranked" in known else {}
    return RecalledMemory(**({"item": item} | told | more | fields))


async def asked(query: str, *, token: str = "acme", header: str | None = None, **services: Any) -> RecallRequest:
    recall = NoRecall()
    given = {"X-Memstream-Session": header} if header is not None else {}
    answer = await called(app_over(recall=recall, credentials=TOKENS, **services), token=token).get(
        f"/v1/recall?{query}", headers=given
    )
    assert answer.status_code == 200, answer.text
    (request,) = recall.asked
    return request


async def test_what_is_left_out_is_the_defaults() -> None:
    assert await asked("user=u1") == RecallRequest(tenant_id="acme", owner=U1, asked_by="acme")
    assert await asked("", token="u1") == RecallRequest(tenant_id="acme", owner=U1, asked_by="u1")


async def test_what_is_asked_arrives() -> None:
    query = (
        "user=u1&session=s%2F1&cue=tea&limit=3&tiers=semantic&tiers=turns&subject=user&category=profession"
        "&groups=g1&groups=g2&mood=-0.5&min_score=0.25&as_of=2026-11-20T10:00:00Z"
    )
    wanted = RecallRequest(
        tenant_id="acme", owner=U1, session=ReadSession("u1", "s/1"), groups=("g1", "g2"), cue="tea", limit=3,
        tiers=("semantic", "turns"), subject="user", category="profession", mood=-0.5, min_score=0.25,
        asked_by="acme", as_of=NOW.replace(year=2026, month=11, day=20, hour=10, minute=0, second=0, microsecond=0),
    )  # fmt: skip
    store = GroupsOf("u1", "g1", "g2")
    assert await asked(query, store=store) == wanted
    recall = NoRecall()
    body = {
        "user": "u1", "session": "s/1", "cue": "tea", "limit": 3, "tiers": ["semantic", "turns"], "subject": "user",
        "category": "profession", "groups": ["g1", "g2"], "mood": -0.5, "min_score": 0.25,
        "as_of": "2026-11-20T10:00:00Z",
    }  # fmt: skip
    await called(app_over(recall=recall, credentials=TOKENS, store=store), token="acme").post("/v1/recall", json=body)
    assert recall.asked == [wanted]


async def test_the_header_names_a_session_where_nothing_else_does() -> None:
    assert (await asked("user=u1", header="s%2F1")).session == ReadSession("u1", "s/1")
    assert (await asked("user=u1&session=s2", header="s1")).session == ReadSession("u1", "s2")
    for no_id in (b"%00", b"%ff", "ü".encode()):
        headers = {b"X-Memstream-Session": no_id}
        refused = await called(app_over()).get("/v1/recall?tenant=a&user=u1", headers=headers)
        assert refused.status_code == 422, no_id


async def test_another_owner_is_named_by_scope_and_id() -> None:
    assert (await asked("scope=agent&id=a1")).owner == Owner(scope="agent", id="a1")
    assert (await asked("scope=agent&id=a1&user=u1&session=s1")).session == ReadSession("u1", "s1")


@pytest.mark.parametrize(
    ("query", "agent_id"),
    [
        ("user=u1", None),
        ("user=u1&agent_id=a1", "a1"),
        ("scope=agent&id=a2", "a2"),
        ("scope=agent&id=a2&agent_id=a1", "a1"),
    ],
)
async def test_the_usual_limit_is_that_of_the_tenant_and_its_agent(query: str, agent_id: str | None) -> None:
    limits = {("acme", agent_id): 3}
    request = await asked(query, recall_limit=lambda tenant_id, agent_id: limits[tenant_id, agent_id])
    assert request.limit == 3
    assert (await asked(f"{query}&limit=7", recall_limit=lambda tenant_id, agent_id: 3)).limit == 7


@pytest.mark.parametrize(
    ("token", "query"),
    [
        ("acme", "tenant=rival&user=u1"),
        ("acme", "user=u1&ceiling=secret"),
        ("u1", "user=u2"),
        ("u1", "scope=org&id=o1"),
        ("u1", "groups=g1"),
        ("writer", "user=u1"),
    ],
)
async def test_what_the_token_does_not_allow_is_not_asked(token: str, query: str) -> None:
    recall = NoRecall()
    api = called(app_over(recall=recall, credentials=TOKENS), token=token)
    assert (await api.get(f"/v1/recall?{query}")).status_code == 403
    assert recall.asked == []


async def test_a_caller_with_the_right_reads_what_is_secret() -> None:
    assert (await asked("user=u1&ceiling=secret", token="secret")).ceiling == "secret"


@pytest.mark.parametrize("body", [{"limit": "3"}, {"cue": 3}, {"tiers": "turns"}, {"as_of": 1}, {"more": 1}, [], "x"])
async def test_a_body_is_read_strictly(body: Any) -> None:
    given = {"tenant": "acme", "user": "u1"} | body if isinstance(body, dict) else body
    assert (await called(app_over()).post("/v1/recall", json=given)).status_code == 422


@pytest.mark.parametrize("path", ["recall", "context"])
@pytest.mark.parametrize(
    "number", ["9223372036854775808", "1" + "0" * 400, "-9223372036854775809", "1e400", "NaN", "-Infinity", "1" * 5_000]
)
async def test_a_number_that_no_engine_stores_is_refused(path: str, number: str) -> None:
    for asked in (number, f'{{"gte": {number}}}', f'{{"in": ["x", {number}]}}'):
        body = f'{{"tenant_id": "acme", "user_id": "u1", "cue": "x", "metadata": {{"n": {asked}}}}}'
        answer = await called(app_over()).post(
            f"/v1/{path}", content=body, headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:memstream:problem:invalid"), answer.text


async def test_an_item_tells_why_it_is_there() -> None:
    api = called(app_over(recall=NoRecall(RecallResult((found(),), ()))))
    (item,) = (await api.get("/v1/recall?tenant=acme&user=u1")).json()["items"]
    assert item["parts"] == {"match": 0.2, "confidence": 0.3}
    assert item["ranks"] == [{"list": "dense", "rank": 1}]
    assert (item["sources"][0]["turn_id"], item["sources"][0]["quote"]) == ("t1", "I work at Stripe")


async def test_what_is_missing_is_told_and_nothing_at_all_is_no_answer() -> None:
    missing: Any = (Gone(),)
    some = await called(app_over(recall=NoRecall(RecallResult((found(),), missing)))).get("/v1/recall?tenant=a&user=u1")
    assert (some.status_code, some.json()["missing"]) == (200, [{"part": Gone.part, "why": Gone.why}])
    nobody = NoRecall(RecallResult((), missing, silent=True))
    none = await called(app_over(recall=nobody)).get("/v1/recall?tenant=a&user=u1")
    assert (none.status_code, none.json()["missing"]) == (503, [{"part": Gone.part, "why": Gone.why}])
    assert int(none.headers["Retry-After"]) >= 1
    empty = await called(app_over(recall=NoRecall(RecallResult((), missing)))).get("/v1/recall?tenant=a&user=u1")
    assert (empty.status_code, empty.json()["items"]) == (200, []), "others answered that they have nothing"


@pytest.mark.parametrize("silent", [False, True])
async def test_a_context_is_rendered_by_what_recall_found(silent: bool) -> None:
    missing: Any = (Gone(),)
    recall = NoRecall(RecallResult((found(),), missing, silent=silent))
    api = called(app_over(recall=recall, credentials=TOKENS), token="acme")
    body = {"user": "u1", "session": "s1", "cue": "work", "preset": "full", "max_tokens": 100}
    answer = await api.post("/v1/context", json=body)
    (asked_,) = recall.asked
    assert (asked_.tenant_id, asked_.owner, asked_.session, asked_.cue) == ("acme", U1, ReadSession("u1", "s1"), "work")
    assert asked_.asked_by == "acme"
    assert answer.json()["missing"] == [{"part": Gone.part, "why": Gone.why}]
    if silent:
        assert answer.status_code == 503
    else:
        assert "- [profession] Works at Stripe" in answer.json()["text"]
        assert answer.json()["shown"]["semantic"] == ["f1"]


async def test_a_context_is_held_against_the_credential() -> None:
    recall = NoRecall()
    for token, body in (("acme", {"tenant": "rival"}), ("u1", {"user": "u2"}), ("acme", {"ceiling": "secret"})):
        api = called(app_over(recall=recall, credentials=TOKENS), token=token)
        assert (await api.post("/v1/context", json={"user": "u1"} | body)).status_code == 403
    assert recall.asked == []


async def test_names_are_those_of_turns_and_short_forms_say_the_same() -> None:
    for query in (
        "tenant_id=acme&user_id=u1&session_id=s1",
        "tenant=acme&user=u1&session=s1",
        "tenant_id=acme&tenant=acme&user_id=u1&user=u1&session_id=s1&session=s1",
    ):
        request = await asked(query)
        assert (request.tenant_id, request.owner, request.session) == ("acme", U1, ReadSession("u1", "s1")), query


@pytest.mark.parametrize("name", ["tenant", "user", "session"])
async def test_two_names_with_different_values_are_refused(name: str) -> None:
    api = called(app_over(recall=NoRecall()))
    fields = {"tenant_id": "acme", "user_id": "u1", "session_id": "s1"} | {name: "another"}
    for answer in (await api.get("/v1/recall", params=fields), await api.post("/v1/context", json=fields)):
        assert answer.status_code == 422
        assert [each["field"] for each in answer.json()["errors"]] == [name]
        assert f"{name}_id" in answer.text


@pytest.mark.parametrize("zone", ["Lisbon", "", "../../etc/passwd", "Europe"])
async def test_a_time_zone_that_does_not_exist_is_refused(zone: str) -> None:
    api = called(app_over(recall=NoRecall()))
    answer = await api.post("/v1/context", json={"tenant_id": "acme", "user_id": "u1", "time_zone": zone})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["time_zone"]
    assert "Europe/Lisbon" in answer.text


@pytest.mark.parametrize("path", ["/v1/recall", "/v1/context"])
@pytest.mark.parametrize(
    ("groups", "about", "status"),
    [
        (["g1"], {"user": "u1"}, 200),
        (["g1"], {"user": "u2"}, 403),
        (["g1", "undefined"], {"user": "u1"}, 403),
        (["g1"], {"scope": "agent", "id": "a1", "user": "u2"}, 403),
        (["g1"], {"scope": "agent", "id": "a1"}, 200),
    ],
)
async def test_a_token_reads_a_group_for_its_members_alone(
    path: str, groups: list[str], about: dict[str, str], status: int
) -> None:
    recall = NoRecall()
    app = app_over(recall=recall, credentials=TOKENS, store=GroupsOf("u1", "g1"))
    answer = await called(app, token="acme").post(path, json={"groups": groups, **about})
    if path == "/v1/recall" or status == 403:
        assert answer.status_code == status, answer.text
    assert {each.groups for each in recall.asked} == ({tuple(groups)} if status == 200 else set())


async def test_without_tokens_groups_are_not_checked() -> None:
    recall = NoRecall()
    app = app_over(recall=recall, store=GroupsOf("u1", "g1"))
    assert (await called(app).get("/v1/recall?tenant=acme&user=u2&groups=g1")).status_code == 200
