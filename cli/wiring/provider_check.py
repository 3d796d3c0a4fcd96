"""Check of the identity provider by `memstream doctor`."""

from __future__ import annotations

from ...api.sign_in.issuer_keys import fetch_keys
from ...schemas.errors import Transient
from .checks import Check
from .settings import Settings


async def check_provider(settings: Settings) -> list[Check]:
    """Fetch the keys of the identity provider, if the settings name one."""
    provider = settings.provider
    if provider is None:
        return []
    try:
        keys = await fetch_keys(provider.issuer)
    except Transient as away:
        fix = "compare MEMSTREAM_OIDC_ISSUER with `iss` of an access token; a private authority needs SSL_CERT_FILE"
        return [Check("oidc", False, f"{provider.issuer}: {away}", fix)]
    algorithms = ", ".join(sorted({algorithm for _, algorithm in keys}))
    detail = (
        f"{provider.issuer}: {len({key_id for key_id, _ in keys})} keys ({algorithms}), {len(provider.grants)} grants, "
        f"audience {' or '.join(provider.audiences)}"
    )
    return [Check("oidc", True, detail)]
