"""Locale packs: what a definition refuses, how an installed package brings one, and which pack reads a text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.language.identification import pack_of
from memstream.memory.language.locales import (
    EventWords,
    Implied,
    LocalePackError,
    Markers,
    PredicateRule,
    TimeWords,
    available_locales,
    define_locale_pack,
    locale,
    locales,
)
from memstream.memory.language.locales.definition import check_locale_pack
from memstream.memory.language.parsing import predicate_of, read
from memstream.memory.policies import ConflictPolicy

HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "add-a-language.md"
WALKS = PredicateRule("walks", "multi", ("walk",))

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution, as pip does, into a folder of `sys.path`."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules: list[str] = []

    def distribution(package: str, entry: str, *, source: str) -> None:
        name, _, target = entry.partition("=")
        module = target.partition(":")[0].strip()
        (site / f"{module}.py").write_text(source, encoding="utf-8")
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[memstream.locales]\n{name} ={target}\n", encoding="utf-8")
        modules.append(module)

    _forget()
    yield distribution
    for module in modules:
        sys.modules.pop(module, None)
    _forget()


def _forget() -> None:
    locale.cache_clear()
    locales.cache_clear()
    pack_of.cache_clear()


def how_to_source() -> str:
    found = re.search(r"```python\n(# acme_dutch\.py\n.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


class TestDefinition:
    @pytest.mark.parametrize(
        ("fields", "names", "fix"),
        [
            ({"name": "English"}, "name: 'English'", "'en', 'pt-br'"),
            ({"ends": "stop"}, "ends: str given", 'phrases("…")'),
            ({"stop_words": ("a",)}, "stop_words: tuple given", "frozenset("),
            ({"verbs": ["walk"]}, "verbs: list given", "a mapping"),
            ({"markers": Markers(negations="not")}, "markers.negations: str given", 'phrases("…")'),  # type: ignore[arg-type]
            ({"rules": (PredicateRule("lives in", "single", ("live",)),)}, "rules[0] (lives in)", "a-z, 0-9 and _"),
            ({"rules": (PredicateRule("lives_in", "one", ("live",)),)}, "valued 'one'", "single, multi, unsure"),  # type: ignore[arg-type]
            ({"rules": (PredicateRule("lives_in", "single", ()),)}, "rules[0] (lives_in)", "at least one phrase"),
            ({"rules": (PredicateRule("age", "single", ("# years",)),)}, "'# years' begins with '#'", "begin with a"),
            ({"begins": ("{start,begin} to",)}, "begins: '{start,begin} to'", "phrases('…')"),
            ({"markers": Markers(hedges=("Might",))}, "markers.hedges: 'Might'", "'might'"),
            ({"times": frozenset(("May",))}, "times: 'May'", "'may'"),
            ({"time_words": TimeWords(months={"May": 5})}, "time_words.months: 'May'", "'may'"),
            ({"event_words": EventWords(light=frozenset(("Got",)))}, "event_words.light: 'Got'", "'got'"),
            ({"event_words": EventWords(about=("to",))}, "event_words.about: tuple given", "frozenset("),  # type: ignore[arg-type]
            ({"people": frozenset(("best friend",))}, "people: 'best friend'", "single words"),
            ({"verbs": {"went": ("go", "gone")}}, "'went' has the tense 'gone'", "participle"),
            ({"copulas": frozenset(("be",))}, "copulas: 'be'", "add its forms"),
            ({"owning": "owns"}, "owning: no rule has the predicate 'owns'", "add one to rules"),
            ({"implied": (Implied("walks", frozenset(("as",)), "runs"),)}, "implied[0].other", "'runs'"),
            ({"numbers": {"ten": "ten"}}, "numbers: 'ten'", "write digits"),
            ({"suffixes": (("", "x"),)}, "suffixes: an empty ending", "remove it"),
            ({"letters": {"ü": "ue"}, "times": frozenset(("früh",))}, "times: 'früh' is never found", "'frueh'"),
        ],
    )
    def test_an_error_names_the_field_and_the_fix(self, fields: dict[str, Any], names: str, fix: str) -> None:
        given: dict[str, Any] = {"name": "xx", "rules": (WALKS,), **fields}
        with pytest.raises(LocalePackError) as refused:
            define_locale_pack(**given)
        assert names in str(refused.value)
        assert fix in str(refused.value)

    def test_all_problems_are_told_at_once(self) -> None:
        with pytest.raises(LocalePackError) as refused:
            define_locale_pack(name="xx", ends=("Stop",), begins=("Start",))
        assert "ends: 'Stop'" in str(refused.value)
        assert "begins: 'Start'" in str(refused.value)

    def test_at_most_twenty_problems_are_listed(self) -> None:
        with pytest.raises(LocalePackError, match="and 5 more") as refused:
            define_locale_pack(name="xx", ends=tuple(f"Stop{letter}" for letter in "abcdefghijklmnopqrstuvwxy"))
        assert str(refused.value).count("\n- ends: ") == 20

    @pytest.mark.parametrize("name", available_locales())
    def test_our_own_packs_are_well_formed(self, name: str) -> None:
        check_locale_pack(locale(name))

    def test_a_pack_needs_no_more_than_a_name(self) -> None:
        pack = define_locale_pack(name="xx")
        assert predicate_of("Anything that one can say, and 3 more.", pack) is None
        assert read("", pack)


class TestRegistry:
    def test_an_unknown_name_tells_what_there_is(self) -> None:
        with pytest.raises(ValueError, match=r"no locale 'xx'; the locales are .*\ben\b.*memstream\.locales"):
            ConflictPolicy(locale="xx")

    @pytest.mark.parametrize(("names", "what"), [("", "empty name"), ("en,,", "empty name"), ("en, en", "'en' twice")])
    def test_a_list_with_faults_is_refused(self, names: str, what: str) -> None:
        with pytest.raises(ValueError, match=what):
            ConflictPolicy(locale=names)

    def test_an_installed_package_brings_a_pack(self, install: Install) -> None:
        install("acme-dutch", "nl = acme_dutch:DUTCH", source=how_to_source())
        assert "nl" in available_locales()
        assert "acme_dutch" not in sys.modules  # not before it is asked for
        policy = ConflictPolicy(locale="en, nl")
        assert pack_of("Woont in Utrecht", policy.locale).name == "nl"
        assert pack_of("Lives in Utrecht", policy.locale).name == "en"
        pack = locale("nl")
        assert predicate_of("Verhuisde naar Utrecht", pack) == "lives_in"
        assert predicate_of("Werkt bij Bosch", pack) == "works_at"

    @pytest.mark.parametrize(
        ("entry", "source", "what"),
        [
            ("xa = bad_import:PACK", "import no_such_module_here", r"acme.*cannot be imported: ModuleNotFoundError"),
            ("xb = bad_name:NOTHING", "", r"acme.*cannot be imported: AttributeError"),
            ("xc = bad_kind:PACK", "PACK = {'name': 'xc'}", r"acme.*is a dict.*define_locale_pack"),
            ("xd = bad_code:PACK", "PACK = 1 / 0", r"acme.*ZeroDivisionError"),
            (
                "xe = other_name:PACK",
                "from memstream.memory.language.locales import define_locale_pack as define\nPACK = define(name='xf')",
                r"acme.*has the name 'xf'.*must have the same name",
            ),
            (
                "xg = not_checked:PACK",
                "from memstream.memory.language.locales import Locale\nPACK = Locale(name='xg', ends=('Stop',))",
                r"acme.*cannot be used.*\n- ends: 'Stop'",
            ),
        ],
    )
    def test_a_pack_that_cannot_be_used_names_its_package(
        self, install: Install, entry: str, source: str, what: str
    ) -> None:
        install("acme", entry, source=source)
        with pytest.raises(ValueError, match=re.compile(what, re.DOTALL)):
            ConflictPolicy(locale=entry[:2])

    def test_two_packs_of_one_name_are_refused(self, install: Install) -> None:
        install("acme", "en = acme_english:PACK", source="")
        with pytest.raises(ValueError, match=r"'en' is in memstream and in acme: uninstall one"):
            locale("en")

    def test_a_pack_that_nobody_names_is_not_imported(self, install: Install) -> None:
        install("acme", "xz = broken_pack:PACK", source="raise RuntimeError('imported')")
        assert ConflictPolicy(locale="en").locale == "en"


class TestIdentification:
    @pytest.mark.parametrize(
        "text",
        [
            "Vive en Sevilla",
            "Mora no Porto",  # no: in the
            "Come carne",  # come: eats
            "Habite à Lyon",
            "Abita a Torino",
            "Mieszka w Krakowie",
            "Ankara'da yaşıyor",
            "東京に住んでいる",
            "住在北京",
            "يعيش في القاهرة",
            "Живёт в Казани",
            "อาศัยอยู่ในกรุงเทพ",
        ],
    )
    def test_a_language_without_a_pack_is_read_by_none(self, text: str) -> None:
        assert pack_of(text, "en").name == "und"

    @pytest.mark.parametrize(
        "text", ["Yodels", "Is Italian", "Lives in Rio de Janeiro", "Thesis topic is tea", "", "42"]
    )
    def test_what_no_other_language_claims_is_read_by_the_first(self, text: str) -> None:
        assert pack_of(text, "en").name == "en"

    def test_between_equals_frequent_words_decide_and_then_the_order(self) -> None:
        assert pack_of("Speaks French", "de, en").name == "en"
        assert pack_of("Mag Jazz", "en, de").name == "de"
        assert [pack_of("Procrastinates", names).name for names in ("en, de", "de, en")] == ["en", "de"]
