"""The corpus of the detectors of secrets, and the score of a detector.

A line of tests/corpora/secrets/*.jsonl has an id and a text. `<<kind|value>>` is a secret of this kind. In braces
stands what the loader makes: `{A36}` 36 letters and digits, `{"ghp_"}` this text, `{iban:DE}` a German IBAN. So no file
of the repository holds the shape of a real key. Half of the lines, by the hash of their id, tune the rules; the other
half measures. `python -m tests.support.secret_corpus` shows which lines of the tuning half fail.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets import BuiltInDetector, Finding, SecretDetector

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "secrets"
ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "B": string.ascii_letters + string.digits + "+/",
    "C": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "D": string.digits,
    "H": "0123456789abcdef",
    "L": string.ascii_letters,
    "P": string.ascii_letters + string.digits + "+/",
    "U": string.ascii_uppercase + "234567",
}
_SPAN = re.compile(r"<<(?P<kind>\w+)\|(?P<value>.*?)>>(?!>)", re.DOTALL)
_MADE = re.compile(
    r'\{(?:"(?P<text>[^"]*)"|(?P<alphabet>[A-Z])(?P<length>\d*)|(?P<name>[a-z]+\d?[a-z]*)(?::(?P<of>\w+))?)\}'
)
ACCOUNTS = {"DE": 18, "GB": 0, "FR": 23, "NL": 0, "ES": 20, "AT": 16, "IT": 0, "CH": 17, "BE": 12, "PT": 21}
"""Digits of an account, by country; 0: the country's form has letters."""
LETTERED = {"GB": ("WEST", 14), "NL": ("ABNA", 10), "IT": ("X", 22)}


@dataclass(frozen=True)
class MarkedText:
    id: str
    text: str
    secrets: tuple[Finding, ...]

    @property
    def tunes(self) -> bool:
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 0


@dataclass(frozen=True)
class DetectorScore:
    found: int
    secrets: int
    right: int
    findings: int

    @property
    def recall(self) -> float:
        return self.found / self.secrets if self.secrets else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.findings if self.findings else 1.0

    def __str__(self) -> str:
        return (
            f"recall {self.recall:.3f} ({self.found} of {self.secrets}), "
            f"precision {self.precision:.3f} ({self.right} of {self.findings})"
        )


def texts(language: str | None = None) -> list[MarkedText]:
    """Read the corpus, or one language of it (the name of its file)."""
    return [
        _marked(row["id"], row["text"])
        for path in sorted(FOLDER.glob(f"{language or '*'}.jsonl"))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    ]


def scores(detector: SecretDetector, chosen: Iterable[MarkedText]) -> tuple[dict[str, DetectorScore], list[str]]:
    """Return the score by kind and of all together (`all`), and a line of text for each difference.

    A secret is found when findings cover all of it; a finding is right when it overlaps a secret that has the same
    default action.
    """
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    policy = PrivacyPolicy()
    differences: list[str] = []
    for one in chosen:
        findings = detector.find(one.text)
        for secret in one.secrets:
            alike = [each for each in findings if policy.action(each.kind) == policy.action(secret.kind)]
            is_found = _covers(alike, secret)
            for name in (secret.kind, "all"):
                counts[name][0] += is_found
                counts[name][1] += 1
            if not is_found:
                differences.append(
                    f"{one.id} MISSED {secret.kind} {one.text[secret.start : secret.end]!r} in {one.text!r}"
                )
        for each in findings:
            alike = [other for other in one.secrets if policy.action(other.kind) == policy.action(each.kind)]
            is_right = any(other.start < each.end and each.start < other.end for other in alike)
            is_right = is_right or any(other.start <= each.start and each.end <= other.end for other in one.secrets)
            for name in (each.kind, "all"):
                counts[name][2] += is_right
                counts[name][3] += 1
            if not is_right:
                differences.append(f"{one.id} WRONG {each.kind} {one.text[each.start : each.end]!r} in {one.text!r}")
    return {name: DetectorScore(*count) for name, count in sorted(counts.items())}, differences


def _covers(findings: Sequence[Finding], secret: Finding) -> bool:
    covered = {place for each in findings for place in range(each.start, each.end)}
    return set(range(secret.start, secret.end)) <= covered


def _marked(name: str, template: str) -> MarkedText:
    source = random.Random(name)
    text, secrets, read = "", [], 0
    for span in _SPAN.finditer(template):
        text += _make(template[read : span.start()], source)
        start = len(text)
        text += _make(span["value"], source)
        secrets.append(Finding(span["kind"], start, len(text)))  # type: ignore[arg-type]
        read = span.end()
    return MarkedText(name, text + _make(template[read:], source), tuple(secrets))


def _make(template: str, source: random.Random) -> str:
    def made(match: re.Match[str]) -> str:
        if match["text"] is not None:
            return match["text"]
        if match["alphabet"]:
            return _signs(source, match["alphabet"], int(match["length"] or 64))
        return MAKERS[match["name"]](source, match["of"] or "") if match["name"] in MAKERS else match[0]

    return _MADE.sub(made, template)


def _signs(source: random.Random, alphabet: str, length: int) -> str:
    return "".join(source.choices(ALPHABETS[alphabet], k=length))


def _in_fours(text: str, mark: str = " ") -> str:
    return mark.join(text[place : place + 4] for place in range(0, len(text), 4))


