"""How the text of an answer is read: a table of the forms that models give it, and damaged answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memstream.adapters.completions.answer_text import MAX_REPAIRED, UnusableReply, read_answer
from memstream.agents.consolidation.prompts import judge, prune, text_answer
from memstream.agents.observer.answer_schema import WHOLE
from memstream.recall import llm_reranker

ITEM: Final[dict[str, JsonValue]] = {
    "content": "Works at Fixpoint",
    "category": "profession",
    "emotion": {"valence": 0.5, "arousal": 0.1},
    "pinned": True,
    "replaces": None,
    "evidence": "I work at Fixpoint",
}
OTHER: Final[dict[str, JsonValue]] = {**ITEM, "content": "Lives in Oslo", "evidence": "I live in Oslo"}
DRAFT: Final = json.dumps({"observations": [{**ITEM, "content": "Works at Google"}]})
ONE: Final = json.dumps(ITEM)
GOOD: Final = json.dumps({"observations": [ITEM]})

# Each gives {"observations": [ITEM]}.
FORMS: Final[dict[str, str]] = {
    "as asked for": GOOD,
    "indented": json.dumps({"observations": [ITEM]}, indent=2),
    "byte order mark": f"\ufeff{GOOD}",
    "a fence": f"```json\n{GOOD}\n```",
    "a fence without a language": f"```\n{GOOD}\n```",
    "a fence on one line": f"```json {GOOD} ```",
    "a fence that is not closed": f"```json\n{GOOD}",
    "a fence in prose": f"Here is what I noticed:\n```json\n{GOOD}\n```\nAnything else?",
    "prose around it": f"Sure! In [t1] the user says:\n{GOOD}\nAnything else?",
    "a draft before it": f"{DRAFT}\nWait, that is wrong. Again:\n{GOOD}",
    "a draft in a fence before it": f"```json\n{DRAFT}\n```\nWait, that is wrong.\n```json\n{GOOD}\n```",
    "reasoning": f"<think>The user says {DRAFT}</think>\n{GOOD}",
    "reasoning in capitals": f"<THINK>hm</THINK>{GOOD}",
    "reasoning with its closing mark alone": f"The user works. {DRAFT}\n</think>\n\n{GOOD}",
    "<thinking>": f"<thinking>{DRAFT}</thinking>{GOOD}",
    "<reasoning>": f"<reasoning>{DRAFT}</reasoning>\n{GOOD}",
    "<thought>": f"<thought>\nhm\n</thought>\n{GOOD}",
    "reasoning after a sentence": f"Let me see. <think>{DRAFT}</think> {GOOD}",
    "reasoning twice": f"<think>a</think> <think>{DRAFT}</think>{GOOD}",
    "[THINK]": f"[THINK]{DRAFT}[/THINK]{GOOD}",
    "<|START_THINKING|>": f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_RESPONSE|>{GOOD}<|END_RESPONSE|>",
    "reasoning, then a fence": f"<think>hm</think>\n```json\n{GOOD}\n```",
    "Harmony": f"<|channel|>analysis<|message|>{DRAFT}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{GOOD}<|return|>",
    "Harmony with a constraint": f"<|channel|>final <|constrain|>json<|message|>{GOOD}<|end|>",
    "Harmony without its tokens": f"analysisThe user works.assistantfinal{GOOD}",
    "an end token": f"{GOOD}<|im_end|>",
    "a tool call in the text": f'<tool_call>\n{{"name": "observations", "arguments": {GOOD}}}\n</tool_call>',
    "a bare list": f"[{ONE}]",
    "a bare list in prose": f"Here they are: [{ONE}] Ok?",
    "one item": ONE,
    "one item in a fence": f"```json\n{ONE}\n```",
    "one item in the place of the list": f'{{"observations": {ONE}}}',
    "items by name": f'{{"observations": {{"o1": {ONE}}}}}',
    "a list around it": f"[{GOOD}]",
    "an object around it": f'{{"result": {GOOD}}}',
    "two objects around it": f'{{"response": {{"data": {GOOD}}}}}',
    "the schema's properties": f'{{"type": "object", "properties": {GOOD}}}',
    "another outer key": f'{{"memories": [{ONE}]}}',
    "another outer key with notes": f'{{"reasoning": "hm", "facts": [{ONE}], "count": 1}}',
    "JSON in a JSON string": json.dumps(GOOD),
    "JSON in a JSON string twice": json.dumps(json.dumps(GOOD)),
    "the list in a JSON string": json.dumps({"observations": f"[{ONE}]"}),
    "an object around a JSON string": json.dumps({"output": GOOD}),
    "an item as JSON in a string": json.dumps({"observations": [ONE]}),
    "a list in the list": f'{{"observations": [[{ONE}]]}}',
    "a list of one call of a tool": f'[TOOL_CALLS][{{"name": "observations", "arguments": {GOOD}}}]',
    "trailing commas": GOOD.replace("}]", ",},]"),
    "a comment": GOOD.replace("[{", "[ // what was said\n{"),
    "single quotes": GOOD.replace('"', "'"),
    "Python literals": repr({"observations": [ITEM]}),
    "names without quotes": re.sub(r'"(\w+)":', r"\1:", GOOD),
    "typographic quotes": GOOD.replace('"', "”"),
    "a comma that is missing": GOOD.replace('profession", "emotion', 'profession" "emotion'),
    "the last bracket is missing": GOOD[:-1],
    "damaged in a fence": f"Here:\n```json\n{GOOD.replace('}]', ',}]')}\n```",
    "damaged after reasoning": f"<think>{DRAFT}</think>{GOOD.replace('}]', ',}]')}",
}
OTHER_SHAPES: Final[dict[str, tuple[str, Mapping[str, JsonValue], JsonValue]]] = {
    "JSON Lines": (f"{ONE}\n{json.dumps(OTHER)}", WHOLE.one, {"observations": [ITEM, OTHER]}),
    "answers line by line": (
        f"{GOOD}\n{json.dumps({'observations': [OTHER]})}", WHOLE.one, {"observations": [ITEM, OTHER]},
    ),
    "items by name, without a list": (
        json.dumps({"o1": ITEM, "o2": OTHER}), WHOLE.one, {"observations": [ITEM, OTHER]},
    ),
    "an empty answer on the next line": (f'{GOOD}\n{{"observations": []}}', WHOLE.one, {"observations": [ITEM]}),
    "an empty list in a JSON string": ('{"observations": "[]"}', WHOLE.one, {"observations": []}),
    "no number in an item": (
        GOOD.replace("0.5", "NaN").replace("0.1", "-Infinity"), WHOLE.one,
        {"observations": [{**ITEM, "emotion": {"valence": None, "arousal": None}}]},
    ),
    "names in capitals": (
        json.dumps([{"Content": "Likes tea", "Evidence": "tea"}]), WHOLE.one,
        {"observations": [{"Content": "Likes tea", "Evidence": "tea"}]},
    ),
    "a numbered list": (f"1. {ONE}\n2. {json.dumps(OTHER)}", WHOLE.one, {"observations": [ITEM, OTHER]}),
    "two items by name": (
        json.dumps({"observations": {"o1": ITEM, "o2": OTHER}}), WHOLE.one, {"observations": [ITEM, OTHER]},
    ),
    "a line break in a string": (
        GOOD.replace("at Fix", "at\nFix"), WHOLE.one,
        {"observations": [{**ITEM, "content": "Works at\nFixpoint", "evidence": "I work at\nFixpoint"}]},
    ),
    "quotes in a string": (
        GOOD.replace("at Fixpoint", 'at "Fixpoint" now'), WHOLE.one,
        {"observations": [{**ITEM, "content": 'Works at "Fixpoint" now', "evidence": 'I work at "Fixpoint" now'}]},
    ),
    "a statement about marks": (
        json.dumps({"observations": [{**ITEM, "content": "Writes </think> after ```"}]}), WHOLE.one,
        {"observations": [{**ITEM, "content": "Writes </think> after ```"}]},
    ),
    "a statement about an opening mark, after reasoning": (
        f"<think>hm</think>{json.dumps({'observations': [{**ITEM, 'evidence': 'I use <thoughts> a lot'}]})}", WHOLE.one,
        {"observations": [{**ITEM, "evidence": "I use <thoughts> a lot"}]},
    ),
    "a string among the items": (f'{{"observations": ["x", {ONE}]}}', WHOLE.one, {"observations": ["x", ITEM]}),
    "nothing": ('{"observations": []}', WHOLE.one, {"observations": []}),
    "nothing, as a bare list": ("[]", WHOLE.one, {"observations": []}),
    "nothing, in a fence": ("Nothing to note.\n```json\n[]\n```", WHOLE.one, {"observations": []}),
    "bare ids": ('["e1", "f2"]', llm_reranker.SCHEMA, {"ids": ["e1", "f2"]}),
    "other ids": ('{"selected": ["e1", "f2"]}', llm_reranker.SCHEMA, {"ids": ["e1", "f2"]}),
    "a text by another name": ('{"summary": "Ana moved."}', text_answer.SCHEMA, {"text": "Ana moved."}),
    "a bare list of one of two kinds": (
        '[{"source_fact_ids": ["f1", "f2"], "merged_content": "x"}]', prune.SCHEMA,
        {"merges": [{"source_fact_ids": ["f1", "f2"], "merged_content": "x"}]},
    ),
    "an object without its list": ("{}", judge.SCHEMA, {}),
    "another object, which the task's parser judges": ('{"notes": []}', WHOLE.one, {"notes": []}),
}  # fmt: skip
UNUSABLE: Final[dict[str, str]] = {
    "empty": "",
    "white space": " \n",
    "prose": "Sure! Here is what I noticed about the user: nothing (yet).",
    "a number": "3",
    "a list of numbers": "[1, 2]",
    "a bare list of strings": '["Works at Fixpoint"]',
    "the schema": json.dumps(WHOLE.one),
    "an opening mark alone": f"<think>{GOOD}",
    "reasoning alone": f"<think>{GOOD}</think> I cannot help with that.",
    "the analysis channel alone": f"<|channel|>analysis<|message|>{GOOD}",
    "not a number": '{"observations": [NaN]}',
    "cut in a string": GOOD[:-30],
    "cut after an item": f'{{"observations": [{ONE}, {{"content": "Does not eat nu',
    "cut after a bracket in a string": f'{{"observations": [{ONE}, {{"evidence": "no [x]',
    "cut after the comma": f'{{"observations": [{ONE},',
    "an empty list in a damaged answer": '{"observations": [{"content": "a", "x": [], oops',
    "far too deep": "[" * 50_000,
    "too many digits": "9" * 5_000,
    "damaged and too long to repair": f'{{"observations": [{{"content": "{"a " * MAX_REPAIRED}",}}]}}',
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_an_answer_is_read(form: str) -> None:
    assert read_answer([FORMS[form]], WHOLE.one) == {"observations": [ITEM]}


@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_an_answer_of_another_shape_is_read(name: str) -> None:
    text, schema, wanted = OTHER_SHAPES[name]
    assert read_answer([text], schema) == wanted


@pytest.mark.parametrize("name", UNUSABLE)
def test_no_answer_is_made_of(name: str) -> None:
    with pytest.raises(UnusableReply):
        read_answer([UNUSABLE[name]], WHOLE.one)


def test_the_first_text_with_an_answer_counts() -> None:
    assert read_answer(["I call the tool.", GOOD, DRAFT], WHOLE.one) == {"observations": [ITEM]}
    with pytest.raises(UnusableReply, match="not JSON"):
        read_answer(["Sorry.", ""], WHOLE.one)


# ------------------------------------------------------------------------------------------------ any text
HOPELESS = ["", " ", "no", "{", "[1,", "NaN", '{"a": Infinity}', "[" * 100_000, "9" * 5_000, "x" * 1_000_001]
SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@pytest.mark.parametrize("text", HOPELESS, ids=lambda text: repr(text[:16]))
def test_what_is_no_answer_is_told_so(text: str) -> None:
    with pytest.raises(UnusableReply):
        read_answer([text], {})


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_read_as_it_is(value: JsonValue) -> None:
    assert read_answer([json.dumps({"v": value})], {}) == {"v": value}


# ------------------------------------------------------------------------------------------------ damaged answers
HOSTILE: Final = st.text(alphabet=st.sampled_from("abc 12.,:;'\"{}[]()\\/\n`<>|é”"), min_size=1, max_size=24)
PLAIN: Final = st.text(alphabet=st.sampled_from("abcdeé 12"), min_size=1, max_size=24).filter(str.strip)


def items(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, JsonValue]]]:
    """Draw items whose fields are in any order."""
    fields: dict[str, st.SearchStrategy[JsonValue]] = {
        "content": texts,
        "evidence": texts,
        "importance": st.sampled_from([0.5, 1]),
        "pinned": st.booleans(),
        "replaces": st.none(),
        "emotion": st.just({"valence": 0.5, "arousal": 0.1}),
    }
    one = st.fixed_dictionaries(fields).flatmap(
        lambda item: st.permutations(list(item)).map(lambda names: {name: item[name] for name in names})
    )
    return st.lists(one, min_size=1, max_size=3)


@given(items(HOSTILE), st.booleans(), st.integers(min_value=0, max_value=2_000))
def test_a_cut_answer_gives_whole_items_or_none(given_items: list[dict[str, JsonValue]], lines: bool, cut: int) -> None:
    def whole(count: int) -> str:
        return json.dumps({"observations": given_items[:count]}, indent=1 if lines else None, ensure_ascii=False)

    text = whole(len(given_items))[: cut % (len(whole(len(given_items))) + 1)]
    brackets = len("\n ]\n}" if lines else "]}")
    not_cut = sum(len(text) >= len(whole(count)) - brackets for count in range(1, len(given_items) + 1))
    try:
        found = read_answer([text], WHOLE.one)
    except UnusableReply:
        return
    assert isinstance(found, dict)
    read = found["observations"]
    assert isinstance(read, list)
    assert all(item in given_items for item in read if _is_complete(item))
    assert len(read) >= not_cut, "an item that is not cut is not lost"


def _is_complete(item: JsonValue) -> bool:
    """Whether the parser of the items takes it: it has a statement and a quote."""
    return isinstance(item, dict) and bool(item.get("content")) and bool(item.get("evidence"))


WRAPPERS = (
    "{}",
    "```json\n{}\n```",
    "Here:\n{}\nOk?",
    "<think>hm</think>{}",
    "hm</think>{}",
    "<|channel|>final<|message|>{}<|return|>",
)


@given(items(HOSTILE), st.sampled_from(WRAPPERS))
def test_what_is_around_an_answer_changes_nothing(given_items: list[dict[str, JsonValue]], wrapper: str) -> None:
    text = json.dumps({"observations": given_items})
    if "<" in wrapper and re.search(r"[<>|]", text):
        return  # marks in a statement
    assert read_answer([wrapper.replace("{}", text)], WHOLE.one) == {"observations": given_items}


@given(items(PLAIN), st.sampled_from(["python", "commas", "names", "lines"]), st.sampled_from(WRAPPERS))
def test_a_repaired_answer_has_the_same_items(
    given_items: list[dict[str, JsonValue]], damage: str, wrapper: str
) -> None:
    answer = {"observations": given_items}
    text = {
        "python": repr(answer),
        "commas": json.dumps(answer, ensure_ascii=False).replace("}", ",}").replace("]", ",]"),
        "names": re.sub(r'"(\w+)":', r"\1:", json.dumps(answer, ensure_ascii=False)),
        "lines": json.dumps(answer, indent=4, ensure_ascii=False).replace("\n", "\r\n\r\n"),
    }[damage]
    read = read_answer([wrapper.replace("{}", text)], WHOLE.one)
    assert read == answer


@given(
    items(HOSTILE),
    st.lists(
        st.tuples(st.integers(0, 5_000), st.sampled_from(["", '"', "{", "}", "[", "]", ",", ":", "\\", "'", "x"]))
    ),
)
def test_a_damaged_answer_never_raises_and_invents_nothing(
    given_items: list[dict[str, JsonValue]], damage: list[tuple[int, str]]
) -> None:
    text = json.dumps({"observations": given_items}, ensure_ascii=False)
    for place, sign in damage:
        at = place % (len(text) + 1)
        text = text[:at] + sign + text[at + 1 :]
    try:
        read = read_answer([text], WHOLE.one)
    except UnusableReply:
        return
    inner = read.get("observations", read) if isinstance(read, dict) else read  # the name of the list may be damaged
    assert _words(json.dumps(inner, ensure_ascii=False)) <= _words(text) | {"observations", "true", "false", "null"}


@given(st.text(alphabet=st.characters(exclude_characters='{["')))
def test_a_text_without_an_object_is_no_answer(text: str) -> None:
    with pytest.raises(UnusableReply):
        read_answer([text], WHOLE.one)


def _words(text: str) -> set[str]:
    return {letter for letter in text if letter.isalpha()}
