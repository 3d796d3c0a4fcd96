"""Words from memory in a note: they are shown as they are, and do nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memstream.client.formats.note_text import as_markdown, file_name, front_matter, link, quoted, tags_line

MARKS = "\\`*_{}[]<>#|$^=~%&!-+.:()1 \t\n\"'/ab"
WORDS = st.text(st.sampled_from(MARKS) | st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=80)
RENDERERS = (MarkdownIt("commonmark", {"html": True}), MarkdownIt("gfm-like", {"html": True, "linkify": False}))


class _Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def plain(text: str) -> str:
    """Return the words as a reader sees them: white space is one space, and hidden characters are marked."""
    hidden = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
    return " ".join(hidden.sub("\ufffd", text.strip()).replace("\u00a0", " ").split())


@given(WORDS)
@example("--- \n# a\n[[x]] <script> `c` ==m== ~~s~~ %%c%% $m$ ^b #t &lt; | - |")
@example("    code\n\tcode")
@example("1. one\n2) two\n- three\n+ four\n> five\n===\n***\n~~~\n```")
@settings(max_examples=150, deadline=None)
def test_words_are_rendered_as_they_are(words: str) -> None:
    for render in RENDERERS:
        line = _Seen(render.render(f"- Value: {as_markdown(words)}\n"))
        assert line.tags == {"ul", "li"}
        assert plain(line.text) == plain(f"Value: {' '.join(words.split())}")
        quote = _Seen(render.render(f"x\n\n{quoted(words)}\n"))
        assert quote.tags <= {"p", "blockquote", "br"}
        assert plain(quote.text) == plain(f"x {' '.join(words.split())}")


@given(WORDS)
@settings(max_examples=150, deadline=None)
def test_words_are_no_syntax_of_obsidian(words: str) -> None:
    for text in (as_markdown(words), quoted(words)):
        unescaped = re.sub(r"\\[^\w\s]", "", text)
        assert not re.search(r"\[\[|==|~~|%%|[$^|`]|(?<!&)#", unescaped)
    assert re.fullmatch(r"\[\[a/b\|[^\[\]|\n<>`]+\]\]", link("obsidian", "a/b", words))
    for tag in tags_line("obsidian", [words]).split():
        assert re.fullmatch(r"#(?=.*[^\d/_-])[\w/-]+", tag)


@given(WORDS, WORDS)
@settings(max_examples=100, deadline=None)
def test_a_file_name_is_valid_everywhere(words: str, name: str) -> None:
    made = file_name(words, "fact", name)
    assert re.fullmatch(r"[\w-]+", made)
    assert len(made.encode()) < 240
    assert made == made.casefold()
    assert made != file_name(words, "fact", f"{name}x")


@given(st.dictionaries(WORDS.filter(bool), WORDS | st.floats(allow_nan=False, allow_infinity=False), max_size=3))
@settings(max_examples=50, deadline=None)
def test_front_matter_is_yaml_of_one_document(metadata: dict[str, object]) -> None:
    text = front_matter({"title": "a: b"}, {"content": "---\n...\n", "metadata": metadata})
    fence, *lines, last = text.splitlines()
    assert (fence, last) == ("---", "---")
    assert "---" not in lines
    read = yaml.safe_load("\n".join(lines))
    assert read["title"] == "a: b"
    assert read["record"]["content"] == "---\n...\n"
    assert list(read["record"]["metadata"]) == list(metadata)


@pytest.mark.parametrize(
    ("tags", "line"),
    [
        (["tea"], "#tea"),
        (["green tea"], "#green-tea"),
        (["2026"], "#n2026"),
        (["#a b", "!"], "#a-b"),
        (["Tee/日本"], "#Tee/日本"),
    ],
)
def test_tags_of_obsidian(tags: list[str], line: str) -> None:
    assert tags_line("obsidian", tags) == line
