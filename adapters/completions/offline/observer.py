"""Offline observer: it makes observations from turns and the working set, in the form of a model's answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from .attributes import AttributeValue, Cardinality, Category, attribute_of, typed
from .endings import Beside, ended_before, endings
from .people import Talk, companions, relations, statements_about_people
from .prompt import USER, Prompt, SaidMessage, ShownTurnText
from .requests import to_forget, to_remember
from .sentences import CHANGES, MAX_READ, SpokenClause, spoken_sentences
from .short_answers import answered, noted
from .statements import IMPORTANCE, SpokenStatement, capitalised, statements
from .voice import Setting, Silence, own_part
from .wording import third_person, without_tail

_FRAGMENT: Final = re.compile(
    r"(?:(?:it|that|he|she|(?:his|her|its|my|the) [\w-]+) (?:is|should be)|should be|i (?:meant|mean)|named)?"
    r"\s*(?:spel(?:led|t) )?(?P<x>.+)",
    re.I,
)
_SWITCHED: Final = re.compile(
    r"(?:i|we) (?:have )?(?:switched|changed|moved|went)(?: \w+)?(?: from (?P<old>.+?))? to (?P<new>.+)", re.I
)
_GONE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:i|we) (?:no longer|used to|stopped|quit|do not) (?:work|live|study|teach|play|go|have|own|drive|like|love)"
        r"(?:ing)?(?: (?:at|for|in|with|as|to))? (?P<x>.+)",
        r"(?:i|we) (?:have )?(?:left|quit|resigned from|(?:got|was|were) (?:fired|laid off) (?:from|by)|sold"
        r"|moved (?:away from|out of)|stopped working (?:at|for)|gave up)"
        r" (?:my (?:job|position|role) (?:at|with|as) )?(?P<x>.+)",
        r"(?:i|we) (?:am|are) (?:not|no longer) (?:at|with|in|an?|working (?:at|for)|living in) (?P<x>.+)",
    )
)
_HAS_NAMED: Final = re.compile(r"Has an? (?P<kin>.+) named (?P<name>.+)")
_HAS_ONE_NAMED: Final = re.compile(r"(Has an? .+) named .+")
_OVER: Final = ("Broke up with", "Lost their", "No longer has")
_GONE_FOR_GOOD: Final = re.compile(
    r"\b(?:any ?more|no longer|used to|stopped|quit|left|sold|resigned|fired|laid off|moved|gave up)\b", re.I
)


@dataclass(frozen=True, slots=True)
class _Held:
    """A statement that an observation may replace: a working entry of the prompt, or an earlier observation of this
    answer."""

    id: str
    subject: str
    content: str
    form: AttributeValue | None


@dataclass(frozen=True, slots=True)
class _Found:
    statement: SpokenStatement
    clause: SpokenClause
    replaces: _Held | None = None
    is_correction: bool = False
    ends: bool = False
    """True for an observation that only ends the replaced statement: an event of this session, not a fact."""
    pinned: bool = False
    """True when the speaker asks memory to keep the statement."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of reading a prompt's turns. `statements` counts the user's sentences that are not questions. `read`
    counts those sentences from which the rules read an observation."""

    observations: list[JsonValue]
    statements: int
    read: int


def observe(prompt: Prompt) -> Reading:
    """Read all turns, in order. The `replaces` of an observation may name an earlier observation (`o1`) of this
    answer."""
    # The latest statement comes first: observations of this answer, then working entries, which are sorted by salience.
    held = [_Held(item.id, item.subject, item.content, attribute_of(item.content)) for item in prompt.working]
    answer: list[JsonValue] = []
    talks: dict[str, Talk] = {}
    statements = read = 0
    for turn in prompt.turns:
        room = MAX_READ
        for speaker, messages in _by_speaker(turn):
            talk = talks.setdefault(speaker, _talk_before(prompt, speaker))
            told, every, looked = _of_messages(messages, _seen_by(speaker, held), talk, room=room)
            room -= looked
            statements, read = statements + len(told), read + len(told & {item.clause.sentence for item in every})
            for found in every:
                said = found.statement if found.statement.subject != USER else replace(found.statement, subject=speaker)
                answer.append(_observation(turn.id, replace(found, statement=said)))
                if found.replaces is not None:
                    held = [each for each in held if each.id != found.replaces.id]
                if not found.ends:
                    held.insert(0, _Held(f"o{len(answer)}", said.subject, said.content, attribute_of(said.content)))
    return Reading(answer, statements, read)


def why_silent(message: str, earlier: Sequence[str]) -> Silence:
    """Return the reason why a message teaches nothing. `earlier`: the messages before it in the session."""
    setting = Setting()
    for each in earlier:
        setting = own_part(each, setting)[1]
    own, _, silence = own_part(message, setting)
    if silence is not None:
        return silence
    reasons = [sentence.silence for sentence in spoken_sentences(own)]
    if not reasons:
        return Silence.QUOTED
    return Silence.UNKNOWN if None in reasons else reasons[0] or Silence.UNKNOWN


def _by_speaker(turn: ShownTurnText) -> Iterator[tuple[str, tuple[SaidMessage, ...]]]:
    """Yield the messages of each speaker of a turn."""
    for speaker in dict.fromkeys(message.speaker for message in turn.messages):
        yield speaker, tuple(message for message in turn.messages if message.speaker == speaker)


def _seen_by(speaker: str, held: Sequence[_Held]) -> list[_Held]:
    """Return the known statements from the point of view of a speaker. Statements about the speaker get the subject
    `user`. For a speaker other than the user, statements about the user are left out."""
    if speaker == USER:
        return list(held)
    others = (each for each in held if each.subject != USER)
    return [replace(each, subject=USER) if each.subject == speaker else each for each in others]


def _talk_before(prompt: Prompt, speaker: str) -> Talk:
    """Return the people whom the working entries and the earlier messages of a speaker mention."""
    talk = Talk()
    for item in prompt.working:
        if item.subject == speaker and (match := _HAS_NAMED.fullmatch(item.content)):
            talk.named[match["name"].lower()] = match["kin"]
    for message in prompt.context:
        if message.subject == USER and message.speaker == speaker:
            own, talk.setting, _ = own_part(message.content, talk.setting)
            for sentence in spoken_sentences(own):
                relations(sentence.plain, talk)
    return talk


def _of_messages(
    messages: Sequence[SaidMessage], held: Sequence[_Held], talk: Talk, *, room: int
) -> tuple[set[str], list[_Found], int]:
    """Return the sentences of one speaker that are not questions, the findings of the rules, and the number of code
    points read. Stop reading after `room` code points."""
    told: set[str] = set()
    found: list[_Found] = []
    beside, compared = Beside(), 0
    read = 0
    for message in messages:
        if read >= room:
            break
        own, talk.setting, silence = own_part(message.text, talk.setting)
        if silence is not None:
            continue
        said = spoken_sentences(own)
        read += sum(len(sentence.verbatim) for sentence in said)
        told |= {sentence.verbatim for sentence in said if not sentence.asks and " " in sentence.verbatim}
        parts = [clause for sentence in said for clause in sentence.clauses]
        for text, verbatim in answered(own, message.asked):
            clause = SpokenClause(text=text, sentence=verbatim)
            found += [
                _linked(each, clause, held) for each in (*relations(text, talk), *_statements_in(clause, held, talk))
            ]
        for sentence in said:
            whole = SpokenClause(text=sentence.plain, sentence=sentence.verbatim)
            if (unwanted := to_forget(sentence.plain)) is not None:
                found += _forgotten(unwanted, whole, held, talk)
                continue
            before = len(found)
            who_is_who = relations(sentence.plain, talk)
            notes = [replace(whole, text=note) for note in noted(sentence.plain)] if not sentence.asks else []
            for clause in notes or sentence.clauses:
                spoken = _statements_in(clause, held, talk)
                found += [_linked(statement, clause, held) for statement in spoken]
                if not spoken:
                    found += _substituted(clause, parts, held)
            found += [_linked(statement, whole, held) for statement in who_is_who]
            if (wanted := to_remember(sentence.plain)) is not None and not sentence.asks:
                found[before:] = [replace(each, pinned=True) for each in found[before:]] or [
                    _unread_request(wanted, whole)
                ]
        found += _ended(parts, held, replaced={item.replaces.id for item in found if item.replaces})
        shown = {item.clause for item in found if item.ends or item.replaces is not None}
        beside.add(item.statement for item in found[compared:])
        for place, clause in enumerate(parts):
            over = endings(clause.text, beside=beside) or ended_before(
                clause.text, [each.text for each in parts[:place]]
            )
            if clause not in shown and over:
                found += [_Found(statement, clause) for statement in over]
                beside.add(over)
        compared = len(found)
    return told, _without_doubles(found), read


def _forgotten(unwanted: str, clause: SpokenClause, held: Sequence[_Held], talk: Talk) -> list[_Found]:
    """Return the statements that the speaker asks to forget. If no rule reads the request, return the known statements
    that mention its words."""
    said = _statements_in(replace(clause, text=unwanted), held, talk)
    found = [_Found(each, clause, replaces=_holding(each, held), ends=True) for each in said]
    if found:
        return found
    value = re.sub(r"^(?:my|our|the|an?) ", "", without_tail(unwanted), flags=re.IGNORECASE)
    over = [each for each in held if _mentions(each.content, value)]
    return [
        _Found(SpokenStatement(each.subject, each.content, "event"), clause, replaces=each, ends=True) for each in over
    ]


def _holding(statement: SpokenStatement, held: Sequence[_Held]) -> _Held | None:
    """Return the known statement with the same meaning."""
    form = attribute_of(statement.content)
    for each in held:
        equal = each.content.casefold() == statement.content.casefold()
        if each.subject == statement.subject and (equal or (form is not None and each.form == form)):
            return each
    return None


def _unread_request(wanted: str, clause: SpokenClause) -> _Found:
    """Return an observation with the speaker's own words, for a request to remember that no rule can read."""
    content = capitalised(third_person(without_tail(wanted)))
    return _Found(SpokenStatement("user", content, "knowledge"), clause, pinned=True)


