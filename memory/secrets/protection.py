"""`protect`: applies the policy of each kind of secret to a text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from ...schemas.turns import Sensitivity
from ..language.locales.secret_labels import SecretKind
from ..policies.privacy import PrivacyPolicy
from .detector import BuiltInDetector
from .findings import PLACEHOLDER, Finding, SecretDetector, placeholder

BUILT_IN: Final[tuple[SecretDetector, ...]] = (BuiltInDetector(),)
AROUND: Final = 512
"""Number of characters before and after a new mask in which the mask may reveal another finding. As many characters
around them are searched with them, because a finding depends on its surroundings."""
SEARCHED_AGAIN_MAX: Final = 64 * 1024
"""Maximum number of characters that repeated searches read, in addition to the length of the text."""
_DELIMITERS: Final = frozenset("|;,\t\n")
"""Characters that separate lines, cells of a table, and settings. A mask that hides one of them may change the layout
of the whole text."""
_PRIORITY: Final[tuple[SecretKind, ...]] = (
    "private_key",
    "connection_string",
    "jwt",
    "api_key",
    "token",
    "card",
    "iban",
    "passphrase",
    "password",
    "pin",
    "national_id",
    "email",
    "phone",
)
"""Kinds by priority. When several findings share a span, the kind that comes first in this list names the span."""


@dataclass(frozen=True, slots=True)
class Protected:
    """A text after protection, and the findings in the original text."""

    text: str
    """The text with masked spans; empty when the text is dropped."""
    findings: tuple[Finding, ...]
    """Spans of the original text by position, without allowed kinds. They do not overlap."""
    sensitivity: Sensitivity | None
    """`secret` when the text contains a finding with the action `label`; None when there is no such finding."""
    dropped: bool
    """True when the text must not be kept."""


def protect(
    text: str,
    policy: PrivacyPolicy,
    detectors: Sequence[SecretDetector] = BUILT_IN,
    known: Sequence[Finding] = (),
) -> Protected:
    """Mask, label or drop the secrets that the detectors find in a text.

    A text without a finding is returned unchanged. Protecting a protected text changes nothing: placeholders are never
    findings, and the masked text is searched again around each new mask.

    Args:
        known: findings in this text from a search of a larger text.
    """
    found = _search(text, policy, detectors, known)
    if not found:
        return Protected(text, (), None, False)
    masked = new = _masks(found, policy)
    room = len(text) + SEARCHED_AGAIN_MAX
    while new and room > 0:
        shown, places = _replace(text, masked)
        again = list[Finding]()
        for first, last in _regions(text, shown, dict(zip(masked, places, strict=True)), new):
            start = max(0, first - AROUND)
            part = shown[start : last + AROUND]
            room -= len(part)
            near = (
                Finding(each.kind, each.start + start, each.end + start) for each in _search(part, policy, detectors)
            )
            again += [_in_original(each, places) for each in near if each.start < last and each.end > first]
        found = _apart([*found, *again], policy)
        before, masked = set(masked), _masks(found, policy)
        new = [each for each in masked if each not in before]
    actions = {policy.action(each.kind) for each in found}
    if "drop" in actions:
        return Protected("", tuple(found), None, True)
    return Protected(_replace(text, masked)[0], tuple(found), "secret" if "label" in actions else None, False)


def _search(
    text: str, policy: PrivacyPolicy, detectors: Sequence[SecretDetector], known: Sequence[Finding] = ()
) -> list[Finding]:
    found = [each for detector in detectors for each in detector.find(text)]
    found = [each for each in (*found, *known) if policy.action(each.kind) != "allow"] if found or known else found
    if not found:
        return []
    kept = [match.span() for match in PLACEHOLDER.finditer(text)] if "[" in text else []
    if kept:
        found = [part for each in found for part in _outside(each, text, kept)]
    return _apart(found, policy)


def _outside(finding: Finding, text: str, kept: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """Yield the parts of a finding that no placeholder covers and that contain a letter or a digit."""
    start = finding.start
    place = bisect_right(kept, start, key=itemgetter(1))
    while start < finding.end:
        first, last = kept[place] if place < len(kept) else (finding.end, finding.end)
        end = min(first, finding.end)
        if any(map(str.isalnum, text[start:end])):
            yield Finding(finding.kind, start, end)
        start, place = last, place + 1


def _masks(found: Iterable[Finding], policy: PrivacyPolicy) -> list[Finding]:
    return [each for each in found if policy.action(each.kind) == "mask"]


def _apart(found: Iterable[Finding], policy: PrivacyPolicy) -> list[Finding]:
    """Return the findings by position without overlaps.

    Overlapping findings with the same action become one span of the kind with the highest priority. Of overlapping
    findings with different actions, only one stays: `drop` before `mask` before `label`.
    """
    apart: list[Finding] = []
    for each in sorted(found, key=lambda one: (one.start, one.end)):
        last = apart[-1] if apart else None
        if last is None or last.end <= each.start:
            apart.append(each)
            continue
        ahead, behind = (each, last) if _rank(each, policy) < _rank(last, policy) else (last, each)
        if policy.action(ahead.kind) == policy.action(behind.kind):
            apart[-1] = Finding(ahead.kind, last.start, max(last.end, each.end))
        else:
            apart[-1] = ahead
    return apart


def _rank(finding: Finding, policy: PrivacyPolicy) -> tuple[int, int]:
    return ("drop", "mask", "label", "allow").index(policy.action(finding.kind)), _PRIORITY.index(finding.kind)


def _replace(text: str, masked: Sequence[Finding]) -> tuple[str, list[tuple[int, int]]]:
    """Replace the spans with placeholders. Return the new text and, for each placeholder, its end in the new text and
    the end of the original span."""
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    read = length = 0
    for each in masked:
        parts += [text[read : each.start], placeholder(each.kind)]
        length += each.start - read + len(parts[-1])
        read = each.end
        places.append((length, read))
    return "".join([*parts, text[read:]]), places


def _regions(
    text: str, shown: str, places: Mapping[Finding, tuple[int, int]], new: Iterable[Finding]
) -> Sequence[tuple[int, int]]:
    """Return the spans of the masked text in which a new mask may reveal another finding, by position."""
    regions: list[tuple[int, int]] = []
    for mask in new:
        if not _DELIMITERS.isdisjoint(text[mask.start : mask.end]):
            return [(0, len(shown))]
        end = places[mask][0]
        first, last = end - len(placeholder(mask.kind)) - AROUND, end + AROUND
        if regions and first - regions[-1][1] <= 2 * AROUND:
            first = regions.pop()[0]
        regions.append((first, last))
    return regions


def _in_original(finding: Finding, places: Sequence[tuple[int, int]]) -> Finding:
    """Return a finding of the masked text with its span in the original text. The finding must not overlap a
    placeholder."""
    before = bisect_right(places, finding.start, key=itemgetter(0))
    shift = places[before - 1][1] - places[before - 1][0] if before else 0
    return Finding(finding.kind, finding.start + shift, finding.end + shift)
