"""How well candidates fit a cue, compared with each other."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from hypothesis import given
from hypothesis import strategies as some

from memstream.memory.language.locales import locale
from memstream.memory.recall.cue_fit import (
    OTHER_FORM,
    SAME_TOPIC,
    FitText,
    _asked,
    _CueWords,
    _forms,
    fits,
    stems,
    topics,
)

ENGLISH = locale("en")


def best(cue: str, *texts: FitText, meanings: bool = True) -> str:
    """Return the content that fits best."""
    found = fits(cue, texts, ENGLISH, meanings=meanings)
    return texts[found.index(max(found))].content


def user(content: str, *beside: str, similarity: float | None = None) -> FitText:
    return FitText(content, "user", beside, similarity=similarity)


JOB, HOME, CAT = user("Works at Stripe"), user("Lives in Potsdam"), user("Has a cat called Nori")


def test_the_words_of_the_cue_decide_in_any_form() -> None:
    assert best("where do I work?", JOB, HOME, CAT) == JOB.content
    assert best("am I living in a town?", JOB, HOME, CAT) == HOME.content
    assert best("Nori's age", JOB, HOME, CAT) == CAT.content


def test_a_word_of_the_same_topic_counts_less_than_the_word() -> None:
    assert best("what's my job", JOB, HOME, CAT) == JOB.content
    assert best("job", user("Has a job interview on Monday"), JOB) == "Has a job interview on Monday"


def test_a_slip_of_the_keyboard_is_understood_unless_the_word_is_known() -> None:
    assert best("alergic", user("Is allergic to peanuts"), JOB) == "Is allergic to peanuts"
    assert best("stripes", user("Likes stripes"), user("Likes strife")) == "Likes stripes"


def test_a_statement_about_another_needs_its_name_or_what_it_is_to_the_user() -> None:
    tom = FitText("Lives in Vienna", "tom")
    brother = FitText("Is the user's brother", "tom", relationship=True)
    assert best("where do I live", tom, brother, HOME) == HOME.content
    assert best("where does Tom live", tom, brother, HOME) == tom.content
    assert best("where does my brother live", tom, brother, HOME) == tom.content


def test_a_relationship_told_of_the_user_names_the_other_too() -> None:
    tom = FitText("Lives in Vienna", "tom")
    brother = FitText("Has a brother named Tom", "user", relationship=True)
    assert best("where does my brother live", brother, tom, HOME) == tom.content


def test_of_equals_the_newer_fits_better() -> None:
    old = FitText("Has a lesson on Monday", "user", at="2026-01-01T00:00:00Z")
    new = FitText("Has a lesson on Friday", "user", at="2026-02-01T00:00:00Z")
    assert best("when is my lesson", old, new) == new.content


def test_the_quote_of_the_evidence_counts_less_than_the_statement() -> None:
    quote = "My brother Tom lives in Vienna"
    assert best("brother", user("Lives in Vienna", quote), JOB) == "Lives in Vienna"
    assert best("brother", user("Has a brother", quote), user("Lives in Vienna", quote)) == "Has a brother"


def test_a_rare_word_counts_more_than_one_that_all_contain() -> None:
    texts = [user(f"Reads a book about {each}") for each in ("bees", "trains", "wine")]
    assert best("book about trains", *texts) == "Reads a book about trains"


def test_the_meaning_decides_where_no_word_is_shared() -> None:
    wine, tea = user("Abstains from alcohol", similarity=0.5), user("Plays chess", similarity=0.1)
    assert best("does he enjoy beer", tea, wine) == wine.content
    assert fits("beer", [tea, wine], ENGLISH, meanings=False) == [0.0, 0.0]


def test_equal_texts_of_several_tiers_fit_equally() -> None:
    entry, fact = user("Works at Stripe"), user("Works at Stripe", similarity=0.4)
    assert fits("where do I work", [entry, fact, user("Likes tea", similarity=0.1)], ENGLISH)[:2] == [1.0, 1.0]


def test_any_cue_is_answered() -> None:
    assert fits("…", [JOB], ENGLISH) == [0.0]
    assert fits("who am I", [], ENGLISH) == []
    assert fits("who am I", [user("Name is Ana, who am I")], ENGLISH) == [1.0]


WORDS = (
    "work",
    "works",
    "working",
    "job",
    "town",
    "lives",
    "living",
    "potsdam",
    "allergic",
    "alergic",
    "cat",
    "the",
    "my",
)
texts = some.lists(some.sampled_from(WORDS), max_size=6).map(" ".join)


@given(cue=texts, contents=some.lists(texts, min_size=1, max_size=5), quotes=some.lists(texts, min_size=5, max_size=5))
def test_a_word_of_the_cue_counts_what_counts_most_for_it(cue: str, contents: list[str], quotes: list[str]) -> None:
    said, quoted = [stems(each, ENGLISH) for each in contents], [stems(each, ENGLISH) for each in quotes]
    words = _CueWords(cue, said, quoted, ENGLISH)
    asked = _asked(cue, ENGLISH)
    forms, same = _forms(asked, frozenset[str]().union(*said, *quoted), ENGLISH), topics(ENGLISH)

    def counts(word: str, among: AbstractSet[str]) -> float:
        if word in among:
            return 1.0
        if forms[word] & among:
            return OTHER_FORM
        related = frozenset[str]().union(*(same.get(each, frozenset()) for each in (word, *forms[word])))
        return SAME_TOPIC if related & among else 0.0

    def covered(contained: Sequence[tuple[float, AbstractSet[str]]]) -> float:
        most = {word: max(share * counts(word, among) for share, among in contained) for word in asked}
        total = sum(words._weights[word] for word in asked)
        return sum(words._weights[word] * most[word] for word in asked) / total if total else 0.0

    for own, quote in zip(said, quoted, strict=False):
        assert words.coverage(own, frozenset(), quote) == covered(((1.0, own), (0.4, quote)))
        assert words.name(own) == any(counts(word, own) > 0 for word in asked)
