"""What can go wrong between Airflow and Kafka. Free of Airflow: operators translate.

`retriable` says whether trying the same task again may help.
"""

from __future__ import annotations

from typing import ClassVar


class KpipeError(RuntimeError):
    """The root of the provider's own errors."""

    retriable: ClassVar[bool] = False


class ConnectionSettingsError(KpipeError):
    """An Airflow connection does not describe a Kafka cluster."""


class KafkaUnavailableError(KpipeError):
    """The cluster does not answer."""

    retriable: ClassVar[bool] = True


class UnreachableError(KafkaUnavailableError):
    """Nobody answers at any address as a connection asks: passing where it has worked before, else a mistake in it."""


class HeldUpError(KafkaUnavailableError):
    """A transaction that has not ended keeps a group from being read."""


class ForbiddenError(KpipeError):
    """The connection's user may not use a topic, a group or a transactional id."""


class UnknownTopicError(KpipeError):
    """A topic of the pipeline is not on the cluster."""


class PlanError(KpipeError):
    """No plan can be made of these wishes."""


class StalePlanError(KpipeError):
    """The cluster is no longer as it was when the plan was made."""


class GroupInUseError(KpipeError):
    """A consumer group that only the checkpoint should move has live members."""

    retriable: ClassVar[bool] = True


class GroupMovedError(KpipeError):
    """Someone else moved the committed offsets since the plan was made."""


class CommitError(KpipeError):
    """The broker did not commit what it was asked to."""

    retriable: ClassVar[bool] = True


class IncompleteRunError(KpipeError):
    """Some partition was not read to the end of its range."""

    retriable: ClassVar[bool] = True


class TooManyFaultsError(KpipeError):
    """Too large a share of a run's records could not pass."""


class OverdueJobError(KpipeError):
    """A job did not come to its end in time, and was ended."""

    retriable: ClassVar[bool] = True


class YieldedRunError(KpipeError):
    """Partitions were given up for good: to a newer run, or because the run had had its time."""
