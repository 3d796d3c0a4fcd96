"""Secrets after a label, in the languages of `labels/`: the label, a connector, then the value.

The words of a language are data. The rules are the same in every language: a value is quoted, contains a digit or a
symbol, or is the whole object of its clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from ..language.locales.secret_labels import SHARED, SHARED_STEMS, TOPICS, SecretKind
from . import lexicon
from .findings import Finding
from .labels import LABELS, SecretLabels
from .text_view import TextView, lowered
from .told_values import QUOTED, ends_clause, stands_for_another, trimmed, value_end

_SIGN: Final = (
    r"[*_\"'`)\]]{0,3}+[ \t]{0,4}+(?::=|=>|->|==?|:|\||\u2192|\u27a1|>(?=[^\s=])|(?<=[ \t])-(?=[ \t]))"
    r"[ \t]{0,4}+(?:\r?\n[ \t]{0,8}+){0,2}[*_]{0,3}+"
)
_GAP: Final = re.compile(r"(?!\()[^.!?;:=|\n\t<>\[\]{}`,\"\u3002\uff01\uff1f\uff1b\uff0c\u3001]{0,48}+")
"""Text between a label and its connector, such as the purpose of the secret."""
_GAP_WORDS_MAX: Final = 5
_GAP_MAX: Final = 16
"""Maximum number of characters between label and connector in a language without spaces."""
_CONNECTOR_MAX: Final = 40
_CHANGE_NEAR: Final = 48
_BESIDE: Final = re.compile(r"[ \t]{1,3}+(?:#|n[or]\.? )?")
_BESIDE_UNSPACED: Final = re.compile(r"[ \t]{0,3}+")
_FOR: Final = re.compile(r"[ \t](?:[^\W\d_]{1,20}+[ \t]){0,3}?(?P<last>[^\W\d_]{2,20}+)[ \t](?=[^\s:=]{0,32}\d)")
_WORD: Final = re.compile(r"[^\W\d_]{3,24}+(?=[ \t]*+(?:[.,;!)\"]*+(?:\s|$)))")
_WORD_UNSPACED: Final = re.compile(
    r"(?:[\u3040-\u30ff\u4e00-\u9fff]{2,12}+|[A-Za-z]{4,24}+)(?=[ \t]*+(?:[.,;!)\"\n\u3002\uff0c\u3001]|$))"
)
_PHRASE_WORD: Final = re.compile(r"[^\s.,;:!?\"|]{1,24}+")
_PHRASE_WORDS: Final = range(3, 27)
_TOPIC_BEHIND: Final = re.compile(rf"[ -](?:{TOPICS})(?![^\W_])")
_GAP_OF_SPELLED: Final = "[ .*_-]"
_SPELLED_MARKS: Final = " .-_*"
_SPELLED_STEM: Final = 3
"""Number of leading letters of a spelled-out word that are searched first."""
_SPELLED_VALUE: Final = re.compile(r"[^\s\[](?:[ .*_-]\S){3,40}+(?!\S)")


_LETTER: Final = re.compile(r"(?<!\S)\S(?!\S)")
_REGION: Final = 200
"""Number of characters around a word that may contain its label, and around a label that identify its language."""
_NO_MARK: Final = -_REGION - 1
_MARK_MAX: Final = 16
"""Maximum length of a word that identifies a language, in characters."""
_WORDS_MAX: Final = 64
"""Maximum number of different words of labels in a text whose positions are looked up. Above it, the whole text is
searched for labels."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelReader:
    """The compiled labels of one language."""

    words: SecretLabels
    stems: tuple[str, ...]
    spelled_stems: tuple[str, ...]
    """Beginnings of words that are spelled letter by letter."""
    label: re.Pattern[str]
    own_label: re.Pattern[str]
    """Like `label`, without the labels shared by all languages."""
    password: re.Pattern[str]
    """The labels of passwords. A PIN with such a label may contain letters."""
    marks: re.Pattern[str]
    connector: re.Pattern[str]
    about: re.Pattern[str]
    units: re.Pattern[str]
    joint: re.Pattern[str]
    credentials: re.Pattern[str] | None
    change_verbs: re.Pattern[str] | None

    def may_have_own(self, words: str, spelled: str) -> bool:
        """Return whether a text with these words may contain a label that only this language has.

        `spelled` is the whole text when a word in it may be spelled letter by letter, otherwise `words`.
        """
        return any(map(words.__contains__, self.stems)) or any(map(spelled.__contains__, self.spelled_stems))


