"""What becomes of measured numbers, without measuring any."""

from __future__ import annotations

from bench.plot import LEAST, MOST, margin
from bench.report import Figure, as_json, as_markdown
from bench.run import BEGIN, END, in_page
from bench.throughput import Load, rate
from bench.turns import percentile

HIGHER = Figure(ratio="R1", what="turns/s", on="kafka", value=0.98, target=0.97, detail={"turns/s": 250.0})
LOWER = Figure(ratio="R2", what="added", on="embedded", value=30.0, unit="ms", target=15.0, better="lower")
FACTS = {"at": "2026-01-01T00:00:00+00:00", "cpus": 2, "python": "3.11", "load_at_start": 0.1}


def test_a_figure_knows_whether_it_holds() -> None:
    assert (HIGHER.holds, LOWER.holds) == (True, False)
    assert Figure(ratio="R7", what="tokens", on="kafka", value=1.0).holds is None


def test_the_margin_is_above_1_where_the_target_is_kept() -> None:
    assert margin(HIGHER) > 1 > margin(LOWER) == 0.5
    assert LEAST < margin(LOWER) < MOST


def test_the_json_tells_machine_and_figures() -> None:
    told = as_json(FACTS, [HIGHER, LOWER], missing={"R8 on kafka": "away"}, seconds=12.4)
    assert told["machine"] == FACTS
    assert told["seconds"] == 12
    assert told["not_measured"] == {"R8 on kafka": "away"}
    assert [(row["ratio"], row["holds"]) for row in told["figures"]] == [("R1", True), ("R2", False)]
    assert told["figures"][0]["detail"] == {"turns/s": 250.0}


def test_the_page_keeps_what_stands_around_the_figures() -> None:
    page = f"above\n{BEGIN}\nstale words\n{END}\nbelow\n"
    written = in_page(page, as_markdown(FACTS, [HIGHER, LOWER]))
    assert written.startswith(f"above\n{BEGIN}\n")
    assert written.endswith(f"{END}\nbelow\n")
    assert "stale words" not in written
    assert "| R2 | added | embedded | 30 ms | ≤ 15 ms | MISSED |" in written
    assert in_page(written, as_markdown(FACTS, [HIGHER, LOWER])) == written


def test_the_rate_is_of_whole_waves_without_the_first_and_the_last() -> None:
    load = Load(in_flight=4, latency=1.0, sessions=4, waves=8, kept=3)
    slow_begin, steady, slow_end = [0] * 4 + [9_000] * 4, [], [90_000] * 8
    for wave in range(4):
        steady += [10_000 + 1_000 * wave + n for n in range(4)]
    assert rate([*slow_begin, *steady, *slow_end], load) == 4.0


def test_a_percentile_is_a_value_that_was_seen() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(range(100), 0.99) == 99
