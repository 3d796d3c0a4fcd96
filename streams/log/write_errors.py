"""Translation of producer errors into Transient (send again), Fatal (record refused) and DeploymentFault.

The translation covers every write to Kafka: rows, records of stages, dead letters, and records that commands and
clients append.
"""

from __future__ import annotations

import time
from typing import Final

from aiokafka import errors as kafka
from aiokafka.errors import BrokerResponseError, KafkaError, kafka_errors

from ...schemas.errors import DeploymentFault, Fatal, StageError, Transient

UNREACHED: Final = "is it up, and may this client write there?"
OWN_TIME: Final = 60.0
"""Tolerance in seconds: a timestamp this close to the current time counts as set by this machine's clock."""


class InvalidRecordError(BrokerResponseError):
    """The broker's check of a record failed (INVALID_RECORD). aiokafka does not know this code."""

    errno = 87
    message = "INVALID_RECORD"
    description = "The broker's validation of this record failed."


kafka_errors.setdefault(InvalidRecordError.errno, InvalidRecordError)

PASSES: Final[tuple[type[KafkaError], ...]] = (
    # aiokafka marks these as not retriable, but another attempt or another producer can succeed
    kafka.KafkaTimeoutError,
    kafka.KafkaUnavailableError,
    kafka.UnknownError,
    kafka.CorruptRecordException,
    kafka.BrokerNotAvailableError,
    kafka.ReplicaNotAvailableError,
    kafka.StaleControllerEpochError,
    kafka.StaleLeaderEpochCodeError,
    kafka.OutOfOrderSequenceNumber,
    kafka.DuplicateSequenceNumber,
    kafka.UnknownProducerId,
    kafka.InvalidProducerEpoch,
    kafka.InvalidProducerIdMapping,
    kafka.ProducerFenced,
    kafka.ProducerClosed,
    kafka.IllegalStateError,
)
TOO_LARGE: Final = (kafka.MessageSizeTooLargeError, kafka.RecordListTooLargeError, kafka.RecordTooLargeError)
NOT_ALLOWED: Final = (
    kafka.TopicAuthorizationFailedError,
    kafka.ClusterAuthorizationFailedError,
    kafka.TransactionalIdAuthorizationFailed,
    kafka.AuthenticationFailedError,
    kafka.AuthenticationMethodNotSupported,
    kafka.SaslAuthenticationFailed,
)


def write_error(topic: str, cause: BaseException, *, timestamp: int | None = None) -> StageError:
    """Translate the error of a failed write to `topic`.

    `timestamp`: the record's timestamp in milliseconds; None when the record gets the time of sending.

    Returns:
        Transient: the record can be sent again.
        DeploymentFault: the broker refuses this record and every other record of the topic.
        Fatal: the broker always refuses this record.
    """
    if isinstance(cause, TOO_LARGE):
        error: StageError = Fatal(
            f"a record of memstream is larger than {topic} accepts: {cause} (check max.message.bytes)"
        )
    elif not isinstance(cause, KafkaError) or cause.retriable or isinstance(cause, PASSES):
        error = Transient("broker", f"a record for {topic} did not arrive: {cause!r}", remedy=UNREACHED)
    elif isinstance(cause, NOT_ALLOWED):
        error = DeploymentFault(
            f"this client may not write to {topic}: {cause!r}",
            remedy="give its user the operation Write on the topic (and IdempotentWrite), then start it again",
        )
    elif isinstance(cause, kafka.InvalidTimestampError) and _is_own_time(timestamp):
        error = DeploymentFault(
            f"the broker refuses records for {topic} with the time of this machine, "
            f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}: {cause!r}",
            remedy="set this machine's clock (NTP), compare it with the broker's: memstream doctor; then start it "
            "again. The topic's message.timestamp.after.max.ms and before.max.ms limit how far a time may be off",
        )
    elif isinstance(cause, kafka.InvalidTimestampError | InvalidRecordError):
        error = Fatal(f"the broker refuses a record of memstream for {topic}: {cause!r}")
    else:
        error = DeploymentFault(
            f"the broker refuses every record for {topic}: {cause!r}",
            remedy=f"see its log, and the settings of the topic: memstream topics check, kafka-configs --describe "
            f"--topic {topic}; then start it again",
        )
    error.__cause__ = cause
    return error


def row_error(changelog: str, cause: BaseException) -> StageError:
    """Translate the error of a failed write of a row to its changelog.

    A row has a key and an allowed size, and gets the time of sending. So a refusal is not caused by the row: the
    changelog refuses all rows, and the error is a DeploymentFault.
    """
    error = write_error(changelog, cause)
    if not isinstance(error, Fatal) or isinstance(error, DeploymentFault):
        return error
    fault = DeploymentFault(
        f"{changelog} refuses the rows of its table: {cause!r}",
        remedy="repair its settings (memstream topics check names them), then start the worker again",
    )
    fault.__cause__ = cause
    return fault


def _is_own_time(timestamp: int | None) -> bool:
    return timestamp is None or abs(timestamp / 1000 - time.time()) <= OWN_TIME