def _card(source: random.Random, of: str) -> str:
    prefix, length = {"mc": ("53", 16), "mc2": ("2720", 16), "amex": ("37", 15), "disc": ("6011", 16)}.get(
        of.removesuffix("4"), {"diners": ("3626", 14), "jcb4": ("3530", 16)}.get(of, ("4539", 16))
    )
    body = prefix + _signs(source, "D", length - len(prefix) - 1)
    total = sum(
        sum(divmod(int(digit) * (2 if place % 2 == 0 else 1), 10)) for place, digit in enumerate(reversed(body))
    )
    number = body + str(-total % 10)
    if of == "amex":
        return f"{number[:4]} {number[4:10]} {number[10:]}"
    if of == "visafw":
        return "".join(chr(ord(digit) + 0xFEE0) for digit in number)
    if of == "visanl":
        return f"{number[:8]}\n{number[8:]}"
    return _in_fours(number, "-" if of == "visadash" else " ") if of.endswith("4") or of == "visadash" else number


def _iban(source: random.Random, country: str) -> str:
    letters, digits = LETTERED.get(country, ("", ACCOUNTS[country]))
    account = letters + _signs(source, "D", digits)
    check = 98 - int("".join(str(int(sign, 36)) for sign in f"{account}{country}00")) % 97
    return f"{country}{check:02}{account}"


def _dni(source: random.Random, _: str) -> str:
    number = _signs(source, "D", 8)
    return number + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def _nie(source: random.Random, _: str) -> str:
    number = _signs(source, "D", 7)
    return f"X{number}" + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def _bsn(source: random.Random, _: str) -> str:
    while True:
        body = "1" + _signs(source, "D", 7)
        check = sum(int(digit) * weight for digit, weight in zip(body, range(9, 1, -1), strict=True)) % 11
        if check < 10:
            return f"{body}{check}"


def _tax_id(source: random.Random, _: str) -> str:
    body = "".join(source.sample("123456789", 9))
    body += body[3]
    product = 10
    for digit in body:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    return body + str((11 - product) % 10)


def _nir(source: random.Random, _: str) -> str:
    body = (
        f"2{source.randint(50, 99)}{source.randint(1, 12):02}75{source.randint(1, 999):03}{source.randint(1, 999):03}"
    )
    return f"{body}{97 - int(body) % 97:02}"


def _codice(source: random.Random, _: str) -> str:
    body = f"RSSMRA{source.randint(50, 99)}T10A562"
    first = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21]
    values = [*first, *first, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]
    odd = dict(zip(string.digits + string.ascii_uppercase, values, strict=True))
    even = {sign: int(sign) if sign.isdigit() else ord(sign) - 65 for sign in odd}
    total = sum((odd if place % 2 == 0 else even)[sign] for place, sign in enumerate(body))
    return body + chr(65 + total % 26)


def _pension(source: random.Random, _: str) -> str:
    body = f"65{source.randint(1, 28):02}0780M0{source.randint(0, 9)}"
    body = body.replace("M", "{}")
    digits = body.format(13)
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    check = sum(sum(divmod(int(digit) * weight, 10)) for digit, weight in zip(digits, weights, strict=True)) % 10
    return f"{body.format('M')}{check}"


def _social(source: random.Random, mark: str) -> str:
    return f"{source.randint(100, 665)}-{source.randint(10, 99)}-{source.randint(1000, 9999)}"


def _nino(source: random.Random, _: str) -> str:
    return f"AB{_signs(source, 'D', 6)}C"


def _jwt(source: random.Random, _: str) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': _signs(source, 'D', 9)})}.{_signs(source, 'A', 43)}"


def _spaced(text: str, *ends: int) -> str:
    return " ".join(text[start:end] for start, end in zip((0, *ends), (*ends, len(text)), strict=True))


MAKERS: dict[str, Callable[[random.Random, str], str]] = {
    "card": _card,
    "iban": _iban,
    "iban4": lambda source, of: _in_fours(_iban(source, of)),
    "ibanlow": lambda source, of: _iban(source, of).lower(),
    "jwt": _jwt,
    "uuid": lambda source, _: str(uuid.UUID(int=source.getrandbits(128), version=4)),
    "dni": _dni,
    "dnidash": lambda source, of: _dashed(_dni(source, of)),
    "nie": _nie,
    "bsn": _bsn,
    "steuerid": _tax_id,
    "steueridspaced": lambda source, of: _spaced(_tax_id(source, of), 2, 5, 8),
    "svnr": _pension,
    "nir": _nir,
    "nirspaced": lambda source, of: _spaced(_nir(source, of), 1, 3, 5, 7, 10, 13),
    "cf": _codice,
    "ssn": _social,
    "ssnraw": lambda source, of: _social(source, of).replace("-", ""),
    "nino": _nino,
    "ninospaced": lambda source, of: _spaced(_nino(source, of), 2, 4, 6, 8),
}


def _dashed(number: str) -> str:
    return f"{number[:-1]}-{number[-1]}"


if __name__ == "__main__":
    measures = "--test" in sys.argv
    by_kind, problems = scores(BuiltInDetector(), [one for one in texts() if one.tunes is not measures])
    if not measures:
        print(*problems, sep="\n")
    for kind, score in by_kind.items():
        print(f"{kind:18} {score}")
