"""Tokenizer: split a statement into words, and normalise their spelling, inflection and numbers; pure.

The words and rules of the language come from the locale pack.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .locales import Locale, Nouns

_TOKEN = re.compile(r"\d+(?:[.:/]\d+)*|[^\W\d_]+(?:['.&@+-]?[^\W_]+)*(?:[+#]+(?!\w))?|[€$%;,]|\.(?=\s+[A-Z])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_THOUSANDS_POINT = re.compile(r"(?<=\d)\.(?=\d{3}\b)")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_ADJECTIVE_ENDINGS = ("e", "en", "er", "es", "em")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)
_ABBREVIATION = 3
"""Maximum number of letters of an abbreviation (Dr., St.). A full stop after such a word does not end a sentence."""
_DETERMINED_WITHIN = 24
"""Number of words before a noun in which its determiner is searched."""
_SHORTEST_STEM = 3
"""Minimum number of letters in a stem."""
_SHORTEST_INFLECTED = 4
"""A capitalised word with at most this number of letters is never an inflected form of a known noun, because short
nouns are too similar: `Main` is not a form of `Mai`."""

WORDS_KEPT = 8_192
"""Number of words in each cache of word forms. The caches save time, because most words occur in many texts."""

_LongForms = tuple[tuple[str, re.Pattern[str], str], ...]

Segment = tuple[str, ...]
"""The words that name one thing: for example the words between two prepositions."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a statement, in the forms that the rules compare."""

    text: str
    """The word in lower case."""
    base: str
    """The base form of a verb; the text for any other word."""
    word: str
    """The form for comparison: the stem, or a number in digits."""
    tense: str | None = None
    """For a verb: base, present, past, participle or ongoing."""
    is_name: bool = False
    is_number: bool = False
    is_noun: bool = False
    """True when the word is a noun, in a language that writes nouns with a capital letter."""

    @property
    def is_break(self) -> bool:
        return self.text in (",", ";", ".")


def tokens(text: str, pack: Locale) -> list[Token]:
    plain = _respelled(unicodedata.normalize("NFC", text).replace("’", "'"), pack)
    contractions, aliases = _long_forms(pack)
    plain = _written_out(plain, contractions, ignores_case=True)
    plain = _ORDINAL.sub(r"\1", _with_decimal_point(plain, pack))
    plain = _written_out(plain, aliases, ignores_case=False)
    parts = list(_parts(plain, pack))
    shouted = all(part == part.upper() for part in parts)
    found = [each for place, part in enumerate(parts) for each in _split(part, place, parts, pack, shouted=shouted)]
    kept = [each for place, each in enumerate(found) if each.text != "." or not _abbreviates(found, place)]
    return list(_named(_numbers_joined(kept, pack), pack))


@lru_cache(maxsize=8)
def _long_forms(pack: Locale) -> tuple[_LongForms, _LongForms]:
    """Return the contractions and the aliases of a pack, each as short form, pattern and long form."""
    contractions = (
        (short.casefold(), re.compile(rf"{re.escape(short)}(?!\w)", re.IGNORECASE), long)
        for short, long in pack.contractions.items()
    )
    aliases = ((short, re.compile(rf"(?<!\w){re.escape(short)}(?!\w)"), long) for short, long in pack.aliases.items())
    return tuple(contractions), tuple(aliases)


def _written_out(text: str, forms: _LongForms, *, ignores_case: bool) -> str:
    """Replace short forms by their long forms, one by one.

    In an ASCII text, a simple substring test skips the short forms that do not occur. It is faster than the pattern.
    """
    seen = (text.lower() if ignores_case else text) if text.isascii() else None
    for short, pattern, long in forms:
        if seen is None or short in seen:
            text = pattern.sub(long, text)
            seen = (text.lower() if ignores_case else text) if text.isascii() else None
    return text


def _parts(plain: str, pack: Locale) -> Iterator[str]:
    for part in _TOKEN.findall(plain):
        pieces = part.split("-")
        if len(pieces) > 1 and all(piece.lower() in pack.numbers for piece in pieces):
            yield from pieces
        else:
            yield part


def _respelled(text: str, pack: Locale) -> str:
    for letter, instead in pack.letters.items():
        text = text.replace(letter, instead).replace(letter.upper(), instead.capitalize())
    return text


def _with_decimal_point(text: str, pack: Locale) -> str:
    """Remove thousands separators, and replace a decimal comma by a point."""
    if pack.decimal_mark == ".":
        return _THOUSANDS.sub("", text)
    return _DECIMAL_COMMA.sub(".", _THOUSANDS_POINT.sub("", text))


