"""Hostile records for topics that anyone can write to, and the reason of the dead letter that each must cause."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memstream.schemas.errors import DeadLetterReason
from memstream.schemas.topics import group_of
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Headers, Position, Record

from .pipeline import Json, Pipeline, refused_at
from .whole_worker import parsed

KIB = 1024
TOPIC_TAKES = 1_048_588
"""The default of `max.message.bytes`."""
HUGE_VERSION = b"memstream.turn.v" + b"9" * 5_000
"""More digits than Python converts to a number."""


@dataclass(frozen=True)
class Hostile:
    """One record. `reason` is that of its dead letter; None means that it is accepted. `key` None means the key
    of the good records.
    """

    name: str
    value: bytes | None
    reason: DeadLetterReason | None
    headers: Headers = ()
    key: bytes | None = None
    placed: bool = False
    """Whether the record is on the partition of the good records although it has another key."""


def encoded(fields: object) -> bytes:
    return json.dumps(fields).encode()


def undecodable_values(good: Mapping[str, Any]) -> Iterator[Hostile]:
    """Values that no stage can decode on any topic. `good` is a value that is accepted."""
    plain = encoded(good)
    yield Hostile("garbage", b"\x00\xff\xfe\x80 garbage \xc3", "undecodable")
    yield Hostile("null", None, "undecodable")
    yield Hostile("empty", b"", "undecodable")
    yield Hostile(
        "invalid-utf8", plain.replace(b'"tenant_id": "', b'"x": "\xc3\x28", "tenant_id": "', 1), "undecodable"
    )
    yield Hostile("overlong-utf8", plain.replace(b"{", b'{"x": "\xc0\x80", ', 1), "undecodable")
    yield Hostile("cut", plain[: len(plain) // 2], "undecodable")
    yield Hostile("two-values", plain + plain, "undecodable")
    yield Hostile("byte-order-mark", b"\xef\xbb\xbf" + plain, "undecodable")
    yield Hostile("utf-16", plain.decode().encode("utf-16"), "undecodable")
    yield Hostile("deep-list", b"[" * 50_000 + b"]" * 50_000, "undecodable")
    yield Hostile("deep-unclosed", b'{"a":' * 50_000, "undecodable")
    yield Hostile("lone-surrogate", plain.replace(b"{", b'{"x": "\\ud83d", ', 1), "undecodable")
    yield Hostile("lone-surrogate-in-tenant", encoded({**good, "tenant_id": "a\udc00"}), "undecodable")
    yield Hostile("pickle", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94.", "undecodable")
    for name, value in (("list", []), ("string", "x"), ("number", 1), ("null-literal", None), ("true", True)):
        yield Hostile(f"json-{name}", encoded(value), "invalid")
    yield Hostile("json-empty", b"{}", "invalid")
    yield Hostile("huge-int", plain.replace(b"{", b'{"x": ' + b"9" * 10_000 + b", ", 1), "undecodable")
    yield Hostile("next-major", plain, "unsupported_version", (("ce_type", b"memstream.turn.v2"),))
    yield Hostile("no-major", plain, "unsupported_version", (("ce_type", b"memstream.turn.v0"),))
    yield Hostile("huge-major", plain, "unsupported_version", (("ce_type", HUGE_VERSION),))
    yield Hostile(
        "garbage-with-headers", b"\xff", "undecodable", (("ce_type", b"\xff"), ("", b""), ("x" * 300, b"\x00"))
    )
    yield Hostile("garbage-with-huge-headers", b"\xff", "undecodable", (("x", b"\xff" * 900 * KIB),))


def undecodable_turns(good: Json) -> Iterator[Hostile]:
    """The same of a turn: the front door reads what a producer's encoder did wrong, but for ids."""
    for each in undecodable_values(good):
        if each.name == "lone-surrogate-in-tenant":
            yield replace(each, reason="invalid")
        elif each.name not in ("byte-order-mark", "lone-surrogate"):
            yield each