def label_stems() -> tuple[str, ...]:
    """Return parts of the labels of all languages. A text without any of them contains no label."""
    own = (stem for reader in label_readers() for stem in (*reader.stems, *reader.spelled_stems) if " " not in stem)
    return (*SHARED_STEMS, *own)


def longest_word(stem: str) -> str:
    return max(stem.split(), key=len)


class LabelledText:
    """A text, with the readers of the languages whose labels it may contain. `small`: the text in lower case. `words`:
    the words of the text that may belong to a label."""

    def __init__(self, view: TextView, small: str, words: str) -> None:
        self.view = view
        self.small = small
        self.words = words
        readers = _ascii_readers() if small.isascii() else label_readers()
        self._places: list[int] | None = None
        spelled = small if _LETTER.search(words) else words
        self.readers = [reader for reader in readers if reader.may_have_own(words, spelled)]
        self._all_readers = readers
        self._has_shared = any(map(words.__contains__, SHARED_STEMS)) and _shared_label().search(words) is not None

    def labels(self) -> Iterator[tuple[LabelReader, re.Match[str]]]:
        """Yield each label with the reader of its language."""
        small = self.small
        for start, end in self._regions():
            for reader in self.readers:
                yield from ((reader, label) for label in reader.own_label.finditer(small, start, end))
        if self._has_shared:
            yield from self._shared_labels()

    def _shared_labels(self) -> Iterator[tuple[LabelReader, re.Match[str]]]:
        """Yield the shared labels, once for each language that the surrounding words identify."""
        small, accented = self.small, self.view.original.lower()
        languages = [(reader, _NearMarks(reader.marks, accented)) for reader in self._all_readers]
        for start, end in self._regions():
            for shared in _shared_label().finditer(small, start, end):
                for reader, marks in languages:
                    if marks.are_near(shared.start()):
                        label = reader.label.match(small, shared.start())
                        if label is not None:
                            yield reader, label

    def places(self) -> list[int] | None:
        """Return the sorted positions of the words that may belong to a label; None when there are too many words."""
        if self._places is None:
            words = set(self.words.split())
            if len(words) <= _WORDS_MAX:
                self._places = sorted(place for word in words for place in _places_of(word, self.small))
        return self._places

    def _regions(self) -> list[tuple[int, int]]:
        """Return the spans of the text that may contain labels. Each span begins and ends between words."""
        small = self.small
        places = None if len(small) <= _REGION else self.places()
        if places is None:
            return [(0, len(small))]
        regions = list[tuple[int, int]]()
        for place in places:
            if regions and place + _REGION <= regions[-1][1]:
                continue
            start = small.rfind(" ", 0, max(0, place - _REGION)) + 1
            end = small.find(" ", min(len(small), place + 2 * _REGION))
            end = len(small) if end == -1 else end
            if regions and start <= regions[-1][1]:
                regions[-1] = (regions[-1][0], end)
            else:
                regions.append((start, end))
        return regions


class _NearMarks:
    """The words and letters that identify one language in a text. The positions of the questions ascend, so each part
    of the text is read once."""

    def __init__(self, marks: re.Pattern[str], text: str) -> None:
        self._marks = marks
        self._text = text
        self._mark = self._read = _NO_MARK

    def are_near(self, place: int) -> bool:
        """Return whether a mark begins at most `_REGION` characters from `place`."""
        first, last = place - _REGION, place + _REGION
        if self._mark < first and self._read < last:
            found = self._marks.search(self._text, max(first, self._read), last + _MARK_MAX)
            self._mark = found.start() if found else _NO_MARK
            self._read = self._mark + 1 if found else last
        return first <= self._mark <= last


