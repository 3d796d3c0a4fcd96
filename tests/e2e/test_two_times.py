"""What was true when, and what was known of it when: asked as a user asks, of the commands and over HTTP, of one
process that remembers. And what a trace says of how the facts came to stand beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.cli_process import InProcess, Memstream, turn, wait_for_records
from tests.support.kafka import free_port

from .test_serve import Serving, serving

MARCH, MAY, AUGUST = "2026-03-15T00:00:00Z", "2026-05-15T00:00:00Z", "2026-08-15T00:00:00Z"
ANOTHER_VALUE = "another value of a predicate that has one at a time"
BY_SLOT = ("slots", "CONFLICT-CHECK", 0.5)
"""Two of four words are the same."""
ANA = ("--tenant", "acme", "--user", "u1")


@dataclass
class Ana:
    """Her memory, and those who may be asked for it."""

    command: InProcess
    server: Serving
    said: int = 0

    def says(self, text: str, day: str, *, rows: int) -> list[dict[str, Any]]:
        """A turn of that day in a session of its own; her facts, when there are `rows` of them in whatever state."""
        self.said += 1
        line = json.loads(turn(f"t{self.said}", text, session=f"s{self.said}")) | {"occurred_at": f"{day}T09:00:00Z"}
        assert self.command("produce", "-", input=json.dumps(line)).code == 0
        return wait_for_records(self.command, "show", "facts", *ANA, "--state", "all", count=rows)

    def employers(self, **times: str) -> list[str]:
        """What `show`, `recall` and both of HTTP say that she was believed to work at: they agree."""
        options = [part for name, time in times.items() for part in (f"--{name.replace('_', '-')}", time)]
        shown = self.command("show", "facts", *ANA, *options, "--json")
        recalled = self.command("recall", *ANA, "--cue", "where does she work", *options, "--json")
        assert (shown.code, recalled.code) == (0, 0), shown.err + recalled.err
        over_http = self.server.get("/v1/facts", tenant="acme", user="u1", **times)["items"]
        asked = {"tenant": "acme", "user": "u1", "cue": "where does she work"} | times
        posted = httpx.post(f"{self.server.url}/v1/recall", json=asked, timeout=30).json()["items"]
        answers = [_contents(each) for each in (shown.records, _facts(recalled.records), over_http, _facts(posted))]
        assert answers == [answers[0]] * 4, times
        return answers[0]

    def trace(self, fact: dict[str, Any]) -> list[dict[str, Any]]:
        """The decisions, which the command and HTTP tell alike."""
        (chain,) = self.command("trace", fact["fact_id"], "--tenant", "acme", "--json").records
        over_http = self.server.get(f"/v1/facts/{fact['fact_id']}/trace", tenant="acme")
        assert over_http.pop("missing") == []
        assert over_http["decisions"] == chain["decisions"]
        decisions: list[dict[str, Any]] = chain["decisions"]
        return decisions


def _facts(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in items if each["tier"] == "semantic"]


def _contents(records: list[dict[str, Any]]) -> list[str]:
    return sorted(each["content"] for each in records)


@contextmanager
def remembering(folder: Path) -> Iterator[Ana]:
    with serving(Memstream(folder), free_port()) as server:
        yield Ana(InProcess(folder), server)
        assert server.stop() == 0


@pytest.mark.timeout(120)
@pytest.mark.long
def test_the_employer_in_march_after_two_changes_and_a_late_arrival_and_why(tmp_path: Path) -> None:
    with remembering(tmp_path) as ana:
        ana.says("I work at Google.", "2026-01-10", rows=1)
        ana.says("I work at Stripe now.", "2026-04-10", rows=2)
        before_the_second = ana.says("I work at Adobe now.", "2026-09-10", rows=3)[1]["recorded_at"]
        rows = {each["content"]: each for each in ana.says("I work at Shopify now.", "2026-07-10", rows=4)}
        google, stripe, adobe, shopify = (rows[f"Works at {name}"] for name in ("Google", "Stripe", "Adobe", "Shopify"))

        assert ana.employers() == ["Works at Adobe"]
        now = ana.command("recall", *ANA, "--cue", "where does she work", "--json").records
        assert [each for each in now if each["tier"] == "episodic"] == [], "Adobe's the fact tells, others do not hold"
        assert ana.employers(as_of=MARCH) == ["Works at Google"], "neither change nor late arrival is of March"
        assert ana.employers(as_of=MAY) == ["Works at Stripe"]
        assert ana.employers(as_of=AUGUST) == ["Works at Shopify", "Works at Stripe"]
        assert ana.employers(known_at=adobe["recorded_at"]) == ["Works at Adobe"]
        until_then = {"as_of": AUGUST, "known_at": adobe["recorded_at"]}
        assert ana.employers(**until_then) == ["Works at Stripe"], "it had not arrived"
        assert ana.employers(as_of=AUGUST, known_at=before_the_second) == ["Works at Stripe"], "of Adobe nobody knew"
        assert ana.employers(as_of=MAY, known_at=google["recorded_at"]) == ["Works at Google"], "of Stripe nobody knew"

        ana.says("I work at Adobe now.", "2026-09-20", rows=4)
        heard = ana.server.until(lambda: ana.trace(adobe)[1:])
        assert _told(heard) == [("reinforced", "said again", "exact", None, None, None)]
        assert _told(ana.trace(google)) == [
            ("new", "new", "admit", "COLD", None, None),
            ("superseded", ANOTHER_VALUE, *BY_SLOT, stripe["fact_id"]),
        ]
        assert _told(ana.trace(stripe)) == [
            ("new", "replaces an older statement", *BY_SLOT, google["fact_id"]),
            ("superseded", ANOTHER_VALUE, *BY_SLOT, adobe["fact_id"]),
        ]
        told_late = "stated late: true before the known facts"
        assert _told(ana.trace(shopify)) == [("superseded", told_late, *BY_SLOT, adobe["fact_id"])]
        read = ana.command("trace", shopify["fact_id"], "--tenant", "acme").out
        assert told_late in read
        assert f"compared with fact {adobe['fact_id']}, similarity 0.50, zone CONFLICT-CHECK" in read


def _told(decisions: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Action and reason; stage, zone, similarity and the other fact's id, as the conflict pipeline recorded them."""
    return [(each["action"], each["reason"], *each["decision"].values()) for each in decisions]