def _statements_in(clause: SpokenClause, held: Sequence[_Held], talk: Talk) -> list[SpokenStatement]:
    subjects = {item.subject for item in held} - {"user"}
    return statements_about_people(clause.text, subjects=subjects, talk=talk) or [
        *statements(clause.text, introduces=clause.opens),
        *companions(clause.text),
    ]


# ------------------------------------------------------------------------------------------------ replacements
def _linked(statement: SpokenStatement, clause: SpokenClause, held: Sequence[_Held]) -> _Found:
    """Add the earlier statement that this statement replaces, if any."""
    form = attribute_of(statement.content)
    if form is None:
        return _Found(statement, clause)
    same = [
        item
        for item in held
        if item.subject == statement.subject and item.form is not None and item.form.attribute == form.attribute
    ]
    if any(item.form is not None and item.form.value == form.value for item in same):
        return _Found(statement, clause)
    changes = CHANGES.search(clause.sentence) is not None  # the clause has lost words such as "now"
    named_wrong = [item for item in same if clause.wrong is not None and _mentions(item.content, clause.wrong)]
    if named_wrong:
        return _Found(statement, clause, replaces=named_wrong[0], is_correction=not changes)
    allowed = {
        Cardinality.ONE: bool(same),
        Cardinality.ON_CHANGE: bool(same) and (changes or clause.corrects),
        Cardinality.MANY: len(same) == 1 and clause.corrects,
    }[form.room]
    if not allowed:
        return _Found(statement, clause)
    return _Found(statement, clause, replaces=same[0], is_correction=clause.corrects and not changes)