def _places_of(word: str, small: str) -> Iterator[int]:
    place = small.find(word)
    while place != -1:
        yield place
        place = small.find(word, place + len(word))


@cache
def label_readers() -> tuple[LabelReader, ...]:
    return tuple(map(_reader, LABELS))


@cache
def _ascii_readers() -> tuple[LabelReader, ...]:
    """Return the readers of languages that have labels in ASCII."""
    return tuple(each for each in label_readers() if any(map(str.isascii, each.stems)))


def labelled_secrets(text: LabelledText) -> Iterator[Finding]:
    """Yield the values after labels."""
    view = text.view
    for reader, label in text.labels():
        yield from _values(view, text.small, label, reader)
    for reader in text.readers:
        if reader.credentials is not None:
            yield from _passwords_after_user_names(view.text, text.small, reader.credentials)


def _passwords_after_user_names(text: str, small: str, credentials: re.Pattern[str]) -> Iterator[Finding]:
    for both in credentials.finditer(small):
        end = value_end(text, both.start("value"), "password", named=True, spaced=True)
        if end is not None:
            yield Finding("password", both.start("value"), end)


def _reader(words: SecretLabels) -> LabelReader:
    def folded(pattern: str) -> str:
        return TextView(pattern).text

    own: dict[SecretKind, str] = {kind: folded(pattern) for kind, pattern in words.labels.items()}
    spelled = "|".join(_GAP_OF_SPELLED.join(word) for word in words.spelled)
    if spelled:
        own["password"] = f"{own['password']}|{spelled}"
    both = {kind: "|".join(filter(None, (own.get(kind), SHARED.get(kind)))) for kind in (*own, *SHARED)}
    edge = (r"(?<![^\W_])", r"(?![^\W_])") if words.spaced else ("", "")
    sure, copulas = folded(words.sure_copulas), folded(words.copulas)
    changes = folded(words.changes)
    if words.spaced:
        after = r":?(?:[ \t]++|[ \t]*+\r?\n[ \t]*+)"
        spoken = (
            rf"|(?<=[ \t])(?:(?P<sure>{sure or '(?!)'})|(?P<copula>{copulas})|(?P<change>{changes or '(?!)'})){after}"
        )
    else:
        spoken = rf"|(?P<sure>(?!))|(?P<copula>{copulas})[:,]?[ \t]*+|(?P<change>(?!))"
    return LabelReader(
        words=words,
        stems=tuple(dict.fromkeys(longest_word(folded(stem)) for stem in words.stems)),
        spelled_stems=tuple(_spelled_stems(words.spelled)),
        label=_labels(both, *edge),
        own_label=_labels(own, *edge),
        password=re.compile(both["password"]),
        marks=re.compile(words.marks),
        connector=re.compile(rf"(?P<sign>{_SIGN}){spoken}"),
        about=re.compile(rf"(?:{folded(words.about)})"),
        units=re.compile(rf"[ \t-]?(?:{folded(words.units)})" if words.units else "(?!)"),
        joint=re.compile(
            rf"(?:[,;/]|[ \t]++(?:{folded(words.joints)})(?=[ \t])|\r?\n[ \t]*+(?:[-*\u2022]|\d{{1,2}}[.)])?)[ \t]*+"
        ),
        credentials=re.compile(
            rf"(?:{folded(words.credentials)})(?:[ \t]*+[:=\uff1a][ \t]*+|[ \t]++(?:(?:{copulas})[ \t]++)?)[\"'`]?"
            r"(?P<user>[^\s/|:,]{1,64}+)[ \t]?[/|:,][ \t]?(?P<value>[^\s,;\"'`]{4,64}+)"
        )
        if words.credentials
        else None,
        change_verbs=re.compile(rf"(?<![^\W_])(?:{folded(words.change_verbs)})") if words.change_verbs else None,
    )