def framed_turns(good: Json) -> Iterator[Hostile]:
    """Turns in frames and forms that producers use. Each has the content of `good`."""
    plain, text = encoded(good), json.dumps(good)
    message = good["messages"][0]
    said = message["content"]
    event = {"specversion": "1.0", "id": "1", "source": "/acme", "type": "com.acme.turn.v2"}
    registry = b"\0" + (42).to_bytes(4)

    def with_messages(*messages: object, **fields: object) -> bytes:
        return encoded({**good, "messages": list(messages), **fields})

    def with_content(content: object) -> bytes:
        return with_messages({**message, "content": content})

    yield Hostile("byte-order-mark", b"\xef\xbb\xbf" + plain, None)
    yield Hostile("nul-behind", plain + b"\0", None)
    yield Hostile("lone-surrogate", plain.replace(b"{", b'{"x": "\\ud83d", ', 1), None)
    yield Hostile("half-an-emoji", with_content(f"{said} \ud83d"), None)
    yield Hostile("registry-json", registry + plain, None)
    yield Hostile("structured", encoded({**event, "data": good}), None)
    yield Hostile("connect", encoded({"schema": {"type": "struct"}, "payload": good}), None)
    yield Hostile("double-json", encoded(text), None)
    yield Hostile("own-type", plain, None, (("ce_type", b"com.acme.chat.turn.v2"),))
    yield Hostile("nulls", with_messages(message, metadata=None, ends_session=None, occurred_at=None), None)
    yield Hostile("developer", with_messages({"role": "developer", "content": "You help."}, message), None)
    yield Hostile("function", with_messages({"role": "function", "content": "12", "name": "f"}, message), None)
    yield Hostile("unknown-role-beside", with_messages({"role": "wizard", "content": "Hm."}, message), None)
    yield Hostile("reasoning", with_messages({"type": "reasoning", "summary": []}, message), None)
    yield Hostile("input-text", with_content([{"type": "input_text", "text": said}]), None)
    yield Hostile("content-an-object", with_content({"text": said}), None)
    yield Hostile("part-without-type", with_content([{"text": said}]), None)
    yield Hostile("part-a-string", with_content([said]), None)
    yield Hostile("milliseconds", with_messages(message, occurred_at=1_764_150_000_123), None)
    yield Hostile("registry-avro", registry + b"\x08acme", "undecodable")
    yield Hostile("gzip", b"\x1f\x8b\x08" + plain, "undecodable")
    yield Hostile("batch", encoded([{**event, "data": good}]), "invalid")
    yield Hostile("debezium", encoded({"op": "c", "before": None, "after": good}), "invalid")


def invalid_ids(good: Json, *names: str) -> Iterator[Hostile]:
    """Invalid ids: valid ones have 1-128 code points, none of category Cc or Cs."""
    for name in names:
        for what, bad in (
            ("nul", "a\0b"), ("newline", "a\nb"), ("delete", "\x7f"), ("c1", "\x85"), ("empty", ""),
            ("long", "x" * 129), ("number", 5), ("list", ["x"]), ("object", {"x": 1}), ("float", 1e400),
        ):  # fmt: skip
            yield Hostile(f"{name}-{what}", encoded({**good, name: bad}), "invalid")


def invalid_turns(good: Json) -> Iterator[Hostile]:
    message = good["messages"][0]

    def with_content(content: object) -> Json:
        return {**good, "messages": [{**message, "content": content}]}

    yield Hostile("mb", encoded(with_content("x" * 1_000_000)), "oversized")
    size = len(encoded(with_content("")))
    yield Hostile("just-above", encoded(with_content("x" * (256 * KIB + 1 - size))), "oversized")
    for name, fields in {
        "no-messages": {**good, "messages": []},
        "messages-a-string": {**good, "messages": "hello"},
        "too-many-messages": {**good, "messages": [message] * 65},
        "unknown-role": {**good, "messages": [{**message, "role": "wizard"}]},
        "role-a-list": {**good, "messages": [{**message, "role": ["user"]}]},
        "content-a-number": with_content(5),
        "part-text-a-number": with_content([{"type": "text", "text": 5}]),
        "part-a-list": with_content([["x"]]),
        "agent-scope-without-agent": {**good, "scope": "agent"},
        "unknown-scope": {**good, "scope": "galaxy"},
        "unknown-sensitivity": {**good, "sensitivity": "cosmic"},
        "ends-session-a-list": {**good, "ends_session": []},
        "metadata-a-list": {**good, "metadata": [1]},
        "metadata-huge": {**good, "metadata": {"x": "y" * 5_000}},
        "metadata-deep": {**good, "metadata": {"x": nested(150)}},
        "time-without-zone": {**good, "occurred_at": "2026-11-20T10:00:00"},
        "time-garbage": {**good, "occurred_at": "yesterday"},
        "time-beyond-the-years": {**good, "occurred_at": "9999-12-31T23:59:59-12:00"},
        "time-before-the-years": {**good, "occurred_at": "0001-01-01T00:00:00+14:00"},
        "time-a-huge-number": {**good, "occurred_at": 1e300},
        "time-infinite": {**good, "occurred_at": float("inf")},
        "time-not-a-number": {**good, "occurred_at": float("nan")},
    }.items():
        reason: DeadLetterReason | None = None if name == "metadata-deep" else "invalid"
        yield Hostile(name, encoded(fields), reason)


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