def _substituted(clause: SpokenClause, parts: Sequence[SpokenClause], held: Sequence[_Held]) -> list[_Found]:
    """Return earlier statements with one value exchanged: "it's Lyon, not Nice", "I switched from Hulu to Netflix"."""
    if match := _SWITCHED.fullmatch(clause.text):
        old = match["old"] or next(_gone(parts), None)
        return _put_in(without_tail(match["new"]), old, clause, held, is_correction=False)
    if clause.wrong is not None and (match := _FRAGMENT.fullmatch(clause.text)):
        return _put_in(without_tail(match["x"]), clause.wrong, clause, held, is_correction=True)
    return []


def _put_in(
    new: str, old: str | None, clause: SpokenClause, held: Sequence[_Held], *, is_correction: bool
) -> list[_Found]:
    if old is None or not new or len(new.split()) > 6 or old[0].isdigit() != new[0].isdigit():
        return []
    for item in held:
        if _mentions(item.content, old):
            content = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _match: new, item.content, flags=re.IGNORECASE)
            category: Category = item.form.category if item.form is not None else "attribute"
            statement = SpokenStatement(subject=item.subject, content=content, category=category)
            return [_Found(statement, clause, replaces=item, is_correction=is_correction)]
    return []


def _ended(parts: Sequence[SpokenClause], held: Sequence[_Held], *, replaced: set[str]) -> list[_Found]:
    """Return the statements that the speaker ends without a replacement."""
    found: list[_Found] = []
    for clause in parts:
        if not _GONE_FOR_GOOD.search(clause.text):
            continue
        for value in _gone([clause]):
            over = [item for item in held if item.subject == "user" and _mentions(item.content, value)]
            if over and over[0].id not in replaced:
                content = over[0].content
                statement = SpokenStatement("user", f"No longer {content[:1].lower()}{content[1:]}", category="event")
                found.append(_Found(statement, clause, replaces=over[0], ends=True))
                replaced.add(over[0].id)
    return found


