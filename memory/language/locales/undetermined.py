"""The empty pack for texts in other languages than the configured packs.

The name of the empty pack, `und`, is the standard language tag for an undetermined language.
"""

from __future__ import annotations

from typing import Final

from .definition import define_locale_pack

UNDETERMINED: Final = define_locale_pack(name="und")