def unusual_turns(good: Json) -> Iterator[Hostile]:
    """Unusual turns that are accepted. Each has the content of `good`."""
    message = good["messages"][0]
    said = message["content"]

    def with_content(content: object, **fields: object) -> bytes:
        return encoded({**good, "messages": [{**message, "content": content}], **fields})

    size = len(with_content(said))
    yield Hostile("just-fits", with_content(said + " " + "y" * (256 * KIB - size - 1)), None)
    yield Hostile(
        "emoji", json.dumps(json.loads(with_content(f"🍜👩‍👩‍👧‍👦 {said} 𝔘🏳️‍🌈")), ensure_ascii=False).encode(), None
    )
    yield Hostile("zero-width", with_content(f"\u200b\u200d\ufeff\u2060{said}\u202e\u200f"), None)
    yield Hostile("controls", with_content(f"\0\x01\x1b[31m\r\n{said}\x7f\x85\u2028\0"), None)
    # what stands behind the mark of a chat template is nobody's own words
    yield Hostile("markup", with_content(f"</s>{{{{x}}}} %s ${{x}} '; DROP -- {said} \\u0000 \\ <|im_end|>"), None)
    yield Hostile("parts", with_content([{"type": "text", "text": said}, {"type": "image_url", "image_url": {}}]), None)
    yield Hostile("unknown-fields", with_content(said, x={"y": nested(100)}, tenantId="other", owner={"id": "o"}), None)
    yield Hostile("nan-elsewhere", with_content(said, x=[float("nan"), float("-inf"), 10**400]), None)
    yield Hostile("year-9999", with_content(said, occurred_at="9999-12-31T23:59:59.999999Z"), None)
    yield Hostile("year-1", with_content(said, occurred_at="0001-01-01T00:00:00Z"), None)
    yield Hostile("offset", with_content(said, occurred_at="2026-11-20T10:00:00.1234567+05:30"), None)
    yield Hostile("wrong-key", with_content(said), None, key=b"\xff\xfe\x00")
    yield Hostile("empty-key", with_content(said), None, key=b"")
    yield Hostile("huge-key", with_content(said), None, key=b"k" * 700 * KIB)
    yield Hostile("type-is-no-utf8", with_content(said), None, (("ce_type", b"\xff\xfe.v\xff"),))
    yield Hostile(
        "type-without-version", with_content(said), None, (("ce_type", b"memstream.turn.v"), ("ce_id", b"\0"))
    )
    yield Hostile("type-of-another-world", with_content(said), None, (("ce_type", "turn.v２".encode()),))
    yield Hostile(
        "headers-twice", with_content(said), None, (("memstream-rekeyed", b"1"), ("memstream-rekeyed", b"\xff"))
    )
    yield Hostile("huge-headers", with_content(said), None, (("x", b"\x00" * 700 * KIB),))
    room = TOPIC_TAKES - len(with_content(said)) - 100  # for it, and not for itself sent again with a longer key
    yield Hostile("no-room-to-send-again", with_content(said), "oversized", (("x", b"\x00" * room),), key=b"")


@dataclass(frozen=True)
class Sent:
    """A hostile record and its position in the log."""

    hostile: Hostile
    key: bytes
    position: Position


