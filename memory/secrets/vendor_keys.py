"""Keys and tokens of known vendors, by their published formats.

Most formats begin with a prefix. The prefixes are searched first, so the search of a text without a prefix is fast.
Lengths are minimum lengths: a vendor may lengthen its keys, and a truncated key is still a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from ..language.locales.secret_labels import SecretKind
from .findings import Finding
from .pattern_sizes import least_length

_W: Final = "[A-Za-z0-9_-]"
_AN: Final = "[A-Za-z0-9]"
_HEX: Final = "[A-Fa-f0-9]"
_B64: Final = "[A-Za-z0-9+/]"
_PREFIXED: Final[tuple[tuple[SecretKind, str, str], ...]] = (
    # AWS
    *(("api_key", prefix, "[A-Z0-9]{16}") for prefix in ("AKIA", "ASIA", "ABIA", "ACCA", "A3T")),
    ("api_key", "ABSK", rf"{_B64}{{100,300}}={{0,2}}"),
    ("api_key", "bedrock-api-key-", rf"{_B64}{{16,2000}}={{0,2}}"),
    ("api_key", "amzn.mws.", rf"{_HEX}{{8}}-[A-Fa-f0-9-]{{20,28}}"),
    # GitHub, GitLab, Bitbucket, Gitea
    *(("token", f"gh{letter}_", rf"{_AN}{{20,255}}") for letter in "pousr"),
    ("token", "github_pat_", r"[A-Za-z0-9_]{20,255}"),
    *(
        ("token", f"gl{name}-", r"[A-Za-z0-9_-]{16,300}(?:\.[0-9a-z]{9})?")
        for name in ("pat", "dt", "rt", "cbt", "ptt", "ft", "imt", "agent", "soat", "ffct", "oas", "wt")
    ),
    ("token", "GR1348941", rf"{_W}{{20,60}}"),
    ("token", "ATBB", rf"{_AN}{{24,40}}"),
    ("token", "ATATT3", r"[A-Za-z0-9_=-]{60,300}"),
    ("token", "ATCTT3", r"[A-Za-z0-9_=-]{60,300}"),
    # Slack, Discord, Teams
    *(("token", f"xox{letter}-", r"[A-Za-z0-9.-]{10,400}") for letter in "abceoprs"),
    ("token", "xoxe.xox", r"[bp]-\d-[A-Za-z0-9]{40,255}"),
    ("token", "xapp-", r"\d-[A-Za-z0-9-]{10,255}"),
    ("token", "mfa.", rf"{_W}{{60,120}}"),
    # Stripe, Square, PayPal, Shopify
    *(
        ("api_key", f"{who}_{mode}_", rf"{_AN}{{10,255}}")
        for who in ("sk", "rk")
        for mode in ("live", "test", "prod")
    ),
    ("api_key", "whsec_", rf"{_B64}{{20,255}}={{0,2}}"),
    ("token", "EAAA", rf"{_W}{{40,255}}"),
    ("token", "sq0atp-", rf"{_W}{{20,64}}"),
    ("api_key", "sq0csp-", rf"{_W}{{30,64}}"),
    ("api_key", "sq0idp-", rf"{_W}{{20,64}}"),
    ("token", "access_token$production$", rf"{_AN}{{16}}\${_HEX}{{32}}"),
    *(("token", f"shp{name}_", rf"{_AN}{{24,64}}") for name in ("at", "ca", "pa", "tka", "ua")),
    ("api_key", "shpss_", rf"{_AN}{{24,64}}"),
    # Model providers
    ("api_key", "sk-ant-", rf"{_W}{{20,255}}"),
    ("api_key", "sk-or-", rf"{_W}{{20,255}}"),
    ("api_key", "sk-proj-", rf"{_W}{{20,255}}"),
    ("api_key", "sk-", rf"{_W}{{20,255}}"),
    ("api_key", "sess-", rf"{_AN}{{40}}"),
    ("token", "hf_", rf"{_AN}{{28,64}}"),
    ("token", "api_org_", rf"{_AN}{{28,64}}"),
    ("api_key", "gsk_", rf"{_AN}{{30,100}}"),
    ("api_key", "xai-", rf"{_AN}{{40,120}}"),
    ("api_key", "pplx-", rf"{_AN}{{30,100}}"),
    ("token", "r8_", rf"{_AN}{{30,64}}"),
    ("api_key", "fw_", rf"{_AN}{{20,40}}"),
    ("api_key", "tvly-", rf"{_W}{{20,60}}"),
    ("api_key", "nvapi-", rf"{_W}{{40,100}}"),
    ("api_key", "lsv2_", r"(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("api_key", "pcsk_", rf"{_W}{{40,100}}"),
    # Google, Azure, DigitalOcean, Cloudflare, Heroku, Fly
    ("api_key", "AIza", rf"{_W}{{30,60}}"),
    ("api_key", "GOCSPX-", rf"{_W}{{20,40}}"),
    ("token", "ya29.", r"[A-Za-z0-9_.-]{20,2000}"),
    ("token", "1//0", rf"{_W}{{30,120}}"),
    *(("token", f"do{letter}_v1_", rf"{_HEX}{{40,64}}") for letter in "pro"),
    ("api_key", "v1.0-", rf"{_HEX}{{24}}-{_HEX}{{100,160}}"),
    ("api_key", "HRKU-", rf"{_W}{{30,80}}"),
    ("token", "fo1_", rf"{_W}{{40,60}}"),
    ("token", "fm1", rf"[ar]_{_B64}{{40,1000}}={{0,3}}"),
    ("token", "fm2_", rf"{_B64}{{40,1000}}={{0,3}}"),
    # Package registries and builds
    ("token", "npm_", rf"{_AN}{{30,64}}"),
    ("token", "pypi-", rf"{_W}{{40,1000}}"),
    ("token", "rubygems_", rf"{_HEX}{{40,64}}"),
    ("token", "CLOJARS_", rf"{_AN}{{50,70}}"),
    ("token", "dckr_", rf"(?:pat|oat)_{_W}{{20,60}}"),
    ("api_key", "oy2", r"[a-z0-9]{43}"),
    ("token", "cio", rf"{_AN}{{32}}"),
    ("token", "AKCp", rf"{_AN}{{60,80}}"),
    ("token", "cmVmd", rf"{_AN}{{50,70}}"),
    ("token", "squ_", rf"{_AN}{{40}}"),
    ("token", "sqp_", rf"{_AN}{{40}}"),
    ("token", "bkua_", rf"{_AN}{{40}}"),
    # Mail and messages
    ("api_key", "SG.", rf"{_W}{{16,64}}\.{_W}{{16,64}}"),
    ("api_key", "SK", rf"{_HEX}{{32}}"),
    ("api_key", "key-", r"[a-z0-9]{30,40}"),
    ("api_key", "pubkey-", r"[a-z0-9]{30,40}"),
    ("api_key", "xkeysib-", r"[a-z0-9-]{40,100}"),
    ("api_key", "xsmtpsib-", r"[a-z0-9-]{40,100}"),
    ("api_key", "md-", rf"{_AN}{{22}}"),
    ("api_key", "re_", rf"{_AN}{{8}}_{_AN}{{20,30}}"),
    # Data and operations
    ("token", "dapi", rf"{_HEX}{{30,32}}(?:-\d)?"),
    ("token", "dkea", rf"{_HEX}{{30,32}}"),
    ("token", "hvs.", rf"{_W}{{20,300}}"),
    ("token", "hvb.", rf"{_W}{{40,400}}"),
    ("token", "glsa_", rf"{_AN}{{24,40}}_{_HEX}{{8}}"),
    ("token", "glc_", rf"{_B64}{{30,400}}={{0,3}}"),
    ("token", "eyJrIjoi", rf"{_B64}{{40,400}}={{0,3}}"),
    ("token", "sntry", rf"[su]_{_W}{{30,400}}={{0,2}}_?{_B64}{{0,60}}"),
    ("token", "pul-", rf"{_HEX}{{40}}"),
    ("token", "sbp_", rf"{_HEX}{{40}}"),
    ("api_key", "sb_secret_", rf"{_W}{{20,64}}"),
    *(("token", f"pscale_{name}_", r"[A-Za-z0-9_=.-]{24,80}") for name in ("tkn", "oauth", "pw")),
    *(("api_key", f"NR{name}-", rf"{_AN}{{20,64}}") for name in ("AK", "RA", "JS", "II", "AA")),
    ("api_key", "NRII-", rf"{_W}{{20,64}}"),
    ("token", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{36,50}"),
    ("token", "dt0c01.", rf"{_AN}{{24}}\.{_AN}{{64}}"),
    ("token", "sgp_", rf"{_AN}{{16,120}}"),
    ("token", "sha256~", rf"{_W}{{43}}"),
    ("api_key", "API-", r"[A-Z0-9]{26}"),
    ("token", "pnu_", rf"{_AN}{{36}}"),
    ("api_key", "rdme_", r"[a-z0-9]{60,80}"),
    ("api_key", "phc_", rf"{_AN}{{40,50}}"),
    ("api_key", "phx_", rf"{_AN}{{40,50}}"),
    ("api_key", "ico-", rf"{_AN}{{32}}"),
    ("token", "tskey-", rf"[a-z]{{3,12}}-{_AN}{{6,24}}-?{_AN}{{10,64}}"),
    ("token", "ngrok_", rf"{_W}{{30,64}}"),
    ("token", "vercel_", rf"{_AN}{{20,64}}"),
    ("token", "nfp_", rf"{_AN}{{30,64}}"),
    ("token", "EAACEdEose0cBA", rf"{_AN}{{10,300}}"),
    ("token", "EAA", rf"{_AN}{{80,400}}"),
    ("token", "sl.", r"[A-Za-z0-9_=-]{100,400}"),
    # Work
    ("api_key", "lin_api_", rf"{_AN}{{30,64}}"),
    ("token", "lin_oauth_", rf"{_HEX}{{40,64}}"),
    ("api_key", "secret_", rf"{_AN}{{40,50}}"),
    ("token", "ntn_", rf"{_AN}{{40,60}}"),
    ("token", "pat", rf"{_AN}{{14}}\.{_HEX}{{60,64}}"),
    ("token", "figd_", rf"{_W}{{30,64}}"),
    ("api_key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{30,34}}"),
    ("token", "PMAT-", rf"{_AN}{{24,32}}"),
    ("token", "tfp_", rf"{_W}{{40,80}}"),
    ("token", "dop_", rf"{_AN}{{40,80}}"),
    ("token", "shippo_", rf"(?:live|test)_{_HEX}{{40}}"),
    ("api_key", "EZAK", rf"{_AN}{{54}}"),
    ("api_key", "EZTK", rf"{_AN}{{54}}"),
    ("api_key", "FLWSECK", rf"(?:_TEST)?-{_HEX}{{12,32}}(?:-X)?"),
    ("token", "duffel_", rf"(?:live|test)_{_W}{{40,50}}"),
    ("token", "live_", rf"{_AN}{{35,64}}"),
    ("token", "ops_eyJ", rf"{_B64}{{60,2000}}={{0,3}}"),
    ("api_key", "A3-", r"[A-Z0-9]{6}-[A-Z0-9-]{23,40}"),
    ("token", "bot", rf"\d{{8,10}}:AA{_W}{{30,40}}"),
    # URLs that contain a credential
    ("token", "https://hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/+]{20,120}"),
    ("token", "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/+]{20,120}"),
    *(
        ("token", f"https://{host}/api/webhooks/", rf"\d{{15,21}}/{_W}{{40,100}}")
        for host in ("discord.com", "discordapp.com", "canary.discord.com", "ptb.discord.com")
    ),
    ("token", "https://outlook.office.com/webhook/", r"[A-Za-z0-9@/-]{60,200}"),
    # Private keys in one line
    ("private_key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,64}"),
    ("private_key", "LS0tLS1CRUdJTi", rf"{_B64}{{40,16000}}={{0,2}}"),
)  # fmt: skip
_INNER: Final[tuple[tuple[SecretKind, str, str], ...]] = (
    ("token", ":AA", rf"(?<![A-Za-z0-9])\d{{8,10}}:AA{_W}{{30,40}}"),  # Telegram
    ("token", ".", rf"(?<![A-Za-z0-9_.-])[MNO]{_W}{{22,28}}\.{_W}{{6}}\.{_W}{{27,40}}(?![A-Za-z0-9_-])"),  # Discord
    ("api_key", "-us", rf"(?<![A-Za-z0-9]){_HEX}{{32}}-us\d{{1,2}}(?![A-Za-z0-9])"),  # Mailchimp
    ("token", ".atlasv1.", rf"(?<![A-Za-z0-9]){_AN}{{14}}\.atlasv1\.{_W}{{50,80}}"),  # Terraform
    ("api_key", "Q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{30,36}"),  # Azure
    ("token", ".webhook.office.com/", r"https://[a-z0-9]{1,64}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{60,250}"),
    ("api_key", "sig=", r"(?<![A-Za-z])sig=[A-Za-z0-9%/+]{16,255}=?"),  # Azure shared access signature
    ("api_key", "_mmk", rf"(?<![A-Za-z0-9]){_AN}{{6}}_{_AN}{{29}}_mmk"),  # MaxMind
)
_compiled = cache(re.compile)
"""Compile a format on first use, because most formats are never needed."""
_LINE_BREAK: Final = re.compile(r"[ \t]*=?\r?\n[ \t>|]*")
_WINDOW: Final = 400
_SIGNS_MIN: Final = 6
"""Minimum number of different characters in a key: `xxxxxxxxxxxx` is a placeholder."""


@cache
def _least_key() -> int:
    """Return the minimum length of a key without white space, in characters."""
    return min(
        *(len(prefix) + least_length(body) for _, prefix, body in _PREFIXED),
        *(least_length(whole) for _, _, whole in _INNER),
    )


def _long_runs(text: str) -> list[str]:
    least = _least_key()
    return [run for run in text.split() if len(run) >= least]


@cache
def _prefixes() -> re.Pattern[str]:
    """Return the pattern of all prefixes. A prefix must not follow a letter or a digit."""
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(re.escape(prefix) for _, prefix, _ in _PREFIXED)})")


def vendor_keys(text: str) -> Iterator[Finding]:
    """Yield keys and tokens of known vendors."""
    runs = _long_runs(text)
    if "\n" in text:  # a key may be broken across lines
        runs += _long_runs(_without_line_breaks(text))
    if not runs:
        return
    long = " ".join(runs)
    if "\n" in text or _prefixes().search(long):
        yield from _prefixed_keys(text, long)
    for kind, inner, whole in _INNER:
        if inner in long:
            yield from (
                Finding(kind, *match.span()) for match in _compiled(whole).finditer(text) if _looks_generated(match[0])
            )


def _without_line_breaks(text: str) -> str:
    """Remove each `_LINE_BREAK`, in linear time even when a text has long runs of spaces."""
    first, *others = text.split("\n")
    lines = [first, *(line.lstrip(" \t>|") for line in others)]
    ends = (line.removesuffix("\r").removesuffix("=").rstrip(" \t") for line in lines[:-1])
    return "".join((*ends, lines[-1]))


def _prefixed_keys(text: str, long: str) -> Iterator[Finding]:
    for kind, prefix, body in _PREFIXED:
        if prefix not in long:
            continue
        place = text.find(prefix)
        while place != -1:
            end = _end_of_key(text, place, place + len(prefix), _compiled(body))
            if end is not None:
                yield Finding(kind, place, end)
            place = text.find(prefix, place + len(prefix) if end is None else end)


def _end_of_key(text: str, start: int, after_prefix: int, body: re.Pattern[str]) -> int | None:
    if text[start - 1 : start].isalnum() and start > 0:
        return None
    if match := body.match(text, after_prefix):
        return match.end() if _looks_generated(match[0]) else None
    window = text[after_prefix : after_prefix + _WINDOW]
    if "\n" not in window:
        return None
    joined = _LINE_BREAK.sub("", window)
    whole = body.match(joined)
    if whole is None or not _looks_generated(whole[0]) or not any(map(str.isdigit, whole[0])):
        return None
    return _place_of(window, whole.end()) + after_prefix


def _place_of(window: str, signs: int) -> int:
    """Return the position in the window after this number of characters, not counting line breaks."""
    for gap in _LINE_BREAK.finditer(window):
        if gap.start() >= signs:
            break
        signs += gap.end() - gap.start()
    return signs


def _looks_generated(body: str) -> bool:
    """Return whether the text looks generated: not a word, not a name with hyphens, not one repeated character."""
    if len(set(body)) < _SIGNS_MIN:
        return False
    return any(map(str.isdigit, body)) or (body != body.lower() and body != body.upper())
