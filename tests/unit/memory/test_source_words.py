"""Whether texts support a procedure."""

from __future__ import annotations

import pytest

from memstream.memory.language.locales import locales
from memstream.memory.upkeep.source_words import supports_procedure

PACKS = locales("en,de")
REPORT = "Makes the weekly report on Fridays: asks Tom for the figures, writes it, sends it to Mia"


@pytest.mark.parametrize(
    ("texts", "heading", "steps", "told"),
    [
        ([REPORT], ["Weekly report", "On Fridays"], ["Ask Tom for figures", "Write it", "Send it to Mia"], True),
        ([REPORT], ["Weekly report", "On Fridays"], ["Ask Tom for figures", "Have it signed by a lawyer"], False),
        ([REPORT], ["Morning routine", "Every morning"], ["Stretch", "Drink water", "Meditate"], False),
        ([REPORT], ["Tom", "A birthday comes near"], ["Buy Tom a present and wrap it nicely in paper"], False),
        (["Likes tea", REPORT], ["Report", "Each week"], ["Ask for figures", "Send the report"], True),
        (["毎週金曜日に週報を書いて送る"], ["週報", "金曜日"], ["週報を書く", "週報を送る"], True),
        (["毎週金曜日に週報を書いて送る"], ["朝の運動", "毎朝"], ["公園を走る"], False),
        (["Schreibt freitags den Wochenbericht"], ["Wochenbericht", "freitags"], ["Den Wochenbericht schreiben"], True),
        ([REPORT], ["Weekly report", "On Fridays"], ["Do it"], False),
    ],
)  # fmt: skip
def test_every_step_shares_words_with_the_texts(
    texts: list[str], heading: list[str], steps: list[str], told: bool
) -> None:
    assert supports_procedure(texts, heading, steps, PACKS) is told