class AttackedTopic:
    """One topic that receives hostile records; `stage` writes its dead letters."""

    def __init__(self, pipeline: Pipeline, topic: str, stage: str) -> None:
        self._pipeline = pipeline
        self.topic = topic
        self.stage = stage
        self.sent: list[Sent] = []
        self._before = 0

    async def begin(self) -> AttackedTopic:
        self._before = len(await self._pipeline.dead_letters(self.topic))
        return self

    async def send(self, hostile: Hostile, *, key: bytes) -> None:
        """Send it to the partition of the good records, unless the test concerns its own key."""
        given = key if hostile.key is None else hostile.key
        partitions = await self._pipeline.log.partitions(self.topic) or 1
        right = partition_for(key, partitions)
        position = await self._pipeline.log.append(
            self.topic,
            key=given,
            value=hostile.value,
            headers=hostile.headers,
            partition=right if hostile.key is None or hostile.placed else (right + 1) % partitions,
        )
        self.sent.append(Sent(hostile, given, position))

    async def good(self, value: bytes, *, key: bytes) -> None:
        await self._pipeline.log.append(self.topic, key=key, value=value)

    async def refused_exactly(self) -> None:
        """Check that the dead letters are exactly the expected ones, complete, with reasons and positions."""
        letters = await self._pipeline.dead_letters(self.topic)
        own = {(each.position.partition, each.position.offset): each for each in self.sent}
        found: dict[tuple[int, int], Record] = {}
        for letter in letters:
            place = refused_at(letter)
            if place in own:
                assert place not in found, f"two dead letters of {own[place].hostile.name}"
            found[place] = letter
        reasons = {name: reason_of(found.get(place)) for place, name in ((p, s.hostile.name) for p, s in own.items())}
        assert reasons == {each.hostile.name: each.hostile.reason for each in self.sent}
        expected = [each for each in self.sent if each.hostile.reason is not None]
        assert len(letters) - self._before == len(expected)
        for each in expected:
            self._whole(each, found[each.position.partition, each.position.offset])

    def _whole(self, each: Sent, letter: Record) -> None:
        hostile, headers = each.hostile, dict(letter.headers)
        assert letter.key == each.key, hostile.name
        assert (letter.value or None) == (hostile.value or None), hostile.name
        assert letter.headers[: len(hostile.headers)] == hostile.headers, hostile.name
        assert headers["kafka_dlt-original-topic"].decode() == self.topic
        assert headers["kafka_dlt-original-consumer-group"].decode() == group_of(self.stage)
        assert headers["memstream-stage"].decode() == self.stage
        assert headers["memstream-attempts"] == b"1"
        assert int(headers["kafka_dlt-original-timestamp"]) > 0
        assert headers["kafka_dlt-exception-message"]
        tenant = parsed(hostile.value).get("tenant_id")
        if isinstance(tenant, str) and tenant.startswith("tenant-") and tenant.isprintable():
            assert headers["memstream-tenant"].decode() == tenant, hostile.name


def reason_of(letter: Record | None) -> str | None:
    return None if letter is None else dict(letter.headers)["memstream-reason"].decode()


# ------------------------------------------------------------------------------------------------ between stages
def with_field(good: Json, path: str, value: object) -> bytes:
    """Return `good` with another value at a path such as `a.b.0.c`; in a list the first element is used."""
    fields: Json = json.loads(json.dumps(good))
    at: Any = fields
    *way, last = path.split(".")
    for part in way:
        at = at[0] if part == "0" else at[part]
    at[last] = value
    return encoded(fields)


def invalid_fields(good: Json, bad: Mapping[str, list[object]]) -> Iterator[Hostile]:
    for path, values in bad.items():
        for n, value in enumerate(values):
            yield Hostile(f"{path}-{n}", with_field(good, path, value), "invalid")


BAD_TIMES: list[object] = [
    "yesterday",
    None,
    "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00+14:00",
    1e300,
    "2026-11-20",
]
BAD_UNITS: list[object] = [2, -1, float("nan"), 1e400, "much"]
BAD_OWNERS: list[object] = [
    None,
    "u1",
    {"scope": "galaxy", "id": "x"},
    {"scope": "user", "id": "a\0b"},
    {"scope": "user"},
]


def invalid_observations(good: Json) -> Iterator[Hostile]:
    first = good["observations"][0]
    yield from invalid_fields(
        good,
        {
            "turn_number": [0, -1, "x", 1.5, 1e400, None],
            "occurred_at": BAD_TIMES,
            "owner": BAD_OWNERS,
            "observations": [{}, "x", [first] * 65, [5], None],
            "evicted": ["x", [{}], [{"entry_id": "e", "observation_id": "o", "durability": "permanent"}] * 65],
            "cause": ["x", [], {"usage": {"calls": -1}}],
            "observations.0.content": ["", "x" * 2_001, 5, None],
            "observations.0.subject": ["", "x" * 129, None],
            "observations.0.evidence": ["x" * 501, 5, None],
            "observations.0.importance": BAD_UNITS,
            "observations.0.durability": ["eternal", None],
            "observations.0.category": ["weather", 1],
            "observations.0.observation_id": ["", "x" * 65, 1],
            "observations.0.valid_from": ["long ago", "9999-12-31T23:59:59-12:00"],
            "observations.0.sensitivity": ["cosmic"],
            "observations.0.emotion": [{"valence": 2, "arousal": 0}],
        },
    )
    yield Hostile("misplaced", encoded(good), "invalid", key=b"elsewhere")
    yield from foreign_keys(good)


