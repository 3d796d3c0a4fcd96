"""Errors of the producer: which wait, which are of one record, and which end the worker with a remedy."""

from __future__ import annotations

import time

import pytest
from aiokafka import errors as kafka
from aiokafka.errors import KafkaError, for_code

from memstream.schemas.errors import DeploymentFault, Fatal, StageError, Transient
from memstream.streams.engine.error_boundary import is_of_one_key
from memstream.streams.engine.process_exit import BROKEN, exit_code_for
from memstream.streams.log.write_errors import NOT_ALLOWED, PASSES, InvalidRecordError, row_error, write_error
from tests.support.cases import for_each

TOPIC = "memory.observations"
EVERY = [each for each in vars(kafka).values() if isinstance(each, type) and issubclass(each, KafkaError)]
DAY = 86_400_000


@for_each("kind", EVERY)
def test_what_the_broker_never_takes_does_not_wait(kind: type[KafkaError]) -> None:
    error = write_error(TOPIC, kind())
    waits = kind.retriable or issubclass(kind, PASSES)
    assert isinstance(error, Transient if waits else Fatal)
    assert TOPIC in str(error)
    assert error.__cause__ is not None


@pytest.mark.parametrize("kind", [*NOT_ALLOWED, kafka.PolicyViolationError, kafka.InvalidTimestampError])
def test_what_is_wrong_for_every_record_ends_the_worker_with_a_remedy(kind: type[KafkaError]) -> None:
    for error in (write_error(TOPIC, kind()), row_error("rows-changelog", kind())):
        assert isinstance(error, DeploymentFault)
        assert error.remedy
        assert not is_of_one_key(error)
        assert exit_code_for(error) == BROKEN


def test_a_wrong_clock_is_named_with_its_time() -> None:
    error = write_error(TOPIC, kafka.InvalidTimestampError())
    assert time.strftime("%Y-%m-%dT%H") in str(error)
    assert "memstream doctor" in error.remedy


OF_ONE_RECORD: list[StageError] = [
    write_error(TOPIC, kafka.MessageSizeTooLargeError()),
    write_error(TOPIC, InvalidRecordError()),
    write_error(TOPIC, kafka.InvalidTimestampError(), timestamp=int(time.time() * 1000) - 30 * DAY),
]


@pytest.mark.parametrize("error", OF_ONE_RECORD)
def test_what_is_of_one_record_parks_its_key(error: StageError) -> None:
    assert isinstance(error, Fatal)
    assert not isinstance(error, DeploymentFault)
    assert is_of_one_key(error)


@pytest.mark.parametrize("kind", [kafka.MessageSizeTooLargeError, InvalidRecordError, kafka.InvalidTimestampError])
def test_no_refusal_of_a_row_is_of_one_row(kind: type[KafkaError]) -> None:
    assert isinstance(row_error("rows-changelog", kind()), DeploymentFault)


def test_the_code_that_aiokafka_does_not_know() -> None:
    assert for_code(87) is InvalidRecordError