def _labels(labels: dict[SecretKind, str], before: str, after: str) -> re.Pattern[str]:
    named = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in labels.items())
    return re.compile(f"{before}(?:{named}){after}")


def _spelled_stems(words: Iterable[str]) -> Iterator[str]:
    return (mark.join(word[:_SPELLED_STEM]) for word in words for mark in _SPELLED_MARKS)


def _values(view: TextView, small: str, label: re.Match[str], reader: LabelReader) -> Iterator[Finding]:
    kind: SecretKind = label.lastgroup  # type: ignore[assignment]
    place = _first_value(view, small, label, kind, reader)
    while place is not None:
        yield Finding(kind, *place)
        if kind not in ("pin", "password"):
            return
        further = reader.joint.match(small, place[1])
        place = further and _plain_value(view.text, small, further.end(), kind, reader, named=False)


def _first_value(
    view: TextView, small: str, label: re.Match[str], kind: SecretKind, reader: LabelReader
) -> tuple[int, int] | None:
    text, end = view.text, label.end()
    if _TOPIC_BEHIND.match(small, end) or lexicon.GENERIC.search(small, max(0, label.start() - 32), label.start()):
        return None
    is_spelled = label[0][1:2] in _SPELLED_MARKS
    gap = _GAP.match(small, end)
    last = gap.end() if gap else end
    for connector in reader.connector.finditer(small, end, min(len(small), last + _CONNECTOR_MAX)):
        between = small[end : connector.start()]
        if connector.start() > last or not _is_gap(between, reader):
            break
        if connector.lastgroup == "change" and not _has_change(small, label.start(), connector.start(), reader):
            continue
        start = connector.end()
        if is_spelled and (letters := _SPELLED_VALUE.match(text, start)):
            return letters.span()
        place = _quoted(text, start, kind, reader) or _plain_value(text, small, start, kind, reader, named=True)
        if place is None and kind == "pin" and reader.password.search(label[0]):
            place = _plain_value(text, small, start, "password", reader, named=True)
        if place is None and _is_sure(view, connector, label):
            place = _whole_object(text, small, start, kind, reader, is_direct=not between)
        if place is not None:
            return place
    beside = (_BESIDE if reader.words.spaced else _BESIDE_UNSPACED).match(small, end)
    if beside is None:
        return None
    place = _quoted(text, beside.end(), kind, reader) or _plain_value(
        text, small, beside.end(), kind, reader, named=False
    )
    return place or _value_after_purpose(text, small, label, kind, reader)


def _value_after_purpose(
    text: str, small: str, label: re.Match[str], kind: SecretKind, reader: LabelReader
) -> tuple[int, int] | None:
    """Return the span of a value after a label and a few words without a connector: `hasło do wifi domek2020`.

    The value must end the clause. The word before the value must not be a function word or a word that describes a
    secret.
    """
    if not reader.words.spaced or _is_shared(label[0]):
        return None
    words = _FOR.match(small, label.end())
    if words is None or _is_about(words["last"], reader):
        return None
    place = _plain_value(text, small, words.end(), kind, reader, named=False)
    if place is None or not ends_clause(text, place[1]):
        return None
    return None if kind == "password" and text[place[0] : place[1]].isdigit() else place


def _is_gap(between: str, reader: LabelReader) -> bool:
    if not reader.words.spaced:
        return len(between) <= _GAP_MAX and reader.about.search(between) is None
    return between.count(" ") <= _GAP_WORDS_MAX


def _has_change(small: str, start: int, end: int, reader: LabelReader) -> bool:
    verbs = reader.change_verbs
    return verbs is not None and verbs.search(small, max(0, start - _CHANGE_NEAR), end) is not None