def _gone(parts: Sequence[SpokenClause]) -> Iterator[str]:
    for clause in parts:
        for pattern in _GONE:
            if match := pattern.fullmatch(clause.text):
                yield without_tail(match["x"])


def _mentions(content: str, value: str) -> bool:
    value = re.sub(r"^(?:the|an?|my) ", "", value.casefold())
    return bool(value) and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", content.casefold()) is not None


# ------------------------------------------------------------------------------------------------ the answer
def _without_doubles(found: Sequence[_Found]) -> list[_Found]:
    """Remove duplicate statements. "Has a puppy" is redundant when "Has a puppy named Truffle" is present."""
    seen: dict[tuple[str, str], _Found] = {}
    named = {match[1] for item in found if (match := _HAS_ONE_NAMED.fullmatch(item.statement.content))}
    over = [each for each in (item.statement.content for item in found) if each.startswith(_OVER)]
    found = [
        item
        for item in found
        if item.statement.content not in named
        and not ((match := _HAS_NAMED.fullmatch(item.statement.content)) and _is_over(match, over))
    ]
    for item in found:
        seen.setdefault((item.statement.subject, item.statement.content.casefold()), item)
    return list(seen.values())


def _is_over(relation: re.Match[str], over: Sequence[str]) -> bool:
    return any(_mentions(each, relation["name"]) or each.endswith(f"their {relation['kin']}") for each in over)


def _observation(turn: str, found: _Found) -> JsonValue:
    said = found.statement
    return {
        "turn": turn,
        "subject": said.subject,
        "content": said.content,
        **typed(said.content).fields(),
        "importance": IMPORTANCE[said.category],
        "durability": "session" if found.ends else "permanent" if said.permanent else "persistent",
        "category": said.category,
        "replaces": found.replaces.id if found.replaces is not None else None,
        "is_correction": found.is_correction,
        "pinned": found.pinned,
        "due_at": None,
        "valid_from": None,
        "valid_to": None,
        "sensitivity": "internal",
        "emotion": None,
        "evidence": found.clause.sentence,
    }