def _split(part: str, place: int, parts: Sequence[str], pack: Locale, *, shouted: bool) -> list[Token]:
    """Return the tokens of a part: two tokens for a compound noun with a known head, otherwise one.

    `shouted` is True when the whole text is in capital letters.
    """
    nouns, word = pack.nouns, part.lower()
    name = (
        place > 0
        and part[0].isupper()
        and word not in pack.occupations
        and not (shouted and _is_known_word(word, pack))  # capitals mark no name if the whole text is in capitals
    )
    if nouns is None or not part[0].isupper():
        return [_token(part, name, pack)]
    if place == 0 or parts[place - 1] in (".", ";"):
        return [_token(part, False, pack)]
    pieces = compound(word, nouns)
    if len(pieces) > 1:
        made = [_as_noun(_token(piece, False, pack), pack) for piece in pieces]
        return made[::-1] if made[-1].tense == "ongoing" else made  # das Klavierspielen becomes `spielen klavier`
    before = parts[max(0, place - _DETERMINED_WITHIN) : place]
    if _is_known_noun(word, before, pack, nouns):
        return [_as_noun(_token(part, False, pack), pack)]
    common = follows_determiner(before, pack, nouns) and not part.isupper()
    return [replace(_token(part, True, pack), is_name=not common, is_noun=True)]


def _is_known_word(word: str, pack: Locale) -> bool:
    return word in pack.verbs or word in pack.separators or word in pack.stop_words


def _as_noun(token: Token, pack: Locale) -> Token:
    """Return the token as a noun. An infinitive that is used as a noun names an action and keeps its verb (das
    Rauchen). Any other noun is not a verb form."""
    if token.tense is None or token.is_number:
        return replace(token, is_noun=True)
    if token.tense == "base":
        return replace(token, tense="ongoing", is_noun=True)
    return Token(token.text, token.text, compared(token.text, pack), is_noun=True)


def compound(word: str, nouns: Nouns) -> list[str]:
    """Split a compound noun before its head, and drop the linking letters: `mandelallergie` becomes `mandel` and
    `allergie`."""
    head = max((each for each in nouns.heads if word.endswith(each)), key=len, default="")
    first = word.removesuffix(head).removesuffix("-")
    if not head or len(first) < _SHORTEST_STEM:
        return [word]
    link = next((each for each in nouns.links if first.endswith(each) and first.removesuffix(each) in nouns.known), "")
    return [first.removesuffix(link), head]


def _is_known_noun(word: str, before: Sequence[str], pack: Locale, nouns: Nouns) -> bool:
    if word in nouns.known or word in pack.occupations or word.endswith(nouns.endings):
        return True
    if before[-1].lower() in nouns.before_places:
        return False  # `in Essen`, `nach Bergen`: a town, not the noun
    inflected = len(word) > _SHORTEST_INFLECTED and stem(word, pack) in compared_all(nouns.known, pack)
    return inflected or pack.verbs.get(word, ("", ""))[1] == "base"


def follows_determiner(before: Sequence[str], pack: Locale, nouns: Nouns) -> bool:
    """Return whether the word after `before` follows a determiner. Adjectives may be in between."""
    place = len(before) - 1
    while place >= 0 and before[place][0].islower() and before[place].endswith(_ADJECTIVE_ENDINGS):
        if before[place] in nouns.determiners or before[place] in nouns.articles:
            break
        place -= 1
    last = before[place].lower() if place >= 0 else ""
    if last in nouns.determiners or last in pack.numbers:
        return True
    return last in nouns.articles and (place == 0 or before[place - 1].lower() not in pack.separators)


@lru_cache(maxsize=WORDS_KEPT)
def _token(part: str, name: bool, pack: Locale) -> Token:
    text = part.lower()
    if text[0].isdigit():
        return Token(text, text, _number(text), is_number=True)
    if text in pack.numbers:
        return Token(text, text, pack.numbers[text], is_number=True)
    base, tense = pack.verbs.get(text, (text, None)) if not name else (text, None)
    word = pack.same_words.get(text, _singular(text, pack)) if name else compared(text, pack)
    return Token(text, base, word, tense, is_name=name)


def _singular(name: str, pack: Locale) -> str:
    """Return a name without a possessive ending. A name of a time, such as a weekday, also loses its plural ending:
    `tuesdays` becomes `tuesday`."""
    plain = name.removesuffix("'s")
    return plain.removesuffix("s") if plain.removesuffix("s") in pack.times else plain


def stem(word: str, pack: Locale) -> str:
    """Return a word without its endings: `smokes`, `smoking` and `smoked` become `smok`. A stem is only for comparison,
    so it may be no word of the language."""
    for ending, instead in pack.suffixes:
        left = word.removesuffix(ending)
        if left != word and len(left) >= _SHORTEST_STEM - (len(ending) < 3):
            if left + instead == word:
                return word
            word = pack.same_words.get(left + instead, left + instead)
    for letters, instead in pack.stem_letters.items():
        word = word.replace(letters, instead)
    doubled = len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeioulsz"
    return word[:-1] if doubled else word


