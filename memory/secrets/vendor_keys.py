"""Keys and tokens of known vendors, by the shapes that they publish."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..policies.privacy import SecretKind
from .findings import Finding

_SHAPES: Final[tuple[tuple[SecretKind, str], ...]] = (
    ("api_key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),  # AWS
    ("token", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}"),  # GitHub
    ("token", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{20,255}"),  # GitLab
    ("token", r"xox[abeprso]-[A-Za-z0-9-]{10,255}|xapp-\d-[A-Za-z0-9-]{10,255}"),  # Slack
    ("api_key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/]{24,255}"),  # Stripe
    ("api_key", r"sk-ant-[A-Za-z0-9_-]{20,255}|sk-[A-Za-z0-9_-]{20,255}"),  # Anthropic, OpenAI
    ("api_key", r"AIza[A-Za-z0-9_-]{35}"),  # Google
    ("token", r"npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,1000}|hf_[A-Za-z]{30,40}"),  # npm, PyPI, Hugging Face
    ("api_key", r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),  # SendGrid
)
_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:" + "|".join(f"(?P<s{place}>{shape})" for place, (_, shape) in enumerate(_SHAPES)) + ")"
)


def vendor_keys(text: str) -> Iterator[Finding]:
    """Yield keys and tokens of known vendors."""
    for match in _KEY.finditer(text):
        assert match.lastgroup is not None
        yield Finding(_SHAPES[int(match.lastgroup[1:])][0], *match.span())
