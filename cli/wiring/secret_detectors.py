"""The detectors of secrets of `[memory.privacy]`, and the filter that uses them."""

from __future__ import annotations

from collections.abc import Sequence

from ...memory.policies import MemoryPolicy, PresidioPolicy
from ...memory.secrets.entities import EntityDetector
from ...memory.secrets.findings import SecretDetector
from ...memory.secrets.protection import BUILT_IN
from ...memory.secrets.secret_filter import SecretFilter
from ..errors import usage


def new_detectors(policy: PresidioPolicy) -> Sequence[SecretDetector]:
    """Return the built-in detector, and Presidio beside it if the policy names an analyzer.

    CommandFailed (exit 2) says what is missing.
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
    """Return what masks and labels secrets, by the deployment's policy. CommandFailed (exit 2) says what is missing."""
    return SecretFilter(policy.privacy, new_detectors(policy.privacy.presidio))