def akin(one: str, other: str, pack: Locale) -> bool:
    """Return whether two words are equal, or one is the person who does the action of the other: `teach`, `teacher`."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) > _SHORTEST_STEM and long.removeprefix(short) in pack.agents)


def _number(text: str) -> str:
    """Return a number in normal form: `1.80` becomes `1.8`, `7:00` becomes `7`."""
    plain = text.removesuffix(":00")
    return plain.rstrip("0").rstrip(".") if re.fullmatch(r"\d+\.\d+", plain) else plain.lstrip("0") or "0"


def _abbreviates(found: Sequence[Token], place: int) -> bool:
    return place > 0 and len(found[place - 1].text) <= _ABBREVIATION


def _numbers_joined(found: Sequence[Token], pack: Locale) -> list[Token]:
    """Join the words of one number: `twenty five` becomes 25, `50 k` becomes 50000."""
    done: list[Token] = []
    for token in found:
        last = done[-1] if done and done[-1].is_number and done[-1].word.isdecimal() else None
        spelled = token.is_number and not token.text[0].isdigit()
        if last is not None and spelled and last.word.endswith("0") and len(last.word) > len(token.word):
            done[-1] = replace(last, word=str(int(last.word) + int(token.word)))
        elif last is not None and token.text in pack.multiples:
            factor = pack.multiples[token.text]
            done[-1] = replace(last, word=str(int(last.word) * factor))
            done += [token] if factor == 1 else []
        else:
            done.append(token)
    return done


def _named(found: Sequence[Token], pack: Locale) -> Iterator[Token]:
    """Join a word such as `New` with the name after it: `New York` is one name, different from `York`."""
    before: Token | None = None
    for token in found:
        if before is not None:
            if token.is_name:
                yield replace(token, text=f"{before.text} {token.text}", word=f"{before.word} {token.word}")
                before = None
                continue
            yield before
            before = None
        if token.is_name and token.text in pack.name_makers:
            before = token
        else:
            yield token
    if before is not None:
        yield before


def content(found: Sequence[Token], pack: Locale) -> Segment:
    return tuple(token.word for token in counted(found, pack))


def counted(found: Sequence[Token], pack: Locale) -> list[Token]:
    return [token for token in found if counts(token, pack)]


def counts(token: Token, pack: Locale) -> bool:
    if token.is_break:
        return False
    if token.is_name and (token.is_noun or token.text in pack.articles):
        return True  # a name that is also a small word: the river Oder, blood type A
    return token.is_number or (token.text not in pack.stop_words and token.text not in pack.separators)


def segments(found: Sequence[Token], pack: Locale) -> list[list[Token]]:
    """Split tokens into things: at punctuation, prepositions, numbers, articles and adverbs. Stop words are left
    out. The object of `likes their job` is `job`: a weak noun at the end that is its own thing."""
    things: list[list[Token]] = [[]]
    for token in found:
        if (
            token.is_break
            or (token.text in pack.separators and not (token.is_name and token.is_noun))
            or (token.text in pack.articles and things[-1] and not token.is_name)
        ):
            things.append([])
        elif token.is_number:
            things.append([token])
        elif says_how(token, pack):
            things += [[token], []] if not things[-1] else [[token]]
        elif counts(token, pack):
            things[-1].append(token)
    if found and not things[-1] and found[-1].text in pack.weak_nouns:
        things[-1].append(found[-1])
    return [segment for segment in things if segment]


def says_how(token: Token, pack: Locale) -> bool:
    manner = bool(pack.manner) and token.text.endswith(pack.manner) and len(token.text) > len(pack.manner) + 2
    return manner and not token.is_name and token.text not in pack.not_manner


def tells_when(word: str, pack: Locale) -> bool:
    return word in pack.times or word in compared_all(pack.times, pack)


@lru_cache(maxsize=8)
def generals(pack: Locale) -> Mapping[str, frozenset[str]]:
    """Return the kinds of each thing, for example `alcohol` for `wine`, with all words in the form for comparison."""
    return {compared(each, pack): frozenset(compared(one, pack) for one in over) for each, over in pack.kinds.items()}


@lru_cache(maxsize=32)
def compared_all(words: frozenset[str], pack: Locale) -> frozenset[str]:
    return frozenset(compared(each, pack) for each in words)


@lru_cache(maxsize=WORDS_KEPT)
def compared(word: str, pack: Locale) -> str:
    """Return the form for comparison of a word that is not a name."""
    base, _ = pack.verbs.get(word, (word, None))
    same = pack.same_words.get(word)
    return stem(base if same is None else same, pack)