def _is_sure(view: TextView, connector: re.Match[str], label: re.Match[str]) -> bool:
    """Return whether a single word counts as a value when it is the whole object after this connector.

    In Italian and Portuguese, `e` with an accent is a connector ("is"), but `e` without an accent means "and". A symbol
    after a shared label gives False, because `told_passwords` finds these values.
    """
    if connector.lastgroup == "sign":
        return not _is_shared(label[0])
    if connector.lastgroup == "copula" and label.lastgroup == "passphrase":
        return True
    if connector.lastgroup != "sure":
        return False
    word = connector.group("sure")
    if word != "e":
        return True
    start, end = view.span(*connector.span("sure"))
    return view.original[start : end + 1].strip().lower() not in ("e", "")


@cache
def plain_label() -> re.Pattern[str]:
    """Return the pattern of the labels in `lexicon.py`."""
    named = "|".join(f"(?P<{kind}>{words})" for kind, words in lexicon.NOUNS)
    return re.compile(rf"(?<![^\W_])(?:{named})(?![^\W_])")


@cache
def _shared_label() -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(SHARED.values())})")


def _is_shared(label: str) -> bool:
    return _shared_label().fullmatch(label) is not None


def _quoted(text: str, start: int, kind: SecretKind, reader: LabelReader) -> tuple[int, int] | None:
    quoted = QUOTED.match(text, start)
    if quoted is None or kind in ("api_key", "token"):
        return None
    group = quoted.lastindex or 1
    content = quoted[group].strip()
    if stands_for_another(content) or _is_about(lowered(content), reader) or plain_label().fullmatch(lowered(content)):
        return None
    if kind == "pin" and value_end(content, 0, "pin", named=True, spaced=True) != len(content):
        return None
    return quoted.span(group)


def _plain_value(
    text: str, small: str, start: int, kind: SecretKind, reader: LabelReader, *, named: bool
) -> tuple[int, int] | None:
    form: SecretKind = "password" if kind == "passphrase" else kind
    end = value_end(text, start, form, named=named, spaced=reader.words.spaced)
    if end is None or reader.units.match(small, end) or _is_about(small[start:end], reader):
        return None
    return start, end


def _whole_object(
    text: str, small: str, start: int, kind: SecretKind, reader: LabelReader, *, is_direct: bool
) -> tuple[int, int] | None:
    """Return the span of the word that is the whole rest of the clause, or of the words of a passphrase; None when the
    words describe the secret."""
    if kind == "passphrase" and reader.words.spaced:
        return _phrase(small, start, reader)
    if kind not in ("password", "passphrase") or (not reader.words.spaced and not is_direct):
        return None
    word = (_WORD if reader.words.spaced else _WORD_UNSPACED).match(text, start)
    if word is None or _is_about(small[start : word.end()], reader):
        return None
    if reader.words.spaced and lexicon.TOPIC_ENDINGS.match(small, start, word.end()):
        return None
    return word.span() if reader.label.fullmatch(small, *word.span()) is None else None


def _phrase(small: str, start: int, reader: LabelReader) -> tuple[int, int] | None:
    words, place = list[str](), start
    while len(words) < _PHRASE_WORDS.stop and (word := _PHRASE_WORD.match(small, place)):
        words.append(word[0])
        end = word.end()
        place = end + len(small[end : end + 2]) - len(small[end : end + 2].lstrip(" "))
        if place == end:
            break
    if len(words) not in _PHRASE_WORDS:
        return None
    said = sum(_is_about(word, reader) for word in words)
    return (start, end) if said <= len(words) / 3 else None


def _is_about(words: str, reader: LabelReader) -> bool:
    """Return whether these lower-case words describe a secret."""
    if reader.words.spaced:
        word = trimmed(words).rstrip("!?")
        return word in lexicon.TOPIC or reader.about.fullmatch(word) is not None
    return reader.about.search(words) is not None