def unusual_observations(good: Json) -> Iterator[Hostile]:
    """Unusual observations that are accepted. Each makes a fact."""
    first = good["observations"][0]
    for name, path, value in (
        ("year-9999", "occurred_at", "9999-12-31T23:59:59.999999Z"),
        ("year-1", "occurred_at", "0001-01-01T00:00:00Z"),
        ("valid-for-ever", "observations.0.valid_from", "9999-12-31T23:59:59Z"),
        ("valid-backwards", "observations.0.valid_to", "0001-01-01T00:00:00Z"),
        ("id-of-no-uuid", "observations.0.observation_id", "'; DROP\0"),
        ("replaces-nonsense", "observations.0.replaces_observation_id", "\ud83d\ude00"),
        ("replaces-itself", "observations.0.replaces_observation_id", first["observation_id"]),
        ("twice", "observations", [first, first]),
        ("emoji", "observations.0.content", "😀" * 2_000),
        ("nul", "observations.0.content", "\0Likes\x1b[31m green\u0085\u2028tea\0"),
        ("no-words", "observations.0.content", "!!! … ???"),
        ("white-space", "observations.0.content", " \u200b\u3000"),
        ("subject-of-controls", "observations.0.subject", "\0/%2F\n"),
        ("number-of-turns", "turn_number", 10**18),
        ("unknown-fields", "x", {"tenant_id": "other", "y": nested(100)}),
    ):
        yield Hostile(name, with_field(good, path, value), None)


def foreign_keys(good: Json) -> Iterator[Hostile]:
    """Records whose key names somebody else than their value does, on the partition of the value's own key."""
    for name, key in (("tenant", b"other/user/u"), ("owner", f"{good['tenant_id']}/user/other".encode()), ("no", b"")):
        yield Hostile(f"key-of-{name}-other", encoded(good), "invalid", key=key, placed=True)


def invalid_recorded_turns(good: Json) -> Iterator[Hostile]:
    episode = {"episode_id": "e", "importance": 0.5, "category": "event"}
    yield from invalid_fields(
        good,
        {
            "turn_number": [0, -1, "x", 1.5, 1e400, None],
            "occurred_at": BAD_TIMES,
            "owner": BAD_OWNERS,
            "episodes": [
                "x",
                [5],
                [episode] * 65,
                [{**episode, "importance": 1e400}],
                [{**episode, "category": "weather"}],
            ],
            "fact_ids": ["x", [5], ["x" * 65], ["x"] * 257],
            "pending_fact_ids": ["x", [None]],
            "evicted_persistent": [-1, "many", 1e400],
            "notes_tokens": [-1, "many", 1e400],
        },
    )
    yield Hostile("misplaced", encoded(good), "invalid", key=b"elsewhere")
    yield from foreign_keys(good)


def invalid_commands(good: Json, *, addressed: str) -> Iterator[Hostile]:
    """Invalid commands. `addressed` is owner or session."""
    other = {"session": {"user_id": "u", "session_id": "s"}, "owner": {"scope": "user", "id": "u"}}
    other.pop(addressed)
    without = {name: value for name, value in good.items() if name != addressed}
    yield Hostile("not-addressed", encoded(without), "invalid")
    yield Hostile("addressed-twice", encoded({**good, **other}), "invalid")
    yield Hostile("addressed-wrongly", encoded({**without, **other}), "invalid")
    bad: dict[str, list[object]] = {
        "command_id": ["", "x" * 129, 5, None],
        "kind": ["", "x" * 65, 5, None],
        "issued_at": BAD_TIMES,
        "expires_at": ["never", "9999-12-31T23:59:59-12:00", 1e300],
        "args": [[], "x", 5],
        "issued_by": ["x" * 129, 5],
    }
    if addressed == "owner":
        bad["owner"] = BAD_OWNERS[1:]
    else:
        bad["session.user_id"] = ["", "a\0b", "x" * 129, None]
        bad["session.session_id"] = ["", "a\nb", 5]
    yield from invalid_fields(good, bad)
    yield Hostile("misplaced", encoded(good), "invalid", key=b"elsewhere")
    yield from foreign_keys(good)
