"""Construction of the secret detectors of `[memory.privacy]` and of the filter that uses them."""

from __future__ import annotations

from collections.abc import Sequence

from ...memory.policies import MemoryPolicy, PresidioPolicy
from ...memory.secrets.entities import EntityDetector
from ...memory.secrets.findings import SecretDetector
from ...memory.secrets.protection import BUILT_IN
from ...memory.secrets.secret_filter import SecretFilter
from ..errors import usage


def new_detectors(policy: PresidioPolicy) -> Sequence[SecretDetector]:
    """Return the built-in detectors, and Presidio if the policy names an analyzer.

    Raises CommandFailed (exit 2) if the analyzer cannot be loaded.
    """
    if not policy.analyzer:
        return BUILT_IN
    from ...adapters.presidio import PresidioRecognizer, load_analyzer  # slow to import

    try:
        recognizer = PresidioRecognizer(analyzer=load_analyzer(policy.analyzer), score=policy.score)
    except ValueError as error:
        raise usage(str(error)) from error
    return (*BUILT_IN, EntityDetector(recognizer=recognizer, kinds=policy.kinds))


def new_secret_filter(policy: MemoryPolicy) -> SecretFilter:
    """Return the filter that masks and labels secrets by the deployment's policy.

    Raises CommandFailed (exit 2) if the analyzer cannot be loaded.
    """
    return SecretFilter(policy.privacy, new_detectors(policy.privacy.presidio))
