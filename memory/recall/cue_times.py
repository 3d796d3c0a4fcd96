"""Times that a cue names: yesterday, last week, in March, since 2024. Pure (docs/design/recall.md).

The words are data of the locale packs (`Locale.time_words`). A cue is read once from left to right, and each place is
compared with at most a few words, so the work is linear in the length of the cue.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from ..language.locales import Locale
from ..language.locales.pack import TimeRelation, TimeUnit

RECENT_DAYS: Final = 14
"""Days of a time such as `recently`."""
OUTSIDE: Final = 0.5
"""Greatest closeness of a record outside of the named time."""
_OPEN_DAYS: Final = 30.0
"""The length in days of a time without a begin or an end, for the decay outside of it."""
_COUNT_MAX: Final = 10_000
_SKIP_MAX: Final = 4
_PHRASE_MAX: Final = 4
_TOKEN: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}\.\s?\d{1,2}\.\s?\d{4}|\d+(?:st|nd|rd|th)?|[^\W\d_]+")
_YEARS: Final = range(1900, 2101)


@dataclass(frozen=True, slots=True)
class CueTime:
    """A time from `start` to before `end`. None means that it has no begin, or no end."""

    start: datetime | None
    end: datetime | None

    def closeness(self, moment: datetime) -> float:
        """Return 1 inside of the time. Outside, return at most `OUTSIDE`, halved for each length of the time."""
        if self.start is not None and moment < self.start:
            away = self.start - moment
        elif self.end is not None and moment >= self.end:
            away = moment - self.end
        else:
            return 1.0
        days = _OPEN_DAYS if self.start is None or self.end is None else (self.end - self.start) / timedelta(days=1)
        return OUTSIDE * float(0.5 ** (away / timedelta(days=max(1.0, days))))


def find_cue_time(cue: str, packs: Sequence[Locale], *, now: datetime, zone: tzinfo = UTC) -> CueTime | None:
    """Return the time that a cue names in the words of one of these packs, or None. `zone` decides when a day begins.

    Several times are taken together: `last year in August` is one August.
    """
    written = _TOKEN.findall(unicodedata.normalize("NFC", cue))
    tokens = [each.lower() for each in written]
    try:
        today = now.astimezone(zone).date()
        for pack in packs:
            days = _taken_together([*_CueReader(tokens, written, pack, today).spans()])
            if days is not None and not (days.start and days.end and days.start >= days.end):
                return CueTime(_midnight(days.start, zone), _midnight(days.end, zone))
    except (OverflowError, ValueError):  # a date outside of the years 1 to 9999
        return None
    return None


def related_time(moment: datetime, relation: TimeRelation, *, now: datetime, zone: tzinfo = UTC) -> CueTime | None:
    """Return the time before or after the day of `moment`, or None if that time has not begun."""
    try:
        day = moment.astimezone(zone).date()
        days = _of_day(day).related(relation, now.astimezone(zone).date())
        if days.start and days.end and days.start >= days.end:
            return None
        return CueTime(_midnight(days.start, zone), _midnight(days.end, zone))
    except (OverflowError, ValueError):  # a date outside of the years 1 to 9999
        return None


@dataclass(frozen=True, slots=True)
class _Days:
    """Days from `start` to before `end`."""

    start: date | None
    end: date | None
    month: int | None = None
    """The month of a time that is a month without a year."""

    def related(self, relation: TimeRelation | None, today: date) -> _Days:
        match relation:
            case None:
                return self
            case "since":
                return _Days(self.start, today + timedelta(days=1))
            case "until":
                return _Days(None, self.end)
            case "before":
                return _Days(None, self.start)
            case "after":
                return _Days(self.end, today + timedelta(days=1))


@dataclass(frozen=True, slots=True)
class _CueReader:
    """Reader of the times in the tokens of a cue. A method that reads returns what it read and the next place."""

    tokens: Sequence[str]
    written: Sequence[str]
    """The tokens with their capital letters."""
    pack: Locale
    today: date

    def spans(self) -> Iterator[_Days]:
        place = 0
        while place < len(self.tokens):
            found = self._expression(place)
            if found is None:
                place += 1
            else:
                yield found[0]
                place = found[1]

    def _expression(self, place: int) -> tuple[_Days, int] | None:
        """Read a time with the words before it."""
        if (found := self._phrase(place) or self._counted(place)) is not None:
            return found
        words = self.pack.time_words
        relation = words.relations.get(self.tokens[place])
        named, begin = relation is not None, place + (0 if relation is None else 1)
        for _ in range(_SKIP_MAX):
            token = self._token(begin)
            if token not in words.at and token not in words.skipped:
                break
            named, begin = named or token in words.at, begin + 1
        found = self._phrase(begin) or self._counted(begin) or self._named(begin, named=named)
        return None if found is None else (found[0].related(relation, self.today), found[1])

    def _token(self, place: int) -> str:
        return self.tokens[place] if place < len(self.tokens) else ""

    def _phrase(self, place: int) -> tuple[_Days, int] | None:
        """Read `yesterday` or `recently`. The longest phrase counts."""
        words = self.pack.time_words
        for length in range(_PHRASE_MAX, 0, -1):
            phrase = " ".join(self.tokens[place : place + length])
            if phrase in words.days:
                return _of_day(self.today + timedelta(days=words.days[phrase])), place + length
            if phrase in words.recent:
                return self._until_now(timedelta(days=RECENT_DAYS)), place + length
        return None

    def _counted(self, place: int) -> tuple[_Days, int] | None:
        """Read `three days ago` and `last three weeks`."""
        words = self.pack.time_words
        before = self._token(place)
        begins_ago, begins_last = before in words.ago_before, before in words.last
        begin = place + (1 if begins_ago or begins_last else 0)
        count, unit = self._count(begin), words.units.get(self._token(begin + 1))
        if count is None or unit is None:
            return None
        if begins_last:
            return self._until_now(count * _LENGTHS[unit]), begin + 2
        if begins_ago:
            return self._ago(count, unit), begin + 2
        return (self._ago(count, unit), begin + 3) if self._token(begin + 2) in words.ago_after else None

    def _count(self, place: int) -> int | None:
        token = self._token(place)
        if token in self.pack.time_words.one:
            return 1
        for letter, instead in self.pack.letters.items():
            token = token.replace(letter, instead)
        digits = self.pack.numbers.get(token, token)
        return _number(digits, range(1, _COUNT_MAX))

    def _named(self, place: int, *, named: bool) -> tuple[_Days, int] | None:
        """Read `last week`, `this March`, `Monday`, `12 March 2026` or `2024`. `named`: a word before shows that it is
        a time."""
        words, token, after = self.pack.time_words, self._token(place), self._token(place + 1)
        if token in words.last or token in words.this:
            return self._relative(after, place + 2, last=token in words.last)
        if (written := _written_date(token)) is not None:
            return _of_day(written), place + 1
        if (number := _number(token.rstrip("stndrh"), range(1, 32))) is not None and after in words.months:
            return self._month(place + 1, number)
        if token in words.months and (named or _is_day_or_year(after)):
            return self._month(place, None)
        if token in words.weekdays and named:
            return self._weekday(words.weekdays[token], last=True), place + 1
        if (year := _number(token, _YEARS)) is not None and (named or self._is_bare_year(place, year)):
            return _of_year(year), place + 1
        return None

    def _is_bare_year(self, place: int, year: int) -> bool:
        """Return whether a number is a year without a word of time before it: German `was war 2024?`.

        A noun, a unit or a number after it makes it an amount: `ich habe 2000 Euro`.
        """
        words, after = self.pack.time_words, self._token(place + 1)
        noun = self.written[place + 1][:1].isupper() if place + 1 < len(self.written) else False
        amount = noun or after in words.units or after[:1].isdigit()
        return place > 0 and self.tokens[place - 1] in words.before_year and year <= self.today.year and not amount

    def _relative(self, token: str, after: int, *, last: bool) -> tuple[_Days, int] | None:
        words = self.pack.time_words
        if (unit := words.units.get(token)) is not None:
            return self._ago(1 if last else 0, unit), after
        if token in words.weekdays:
            return self._weekday(words.weekdays[token], last=last), after
        if token in words.months:
            month = words.months[token]
            years_ago = 1 if last and month >= self.today.month else 0
            return _of_month(self.today.year - years_ago, month), after
        return None

    def _month(self, place: int, day: int | None) -> tuple[_Days, int]:
        """Read a month, with its day and its year if there are some. Without a year it is the last one that has
        begun."""
        month, after = self.pack.time_words.months[self.tokens[place]], place + 1
        if day is None and (day := _number(self._token(after).rstrip("stndrh"), range(1, 32))) is not None:
            after += 1
        year = _number(self._token(after), _YEARS)
        after += 0 if year is None else 1
        of = self.today.year - (1 if month > self.today.month else 0) if year is None else year
        if day is not None:
            return _of_day(date(of, month, day)), after
        return replace(_of_month(of, month), month=month if year is None else None), after

    def _weekday(self, weekday: int, *, last: bool) -> _Days:
        back = (self.today.weekday() - weekday) % 7 or 7
        monday = self.today - timedelta(days=self.today.weekday())
        return _of_day(self.today - timedelta(days=back) if last else monday + timedelta(days=weekday))

    def _until_now(self, length: timedelta) -> _Days:
        return _Days(self.today - length, self.today + timedelta(days=1))

    def _ago(self, count: int, unit: TimeUnit) -> _Days:
        """Return the day, week, month or year that was `count` of them before the present one."""
        monday = self.today - timedelta(days=self.today.weekday(), weeks=count)
        match unit:
            case "day":
                return _of_day(self.today - timedelta(days=count))
            case "week":
                return _Days(monday, monday + timedelta(days=7))
            case "weekend":
                return _Days(monday + timedelta(days=5), monday + timedelta(days=7))
            case "month":
                months = 12 * self.today.year + self.today.month - 1 - count
                return _of_month(months // 12, months % 12 + 1)
            case "year":
                return _of_year(self.today.year - count)


_LENGTHS: Final[Mapping[TimeUnit, timedelta]] = {
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "weekend": timedelta(days=7),
    "month": timedelta(days=31),
    "year": timedelta(days=366),
}


def _taken_together(found: Sequence[_Days]) -> _Days | None:
    """Return the days in all of these times, or the first time when they have no common day. A month without a year is
    the month of a year that the cue names."""
    if not found:
        return None
    years = [each.start.year for each in found if each.start and each.end and each == _of_year(each.start.year)]
    dated = [_of_month(years[0], each.month) if years and each.month else each for each in found]
    start = _bound(max, [each.start for each in dated])
    end = _bound(min, [each.end for each in dated])
    return dated[0] if start is not None and end is not None and start >= end else _Days(start, end)


def _bound(choose: Callable[[Sequence[date]], date], bounds: Sequence[date | None]) -> date | None:
    known = [each for each in bounds if each is not None]
    return choose(known) if known else None


def _of_day(day: date) -> _Days:
    return _Days(day, day + timedelta(days=1))


def _of_month(year: int, month: int) -> _Days:
    return _Days(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1))


def _of_year(year: int) -> _Days:
    return _Days(date(year, 1, 1), date(year + 1, 1, 1))


def _written_date(token: str) -> date | None:
    """Read a date in digits: 2026-03-12, or 12.3.2026."""
    parts = re.split(r"[-.]\s?", token)
    if len(parts) != 3:
        return None
    numbers = [int(each) for each in parts]
    year, month, day = numbers if "-" in token else reversed(numbers)
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _number(token: str, allowed: range) -> int | None:
    return int(token) if token.isascii() and token.isdigit() and len(token) < 6 and int(token) in allowed else None


def _is_day_or_year(token: str) -> bool:
    digits = token.rstrip("stndrh")
    return _number(digits, range(1, 32)) is not None or _number(digits, _YEARS) is not None


def _midnight(day: date | None, zone: tzinfo) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
